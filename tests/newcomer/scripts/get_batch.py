"""nanoGPT's way: get_batch() reads slices of a memory map and stacks them; the loss is estimated now and then.

get_batch.py --whole   all slices are read at once
"""

import os
import sys
import tempfile
import time

import numpy as np
import torch

BLOCK, BATCH = 128, 256
PATH = os.path.join(tempfile.mkdtemp(), "train.bin")


def get_batch(split):
    data = np.memmap(PATH, dtype=np.uint16, mode="r")
    ix = torch.randint(len(data) - BLOCK - 1, (BATCH,))
    if "--whole" in sys.argv:
        rows = torch.from_numpy(data[ix.numpy()[:, None] + np.arange(BLOCK + 1)].astype(np.int64))
        return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()
    x = torch.stack([torch.from_numpy(data[i : i + BLOCK].astype(np.int64)) for i in ix])
    y = torch.stack([torch.from_numpy(data[i + 1 : i + 1 + BLOCK].astype(np.int64)) for i in ix])
    return x, y


@torch.no_grad()
def estimate_loss(model):
    model.eval()
    out = {}
    for split in ("train", "val"):
        losses = torch.zeros(10)
        for k in range(10):
            x, y = get_batch(split)
            losses[k] = torch.nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten()).item()
        out[split] = losses.mean()
    model.train()
    return out


def main():
    torch.set_num_threads(1)
    np.random.default_rng(0).integers(0, 64, 1_000_000, dtype=np.uint16).tofile(PATH)
    model = torch.nn.Sequential(torch.nn.Embedding(64, 32), torch.nn.Linear(32, 64))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x, y = get_batch("train")
    took = 0.0
    for step in range(60):
        if step % 10 == 0:
            print(step, estimate_loss(model))
        begun = time.perf_counter()
        loss = torch.nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
        x, y = get_batch("train")
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        took += time.perf_counter() - begun
    print(f"step_ms {took / 60 * 1e3:.3f}")


if __name__ == "__main__":
    main()
