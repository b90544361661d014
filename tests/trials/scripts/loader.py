"""A dataset that waits 3 ms for each sample, as a slow disk has it; the loader works in the training process."""

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __len__(self) -> int:
        return 4_000

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        time.sleep(0.003)
        return torch.full((16,), index / 4_000), index % 4


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Samples(), batch_size=8)
    begun = time.perf_counter()
    for steps, (samples, labels) in enumerate(loader, 1):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(samples), labels)
        loss.backward()
        optimizer.step()
        if steps == 20:
            begun = time.perf_counter()
        if steps == 60 and "--short" in sys.argv:
            print(f"step_ms {(time.perf_counter() - begun) / 40 * 1e3:.3f}")
            break


if __name__ == "__main__":
    main()
