"""Batches cut from a list in the loop itself: slices, transforms and torch.stack.

stacked_input.py            image by image
stacked_input.py --whole    all images at once
"""

import sys
import time

import torch


def main():
    torch.set_num_threads(1)
    examples = [torch.randn(3, 32, 32) for _ in range(512)]
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    together = torch.stack(examples)
    for _ in range(3):
        begun = time.perf_counter()
        for step in range(60):
            first = step % 8 * 64
            if "--whole" in sys.argv:
                chosen = together[first : first + 64]
                centred = chosen - chosen.mean((1, 2, 3), True)
                images = centred / centred.square().mean((1, 2, 3), True).sqrt()
            else:
                chosen = examples[first : first + 64]
                images = torch.stack([(image - image.mean()) / image.std() for image in chosen])
            labels = torch.tensor([i % 10 for i in range(64)])
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"step_ms {(time.perf_counter() - begun) / 60 * 1e3:.3f}")


if __name__ == "__main__":
    main()
