"""Two ranks, of which the second writes its metrics to a file in every step: the first waits for it.

slow_rank.py            rank 1 writes each step
slow_rank.py --seldom   every hundredth
"""

import json
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def log(step, model, rank):
    if rank == 1 and not ("--seldom" in sys.argv and step % 100):
        rows = [parameter.detach().flatten()[:2000].tolist() for parameter in model.parameters()]
        with open("metrics.json", "w") as file:
            json.dump(rows, file)  # the cause


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    layers = [torch.nn.Linear(128, 128) for _ in range(8)]
    model = DistributedDataParallel(torch.nn.Sequential(*layers))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    rows = torch.randn(64, 128)
    begun = time.perf_counter()
    for step in range(101):
        if step % 20 == 0 and step and rank == 0:
            print(f"step_ms {(time.perf_counter() - begun) / 20 * 1e3:.3f}", flush=True)
            begun = time.perf_counter()
        loss = (model(rows) - rows).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log(step, model, rank)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
