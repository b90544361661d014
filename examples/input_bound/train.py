"""A training that waits for its input, and the same with workers that read ahead.

    stepscope run train.py              # images are read when they are needed
    stepscope run train.py --fixed      # four workers read the next ones meanwhile

It needs only PyTorch, and takes CUDA where there is one. ``--time`` says the median step without a profiler.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

BATCH, SIDE = 16, 64
READ_S = 0.002
"""What reading one image from storage far away takes: a wait, not work, so that workers help where cores are few."""


class Stored(Dataset[tuple[Tensor, int]]):
    """Images that are far away."""

    def __init__(self, length: int) -> None:
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return fetch(index), index % 10


def fetch(index: int) -> Tensor:
    """One image, (3, SIDE, SIDE), after a while."""
    time.sleep(READ_S)
    return torch.rand(3, SIDE, SIDE, generator=torch.Generator().manual_seed(index))


def make_model() -> nn.Module:
    """A small convolutional network."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10),
    )  # fmt: skip


def train(loader: DataLoader[tuple[Tensor, int]], device: torch.device) -> list[float]:
    """An epoch; how long each step took, in seconds."""
    model = make_model().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    times, since = [], time.perf_counter()
    for images, labels in loader:
        loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - since)
        since = time.perf_counter()
    return times


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fixed", action="store_true", help="with workers")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--time", action="store_true", help="print the median step")
    chosen = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    workers = {"num_workers": 4, "prefetch_factor": 4, "persistent_workers": True} if chosen.fixed else {}
    loader = DataLoader(Stored(BATCH * chosen.steps), batch_size=BATCH, **workers)
    times = train(loader, torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    if chosen.time:
        print(f"{1e3 * statistics.median(times):.1f} ms per step")


if __name__ == "__main__":
    main()
