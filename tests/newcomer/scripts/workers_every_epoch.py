"""A loader whose workers are forked anew at every epoch: short epochs, so that starting them is most of the time.

workers_every_epoch.py                workers of one epoch
workers_every_epoch.py --persistent   workers that stay
"""

import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Points(Dataset):
    def __init__(self):
        self.points = torch.randn(256, 64)
        self.labels = torch.randint(0, 10, (256,))

    def __len__(self):
        return len(self.points)

    def __getitem__(self, index):
        return self.points[index], self.labels[index]


def main():
    torch.set_num_threads(1)
    stay = "--persistent" in sys.argv
    loader = DataLoader(Points(), batch_size=64, shuffle=True, num_workers=2, persistent_workers=stay)
    model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(20):
        begun, steps = time.perf_counter(), 0
        for points, labels in loader:  # the cause
            loss = torch.nn.functional.cross_entropy(model(points), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        if epoch % 5 == 4:
            print(f"epoch {epoch}: step_ms {(time.perf_counter() - begun) / steps * 1e3:.3f}")


if __name__ == "__main__":
    main()
