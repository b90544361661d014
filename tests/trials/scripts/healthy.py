"""Large products on the threads that fit: nothing that can be set from outside makes it faster."""

import os

import torch
from torch import nn


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    model = nn.Sequential(nn.Linear(1024, 1024), nn.Linear(1024, 1024), nn.Linear(1024, 16))  # Few numbers to fuse.
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = torch.randn(1024, 1024)
    for _ in range(5_000):
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
