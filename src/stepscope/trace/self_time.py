"""How long each slice ran with nothing inside it."""

from __future__ import annotations

import numpy as np

from stepscope.compiled import kernel
from stepscope.trace.tables import I32, I64, Rows, Slices


def self_time(slices: Slices, begin: int, end: int) -> I64:
    """Per slice, the time in ``[begin, end)`` in which it is its track's innermost: nothing later begun runs inside.

    What the slices of a track have sums to the time they cover, also where they cross.
    """
    return _self_time(slices.track, slices.start_ns, slices.dur_ns, begin, end)


def self_time_among(slices: Slices, rows: Rows, begin: int, end: int) -> I64:
    """The same among some slices (rising rows), as if there were no others: one value per row."""
    return _self_time(slices.track[rows], slices.start_ns[rows], slices.dur_ns[rows], begin, end)


@kernel
def _self_time(track: I32, start: I64, dur: I64, begin: int, end: int) -> I64:
    n = track.size
    own = np.zeros(n, np.int64)
    stack = np.empty(64, np.int32)
    size = 0
    now = begin
    for i in range(n + 1):
        begins = i < n and (i == 0 or track[i] == track[i - 1])
        # Up to the next start of the track (or its end) time belongs to the top of the stack, then to what it hid.
        until = min(max(start[i], begin), end) if begins else end
        while size > 0:
            top = stack[size - 1]
            over = min(start[top] + dur[top], until)
            if over > now:
                own[top] += over - now
                now = over
            if start[top] + dur[top] > until:
                break
            size -= 1
        if i == n:
            break
        if not begins:
            size = 0
            now = begin
        now = min(max(start[i], now), end)
        if size == stack.size:
            grown = np.empty(2 * size, np.int32)
            grown[:size] = stack
            stack = grown
        stack[size] = i
        size += 1
    return own
