"""A PyTorch/XLA loop. usage: torch_xla_loop.py STEPS"""

import os
import sys

os.environ["PJRT_DEVICE"] = "CPU"
import torch
import torch_xla

device = torch_xla.device()
model = torch.nn.Linear(16, 4).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(int(sys.argv[1])):
    optimizer.zero_grad()
    model(torch.ones(8, 16).to(device)).sum().backward()
    optimizer.step()
    torch_xla.sync(wait=True)
print("end")
