"""What torch.profiler's options cost on this machine: ``python capture_cost.py`` (needs only PyTorch).

Prints the CPU time of a training step of many small ops (the worst case: nothing but dispatch), as a multiple of the
same step unprofiled, and the size of the exported JSON. The options are measured in turns, so that a machine that gets
slower or faster meanwhile affects all of them alike.
"""

from __future__ import annotations

import gzip
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule

WAIT, WARMUP, ACTIVE, ROUNDS = 1, 2, 10, 9
OPTIONS: dict[str, dict[str, Any] | None] = {
    "not profiled": None,
    "activities alone": {},
    "record_shapes": {"record_shapes": True},
    "profile_memory": {"profile_memory": True},
    "with_stack": {"with_stack": True},
    "record_shapes, with_stack": {"record_shapes": True, "with_stack": True},
    "all three": {"record_shapes": True, "with_stack": True, "profile_memory": True},
}


def make_step() -> Any:
    """A training step of 40 small layers."""
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.LayerNorm(16)) for _ in range(40)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs = torch.randn(8, 16)

    def step() -> None:
        optimizer.zero_grad()
        model(inputs).sum().backward()
        optimizer.step()

    return step


def cpu_seconds(step: Any) -> float:
    """CPU time of this thread in one step; waiting for other programs does not count."""
    began = time.thread_time()
    step()
    return time.thread_time() - began


def measure(step: Any, options: dict[str, Any] | None, folder: Path) -> tuple[float, int, int]:
    """Median CPU seconds of a step; bytes of JSON per step, plain and compressed."""
    if options is None:
        return statistics.median(cpu_seconds(step) for _ in range(ACTIVE)), 0, 0
    path, seconds = folder / "profile.json", []
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=WAIT, warmup=WARMUP, active=ACTIVE, repeat=1),
        on_trace_ready=lambda prof: prof.export_chrome_trace(str(path)),
        **options,
    ) as prof:
        for _ in range(WAIT + WARMUP + ACTIVE):
            seconds.append(cpu_seconds(step))
            prof.step()
    text = path.read_bytes()
    return statistics.median(seconds[WAIT + WARMUP :]), len(text) // ACTIVE, len(gzip.compress(text)) // ACTIVE


def main() -> None:
    """Measure every option and print a table."""
    torch.set_num_threads(1)
    step = make_step()
    for _ in range(20):
        step()
    with tempfile.TemporaryDirectory() as folder:
        rounds = [
            {name: measure(step, options, Path(folder)) for name, options in OPTIONS.items()} for _ in range(ROUNDS)
        ]
    base = statistics.median(found["not profiled"][0] for found in rounds)
    print(f"PyTorch {torch.__version__}, not profiled: {base * 1e3:.1f} ms of CPU time per step")
    for name in OPTIONS:
        factor = statistics.median(found[name][0] for found in rounds) / base
        _, plain, packed = rounds[-1][name]
        print(f"{name:26} {factor:4.1f} x   {plain / 1e3:7.0f} kB per step plain, {packed / 1e3:5.1f} kB as gzip")


if __name__ == "__main__":
    main()
