"""A PyTorch loop on the CPU whose data loader sleeps, profiled; ``truth.json`` says what was planted.

usage: torch_cpu.py OUT
"""

import json
import sys
import time
from pathlib import Path

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch.utils.data import DataLoader, Dataset

OUT = Path(sys.argv[1])
WAIT, WARMUP, ACTIVE = 2, 1, 6
SAMPLE_S, BATCH = 0.003, 4
PREPARED, PREPARE_S = 5, 0.025
"""The step that also sleeps in an annotation that is no loader's."""


class Slow(Dataset):
    def __len__(self):
        return BATCH * (WAIT + WARMUP + ACTIVE + 3)

    def __getitem__(self, index):
        time.sleep(SAMPLE_S)
        return torch.full((16,), float(index)), torch.zeros(4)


def export(profiler):
    profiler.export_chrome_trace(str(OUT / "trace.json.gz"))


OUT.mkdir(parents=True, exist_ok=True)
torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
steps = {}
with profile(
    activities=[ProfilerActivity.CPU],
    schedule=schedule(wait=WAIT, warmup=WARMUP, active=ACTIVE, repeat=1),
    on_trace_ready=export,
    record_shapes=True,
    with_stack=True,
) as profiler:
    began = time.perf_counter_ns()
    for number, (x, y) in enumerate(DataLoader(Slow(), batch_size=BATCH)):
        loaded = time.perf_counter_ns()
        if number == PREPARED:
            with record_function("prepare"):
                time.sleep(PREPARE_S)
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()
        ended = time.perf_counter_ns()
        profiler.step()
        steps[number] = {"input_ns": [int(BATCH * SAMPLE_S * 1e9), loaded - began], "work_ns": ended - loaded}
        began = time.perf_counter_ns()

truth = {
    "steps": {number: steps[number] for number in range(WAIT + WARMUP, WAIT + WARMUP + ACTIVE)},
    "prepared": {"step": PREPARED, "ns": int(PREPARE_S * 1e9)},
    "version": torch.__version__,
}
(OUT / "truth.json").write_text(json.dumps(truth))
