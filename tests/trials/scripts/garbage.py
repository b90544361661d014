"""Millions of objects that stay, and cycles made in each step: each full collection walks them all."""

import torch
from torch import nn


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    stays = [{"name": str(number), "tags": [number]} for number in range(600_000)]
    model = nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = torch.randn(32, 64)
    for _ in range(20_000):
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        for _ in range(3_000):
            cycle: list = [len(stays)]
            cycle.append(cycle)


if __name__ == "__main__":
    main()
