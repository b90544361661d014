"""What a replay is of: device ops and waits of the host as columns, and the instants of its records."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from stepscope.record import record
from stepscope.trace.tables import I32, I64, Bools

NONE = -1
LONG_AGO = int(np.iinfo(np.int64).min // 4)
"""The end of what never was: earlier than anything, and safe to add to."""


class Instant(IntEnum):
    """What a record is; of records at the same time the smaller comes first."""

    WAIT_END = 0
    MARK = 1
    LAUNCH = 2
    WAIT_BEGIN = 3
    OP = 4


@record
class ReplayedOps:
    """Device ops of all devices, one device after another as in ``Facts.activities``; one value per op."""

    stream: I32
    """Dense number of device and stream."""
    start: I64
    end: I64
    call: I32
    """Position among ``Graph.calls`` of the call that launched the op, ``NONE`` where not recorded."""
    launch: I64
    """When it was launched, NULL where not recorded: the start of the call or, in a long one, right before the op."""
    latency: I64
    """From launch to start on an idle stream."""
    pause: I64
    """From the end of the stream's op before it to its start; negative where the two overlap."""
    awaits: I32
    """Op of another stream that it waits for, ``NONE`` where nothing says so."""
    residual: I64
    """Delay that none of these explains, kept as measured."""
    called: I64
    """Delay for Python functions that the program called before it."""
    floor: I64
    """When an op started that nothing recorded held up, or work of before the profile was done; else ``LONG_AGO``."""


@record
class ReplayedWaits:
    """Host waits for the device, one value per wait."""

    slice: I32
    """The waiting call, -1 where the wait is inferred: nothing was recorded until an op ended."""
    start: I64
    end: I64
    line: I32
    own: I64
    """What the call takes where it has nothing to wait for."""
    back: I64
    """From the end of what it waits for to its return."""
    op: I32
    """The op it waits for, ``NONE`` where the profile shows none."""
    for_start: Bools
    """Whether it waits for that op's start only: a copy from pageable memory that is staged next."""


def mean_by_kind(values: I64, chosen: Bools, kinds: I64, default: int) -> I64:
    """Per value, the mean of the chosen ones of its kind, else the default."""
    size = int(kinds.max(initial=0)) + 1
    count = np.bincount(kinds[chosen], minlength=size)
    total = np.bincount(kinds[chosen], values[chosen], size)
    return np.where(count > 0, np.rint(total / np.maximum(count, 1)), default).astype(np.int64)[kinds]
