"""A long chain of small ops, each dispatched by Python: a compiler makes few of them."""

import torch
from torch import nn


class Chain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(64))

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        for _ in range(200):
            batch = torch.sin(batch * self.scale) + 0.1
        return batch


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Chain()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = torch.randn(8, 64)
    for _ in range(5_000):
        optimizer.zero_grad()
        loss = model(batch).mean()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
