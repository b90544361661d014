"""What executions of a TensorFlow graph have to do with each other: lanes, rows recorded twice, launches, dataflow."""

from __future__ import annotations

import numpy as np

from stepscope.compiled import kernel
from stepscope.trace.codes import marked
from stepscope.trace.tables import I32, I64, NULL, Bools, Rows

MOST_TRIED = 1024
"""Lanes looked at for an execution before it opens a new one: the work stays linear, whatever overlaps."""


def timeline_lanes(row: I32, start_us: I64, end_us: I64) -> I32:
    """The lane of each execution on its row, as TensorFlow's Timeline assigns its ``tid``.

    In file order each takes the first lane whose last execution ended before it begins, so that those of one lane
    never overlap.
    """
    return _lanes(row, start_us, end_us, int(row.max()) + 1 if row.size else 0)


@kernel
def _lanes(row: I32, start: I64, end: I64, rows: int) -> I32:
    lane = np.zeros(row.size, np.int32)
    order = np.argsort(row, kind="mergesort")
    ends = np.empty(64, np.int64)
    used, current = 0, -1
    for i in order:
        if row[i] != current:
            current, used = row[i], 0
        chosen = used
        for k in range(min(used, MOST_TRIED)):
            if start[i] > ends[k]:
                chosen = k
                break
        if chosen == used:
            used += 1
            if used > ends.size:
                grown = np.empty(2 * ends.size, np.int64)
                grown[: ends.size] = ends
                ends = grown
        ends[chosen] = end[i]
        lane[i] = chosen
    return lane


def repeated(keys: tuple[I64, ...], again: Bools) -> tuple[Bools, Rows]:
    """Which entries of the rows that list things ``again`` equal (in all ``keys``) one of the others, pair by pair.

    Returns a mask over all entries, and for each of its entries, in order, the other that it repeats.
    """
    order = np.lexsort((np.arange(again.size), again, *keys))
    new_key = np.zeros(order.size, np.bool_)
    for key in keys:
        new_key[1:] |= key[order[1:]] != key[order[:-1]]
    group = np.cumsum(new_key)
    # Of each group the others come first: entry k that comes again repeats the k-th other.
    first = np.searchsorted(group, np.arange(int(group[-1]) + 1 if group.size else 0))
    others = np.bincount(group, ~again[order], first.size).astype(np.int64)
    rank = np.arange(order.size) - first[group] - np.where(again[order], others[group], 0)
    repeats = again[order] & (rank < others[group])
    mask = marked(order[repeats], again.size)
    partner = np.full(again.size, -1, np.int64)
    partner[order[repeats]] = order[(first[group] + rank)[repeats]]
    return mask, partner[mask]


def latest_before(groups: tuple[I32, I32], times: tuple[I64, I64]) -> I64:
    """Per query (first of each pair) the position of the latest member (second) of its group by then, -1 for none."""
    queries, members = groups[0].size, groups[1].size
    group = np.concatenate((groups[1], groups[0]))
    time = np.concatenate((times[1], times[0]))
    is_query = np.arange(group.size) >= members
    order = np.lexsort((is_query, time, group))
    position = np.maximum.accumulate(np.where(is_query[order], -1, np.arange(order.size)))
    before = order[np.maximum(position, 0)]
    known = (position >= 0) & (group[before] == group[order])
    latest = np.full(group.size, -1, np.int64)
    latest[order] = np.where(known, before, -1)
    return latest[members : members + queries]


def launching(nodes: tuple[I32, I32], times: tuple[I64, I64], scheduled: I64) -> I64:
    """Per device slice (first of each pair) the execution (second) of its node that launched it: position, -1 for none.

    ``nodes`` are codes of names, ``times`` starts. Where the launch was recorded (``scheduled``) it lies in that
    execution. Else device slices of a node run in the order of its executions, equally many for each; where the
    numbers do not divide, the latest execution begun by then is taken.
    """
    calls = latest_before(nodes, (np.where(scheduled == NULL, times[0], scheduled), times[1]))
    by_device = np.lexsort((times[0], nodes[0]))
    by_host = np.lexsort((times[1], nodes[1]))
    codes, first, counts = np.unique(nodes[0][by_device], return_index=True, return_counts=True)
    low = np.searchsorted(nodes[1][by_host], codes)
    executions = np.searchsorted(nodes[1][by_host], codes, "right") - low
    for at in np.flatnonzero((executions > 0) & (counts % np.maximum(executions, 1) == 0)).tolist():
        mine = by_device[first[at] : first[at] + counts[at]]
        open_ = mine[scheduled[mine] == NULL]
        if open_.size == mine.size:
            calls[mine] = by_host[low[at] + np.arange(mine.size) * int(executions[at]) // mine.size]
    return calls
