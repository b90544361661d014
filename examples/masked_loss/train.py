"""Train a small segmentation network whose loss makes the host wait three times a step, and profile or time it.

    python train.py before out.json.gz          # profile with torch.profiler
    python train.py after --time                # time instead, without a profiler

``before`` calls ``torch.nonzero``, ``torch.unique`` and indexes with a boolean mask. Each needs a size that only the
device knows, so each makes the host wait. ``one`` replaces the first, ``two`` the first two, ``after`` all three. All
four compute the same loss. It needs only PyTorch; run it from this folder, so that the profile holds no path of yours.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile, schedule

CLASSES = 21
IGNORED = -100
VARIANTS = ("before", "one", "two", "after")
WARMUP, ACTIVE, TIMED = 4, 8, 30


class Net(nn.Module):
    """Convolutions at full size: (batch, 3, side, side) to (batch, CLASSES, side, side)."""

    def __init__(self, width: int = 32, depth: int = 6) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, width, 3, padding=1), nn.ReLU()]
        for _ in range(depth):
            layers += [nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
        self.body = nn.Sequential(*layers)
        self.head = nn.Conv2d(width, CLASSES, 1)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.body(images))
        return logits


def uncertainty_selected(entropy: Tensor, uncertain: Tensor) -> Tensor:
    """Mean entropy of the uncertain pixels: ``torch.nonzero`` waits for their number."""
    chosen = torch.nonzero(uncertain.flatten()).squeeze(1)
    return entropy.flatten()[chosen].sum() / max(chosen.numel(), 1)


def uncertainty_whole(entropy: Tensor, uncertain: Tensor) -> Tensor:
    """The same over all pixels, with 0 for the others: nothing waits."""
    return torch.where(uncertain, entropy, 0.0).sum() / uncertain.sum().clamp(min=1)


def weights_of_present(targets: Tensor) -> Tensor:
    """A weight per class, falling with its count: ``torch.unique`` waits for the number of classes."""
    present, counts = torch.unique(targets, return_counts=True)
    weights = torch.zeros(CLASSES, device=targets.device)
    weights[present] = 1.0 / counts.float().sqrt()
    return weights


def weights_of_all(targets: Tensor) -> Tensor:
    """The same by counting each of the classes there can be: nothing waits."""
    labels = targets.flatten()
    ones = torch.ones_like(labels, dtype=torch.float)
    counts = torch.zeros(CLASSES, device=labels.device).scatter_add_(0, labels, ones)
    return torch.where(counts > 0, counts.clamp(min=1).rsqrt(), 0.0)


def cross_entropy_selected(logits: Tensor, targets: Tensor, valid: Tensor, weights: Tensor) -> Tensor:
    """Cross entropy of the valid pixels: indexing with a mask waits for their number."""
    return F.cross_entropy(logits.permute(0, 2, 3, 1)[valid], targets[valid], weight=weights)


def cross_entropy_ignoring(logits: Tensor, targets: Tensor, valid: Tensor, weights: Tensor) -> Tensor:
    """The same with the others marked as ignored: nothing waits."""
    marked = torch.where(valid, targets, IGNORED)
    return F.cross_entropy(logits, marked, weight=weights, ignore_index=IGNORED)


def loss_of(variant: str, logits: Tensor, targets: Tensor, valid: Tensor) -> Tensor:
    """The loss, with as many of its three waits taken out as the variant says."""
    fixed = VARIANTS.index(variant)
    logs = F.log_softmax(logits, dim=1)
    entropy = -(logs.exp() * logs).sum(dim=1)
    uncertain = entropy > 0.5 * entropy.detach().mean()
    penalty = (uncertainty_whole if fixed >= 1 else uncertainty_selected)(entropy, uncertain)
    weights = (weights_of_all if fixed >= 2 else weights_of_present)(targets)
    entropy_of = cross_entropy_ignoring if fixed >= 3 else cross_entropy_selected
    return entropy_of(logits, targets, valid, weights) + 0.1 * penalty


def batch(options: argparse.Namespace, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Images, targets and which pixels count, made on the device: reading data is another subject."""
    shape, place = (options.batch, options.side, options.side), {"device": options.device, "generator": generator}
    images = torch.rand((options.batch, 3, options.side, options.side), **place)
    return images, torch.randint(0, CLASSES, shape, **place), torch.rand(shape, **place) > 0.3


def train_step(
    variant: str, model: Net, optimizer: torch.optim.Optimizer, data: tuple[Tensor, Tensor, Tensor]
) -> Tensor:
    """One step; the loss stays on the device."""
    images, targets, valid = data
    loss = loss_of(variant, model(images), targets, valid)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.detach()


def wait(device: str) -> None:
    """Until the device is done with all it was given: without this a host that ran ahead is timed, not the step."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def main() -> None:
    """Profile or time one variant."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("variant", choices=VARIANTS)
    parser.add_argument("out", nargs="?", help="where the profile goes")
    parser.add_argument("--time", action="store_true", help=f"time {TIMED} steps, without a profiler")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--side", type=int, default=512)
    options = parser.parse_args()
    if options.time == (options.out is not None):
        parser.error("give a file for the profile, or --time")
    torch.manual_seed(0)
    model = Net().to(options.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    generator = torch.Generator(options.device).manual_seed(1)
    data = [batch(options, generator) for _ in range(4)]

    def step(number: int) -> Tensor:
        return train_step(options.variant, model, optimizer, data[number % len(data)])

    losses = [step(number) for number in range(WARMUP)]
    if options.time:
        taken = []
        for number in range(TIMED):
            wait(options.device)
            begun = time.perf_counter()
            losses.append(step(number))
            wait(options.device)
            taken.append(1_000 * (time.perf_counter() - begun))
        wait(options.device)
        begun = time.perf_counter()
        for number in range(TIMED):
            losses.append(step(number))
        wait(options.device)
        together = 1_000 * (time.perf_counter() - begun) / TIMED
        print(f"{options.variant}: {together:.2f} ms per step over {TIMED} steps with one wait behind them;")
        spread = f"median {statistics.median(taken):.2f} ms, from {min(taken):.2f} to {max(taken):.2f}"
        print(f"  each step waited for: {spread}")
    else:
        activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * options.device.startswith("cuda")
        with profile(
            activities=activities,
            schedule=schedule(wait=0, warmup=2, active=ACTIVE, repeat=1),
            on_trace_ready=lambda profiler: profiler.export_chrome_trace(options.out),
            record_shapes=True,
            with_stack=True,
        ) as profiler:
            for number in range(2 + ACTIVE):
                losses.append(step(number))
                profiler.step()
    print(f"  losses {', '.join(f'{loss.item():.4f}' for loss in losses[:4])}")


if __name__ == "__main__":
    main()
