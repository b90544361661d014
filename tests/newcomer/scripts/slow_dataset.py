"""A small model behind a dataset whose ``augment`` takes some 14 ms of processor time per sample; batches of 15.

slow_dataset.py                       the loader works in the training process
slow_dataset.py --workers 2           worker processes, kept from epoch to epoch
slow_dataset.py --workers 2 --start spawn    the same, started in another way
slow_dataset.py --cheaper             augment does an eighth of the work
"""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BATCH, SIDE, ROUNDS = 15, 96, 200


def augment(picture: torch.Tensor, rounds: int) -> torch.Tensor:
    for _ in range(rounds):
        picture = (picture - picture.mean()) / picture.std()  # the cause
    return picture


class Pictures(Dataset):
    def __init__(self, rounds: int, samples: int) -> None:
        self.pictures = torch.randn(samples, 3, SIDE, SIDE)
        self.labels = torch.randint(0, 10, (samples,))
        self.rounds = rounds

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return augment(self.pictures[index], self.rounds), self.labels[index]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--start")
    parser.add_argument("--cheaper", action="store_true")
    parser.add_argument("--steps", type=int, default=14)
    asked = parser.parse_args()

    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIDE * SIDE, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    dataset = Pictures(ROUNDS // 8 if asked.cheaper else ROUNDS, BATCH * asked.steps)
    loader = DataLoader(
        dataset, batch_size=BATCH, shuffle=True, num_workers=asked.workers, persistent_workers=asked.workers > 0,
        multiprocessing_context=asked.start,
    )  # fmt: skip
    for epoch in range(3):
        begun = time.perf_counter()
        for pictures, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(pictures), labels)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: step_ms {(time.perf_counter() - begun) / asked.steps * 1e3:.3f}")


if __name__ == "__main__":
    main()
