"""Time in which a device runs one kernel that has too few blocks to give every multiprocessor one, and nothing else."""

from __future__ import annotations

import math
import re

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.device import DeviceActivity
from stepscope.trace import intervals as iv
from stepscope.trace.codes import mapped
from stepscope.trace.tables import Bools, Rows
from stepscope.trace.trace import Trace


def of_few_blocks(trace: Trace, activity: DeviceActivity, multiprocessors: int) -> Bools:
    """Which ops of a device are compute kernels of fewer blocks than it has multiprocessors.

    Collectives take few blocks on purpose: they wait for links, and compute runs beside them.
    """

    def few(grid: str) -> bool:
        sizes = re.findall(r"\d{1,10}", grid[:200])
        return bool(sizes) and math.prod(map(int, sizes)) < multiprocessors

    small = mapped(trace.device_ops.grid[activity.row], trace.strings, few, np.bool_)
    return np.asarray(small & (activity.category == Category.COMPUTE.code))


def alone(activity: DeviceActivity, chosen: Bools) -> iv.Intervals:
    """The instants at which a chosen op is the only one that runs on the device."""
    ops: Rows = np.arange(1, len(activity) + 1)
    time = np.concatenate((activity.start, activity.end))
    order = np.argsort(time, kind="stable")
    time, begins = time[order], (np.arange(time.size) < ops.size)[order]
    running = np.cumsum(np.where(begins, 1, -1))[:-1]
    # The numbers of all that run, added up: where one op runs, its own.
    only = np.cumsum(np.where(begins, 1, -1) * np.concatenate((ops, ops))[order])[:-1]
    lone = running == 1
    lone[lone] = chosen[only[lone] - 1]
    return iv.union(time[:-1][lone], time[1:][lone])
