"""Starts of a PyTorch loader's worker processes, as Python frames show them: what each costs the thread that waits."""

from __future__ import annotations

import re

import numpy as np

from stepscope.analysis.host import HostActivity
from stepscope.analysis.steps import Markers
from stepscope.record import record
from stepscope.regex import regex
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, mapped, marked
from stepscope.trace.forest import holding, is_outermost
from stepscope.trace.tables import Bools, Kind, Rows
from stepscope.trace.trace import Trace

_MAKES = regex(r"(?:^|/)torch/utils/data/dataloader\.py\(\d+\): (?:__iter__|_get_iterator)$")
_STARTS = regex(r"(?:^|/)multiprocessing/process\.py\(\d+\): start$")
_ENDS = regex(r"(?:^|/)torch/utils/data/dataloader\.py\(\d+\): (?:_shutdown_workers|__del__)$")
_WAITS = regex(r"(?:^|/)multiprocessing/process\.py\(\d+\): join$")
_TAKES = regex(r"^enumerate\(DataLoader\)#_MultiProcessingDataLoaderIter\.__next__")


@record
class WorkerStarts:
    """What starting worker processes anew takes in the recorded steps."""

    starts: Rows
    """Slices in which a loader makes an iterator with new workers, in order of time."""
    ends: Rows
    """Slices in which it waits for old ones to end."""
    workers: int
    """Most processes that one start makes."""
    time: iv.Intervals
    """When the loop's thread is in one of them, or waits for what the first batch takes to come from processes that
    have only begun: no longer than it took to start one."""
    again: bool
    """Whether it is seen that workers were there before: they end, deliver batches before, or are started twice."""
    apart: float | None
    """Steps from one start to the next; None where one is recorded."""


def worker_starts(host: HostActivity, markers: Markers) -> WorkerStarts | None:
    """The starts in the recorded steps; None where none is recorded."""
    trace = host.trace
    slices = trace.slices
    mine = among(slices.track, host.loop) & (slices.start_ns >= markers.start[0])
    forks = mine & _named(trace, _STARTS)
    starts = _outer(trace, mine & _named(trace, _MAKES) & holding(forks, slices.parent))
    if not starts.size:
        return None
    ends = _outer(trace, mine & _named(trace, _ENDS) & holding(_named(trace, _WAITS), slices.parent))
    takes = np.flatnonzero(among(slices.track, host.loop) & _taking(trace))
    takes = takes[~among(takes, takes[holding(marked(ends, len(slices)), slices.parent)[takes]])]
    inside = np.searchsorted(slices.start_ns[starts], slices.start_ns[np.flatnonzero(forks)], "right") - 1
    counted = np.bincount(inside[inside >= 0], minlength=starts.size)
    step = np.searchsorted(markers.start, slices.start_ns[starts], "right") - 1
    before = bool((slices.start_ns[takes] < slices.start_ns[starts[0]]).any())
    return WorkerStarts(
        starts=starts,
        ends=ends,
        workers=int(counted.max()),
        time=iv.joined([iv.of(slices, starts), iv.of(slices, ends), _beginning(trace, starts, takes, forks)]),
        again=before or bool(ends.size) or starts.size > 1,
        apart=float(np.diff(step).mean()) if starts.size > 1 else None,
    )


def _beginning(trace: Trace, starts: Rows, takes: Rows, forks: Bools) -> iv.Intervals:
    """Of the waits for the first batches what is more than the wait for others, and no more than a process's start."""
    slices = trace.slices
    if not takes.size:
        return iv.EMPTY
    first = np.unique(np.minimum(np.searchsorted(slices.start_ns[takes], slices.start_ns[starts]), takes.size - 1))
    others = np.delete(takes, first)
    usual = int(np.median(slices.dur_ns[others])) if others.size else 0
    one = int(np.median(slices.dur_ns[forks]))
    rows = takes[first]
    ns = np.clip(slices.dur_ns[rows] - usual, 0, one)
    return iv.union(slices.start_ns[rows], slices.start_ns[rows] + ns)


def _taking(trace: Trace) -> Bools:
    return np.asarray((trace.slices.kind == Kind.ANNOTATION) & _named(trace, _TAKES))


def _named(trace: Trace, pattern: re.Pattern[str]) -> Bools:
    def matches(name: str) -> bool:
        return pattern.search(name.replace("\\", "/")) is not None

    return np.asarray(mapped(trace.slices.name, trace.strings, matches, np.bool_))


def _outer(trace: Trace, chosen: Bools) -> Rows:
    return np.flatnonzero(is_outermost(chosen, trace.slices.parent))
