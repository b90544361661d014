"""A loop in ``main`` that calls functions that call functions."""

import time

import torch

torch.set_num_threads(1)


def decode(index: int) -> torch.Tensor:
    """The innermost."""
    time.sleep(0.006)
    raw = [float((index * k) % 255) for k in range(20_000)]
    return torch.tensor(raw)


def load(index: int) -> torch.Tensor:
    """Two samples."""
    first = decode(index)
    second = decode(index + 1)
    return torch.stack((first, second))


def main() -> None:
    """Train."""
    model = torch.nn.Linear(20_000, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    for index in range(40):
        batch = load(index)
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.004)


main()
