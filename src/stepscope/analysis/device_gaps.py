"""The idle intervals of a device, and the op through which each is explained."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.limits import FIRST_COMPUTE_WITHIN_NS
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.tables import I32, I64, NULL

_COMPUTE = Category.COMPUTE.code


@record
class Gaps:
    """The idle intervals of one device, in time order; one value per gap."""

    start: I64
    end: I64
    op: I32
    """The op that ended the gap (position in the ``DeviceActivity``)."""
    cause_op: I32
    """The op through which the gap is explained: ``op``, or the compute op right behind it."""
    launch: I64
    """Launch instant of the cause op, NULL where not recorded."""
    launch_end: I64
    thread: I32

    def __len__(self) -> int:
        """The number of gaps."""
        return len(self.start)


def find_gaps(activity: DeviceActivity, start: int, end: int) -> Gaps:
    """The gaps of a device between two instants."""
    gap_start, gap_end = iv.complement(activity.occupied, start, end)
    op = np.searchsorted(activity.start, gap_end, "left").astype(np.int32)
    cause = _first_compute(activity, op, gap_start)
    return Gaps(
        gap_start, gap_end, op, cause, activity.launch[cause], activity.launch_end[cause], activity.thread[cause]
    )


def _first_compute(activity: DeviceActivity, op: I32, gap_start: I64) -> I32:
    """The compute op soon behind a copy, memset or collective, if both were launched only inside the gap.

    One that was queued before the gap began explains it by itself: the device knows why it did not go on.
    """
    if op.size == 0:
        return op
    is_compute = activity.category == _COMPUTE
    positions = np.append(np.flatnonzero(is_compute), len(activity))
    following = positions[np.searchsorted(positions[:-1], op)]
    known = following < len(activity)
    safe = np.where(known, following, op)
    soon = activity.start[safe] - activity.end[op] <= FIRST_COMPUTE_WITHIN_NS
    inside = (activity.launch[safe] != NULL) & (activity.launch[safe] >= gap_start)
    inside &= (activity.launch[op] == NULL) | (activity.launch[op] >= gap_start)
    return np.where(~is_compute[op] & known & soon & inside, safe, op).astype(np.int32)
