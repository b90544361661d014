"""The way of compiled code to its first launch: looking up what was compiled, checking guards, handling arguments."""

from __future__ import annotations

import numpy as np

from stepscope.names.compiled_code import is_compiled, prepares_compiled
from stepscope.record import record
from stepscope.trace.codes import among, distinct, mapped
from stepscope.trace.forest import rows_of_track
from stepscope.trace.tables import I32, I64, Rows
from stepscope.trace.trace import Trace

_NEVER = np.iinfo(np.int64).max


@record
class Prologues:
    """Stretches at the beginning of regions of compiled code; those of one thread do not overlap."""

    slice: Rows
    """The region, or the range that prepares one."""
    track: I32
    start: I64
    end: I64
    """Its first launch; the end of a range that only prepares."""


def prologues(trace: Trace, tracks: list[int], launches: I32) -> Prologues:
    """The prologues on threads that launch; ``launches`` are the calls that launched something, in order of rows."""
    slices = trace.slices
    prepares = mapped(slices.name, trace.strings, prepares_compiled, np.bool_)
    compiled = mapped(slices.name, trace.strings, is_compiled, np.bool_)
    rows = np.flatnonzero((compiled | prepares) & among(slices.track, tracks))
    track, start, end = slices.track[rows], slices.start_ns[rows], (slices.start_ns + slices.dur_ns)[rows]
    until = np.where(prepares[rows], end, -1)
    kept = np.zeros(rows.size, np.bool_)
    for thread in distinct(track):
        low, high = rows_of_track(slices, thread)
        begun = slices.start_ns[launches[(launches >= low) & (launches < high)]]
        mine = np.flatnonzero(track == thread)
        first = np.append(begun, _NEVER)[np.searchsorted(begun, start[mine], "left")]
        regions = ~prepares[rows[mine]]
        until[mine[regions]] = np.where(first < end[mine], first, -1)[regions]
        reached = np.maximum.accumulate(np.concatenate(([-1], until[mine][:-1])))
        kept[mine] = (until[mine] > start[mine]) & (start[mine] >= reached)
    return Prologues(rows[kept], track[kept], start[kept], until[kept])
