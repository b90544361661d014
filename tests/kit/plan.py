"""A training loop as a plan; ``loop`` runs it on the simulated machine.

A step is: take a batch, copy it, forward, backward on the autograd thread, optimizer, and what comes between
steps. All durations are microseconds. What a plan leaves at its defaults costs the step nothing that a
healthy loop does not pay.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tests.kit.machine import Costs

Part = Literal["forward", "backward", "optimizer"]

COMPUTE, COMM, PREFETCH = 7, 20, 21
"""Streams: PyTorch's default stream on NVIDIA, the collective library's, a prefetcher's."""

USER_FRAMES = {
    "main": "train.py(88): main",
    "step": "train.py(40): train_step",
    "item": "train.py(61): update_running_loss",
    "log": "callbacks.py(31): log_metrics",
    "save": "train.py(70): save_checkpoint",
    "data": "dataset.py(18): __getitem__",
    "batch": "train.py(52): batch_to_device",
}
"""Python frames of the loop's own files, as the profiler names them: file, line, function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the loop does. ``every`` counts steps: 4 means each fourth step."""

    steps: int = 8
    first_number: int = 10
    forward: int = 4
    backward: int = 8
    optimizer: int = 2
    kernel_us: int = 200
    dispatch_us: int = 8
    """Host time per launch outside the launch call."""
    costs: Costs = field(default_factory=Costs)
    seed: int = 0
    jitter: float = 0.0

    devices: int = 1
    layout: Literal["replicate", "pipeline"] = "replicate"
    """``pipeline``.

    Forward and optimizer on device 0, backward on device 1, each waiting for the other's event.
    """
    graph: bool = False
    """One launch for all kernels of the step."""
    buckets: int = 0
    collective_us: int = 0

    input_us: int = 20
    loader: Literal["workers", "main"] = "workers"
    """``main``: samples are read and collated on the training thread, with the ops that takes."""
    copy: Literal["", "pageable", "prefetched"] = ""
    copy_us: int = 300
    staging_us: int = 20
    copy_then_input_us: int = 0
    """An input range between the copy and the first launch."""

    syncs: tuple[Part, ...] = ()
    """After which parts of the step a value is read with ``.item()``.

    A part named twice is followed by two reads.
    """
    plain_sync: bool = False
    """Synchronise with ``torch.cuda.synchronize()`` instead of ``.item()``."""
    work_after: tuple[Part, ...] = ()
    work_us: int = 0
    """Host work without a launch after those parts, and after their syncs."""

    python_us: int = 0
    python_every: int = 1
    stacks: bool = True
    annotated: bool = False
    """The stretch of Python between steps lies in a user annotation."""
    gc_us: int = 0
    gc_every: int = 1
    checkpoint_us: int = 0
    checkpoint_every: int = 1
    allocator_us: int = 0
    compile_us: int = 0
    compile_every: int = 1
    profiler_us: int = 0
    profiler_every: int = 1

    markers: bool = True
    marker_ends_early: bool = False
    """The marker closes before what comes between steps."""
    earlier: int = 0
    """Kernels launched before the recording and still running when it begins."""
    last_share: float = 1.0
    """How much of the last step's forward was recorded; below 1 it has no backward and no optimizer."""
    cycles: int = 1
    pause_us: int = 0
