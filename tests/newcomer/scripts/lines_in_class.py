"""A trainer with methods, fed by a generator."""

import time
from collections.abc import Iterator

import torch
from torch import Tensor, nn

torch.set_num_threads(1)


def batches(count: int) -> Iterator[Tensor]:
    """What a generator makes."""
    for _ in range(count):
        rows = torch.randn(128, 256)
        time.sleep(0.005)
        yield rows
        time.sleep(0.003)


class Trainer:
    """The usual."""

    def __init__(self) -> None:
        self.model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 8))
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.history: list[float] = []

    def loss(self, rows: Tensor) -> Tensor:
        """A loss with operators of its own."""
        output = self.model(rows)
        gram = rows @ rows.T
        spread = (gram @ gram).mean()
        return output.square().mean() + 0 * spread

    def log(self, loss: Tensor) -> None:
        """A value read, and a slow line."""
        self.history.append(loss.item())
        time.sleep(0.004)

    def fit(self, count: int) -> None:
        """The loop."""
        for rows in batches(count):
            self.optimizer.zero_grad()
            loss = self.loss(rows)
            loss.backward()
            self.optimizer.step()
            self.log(loss)


Trainer().fit(40)
