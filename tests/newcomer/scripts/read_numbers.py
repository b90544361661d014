"""A helper that reads the numbers of a list of tensors one at a time, in every step.

read_numbers.py            one by one
read_numbers.py --once     all at once, stacked first
read_numbers.py --seldom   in every hundredth step
read_numbers.py --whole    of one tensor that holds them all
"""

import sys
import time

import torch


def metrics(values):
    if "--whole" in sys.argv:
        return sum(values.tolist())
    if "--once" in sys.argv:
        return sum(torch.stack(values).tolist())
    total = 0.0
    for value in values:
        total += float(value)  # the cause
    return total


def main():
    torch.set_num_threads(1)
    model = torch.nn.Linear(128, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, values = torch.randn(64, 128), torch.rand(1500)
    if "--whole" not in sys.argv:
        values = list(values)
    for _ in range(3):
        begun = time.perf_counter()
        for step in range(100):
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if "--seldom" not in sys.argv or step == 0:
                metrics(values)
        print(f"step_ms {(time.perf_counter() - begun) * 10:.3f}")


if __name__ == "__main__":
    main()
