"""Batches made by a generator function of the job's own.

generator_input.py           in the thread that trains
generator_input.py --ahead   in a worker process of a loader, as the report says
"""

import random
import sys
import time

import torch
from torch.utils.data import DataLoader, IterableDataset

VOCABULARY = "abcdefghijklmnopqrstuvwxyz "


def texts(count):
    rng = random.Random(0)
    return ["".join(rng.choice(VOCABULARY) for _ in range(2_000)) for _ in range(count)]


def encode(text):
    return torch.tensor([VOCABULARY.index(letter) for letter in text[:512]])  # the cause


def batches(corpus, batch_size):
    while True:
        chosen = random.sample(corpus, batch_size)
        yield torch.stack([encode(text) for text in chosen])  # and what calls it


class Ahead(IterableDataset):
    def __init__(self, corpus, batch_size):
        self.corpus, self.batch_size = corpus, batch_size

    def __iter__(self):
        yield from batches(self.corpus, self.batch_size)


def main():
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Embedding(27, 64), torch.nn.Linear(64, 27))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    corpus = texts(200)
    ahead = "--ahead" in sys.argv
    source = DataLoader(Ahead(corpus, 64), batch_size=None, num_workers=1) if ahead else batches(corpus, 64)
    begun = time.perf_counter()
    for step, tokens in enumerate(source):
        logits = model(tokens[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            print(f"step {step}: step_ms {(time.perf_counter() - begun) / 20 * 1e3:.3f}")
            begun = time.perf_counter()
        if step == 59:
            break


if __name__ == "__main__":
    main()
