"""How slices of one track nest: parents and depths, from times alone.

Crossing slices (a profiler range that starts inside an op and ends after it) are legal: a slice's parent is the
innermost earlier slice that contains it whole (one that is over, or empty, contains nothing), so a crossing pair
becomes siblings under what contains both. What begins later holds what lies in both; but a mark of a step, which is
drawn around what the thread does, holds only what a function that it crosses does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.compiled import kernel
from stepscope.trace.shared import shared
from stepscope.trace.tables import I16, I32, I64, Bools, Slices, TrackKind

if TYPE_CHECKING:
    from stepscope.trace.trace import Trace


def nest(track: I32, start: I64, dur: I64, is_mark: Bools, tolerance_ns: int) -> tuple[I32, I16]:
    """Parent row (-1 for none) and depth of each slice; rows sorted by track, start and falling duration.

    ``is_mark`` says which are drawn around what a thread does and not of it.
    ``tolerance_ns`` is the grain of the recorded times: both ends of a slice were rounded, so a child may seem to
    end that much after its parent.
    """
    return _nest(track, start, dur, is_mark, tolerance_ns)


@kernel
def _nest(track: I32, start: I64, dur: I64, is_mark: Bools, tolerance: int) -> tuple[I32, I16]:
    n = track.size
    parent = np.full(n, -1, np.int32)
    depth = np.zeros(n, np.int16)
    stack = np.empty(64, np.int32)
    size = 0
    for i in range(n):
        if i > 0 and track[i] != track[i - 1]:
            size = 0
        while size > 0 and start[stack[size - 1]] + dur[stack[size - 1]] <= start[i]:
            size -= 1
        end = start[i] + dur[i]
        j = size - 1
        while j >= 0 and start[stack[j]] + dur[stack[j]] + tolerance < end:
            j -= 1
        if j >= 0:
            parent[i] = stack[j]
            depth[i] = min(depth[stack[j]] + 1, 32767)
        crossed = size
        while is_mark[i] and crossed > 0 and not is_mark[stack[crossed - 1]]:
            if start[stack[crossed - 1]] + dur[stack[crossed - 1]] + tolerance >= end:
                break
            crossed -= 1
        # One that ends no later than this one holds nothing that this one does not: ends fall from the bottom of the
        # stack to its top, and of slices that cross each other few are looked at twice.
        while size > 0 and crossed == size and start[stack[size - 1]] + dur[stack[size - 1]] <= end:
            size -= 1
            crossed -= 1
        if size == stack.size:
            grown = np.empty(2 * size, np.int32)
            for k in range(size):  # an assignment of slices would take three seconds more to compile
                grown[k] = stack[k]
            stack = grown
        for k in range(size, crossed, -1):
            stack[k] = stack[k - 1]
        stack[crossed] = i
        size += 1
    return parent, depth


def rows_of_track(slices: Slices, track: int) -> tuple[int, int]:
    """The first row of a track and the row behind its last."""
    # Searching with another integer type would copy the whole column.
    low, high = np.searchsorted(slices.track, np.array([track, track + 1], slices.track.dtype))
    return int(low), int(high)


@shared
def on_host_threads(trace: Trace) -> Bools:
    """Which slices lie on threads of the host; not to be written to."""
    tracks = np.arange(len(trace.tracks) + 1, dtype=trace.slices.track.dtype)
    counts = np.diff(np.searchsorted(trace.slices.track, tracks))
    # Rows are sorted by track: repeating is ten times as fast as looking each one's track up.
    on_host = np.repeat(trace.tracks.kind == TrackKind.HOST_THREAD, counts)
    on_host.setflags(write=False)
    return on_host


def innermost_at(slices: Slices, tracks: I32, times: I64) -> I32:
    """The innermost slice around each point ``(track, time)``, -1 where none is; ends count as inside."""
    # Rows are sorted by track and start, so per track one binary search finds the last slice begun by then.
    innermost = np.full(times.size, -1, np.int32)
    for track in np.unique(tracks).tolist():
        low, high = rows_of_track(slices, track)
        wanted = np.flatnonzero(tracks == track)
        innermost[wanted] = low + np.searchsorted(slices.start_ns[low:high], times[wanted], "right") - 1
        innermost[wanted[innermost[wanted] < low]] = -1
    return _climb(innermost, times, slices.start_ns, slices.dur_ns, slices.parent)


@kernel
def _climb(rows: I32, times: I64, start: I64, dur: I64, parent: I32) -> I32:
    row = at = -1
    for i in range(rows.size):
        # What was over at a time is over later: points in order of time never climb the same slices twice.
        j = at if rows[i] == row and times[i] >= times[i - 1] else rows[i]
        row = rows[i]
        while j >= 0 and start[j] + dur[j] < times[i]:
            j = parent[j]
        rows[i] = at = j
    return rows


def ladders(parent: I32, chosen: Bools) -> tuple[I32, I32, I32]:
    """What finds a slice far above another in few steps. Per slice how many enclose it; how many of these and itself
    are chosen; and one far above it, so that jumping there where that is not too far, and else to its parent, takes
    about as many steps as a number of slices has binary digits. An outermost slice is above itself."""
    return _ladders(parent, chosen)


@kernel
def _ladders(parent: I32, chosen: Bools) -> tuple[I32, I32, I32]:
    # Myers, "An applicative random-access stack" (1983): a jump is as long as the two behind it, where these are alike.
    n = parent.size
    depth, count, jump = np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(n, np.int32)
    for i in range(n):
        above = parent[i]
        if above < 0:
            jump[i], count[i] = i, chosen[i]
            continue
        depth[i], count[i] = depth[above] + 1, count[above] + chosen[i]
        middle = jump[above]
        alike = depth[above] - depth[middle] == depth[middle] - depth[jump[middle]]
        jump[i] = jump[middle] if alike else above
    return depth, count, jump


def outermost(chosen: Bools, parent: I32) -> I32:
    """Per slice, the outermost chosen slice around it (or itself), -1 for none."""
    return _outermost(chosen, parent) if chosen.any() else np.full(parent.size, -1, np.int32)


def is_outermost(chosen: Bools, parent: I32) -> Bools:
    """Which of the chosen slices lie in no other chosen one."""
    if not chosen.any():
        return np.zeros_like(chosen)
    return np.asarray(outermost(chosen, parent) == np.arange(parent.size, dtype=np.int32))


@kernel
def _outermost(chosen: Bools, parent: I32) -> I32:
    outermost = np.full(parent.size, -1, np.int32)
    for i in range(parent.size):
        if parent[i] >= 0:
            outermost[i] = outermost[parent[i]]
        if outermost[i] < 0 and chosen[i]:
            outermost[i] = i
    return outermost


def inherit(values: I32, parent: I32) -> I32:
    """Give each slice without a value (negative) that of the innermost enclosing slice with one."""
    return _inherit(values.copy(), parent) if (values >= 0).any() else values.copy()


@kernel
def _inherit(values: I32, parent: I32) -> I32:
    # A parent's row comes before its children's, so one pass carries values all the way down.
    for i in range(values.size):
        if values[i] < 0 and parent[i] >= 0:
            values[i] = values[parent[i]]
    return values


def holding(chosen: Bools, parent: I32) -> Bools:
    """Which slices hold a chosen one, at any depth."""
    return _holding(chosen, parent)


@kernel
def _holding(chosen: Bools, parent: I32) -> Bools:
    holds = np.zeros(parent.size, np.bool_)
    for i in range(parent.size - 1, -1, -1):
        if parent[i] >= 0 and (chosen[i] or holds[i]):
            holds[parent[i]] = True
    return holds


def summed(values: I64, parent: I32) -> I64:
    """Per slice, its own value and those of all slices inside it."""
    return _summed(values.copy(), parent)


@kernel
def _summed(values: I64, parent: I32) -> I64:
    for i in range(values.size - 1, -1, -1):
        if parent[i] >= 0:
            values[parent[i]] += values[i]
    return values


def levels(parent: I32) -> I32:
    """Per slice, how many enclose it."""
    return _levels(parent)


@kernel
def _levels(parent: I32) -> I32:
    depths = np.zeros(parent.size, np.int32)
    for i in range(parent.size):
        if parent[i] >= 0:
            depths[i] = depths[parent[i]] + 1
    return depths


def within_own_kind(kind: I32, parent: I32) -> Bools:
    """Which slices lie, at any depth, inside one of equal ``kind`` (numbers from 0)."""
    return _within_own_kind(kind, parent, int(kind.max(initial=-1)) + 1)


@kernel
def _within_own_kind(kind: I32, parent: I32, kinds: int) -> Bools:
    within = np.zeros(kind.size, np.bool_)
    open_now = np.zeros(kinds, np.int32)  # how many of each kind enclose the slice at hand
    path = np.empty(kind.size, np.int32)
    size = 0
    for i in range(kind.size):
        while size > 0 and path[size - 1] != parent[i]:
            size -= 1
            open_now[kind[path[size]]] -= 1
        within[i] = open_now[kind[i]] > 0
        open_now[kind[i]] += 1
        path[size] = i
        size += 1
    return within
