"""Threads of the program's own that launch in turn with the main thread, which waits for them meanwhile.

A pool's worker that is handed the step, or a part of it: whatever the main thread waits in (a lock, a queue, a future,
or nothing that was recorded), it does nothing while the other launches, and goes on when that is done. What the worker
takes to launch is then what the step waits for.
"""

from __future__ import annotations

import numpy as np

from stepscope.limits import DISPATCH_GAP_NS, TURN_OVERLAP, TURNS_SHARE
from stepscope.trace import intervals as iv
from stepscope.trace.tables import Kind, TrackKind
from stepscope.trace.trace import Trace

_WORK = (Kind.HOST_OP, Kind.RUNTIME_CALL, Kind.SYNC, Kind.ALLOCATION, Kind.COMPILE)


def taking_turns(trace: Trace, main: int, backward: tuple[int, ...]) -> tuple[int, ...]:
    """Tracks of such threads; autograd's are known to be."""
    tracks = np.unique(trace.slices.track[trace.launches.call])
    tracks = tracks[trace.tracks.kind[tracks] == TrackKind.HOST_THREAD]
    others = tracks[~np.isin(tracks, (main, *backward))]
    if main < 0 or not others.size:
        return ()
    work = {track: _work(trace, track) for track in {main, *backward, *tracks.tolist()}}
    return tuple(
        track
        for track in others.tolist()
        if _in_turn(work[track], iv.joined([spans for other, spans in work.items() if other != track]))
    )


def _work(trace: Trace, track: int) -> iv.Intervals:
    slices = trace.slices
    rows = np.flatnonzero((slices.track == track) & np.isin(slices.kind, _WORK))
    return iv.union(slices.start_ns[rows], slices.start_ns[rows] + slices.dur_ns[rows])


def _in_turn(own: iv.Intervals, others: iv.Intervals) -> bool:
    """Whether nothing else is done while a thread works, and something is as soon as it has."""
    if not own[0].size or iv.measure(iv.intersect(own, others)) > TURN_OVERLAP * iv.measure(own):
        return False
    first = np.append(True, own[0][1:] - own[1][:-1] > DISPATCH_GAP_NS)
    begin, end = own[0][first], own[1][np.append(first[1:], True)]
    following = np.append(others[0], np.iinfo(np.int64).max)[np.searchsorted(others[0], end - DISPATCH_GAP_NS)]
    goes_on = following - end <= DISPATCH_GAP_NS
    took = end - begin
    return bool(took[goes_on].sum() >= TURNS_SHARE * took.sum())
