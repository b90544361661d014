"""A model of many small layers on the CPU, where PyTorch's Adam updates one parameter after the other.

adam_loop.py           as it comes
adam_loop.py --fused   all parameters in one call
"""

import sys
import time

import torch


def main():
    torch.set_num_threads(1)
    model = torch.nn.Sequential(*[torch.nn.Linear(32, 32) for _ in range(60)])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused="--fused" in sys.argv)
    batch = torch.randn(16, 32)
    for _ in range(4):
        begun = time.perf_counter()
        for _ in range(100):
            loss = model(batch).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()  # the cause
        print(f"step_ms {(time.perf_counter() - begun) * 10:.3f}")


if __name__ == "__main__":
    main()
