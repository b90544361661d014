"""Interval arithmetic over half-open integer intervals ``[start, end)``.

A *set* of intervals is a pair of int64 arrays, sorted, disjoint and without empty members; ``union`` makes one from
anything. All functions are pure; every result is exact.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from stepscope.compiled import kernel
from stepscope.trace.tables import I32, I64, U8, Bools, Rows, Slices

Intervals = tuple[I64, I64]

EMPTY: Intervals = (np.empty(0, np.int64), np.empty(0, np.int64))


def union(starts: I64, ends: I64) -> Intervals:
    """The set covered by any number of intervals, in any order; those with ``end <= start`` cover nothing."""
    keep = ends > starts
    starts, ends = starts[keep], ends[keep]
    if starts.size == 0:
        return EMPTY
    if (starts[1:] < starts[:-1]).any():  # Those of one thread are in order.
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
    if starts.size == 1:
        return starts, ends
    reach = np.maximum.accumulate(ends)
    first = np.ones(starts.size + 1, np.bool_)
    np.greater(starts[1:], reach[:-1], out=first[1:-1])
    return starts[first[:-1]], reach[first[1:]]


def of(slices: Slices, rows: I32 | Rows | Bools) -> Intervals:
    """When some of a trace's slices ran."""
    start = slices.start_ns[rows]
    return union(start, start + slices.dur_ns[rows])


def joined(sets: Iterable[Intervals]) -> Intervals:
    """The union of some sets."""
    return union(*(np.concatenate(part) for part in zip(EMPTY, *sets, strict=True)))


def overlapping(sets: Iterable[Intervals]) -> Intervals:
    """What more than one of some sets covers."""
    starts, ends = (np.concatenate(part) for part in zip(EMPTY, *sets, strict=True))
    times = np.concatenate((starts, ends))
    order = np.argsort(times, kind="stable")
    many = np.cumsum(np.where(order < starts.size, 1, -1)) > 1
    times = times[order]
    return union(times[:-1][many[:-1]], times[1:][many[:-1]])


def measure(a: Intervals) -> int:
    """The total length of a set."""
    return int((a[1] - a[0]).sum())


def complement(a: Intervals, start: int, end: int) -> Intervals:
    """What of ``[start, end)`` a set leaves uncovered."""
    a = clip(a, start, end)
    starts, ends = np.empty((2, len(a[0]) + 1), np.int64)
    starts[0], starts[1:] = start, a[1]
    ends[:-1], ends[-1] = a[0], end
    return _nonempty(starts, ends)


def clip(a: Intervals, start: int, end: int) -> Intervals:
    """The part of a set inside ``[start, end)``."""
    low, high = np.searchsorted(a[1], start, "right"), np.searchsorted(a[0], end, "left")
    return _nonempty(np.maximum(a[0][low:high], start), np.minimum(a[1][low:high], end))


def intersect(a: Intervals, b: Intervals) -> Intervals:
    """What two sets have in common."""
    if len(a[0]) < len(b[0]):
        a, b = b, a  # what is few is looked up in what is many
    if len(b[0]) == 0:
        return EMPTY
    # Each member of b meets a contiguous run of a; list all the pairs that meet.
    low = np.searchsorted(a[1], b[0], "right")
    high = np.searchsorted(a[0], b[1], "left")
    count = np.maximum(high - low, 0)
    before = count.cumsum()
    if not before[-1]:
        return EMPTY
    of_b = np.arange(len(b[0])).repeat(count)
    of_a = np.arange(before[-1]) + (low + count - before).repeat(count)
    return np.maximum(a[0][of_a], b[0][of_b]), np.minimum(a[1][of_a], b[1][of_b])


def subtract(a: Intervals, b: Intervals) -> Intervals:
    """What a set has that another lacks."""
    if len(a[0]) == 0 or len(b[0]) == 0:
        return a
    if len(a[0]) < len(b[0]):
        b = _met(b, a)
    return intersect(a, complement(b, int(a[0][0]), int(a[1][-1])))


def _met(a: Intervals, b: Intervals) -> Intervals:
    """The members of a set that meet some of another, which has few."""
    low = np.searchsorted(a[1], b[0], "right")
    high = np.searchsorted(a[0], b[1], "left")
    low[1:] = np.maximum(low[1:], high[:-1])  # one that meets two counts once
    count = np.maximum(high - low, 0)
    rows = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count) + np.repeat(low, count)
    return a[0][rows], a[1][rows]


def covered(a: Intervals, points: I64) -> I64:
    """How much of a set lies before each point: ``covered(a, y) - covered(a, x)`` is its length in ``[x, y)``."""
    if len(a[0]) == 0:
        return np.zeros(len(points), np.int64)
    before = _before(a)
    index = np.searchsorted(a[0], points, "right") - 1
    inside = np.minimum(points, a[1][index]) - a[0][index]
    return np.where(index < 0, 0, before[index] + inside)


def covered_between(a: Intervals, starts: I64, ends: I64) -> I64:
    """The length of a set inside each ``[start, end)``."""
    if len(a[0]) == 0 or len(starts) == 0:
        return np.zeros(len(starts), np.int64)
    return covered(a, ends) - covered(a, starts)


def _before(a: Intervals) -> I64:
    """How long the set is before each of its members, and in all."""
    before = np.zeros(len(a[0]) + 1, np.int64)
    np.cumsum(a[1] - a[0], out=before[1:])
    return before


def sweep(starts: I64, ends: I64, classes: U8, class_count: int) -> tuple[I64, I64, U8]:
    """Partition the union of classed intervals: every instant goes to the lowest class number active there.

    Returns starts, ends and classes of disjoint pieces in time order, neighbours of one class merged.
    """
    keep = ends > starts
    starts, ends, classes = starts[keep], ends[keep], classes[keep]
    times = np.concatenate((starts, ends))
    deltas = np.concatenate((np.ones(starts.size, np.int32), np.full(ends.size, -1, np.int32)))
    order = np.argsort(times, kind="stable")
    return _sweep(times[order], deltas[order], np.concatenate((classes, classes))[order], class_count)


@kernel
def _sweep(times: I64, deltas: I32, classes: U8, class_count: int) -> tuple[I64, I64, U8]:
    active = np.zeros(class_count, np.int64)
    out_start = np.empty(times.size, np.int64)
    out_end = np.empty(times.size, np.int64)
    out_class = np.empty(times.size, np.uint8)
    count = 0
    current = class_count
    since = np.int64(0)
    for i in range(times.size):
        active[classes[i]] += deltas[i]
        if i + 1 < times.size and times[i + 1] == times[i]:
            continue
        lowest = 0
        while lowest < class_count and active[lowest] == 0:
            lowest += 1
        if lowest == current:
            continue
        if current < class_count:
            out_start[count], out_end[count], out_class[count] = since, times[i], current
            count += 1
        current, since = lowest, times[i]
    return out_start[:count], out_end[:count], out_class[:count]


def _nonempty(starts: I64, ends: I64) -> Intervals:
    keep = ends > starts
    return starts[keep], ends[keep]
