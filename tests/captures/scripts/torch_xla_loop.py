"""A PyTorch/XLA loop on the CPU, profiled; ``truth.json`` says what was planted.

usage: torch_xla_loop.py OUT
"""

import json
import os
import sys
import time
from pathlib import Path

os.environ["PJRT_DEVICE"] = "CPU"
import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.debug.profiler as xp

OUT = Path(sys.argv[1])
STEPS = range(20, 28)
RECOMPILED = 24
LOAD_S = 0.020
ROWS, OTHER_ROWS = 32, 48

device = torch_xla.device()
model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def train_step(rows):
    x, y = torch.ones(rows, 16).to(device), torch.zeros(rows, 4).to(device)
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


for _ in range(3):
    train_step(ROWS)
    torch_xla.sync(wait=True)

steps = {}
xp.start_trace(str(OUT))
for number in STEPS:
    before = time.perf_counter_ns()
    with xp.StepTrace("train", step_num=number):
        began = time.perf_counter_ns()
        with xp.Trace("load_batch"):
            time.sleep(LOAD_S)
        loaded = time.perf_counter_ns()
        train_step(OTHER_ROWS if number == RECOMPILED else ROWS)
        ended = time.perf_counter_ns()
    xm.wait_device_ops()  # Leaving a StepTrace has run what the step built.
    steps[number] = {
        "step_ns": [ended - began, time.perf_counter_ns() - before],
        "load_ns": [int(LOAD_S * 1e9), loaded - began],
    }
xp.stop_trace()
truth = {
    "steps": steps,
    "recompiled": RECOMPILED,
    "batch": {"usual": f"f32[{ROWS},16]", "other": f"f32[{OTHER_ROWS},16]"},
    "version": torch_xla.__version__,
}
(OUT / "truth.json").write_text(json.dumps(truth))
