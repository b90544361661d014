"""Batches taken with next() from an iterator class of the job's own.

iterator_input.py --whole   a batch is made at once
"""

import math
import sys
import time

import torch


class Waves:
    def __init__(self, batch_size):
        self.batch_size = batch_size

    def __iter__(self):
        return self

    def __next__(self):
        if "--whole" in sys.argv:
            return torch.sin(torch.outer(torch.arange(self.batch_size), torch.arange(256)) / 100)
        rows = [[math.sin(i * j / 100) for j in range(256)] for i in range(self.batch_size)]
        return torch.tensor(rows)


def main():
    torch.set_num_threads(1)
    source = iter(Waves(128))
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    begun = time.perf_counter()
    for _ in range(60):
        rows = next(source)
        loss = (model(rows) - rows).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"step_ms {(time.perf_counter() - begun) / 60 * 1e3:.3f}")


if __name__ == "__main__":
    main()
