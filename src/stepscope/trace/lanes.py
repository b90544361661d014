"""Lanes for slices that overlap: as few as greedy first-fit needs, so that on each lane slices nest or follow."""

from __future__ import annotations

import numpy as np

from stepscope.compiled import kernel
from stepscope.trace.tables import I32, I64

MOST_TRIED = 1024
"""Lanes looked at for a slice before it opens a new one: the work stays linear in the slices, whatever overlaps."""


def lanes_of(track: I32, start: I64, dur: I64, *, nesting: bool) -> I32:
    """The lane (0, 1, …) of each slice on its track; rows sorted by track, start and falling duration.

    With ``nesting`` a slice may lie on the lane of one that encloses it; without, the slices of a lane never overlap.
    """
    return _lanes_of(track, start, dur, nesting)


@kernel
def _lanes_of(track: I32, start: I64, dur: I64, nesting: bool) -> I32:
    n = track.size
    lane = np.zeros(n, np.int32)
    # Per lane the innermost slice still open, and per slice the one around it.
    top = np.full(64, -1, np.int32)
    outer = np.full(n, -1, np.int32)
    used = 0
    for i in range(n):
        if i > 0 and track[i] != track[i - 1]:
            top[:used] = -1
            used = 0
        end = start[i] + dur[i]
        chosen = -1
        for k in range(min(used, MOST_TRIED)):
            while top[k] >= 0 and start[top[k]] + dur[top[k]] <= start[i]:
                top[k] = outer[top[k]]
            j = top[k]
            if j < 0 or (nesting and end <= start[j] + dur[j]):
                chosen = k
                break
        if chosen < 0:
            chosen = used
            used += 1
            if used > top.size:
                grown = np.full(2 * top.size, -1, np.int32)
                grown[: top.size] = top
                top = grown
        outer[i] = top[chosen]
        top[chosen] = i
        lane[i] = chosen
    return lane
