"""Twelve workers, each with two threads, for two cores: they take them from the step and from each other."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        picture = torch.full((256, 256), index / 100_000)
        for _ in range(4):
            picture = torch.sin(picture)
        return picture[:32, :32].flatten(), index % 10


def two_threads(_: int) -> None:
    torch.set_num_threads(2)


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Samples(), batch_size=8, num_workers=12, worker_init_fn=two_threads)
    for samples, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(samples), labels)
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
