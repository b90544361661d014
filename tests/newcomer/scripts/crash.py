"""A job that trains well for some steps and then raises.

crash.py --whole   its batch is made at once
"""

import sys
import time

import torch


def augment(rows):
    if "--whole" in sys.argv:
        return rows * 0.5
    return torch.tensor([[value * 0.5 for value in row] for row in rows.tolist()])  # the cause


def main():
    torch.set_num_threads(1)
    model = torch.nn.Linear(256, 256)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    begun = time.perf_counter()
    for step in range(10_000):
        rows = augment(torch.randn(64, 256))
        loss = (model(rows) - rows).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 200:
            print(f"step_ms {(time.perf_counter() - begun) / 200 * 1e3:.3f}", flush=True)
            raise RuntimeError("the loss is not a number")


if __name__ == "__main__":
    main()
