"""A loop at the level of the module: operators, a wait, the garbage collector, a checkpoint, a value that is read."""

import gc
import io
import time

import torch

torch.set_num_threads(1)
model = torch.nn.Linear(400, 400)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = torch.randn(200, 400)
weights = torch.randn(500, 500)
for _ in range(40):
    output = model(data)
    mixed = weights @ weights
    loss = (output * output).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    time.sleep(0.008)
    gc.collect()
    torch.save(model.state_dict(), io.BytesIO())
    loss.item()
    total = 0
    for number in range(60_000):
        total += number
