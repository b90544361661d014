"""Inference whose input is made number by number, in Python: many small calls of built-in functions.

preprocess_loop.py           number by number
preprocess_loop.py --whole   as a tensor
"""

import sys
import time

import torch


def preprocess(row):
    if "--whole" in sys.argv:
        return torch.tensor(row).clamp(0, 1)
    found = []
    for value in row:
        found.append(min(max(float(value), 0.0), 1.0))  # the cause
    return torch.tensor(found)


def main():
    torch.set_num_threads(1)
    model = torch.nn.Linear(4000, 64).eval()
    rows = [[(at * 37 % 101) / 90 for at in range(4000)] for _ in range(4)]
    with torch.inference_mode():
        for _ in range(3):
            begun = time.perf_counter()
            for step in range(100):
                model(preprocess(rows[step % 4]))
            print(f"step_ms {(time.perf_counter() - begun) / 0.1:.3f}")


if __name__ == "__main__":
    main()
