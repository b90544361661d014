"""A model whose gradients are clipped, with a schedule of its learning rate: half precision has to see to both."""

import torch
from torch import nn


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=100)
    for _ in range(10_000):
        samples = torch.randn(32, 64)
        loss = nn.functional.mse_loss(model(samples), samples.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()


if __name__ == "__main__":
    main()
