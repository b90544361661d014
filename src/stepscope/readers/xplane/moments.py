"""Where moments lie among events of the same line: searched one by one, whatever the number of lines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stepscope.compiled import inlined, kernel
from stepscope.trace.tables import I32, I64, Rows

_DEEPEST = 16
"""Events around a stretch of time that are looked at."""


@dataclass(frozen=True, slots=True)
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


def last_begun(among: OnLines, line: I32, time: I64) -> Rows:
    """The place in ``among.rows`` of the last event on a line that begins at or before each moment, -1 for none."""
    found = np.empty(time.size, np.intp)
    _last_begun((among.first, among.start), line, time, found)
    return found


def outermost_around(among: OnLines, end: I64, line: I32, begun: I64, ended: I64) -> Rows:
    """The outermost event around each stretch of time on a line, -1 for none; ``end`` is one per event ``among``."""
    found = np.empty(begun.size, np.intp)
    _outermost_around((among.first, among.start, among.rows, end), line, begun, ended, found)
    return found


def first_from(events: Rows, moments: Rows, line: I32, start: I64) -> Rows:
    """The first of some events that begins at or after each moment (an event too) on its line, -1 for none."""
    among = OnLines.of(moments, line, start)
    best = np.full(moments.size, -1, np.intp)
    _first_from((among.first, among.start), events, line, start, best)
    found = np.empty(moments.size, np.intp)
    found[np.lexsort((start[moments], line[moments]))] = best
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


@kernel
def _last_begun(among: tuple[I64, I64], line: I32, time: I64, found: Rows) -> None:
    for k in range(time.size):
        found[k] = _place(among[0], among[1], line[k], time[k])


@kernel
def _outermost_around(among: tuple[I64, I64, Rows, I64], line: I32, begun: I64, ended: I64, found: Rows) -> None:
    first, start, rows, end = among
    for k in range(begun.size):
        found[k] = -1
        last = _place(first, start, line[k], begun[k])
        for place in range(last, max(first[line[k]], last - _DEEPEST + 1) - 1, -1):
            if end[place] >= ended[k]:
                found[k] = rows[place]


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
