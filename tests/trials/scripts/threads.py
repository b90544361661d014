"""Sixteen threads for each small op, on machines that have fewer cores: they wait for each other."""

import torch
from torch import nn


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(16)
    model = nn.Sequential(*(nn.Linear(128, 128) for _ in range(24)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = torch.randn(64, 128)
    for _ in range(5_000):
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
