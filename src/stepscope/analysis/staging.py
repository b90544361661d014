"""Copies to a device whose data the host stages itself, inside the call."""

from __future__ import annotations

import numpy as np

from stepscope.names.calls import is_blocking_copy
from stepscope.trace.codes import mapped
from stepscope.trace.tables import I32, Bools, Direction, MemoryKind, Rows
from stepscope.trace.trace import Trace


def staged(trace: Trace, rows: Rows | I32) -> Bools:
    """Which device ops are copies from or to pageable memory. Profiles of ROCm do not say which memory it is: there a
    copy to the device by a call that blocks may be staged, and whatever its call takes before it begins is that."""
    ops = trace.device_ops
    source, target, launch = ops.source_memory[rows], ops.target_memory[rows], ops.launch[rows]
    unsaid = (source == MemoryKind.UNKNOWN) & (ops.direction[rows] == Direction.H2D) & (launch >= 0)
    names = trace.slices.name[launch[unsaid]]  # Of few ops, if of any: all names would be looked at for each device.
    unsaid[unsaid] = mapped(names, trace.strings, is_blocking_copy, np.bool_)
    return np.asarray((source == MemoryKind.PAGEABLE) | (target == MemoryKind.PAGEABLE) | unsaid)
