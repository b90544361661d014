"""Launches that blocked because the device's queue was full: waits for the device, though they look like host work.

A device accepts a bounded number of launches ahead (about a thousand on NVIDIA's GPUs); the next call returns when one
of them is done. No profile says so. What shows it is the number of launches under way: no call finds more than the
bound, and the calls that take far longer than others of their name all find (nearly) that many. The bound is therefore
inferred, and only from calls that agree on it.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.limits import (
    QUEUE_AGREES_SHARE,
    QUEUE_BLOCKED_CALLS,
    QUEUE_BLOCKED_TIMES,
    QUEUE_LEAST,
    QUEUE_NEAR_SHARE,
)
from stepscope.record import record
from stepscope.trace.codes import among, distinct
from stepscope.trace.tables import I32, I64, Bools
from stepscope.trace.trace import Trace


@record
class FullQueue:
    """Calls that waited for room in a device's queue; one value per call."""

    depth: int
    """Launches that were under way when they did (the median)."""
    slice: I32
    usual_ns: I64
    """What such a call takes where there is room."""
    blocked_ns: I64
    """What it took longer."""


def full_queues(trace: Trace, activities: list[DeviceActivity]) -> list[FullQueue]:
    """Per device whose queue was full, the calls that waited for room in it."""
    queues = (_full_queue(trace, activity) for activity in activities)
    return [queue for queue in queues if queue is not None]


def _full_queue(trace: Trace, activity: DeviceActivity) -> FullQueue | None:
    calls, done = _calls(activity)
    if calls.size < QUEUE_LEAST:
        return None
    start = trace.slices.start_ns[calls]
    took = trace.slices.dur_ns[calls]
    ahead = _under_way(activity, start, done)
    most = int(ahead.max())
    if most < QUEUE_LEAST:
        return None
    near = ahead >= QUEUE_NEAR_SHARE * most
    usual = _usual(trace.slices.name[calls], took, near)
    long = (took > QUEUE_BLOCKED_TIMES * usual) & (ahead > 0) & ~_first_of_its_kernel(trace, activity, calls)
    # Were it not for the queue, calls would take long as often with fewer launches under way.
    if (long & near).sum() < QUEUE_BLOCKED_CALLS or took[long & near].sum() < QUEUE_AGREES_SHARE * took[long].sum():
        return None
    rows = np.flatnonzero(long & near)
    return FullQueue(int(np.median(ahead[rows])), calls[rows], usual[rows], took[rows] - usual[rows])


def _calls(activity: DeviceActivity) -> tuple[I32, I64]:
    """The calls that launched the device's ops in order of time, and when the last op of each was done."""
    calls, at = np.unique(activity.call[activity.launched], return_inverse=True)
    done = np.zeros(calls.size, np.int64)
    np.maximum.at(done, at, activity.end[activity.launched])
    launch = np.zeros(calls.size, np.int64)
    launch[at] = activity.launch[activity.launched]
    order = np.argsort(launch, kind="stable")
    return calls[order].astype(np.int32), done[order]


def _under_way(activity: DeviceActivity, start: I64, done: I64) -> I64:
    """Per call, how many earlier ones have ops that are not done when it begins, those of before the profile too."""
    early = np.sort(activity.end[activity.before_profile])
    before = early.size - np.searchsorted(early, start, "right")
    return np.arange(start.size) - np.searchsorted(np.sort(done), start, "right") + before


def _usual(name: I32, took: I64, near: Bools) -> I64:
    """Per call, what calls of its name take with room in the queue; where none had room, what the quickest take."""
    usual = np.empty(took.size, np.int64)
    for code in distinct(name):
        mine = name == code
        free = mine & ~near
        usual[mine] = np.median(took[free]) if free.sum() >= QUEUE_BLOCKED_CALLS else np.quantile(took[mine], 0.05)
    return usual


def _first_of_its_kernel(trace: Trace, activity: DeviceActivity, calls: I32) -> Bools:
    """Which calls launch a kernel for the first time: its code may be loaded then."""
    names = trace.slices.name[activity.slice[activity.launched]]
    order = np.argsort(activity.launch[activity.launched], kind="stable")
    _, first = np.unique(names[order], return_index=True)
    return among(calls, activity.call[activity.launched][order][first])
