"""A PyTorch loop on the CPU that keeps a tensor of every step, profiled with its memory; ``truth.json`` says what was
planted, and the peak that PyTorch's own export makes of the same events.

usage: torch_memory.py OUT
"""

import json
import sys
import warnings
from pathlib import Path

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule

OUT = Path(sys.argv[1])
WAIT, WARMUP, ACTIVE = 2, 1, 7
BATCH, WIDTH = 256, 512
KEPT = 1 << 20
"""Bytes that each step keeps."""

OUT.mkdir(parents=True, exist_ok=True)
torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
kept = []


def keep(value):
    kept.append(torch.full((KEPT // 4,), value))


def export(profiler):
    profiler.export_chrome_trace(str(OUT / "trace.json.gz"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        profiler.export_memory_timeline(str(OUT / "timeline.json"), device="cpu")


with profile(
    activities=[ProfilerActivity.CPU],
    schedule=schedule(wait=WAIT, warmup=WARMUP, active=ACTIVE, repeat=1),
    on_trace_ready=export,
    profile_memory=True,
    record_shapes=True,
    with_stack=True,
) as profiler:
    for _ in range(WAIT + WARMUP + ACTIVE):
        x = torch.rand(BATCH, WIDTH)
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        keep(loss.item())
        profiler.step()

_, sizes = json.loads((OUT / "timeline.json").read_text())
truth = {
    "kept_per_step": KEPT,
    "kept_line": keep.__code__.co_firstlineno,
    "parameter_bytes": sum(p.numel() * p.element_size() for p in model.parameters()),
    # PyTorch counts what was there before, as far as ops of the profile took it in; stepscope cannot.
    "peak_bytes": max(map(sum, sizes)) - sum(sizes[0]),
    "version": torch.__version__,
}
(OUT / "truth.json").write_text(json.dumps(truth))
