"""A loss over every pair of a batch, written as two loops of small ops.

pair_loss.py            pair by pair
pair_loss.py --whole    all pairs at once
"""

import sys
import time

import torch


def pair_loss(points, labels):
    if "--whole" in sys.argv:
        apart, same = torch.cdist(points, points), labels[:, None] == labels[None]
        return torch.where(same, apart, torch.relu(1 - apart)).tril(-1).sum() / len(points)
    total = 0.0
    for i in range(len(points)):
        for j in range(i):
            apart = (points[i] - points[j]).norm()  # the cause
            same = (labels[i] == labels[j]).float()  # and with it
            total = total + same * apart + (1 - same) * torch.relu(1 - apart)  # and that
    return total / len(points)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for _ in range(3):
        begun = time.perf_counter()
        for _ in range(40):
            samples, labels = torch.randn(16, 256), torch.randint(0, 4, (16,))
            loss = pair_loss(model(samples), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"step_ms {(time.perf_counter() - begun) * 25:.3f}")


if __name__ == "__main__":
    main()
