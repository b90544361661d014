"""A model of point clouds whose ``forward`` goes over the samples of the batch.

module_loop.py            cloud by cloud
module_loop.py --whole    all clouds at once
"""

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.point = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 64))
        self.head = nn.Linear(64, 10)

    def forward(self, clouds):
        if "--whole" in sys.argv:
            return self.head(self.point(clouds).amax(1))
        pooled = []
        for cloud in clouds:
            features = self.point(cloud)  # the cause
            pooled.append(features.max(dim=0).values)
        return self.head(torch.stack(pooled))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = TensorDataset(torch.randn(1280, 48, 3), torch.randint(0, 10, (1280,)))
    loader = DataLoader(data, batch_size=64, shuffle=True)
    model = PointNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(4):
        begun = time.perf_counter()
        for clouds, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(clouds), labels)
            loss.backward()
            optimizer.step()
        print(f"step_ms {(time.perf_counter() - begun) / len(loader) * 1e3:.3f}")


if __name__ == "__main__":
    main()
