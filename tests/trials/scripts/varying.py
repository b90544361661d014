"""Batches of another length in each step, in an eager model: compiling it compiles anew for many of them."""

import torch
from torch import nn


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(20_000):
        batch = torch.ones(1 + step * 7 % 61, 64)
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
