"""A training of many tiny operations, which the host gives to the device more slowly than it does them; and the cure.

    stepscope run train.py              # every operation is given by itself
    stepscope run train.py --fixed      # fused optimizer; on a GPU the model is a CUDA graph besides

It needs only PyTorch (2.4 or later), and takes CUDA where there is one. ``--time`` says the median step without a
profiler.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
from torch import Tensor, nn

BATCH, WIDTH, LAYERS = 32, 64, 40


def make_model(batch: Tensor, *, fixed: bool) -> tuple[nn.Module, torch.optim.Optimizer]:
    """Many layers, each of which is over at once, and an optimizer that updates tensor by tensor, or all at once."""
    layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH), nn.ReLU()) for _ in range(LAYERS)]
    model: nn.Module = nn.Sequential(*layers).to(batch.device)
    how = {"fused": True} if fixed else {"foreach": False}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, **how)
    if fixed and batch.device.type == "cuda":
        model = torch.cuda.make_graphed_callables(model, (batch,))  # Its shapes never change.
    return model, optimizer


def train(steps: int, device: torch.device, *, fixed: bool, waits: bool) -> list[float]:
    """Steps on one batch; how long each took, in seconds: the host's part of it, unless it ``waits`` for the device."""
    batch = torch.randn(BATCH, WIDTH, device=device)
    model, optimizer = make_model(batch, fixed=fixed)
    times, since = [], time.perf_counter()
    for _ in range(steps):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        if waits and device.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - since)
        since = time.perf_counter()
    return times


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fixed", action="store_true", help="fused, and as a graph")
    parser.add_argument("--steps", type=int, default=100)
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
