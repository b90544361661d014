"""How well a job scales from one number of devices (without any, of processes) to another, and what eats the rest.

Efficiency is that of weak scaling: with the same batch on each device, N times the devices do
``N_after / N_before * step_before / step_after`` times the work per second; as a share of N_after / N_before that is
``step_before / step_after``. Where the batch of the whole job was kept instead, each device has less to do and these
figures do not hold; the profile does not say which, so it is said with them.
"""

from __future__ import annotations

from typing import Literal

from stepscope.analysis.categories import Category
from stepscope.comparison.noise import Difference
from stepscope.comparison.side import Side
from stepscope.record import record

COMMUNICATION = (
    Category.COLLECTIVE, Category.COLLECTIVE_TRANSFER, Category.COPY_P2P,
)  # fmt: skip
LATE_RANKS = (Category.COLLECTIVE_WAIT,)
INPUT = (Category.INPUT, Category.INFEED, Category.TRANSFER, Category.COPY_H2D, Category.COPY_STAGING)
HOST = (
    Category.LAUNCH, Category.LAUNCH_LATENCY, Category.PYTHON, Category.SYNC, Category.GC, Category.ALLOCATOR,
    Category.COMPILE, Category.GRAPH_BUILD, Category.CHECKPOINT_IO, Category.UNKNOWN_HOST,
)  # fmt: skip
DEVICE = (Category.COMPUTE, Category.COPY_D2D, Category.COPY_D2H, Category.MEMSET)
GROUPS: tuple[tuple[str, tuple[Category, ...]], ...] = (
    ("communication that nothing hides", COMMUNICATION),
    ("waiting for late ranks", LATE_RANKS),
    ("input", INPUT),
    ("the host", HOST),
    ("work of the devices themselves", DEVICE),
)
UNEVEN, REST = "devices that are not equally busy", "other waiting"


@record
class LossCause:
    """What one cause takes more per step than with fewer devices, in ns."""

    cause: str
    ns: float


@record
class Scaling:
    """Two runs of one job on different numbers of devices, each device with the same batch."""

    unit: Literal["devices", "processes"]
    """``devices``, or ``processes`` where none has a device."""
    devices_before: int
    devices_after: int
    efficiency: float
    """Of the work per second that so many devices would do if a step took as long as before."""
    losses: tuple[LossCause, ...]
    """By cause, largest first; they sum to what a step takes longer."""

    @property
    def speedup(self) -> float:
        """How many times the work per second."""
        return self.efficiency * self.devices_after / self.devices_before

    @property
    def negative(self) -> bool:
        """Whether more devices do less work."""
        return self.speedup < 1


def scaling(before: Side, after: Side, step: Difference, parts: dict[Category, Difference]) -> Scaling | None:
    """None unless there are more devices in the second run; without devices, more processes."""
    counts = (before.devices, after.devices)
    unit: Literal["devices", "processes"] = "processes" if counts == (None, None) else "devices"
    one, two = (before.world_size, after.world_size) if unit == "processes" else counts
    if one is None or two is None or two <= one or not step.after_ns:
        return None
    lost = {cause: sum(parts[c].ns for c in of if c in parts) for cause, of in GROUPS}
    grouped = {category for _, of in GROUPS for category in of}
    lost[REST] = sum(change.ns for category, change in parts.items() if category not in grouped)
    # A step ends with the last device, a part is a mean over them.
    lost[UNEVEN] = step.ns - sum(change.ns for change in parts.values())
    losses = [LossCause(cause, ns) for cause, ns in lost.items() if abs(ns) >= 1]
    return Scaling(unit, one, two, step.before_ns / step.after_ns, tuple(sorted(losses, key=lambda x: -x.ns)))
