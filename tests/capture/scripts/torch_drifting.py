"""A loop whose steps become ten times as slow. usage: torch_drifting.py STEPS AT"""

import sys
import time

import torch

steps, at = map(int, sys.argv[1:])
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for number in range(steps):
    time.sleep(0.01 if number < at else 0.1)
    optimizer.zero_grad()
    model(torch.randn(32, 64)).sum().backward()
    optimizer.step()
print("done")
