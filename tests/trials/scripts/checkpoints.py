"""A loop that saves after every fifth step, always to the same file, and reads it when it starts."""

import os
import time

import torch
from torch import nn


def main() -> None:
    model = nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if os.path.exists("saved/model.pt"):
        model.load_state_dict(torch.load("saved/model.pt"))
    os.makedirs("saved", exist_ok=True)
    for step in range(1_000):
        optimizer.zero_grad()
        model(torch.ones(8, 16)).sum().backward()
        optimizer.step()
        time.sleep(0.005)
        if step % 5 == 0:
            torch.save(model.state_dict(), "saved/model.pt")


if __name__ == "__main__":
    main()
