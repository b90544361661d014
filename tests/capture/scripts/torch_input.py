"""A PyTorch loop held up by its input. usage: torch_input.py STEPS"""

import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __len__(self):
        return 4 * int(sys.argv[1])

    def __getitem__(self, index):
        time.sleep(0.003)
        return torch.ones(16)


optimizer = torch.optim.SGD((model := torch.nn.Linear(16, 4)).parameters(), lr=0.01)
seen = 0
for batch in DataLoader(Slow(), batch_size=4):
    optimizer.zero_grad()
    model(batch).sum().backward()
    optimizer.step()
    seen += len(batch)
print("seen", seen)
