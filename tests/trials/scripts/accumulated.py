"""Two ranks that exchange their gradients after each of four passes, of which one optimizer step is made."""

import time

import torch
from torch.nn.parallel import DistributedDataParallel

PASSES = 4


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    layers = [torch.nn.Linear(512, 512) for _ in range(8)]
    model = DistributedDataParallel(torch.nn.Sequential(*layers))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    samples = torch.randn(4, 512)
    begun = time.perf_counter()
    for step in range(1_000):
        for _ in range(PASSES):
            loss = (model(samples) - 1.0).square().mean() / PASSES
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step == 20:
            begun = time.perf_counter()
        if step == 60:
            print(f"step_ms {(time.perf_counter() - begun) / 40 * 1e3:.3f}", flush=True)


if __name__ == "__main__":
    main()
