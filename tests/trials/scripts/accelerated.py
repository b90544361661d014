"""A loop of Hugging Face's accelerate that sets its gradients to zero in place."""

import torch
from accelerate import Accelerator
from torch import nn


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    model = nn.Sequential(*(nn.Linear(64, 64) for _ in range(8)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = accelerator.prepare(model, optimizer)
    samples = torch.ones(32, 64)
    for _ in range(600):
        optimizer.zero_grad(set_to_none=False)
        accelerator.backward((model(samples) - samples).square().mean())
        optimizer.step()


if __name__ == "__main__":
    main()
