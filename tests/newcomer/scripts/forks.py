"""A job that forks a helper in every step and waits for it.

forks.py --seldom   every hundredth
"""

import os
import sys
import time

import torch


def upload(step):
    if "--seldom" in sys.argv and step % 100:
        return
    child = os.fork()
    if child == 0:
        time.sleep(0.02)
        os._exit(0)
    os.waitpid(child, 0)  # the cause


def main():
    torch.set_num_threads(1)
    model = torch.nn.Linear(256, 256)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    rows = torch.randn(64, 256)
    begun = time.perf_counter()
    for step in range(100):
        loss = (model(rows) - rows).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        upload(step)
    print(f"step_ms {(time.perf_counter() - begun) / 100 * 1e3:.3f}")


if __name__ == "__main__":
    main()
