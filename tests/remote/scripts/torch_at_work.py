"""PyTorch for so many seconds, that knows nothing of stepscope. usage: torch_at_work.py train|infer|other SECONDS"""

import sys
import time

import torch

torch.set_num_threads(1)
kind, seconds = sys.argv[1], float(sys.argv[2])
model = torch.nn.Sequential(*[torch.nn.Linear(128, 128) for _ in range(8)])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
print("ready", flush=True)
ends = time.monotonic() + seconds
while time.monotonic() < ends:
    batch = torch.randn(64, 128)
    if kind == "train":
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
    elif kind == "infer":
        with torch.no_grad():
            model(batch)
    else:
        batch @ batch.T
print("end", flush=True)
