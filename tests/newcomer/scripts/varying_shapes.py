"""A compiled model whose batches are of another length each time.

varying_shapes.py            each length is compiled
varying_shapes.py --padded   all are padded to the longest
"""

import sys
import time

import torch

LONGEST = 40


def batches(count):
    for number in range(count):
        length = LONGEST - number % LONGEST
        rows = torch.randn(8, length, 32)
        yield torch.nn.functional.pad(rows, (0, 0, 0, LONGEST - length)) if "--padded" in sys.argv else rows


def main():
    torch.set_num_threads(1)
    torch._dynamo.config.recompile_limit = 100
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    compiled = torch.compile(model, backend="aot_eager", dynamic=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    begun = time.perf_counter()
    for number, rows in enumerate(batches(LONGEST)):
        if number == 5:
            begun = time.perf_counter()
        loss = compiled(rows).square().mean()  # the cause
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"step_ms {(time.perf_counter() - begun) / (LONGEST - 5) * 1e3:.3f}")


if __name__ == "__main__":
    main()
