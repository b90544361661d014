"""Where moments lie among events of the same line: searched one by one, whatever the number of lines."""

from __future__ import annotations

import numpy as np

from stepscope.compiled import inlined, kernel
from stepscope.formats.xplane.space import SpaceEvents
from stepscope.record import record
from stepscope.trace.tables import I32, I64, Rows

_DEEPEST = 16
"""Events around a stretch of time that are looked at."""


@record
class OnLines:
    """Some events, line by line in time order."""

    rows: Rows
    start: I64
    first: I64
    """Where each line's events begin, and where the last one's end."""

    @classmethod
    def of(cls, rows: Rows, line: I32, start: I64) -> OnLines:
        """Some events; ``line`` (or track) and ``start`` are those of all events."""
        rows = rows[np.lexsort((start[rows], line[rows]))]
        lines = np.arange(int(line.max(initial=-1)) + 2, dtype=line.dtype)
        return cls(rows, start[rows], np.searchsorted(line[rows], lines))


@record
class EventStretches:
    """Events with when each is over, and the event that each stands for (-1: none)."""

    among: OnLines
    end: I64
    stands_for: Rows

    @property
    def arrays(self) -> tuple[I64, I64, I64, Rows]:
        """As the kernels take them."""
        return self.among.first, self.among.start, self.end, self.stands_for


def outermost_around(calls: EventStretches, line: I32, begun: I64, ended: I64) -> Rows:
    """The outermost of some calls around each stretch of time on a line, -1 for none."""
    found = np.empty(begun.size, np.intp)
    _outermost_around(calls.arrays, line, begun, ended, found)
    return found


def around_or_of_task(calls: EventStretches, tasks: EventStretches, ops: Rows, events: SpaceEvents) -> Rows:
    """The outermost call around each op on its line, else what the task stands for in which it began; -1 for none."""
    found = np.empty(ops.size, np.intp)
    _around_or_of_task(calls.arrays, tasks.arrays, ops, (events.line, events.start_ns, events.dur_ns), found)
    return found


def task_of(tasks: EventStretches, line: I32, moments: I64) -> Rows:
    """What the task stands for in which each moment on a line lies, -1 for none."""
    found = np.empty(moments.size, np.intp)
    _task_of(tasks.arrays, line, moments, found)
    return found


def first_from(events: Rows, moments: Rows, line: I32, start: I64) -> Rows:
    """The first of some events that begins at or after each moment (an event too) on its line, -1 for none."""
    among = OnLines.of(moments, line, start)
    best = np.full(moments.size, -1, np.intp)
    _first_from((among.first, among.start), events, line, start, best)
    found = np.empty(moments.size, np.intp)
    found[np.lexsort((start[moments], line[moments]))] = best
    return found


def first_of_task(marks: OnLines, tasks: OnLines, line: I32, low: I64, high: I64) -> Rows:
    """The first of some events that begins on a line in ``[low, high)`` and after the last beginning of a task in it;
    -1 for none."""
    found = np.empty(low.size, np.intp)
    marked = marks.first, marks.start, marks.rows
    _first_of_task(marked, (tasks.first, tasks.start), line, (low, high), found)
    return found


@inlined
def _place(first: I64, start: I64, line: int, time: int) -> int:
    low, high = first[line], first[line + 1]
    begin = low
    while low < high:
        middle = (low + high) >> 1
        if start[middle] <= time:
            low = middle + 1
        else:
            high = middle
    return low - 1 if low > begin else -1


@inlined
def _outermost(calls: tuple[I64, I64, I64, Rows], line: int, begun: int, ended: int) -> int:
    first, start, end, rows = calls
    last = _place(first, start, line, begun)
    found = -1
    for place in range(last, max(first[line], last - _DEEPEST + 1) - 1, -1):
        if end[place] >= ended:
            found = rows[place]
    return found


@inlined
def _task_at(tasks: tuple[I64, I64, I64, Rows], line: int, time: int) -> int:
    place = _place(tasks[0], tasks[1], line, time)
    return tasks[3][place] if place >= 0 and time <= tasks[2][place] else -1


@kernel
def _outermost_around(calls: tuple[I64, I64, I64, Rows], line: I32, begun: I64, ended: I64, found: Rows) -> None:
    for k in range(begun.size):
        found[k] = _outermost(calls, line[k], begun[k], ended[k])


@kernel
def _around_or_of_task(
    calls: tuple[I64, I64, I64, Rows],
    tasks: tuple[I64, I64, I64, Rows],
    ops: Rows,
    events: tuple[I32, I64, I64],
    found: Rows,
) -> None:
    line, start, dur = events
    for k in range(ops.size):
        op = ops[k]
        found[k] = _outermost(calls, line[op], start[op], start[op] + dur[op])
        if found[k] < 0:
            found[k] = _task_at(tasks, line[op], start[op])


@kernel
def _task_of(tasks: tuple[I64, I64, I64, Rows], line: I32, moments: I64, found: Rows) -> None:
    for k in range(moments.size):
        found[k] = _task_at(tasks, line[k], moments[k])


@kernel
def _first_from(moments: tuple[I64, I64], events: Rows, line: I32, start: I64, best: Rows) -> None:
    first, time = moments
    for event in events:
        if line[event] < 0:
            continue
        place = _place(first, time, line[event], start[event])
        if place >= 0 and (best[place] < 0 or start[event] < start[best[place]]):
            best[place] = event
    # Where none comes before the next moment, what comes first after that.
    for k in range(first.size - 1):
        for place in range(first[k + 1] - 2, first[k] - 1, -1):
            if best[place] < 0:
                best[place] = best[place + 1]


@kernel
def _first_of_task(
    marks: tuple[I64, I64, Rows], tasks: tuple[I64, I64], line: I32, span: tuple[I64, I64], found: Rows
) -> None:
    first, start, rows = marks
    low, high = span
    for k in range(found.size):
        begun = _place(tasks[0], tasks[1], line[k], high[k] - 1)
        since = low[k] if begun < 0 else max(low[k], tasks[1][begun])
        before = _place(first, start, line[k], since - 1)
        at = first[line[k]] if before < 0 else before + 1
        found[k] = rows[at] if at < first[line[k] + 1] and start[at] < high[k] else -1
