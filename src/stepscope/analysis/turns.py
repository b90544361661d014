"""Threads of the program's own that launch in turn with the main thread, which waits for them meanwhile.

A pool's worker that is handed the step, or a part of it: whatever the main thread waits in (a lock, a queue, a future,
or nothing that was recorded), it does nothing while the other launches, and goes on when that is done. What the worker
takes to launch is then what the step waits for.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from stepscope.analysis.limits import DISPATCH_GAP_NS, TURN_OVERLAP, TURNS_SHARE
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among
from stepscope.trace.forest import rows_of_track
from stepscope.trace.tables import I64, Kind, TrackKind
from stepscope.trace.trace import Trace

_WORK = (Kind.HOST_OP, Kind.RUNTIME_CALL, Kind.SYNC, Kind.ALLOCATION, Kind.COMPILE)


def taking_turns(trace: Trace, main: int, backward: tuple[int, ...]) -> tuple[int, ...]:
    """Tracks of such threads; autograd's are known to be."""
    tracks = np.unique(trace.slices.track[trace.launches.call])
    tracks = tracks[trace.tracks.kind[tracks] == TrackKind.HOST_THREAD]
    others = tracks[~among(tracks, (main, *backward))]
    if main < 0 or not others.size:
        return ()
    work = {track: _work(trace, track) for track in {main, *backward, *tracks.tolist()}}
    busy = _several(work)
    return tuple(track for track in others.tolist() if _in_turn(track, work[track], *busy))


def _several(work: Mapping[int, iv.Intervals]) -> tuple[iv.Intervals, I64, I64, I64]:
    """When several threads work at once; and for all stretches of work, by start, when they begin, whose they are, and
    where the next one of another thread is."""
    start, end = (np.concatenate(part) for part in zip(*work.values(), strict=True))
    thread = np.repeat(np.array([*work], np.int64), [len(spans[0]) for spans in work.values()])
    times = np.concatenate((start, end))
    order = np.lexsort((np.repeat((1, 0), start.size), times))
    times, at_once = times[order], np.cumsum(np.repeat((1, -1), start.size)[order])
    until = np.append(times[1:], times[-1:])
    both = iv.union(times[at_once > 1], until[at_once > 1])
    order = np.argsort(start, kind="stable")
    start, thread = start[order], thread[order]
    last = np.append(np.flatnonzero(thread[1:] != thread[:-1]), thread.size - 1)
    return both, start, thread, last[np.searchsorted(last, np.arange(thread.size))] + 1


def _work(trace: Trace, track: int) -> iv.Intervals:
    slices = trace.slices
    low, high = rows_of_track(slices, track)
    rows = low + np.flatnonzero(among(slices.kind[low:high], _WORK))
    return iv.of(slices, rows)


def _in_turn(track: int, own: iv.Intervals, both: iv.Intervals, start: I64, thread: I64, other: I64) -> bool:
    """Whether nothing else is done while a thread works, and something is as soon as it has."""
    if not own[0].size or iv.measure(iv.intersect(own, both)) > TURN_OVERLAP * iv.measure(own):
        return False
    first = np.append(True, own[0][1:] - own[1][:-1] > DISPATCH_GAP_NS)
    begin, end = own[0][first], own[1][np.append(first[1:], True)]
    at = np.searchsorted(start, end - DISPATCH_GAP_NS)
    at = np.where(np.append(thread, -1)[at] == track, np.append(other, thread.size)[at], at)
    following = np.append(start, np.iinfo(np.int64).max)[at]
    goes_on = following - end <= DISPATCH_GAP_NS
    took = end - begin
    return bool(took[goes_on].sum() >= TURNS_SHARE * took.sum())
