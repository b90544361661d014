"""Where moments lie among events of the same line: searched one by one, whatever the number of lines."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stepscope.compiled import filling, inlined
from stepscope.formats.xplane.space import SpaceEvents
from stepscope.trace.tables import I32, I64, Rows

_DEEPEST = 16
"""Events around a stretch of time that are looked at."""


class OnLines(NamedTuple):
    """Some events, line by line in time order."""

    rows: Rows
    start: I64
    first: I64
    """Where each line's events begin, and where the last one's end."""

    @classmethod
    def of(cls, rows: Rows, line: I32, start: I64) -> OnLines:
        """Some events; ``line`` (or track) and ``start`` are those of all events."""
        return cls.in_order(rows[np.lexsort((start[rows], line[rows]))], line, start)

    @classmethod
    def in_order(cls, rows: Rows, line: I32, start: I64) -> OnLines:
        """The same of events that are given line by line in time order."""
        lines = np.arange(int(line.max(initial=-1)) + 2, dtype=line.dtype)
        return cls(rows, start[rows], np.searchsorted(line[rows], lines))


class EventStretches(NamedTuple):
    """Events with when each is over, and the event that each stands for (-1: none)."""

    among: OnLines
    end: I64
    stands_for: Rows


def outermost_around(calls: EventStretches, line: I32, begun: I64, ended: I64) -> Rows:
    """The outermost of some calls around each stretch of time on a line, -1 for none."""
    around = np.empty(begun.size, np.intp)
    _outermost_around(calls, line, begun, ended, around)
    return around


def around_or_of_task(calls: EventStretches, tasks: EventStretches, ops: Rows, events: SpaceEvents) -> Rows:
    """The outermost call around each op on its line, else what the task stands for in which it began; -1 for none."""
    around = np.empty(ops.size, np.intp)
    _around_or_of_task(calls, tasks, ops, (events.line, events.start_ns, events.dur_ns), around)
    return around


def task_of(tasks: EventStretches, line: I32, moments: I64) -> Rows:
    """What the task stands for in which each moment on a line lies, -1 for none."""
    task = np.empty(moments.size, np.intp)
    _task_of(tasks, line, moments, task)
    return task


def first_from(events: Rows, moments: OnLines, line: I32, start: I64) -> Rows:
    """The first of some events that begins at or after each moment (an event too) on its line, -1 for none."""
    best = np.full(moments.rows.size, -1, np.intp)
    _first_from(moments, events, line, start, best)
    return best


def first_of_task(marks: OnLines, tasks: OnLines, line: I32, low: I64, high: I64) -> Rows:
    """The first of some events that begins on a line in ``[low, high)`` and after the last beginning of a task in it;
    -1 for none."""
    first = np.empty(low.size, np.intp)
    _first_of_task(marks, tasks, line, (low, high), first)
    return first


@inlined
def _place(among: OnLines, line: int, time: int) -> int:
    low, high = among.first[line], among.first[line + 1]
    begin = low
    while low < high:
        middle = (low + high) >> 1
        if among.start[middle] <= time:
            low = middle + 1
        else:
            high = middle
    return low - 1 if low > begin else -1


@inlined
def _outermost(calls: EventStretches, line: int, begun: int, ended: int) -> int:
    first = calls.among.first[line]
    last = _place(calls.among, line, begun)
    outermost = -1
    for place in range(last, max(first, last - _DEEPEST + 1) - 1, -1):
        if calls.end[place] >= ended:
            outermost = calls.stands_for[place]
    return outermost


@inlined
def _task_at(tasks: EventStretches, line: int, time: int) -> int:
    place = _place(tasks.among, line, time)
    return tasks.stands_for[place] if place >= 0 and time <= tasks.end[place] else -1


@filling
def _outermost_around(calls: EventStretches, line: I32, begun: I64, ended: I64, out: Rows) -> None:
    for k in range(begun.size):
        out[k] = _outermost(calls, line[k], begun[k], ended[k])


@filling
def _around_or_of_task(
    calls: EventStretches,
    tasks: EventStretches,
    ops: Rows,
    events: tuple[I32, I64, I64],
    chosen: Rows,
) -> None:
    line, start, dur = events
    for k in range(ops.size):
        op = ops[k]
        chosen[k] = _outermost(calls, line[op], start[op], start[op] + dur[op])
        if chosen[k] < 0:
            chosen[k] = _task_at(tasks, line[op], start[op])


@filling
def _task_of(tasks: EventStretches, line: I32, moments: I64, out: Rows) -> None:
    for k in range(moments.size):
        out[k] = _task_at(tasks, line[k], moments[k])


@filling
def _first_from(moments: OnLines, events: Rows, line: I32, start: I64, best: Rows) -> None:
    first = moments.first
    for event in events:
        if line[event] < 0:
            continue
        place = _place(moments, line[event], start[event])
        if place >= 0 and (best[place] < 0 or start[event] < start[best[place]]):
            best[place] = event
    # Where none comes before the next moment, what comes first after that.
    for k in range(first.size - 1):
        for place in range(first[k + 1] - 2, first[k] - 1, -1):
            if best[place] < 0:
                best[place] = best[place + 1]


@filling
def _first_of_task(marks: OnLines, tasks: OnLines, line: I32, span: tuple[I64, I64], out: Rows) -> None:
    first, start, rows = marks.first, marks.start, marks.rows
    low, high = span
    for k in range(out.size):
        begun = _place(tasks, line[k], high[k] - 1)
        since = low[k] if begun < 0 else max(low[k], tasks.start[begun])
        before = _place(marks, line[k], since - 1)
        at = first[line[k]] if before < 0 else before + 1
        out[k] = rows[at] if at < first[line[k] + 1] and start[at] < high[k] else -1
