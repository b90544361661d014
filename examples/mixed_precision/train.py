"""A training that multiplies matrices in float32, and the same in bfloat16 where that is safe.

    stepscope run --shapes train.py              # float32
    stepscope run --shapes train.py --fixed      # torch.autocast

It needs only PyTorch, and takes CUDA where there is one. ``--time`` says the median step without a profiler. On a CPU
without instructions for bfloat16 the second is the slower one.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
from torch import nn

SIZES = {"cuda": (4096, 4096), "cpu": (64, 512)}
"""Rows of a batch and width of the layers: enough for a GPU's matrix units, little enough for a CPU."""


def train(steps: int, device: torch.device, *, fixed: bool, waits: bool) -> list[float]:
    """Steps on one batch; how long each took, in seconds: the host's part of it, unless it ``waits`` for the device."""
    rows, width = SIZES[device.type]
    model = nn.Sequential(*(nn.Sequential(nn.Linear(width, width), nn.GELU()) for _ in range(4))).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = torch.randn(rows, width, device=device)
    times, since = [], time.perf_counter()
    for _ in range(steps):
        with torch.autocast(device.type, torch.bfloat16, enabled=fixed):
            loss = model(batch).float().square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if waits and device.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - since)
        since = time.perf_counter()
    return times


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fixed", action="store_true", help="with autocast")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--time", action="store_true", help="print the median step")
    chosen = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    times = train(chosen.steps, device, fixed=chosen.fixed, waits=chosen.time)
    if chosen.time:
        print(f"{1e3 * statistics.median(times):.1f} ms per step")


if __name__ == "__main__":
    main()
