"""Train a small CNN and profile it: once fed by a slow input pipeline, once by a repaired one.

    python capture_demo.py slow  profiles/cpu_input_bound.json.gz
    python capture_demo.py fixed profiles/cpu_input_fixed.json.gz

The two runs train the same model on the same images with the same kinds of augmentation; only the way the
batches are made differs. Run it from this folder, so that the profile holds no path of the machine it was
made on; the one thing changed in it afterwards is the machine's name. It needs only PyTorch and NumPy.
"""

from __future__ import annotations

import argparse
import gzip
import socket
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader, Dataset

STORED = 128
SIDE = 32
BATCH = 16
CLASSES = 10
WAIT, WARMUP, ACTIVE = 1, 2, 6


def rotate(image: np.ndarray, radians: float) -> np.ndarray:
    """Turn a square image (side, side, channels) about its centre, with bilinear interpolation."""
    side = len(image)
    centre = (side - 1) / 2
    rows, columns = np.mgrid[0:side, 0:side] - centre
    source_rows = np.cos(radians) * rows - np.sin(radians) * columns + centre
    source_columns = np.sin(radians) * rows + np.cos(radians) * columns + centre
    top = np.clip(np.floor(source_rows), 0, side - 2).astype(int)
    left = np.clip(np.floor(source_columns), 0, side - 2).astype(int)
    down = np.clip(source_rows - top, 0, 1)[..., None]
    right = np.clip(source_columns - left, 0, 1)[..., None]
    upper = image[top, left] * (1 - right) + image[top, left + 1] * right
    lower = image[top + 1, left] * (1 - right) + image[top + 1, left + 1] * right
    return upper * (1 - down) + lower * down


def shrink(images: np.ndarray) -> np.ndarray:
    """Images (..., STORED, STORED, channels) to (..., SIDE, SIDE, channels), by the mean of each block."""
    block = STORED // SIDE
    shape = (*images.shape[:-3], SIDE, block, SIDE, block, images.shape[-1])
    return images.reshape(shape).mean(axis=(-4, -2), dtype=np.float32)


def augment_image(image: np.ndarray, rng: np.random.Generator) -> Tensor:
    """The slow road: every image on its own, in float64, at the stored size; made small at the very end."""
    if rng.random() < 0.5:
        image = image[:, ::-1]
    image = rotate(image.astype(np.float64), rng.uniform(-0.3, 0.3))
    image = np.clip(image * rng.uniform(0.8, 1.2), 0, 255)
    return torch.from_numpy(shrink((image - 127.5) / 127.5).transpose(2, 0, 1))


def augment_batch(images: np.ndarray) -> Tensor:
    """The repaired road: made small first, then the whole batch at once, in float32."""
    count = len(images)
    batch = torch.from_numpy(shrink(images)).permute(0, 3, 1, 2)
    angles = torch.empty(count).uniform_(-0.3, 0.3)
    flips = torch.where(torch.rand(count) < 0.5, -1.0, 1.0)
    turns = torch.zeros(count, 2, 3)
    turns[:, 0, 0], turns[:, 0, 1] = flips * angles.cos(), -angles.sin()
    turns[:, 1, 0], turns[:, 1, 1] = flips * angles.sin(), angles.cos()
    grid = nn.functional.affine_grid(turns, list(batch.shape), align_corners=False)
    batch = nn.functional.grid_sample(batch, grid, padding_mode="border", align_corners=False)
    batch = batch.mul_(torch.empty(count, 1, 1, 1).uniform_(0.8, 1.2)).clamp_(0, 255)
    return batch.sub_(127.5).div_(127.5)


class Images(Dataset[tuple[Tensor, int]]):
    """Labelled 8-bit images (STORED, STORED, 3) from a seeded generator, augmented when they are taken."""

    def __init__(self, count: int, *, one_by_one: bool) -> None:
        self.rng = np.random.default_rng(0)
        self.pixels = self.rng.integers(0, 256, (count, STORED, STORED, 3), dtype=np.uint8)
        self.one_by_one = one_by_one

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return augment_image(self.pixels[index], self.rng), index % CLASSES

    def __getitems__(self, indices: list[int]) -> list[tuple[Tensor, int]]:
        """What a DataLoader asks for: all the samples of one batch."""
        if self.one_by_one:
            return [self[index] for index in indices]
        labels = [index % CLASSES for index in indices]
        return list(zip(augment_batch(self.pixels[indices]), labels, strict=True))


def make_loader(variant: str, batches: int) -> DataLoader[tuple[Tensor, int]]:
    """The input pipeline: in the training process, or in a worker that runs ahead of it."""
    if variant == "slow":
        return DataLoader(Images(BATCH * batches, one_by_one=True), BATCH, shuffle=True, num_workers=0)
    return DataLoader(Images(BATCH * batches, one_by_one=False), BATCH, shuffle=True, num_workers=1,
                      prefetch_factor=4)


class SmallCNN(nn.Module):
    """Three convolutions and a linear layer: enough work for a step of a few milliseconds on one core."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for inputs, outputs in ((3, 16), (16, 32), (32, 64)):
            layers += [nn.Conv2d(inputs, outputs, 3, stride=2, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(64, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        """Logits (n, CLASSES) of images (n, 3, height, width)."""
        return self.head(self.features(images).mean(dim=(2, 3)))


def train(loader: DataLoader[tuple[Tensor, int]], device: torch.device, profiler: profile) -> float:
    """One pass over the loader; returns the mean loss."""
    model = SmallCNN().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    total = 0.0
    for images, labels in loader:
        loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        profiler.step()
    return total / len(loader)


def save(profiler: profile, path: Path) -> None:
    """Write the profile, compressed, without the name of this machine."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # The profiler writes this path into the profile, so it is a relative one.
    plain = path.with_suffix("")
    profiler.export_chrome_trace(str(plain))
    named = f'"host_name": "{socket.gethostname()}"'
    text = plain.read_text(encoding="utf-8").replace(named, '"host_name": "localhost"', 1)
    plain.unlink()
    # No time stamp and no file name in the gzip header: the same profile gives the same bytes.
    path.write_bytes(gzip.compress(text.encode("utf-8"), compresslevel=9, mtime=0))


def main() -> None:
    """Train with the chosen input pipeline and write the profile of a few steps."""
    parser = argparse.ArgumentParser(description="Profile a small training run.")
    parser.add_argument("variant", choices=["slow", "fixed"], help="the input pipeline")
    parser.add_argument("out", type=Path, help="where the profile goes (.json.gz)")
    parser.add_argument("--device", type=torch.device, default="cpu", help="cpu (default) or cuda")
    options = parser.parse_args()

    torch.manual_seed(0)
    # The other cores are for the loader's worker.
    torch.set_num_threads(1)
    activities = [ProfilerActivity.CPU]
    if options.device.type == "cuda":
        activities.append(ProfilerActivity.CUDA)
    with profile(activities=activities, record_shapes=True, with_stack=True,
                 schedule=schedule(wait=WAIT, warmup=WARMUP, active=ACTIVE, repeat=1),
                 on_trace_ready=lambda done: save(done, options.out)) as profiler:
        loss = train(make_loader(options.variant, WAIT + WARMUP + ACTIVE + 1), options.device, profiler)
    print(f"mean loss {loss:.3f}; profile of {ACTIVE} steps in {options.out}")


if __name__ == "__main__":
    main()
