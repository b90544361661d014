"""A small model behind a dataset that fetches each sample from another machine, in 4 ms; batches of 16.

remote_data.py                    two workers
remote_data.py --workers 8        so many
"""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BATCH, WIDE = 16, 64


def fetch(index: int) -> torch.Tensor:
    time.sleep(0.004)  # the cause
    return torch.full((WIDE,), index / 1_000)


class Remote(Dataset):
    def __init__(self, samples: int) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return fetch(index), index % 10


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=100)
    asked = parser.parse_args()

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(WIDE, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(
        Remote(BATCH * asked.steps), batch_size=BATCH, num_workers=asked.workers, persistent_workers=True
    )
    for epoch in range(2):
        begun = time.perf_counter()
        for samples, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(samples), labels).backward()
            optimizer.step()
        print(f"epoch {epoch}: step_ms {(time.perf_counter() - begun) / asked.steps * 1e3:.3f}")


if __name__ == "__main__":
    main()
