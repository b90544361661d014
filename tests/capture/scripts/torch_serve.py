"""PyTorch without an optimizer. usage: torch_serve.py plain|inference|grad|compiled|samples|tensors STEPS"""

import sys

import torch

kind, steps = sys.argv[1], int(sys.argv[2])
torch.manual_seed(0)


class Scaled(torch.nn.Module):
    """A transform of samples: a module without parameters."""

    def forward(self, sample):
        return sample / 2


model = torch.nn.Sequential(*[torch.nn.Linear(192, 192) for _ in range(12)])
called = torch.compile(model, backend="eager") if kind == "compiled" else model
scaled = Scaled()


def step():
    if kind == "tensors":
        tensor = torch.randn(256, 256)
        for _ in range(4):
            tensor = torch.tanh(tensor @ tensor)
        return
    batch = torch.randn(256, 192)
    if kind == "samples":
        batch = torch.stack([scaled(sample) for sample in batch])
    called(batch)


modes = {"inference": torch.inference_mode, "grad": torch.enable_grad}
with modes.get(kind, torch.no_grad)():
    for _ in range(steps):
        step()
print("end")
