"""A job that profiles itself for some steps: its batches are slow, and its own trace is written too.

own_profiler.py --whole   a batch is made at once
"""

import sys
import time

import torch
from torch.profiler import ProfilerActivity, profile, schedule


def augment(rows):
    if "--whole" in sys.argv:
        return rows * 0.5
    return torch.tensor([[value * 0.5 for value in row] for row in rows.tolist()])  # the cause


def main():
    torch.set_num_threads(1)
    model = torch.nn.Linear(256, 256)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    begun = time.perf_counter()
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=2, warmup=1, active=3, repeat=1),
        on_trace_ready=lambda made: made.export_chrome_trace("own.pt.trace.json"),
    ) as own:
        for _ in range(200):
            rows = augment(torch.randn(64, 256))
            loss = (model(rows) - rows).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            own.step()
    print(f"step_ms {(time.perf_counter() - begun) / 200 * 1e3:.3f}")


if __name__ == "__main__":
    main()
