"""Step markers at times at which nothing can have marked a step.

A marker begins and ends where its thread calls for it: never inside an op or a call of the driver, which know nothing
of steps; and where Python frames were recorded, in the profiler's own.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.facts import Facts
from stepscope.analysis.limits import MARKED_INSIDE_LEAST, ROUNDED_NS
from stepscope.names.frames import of_the_profiler
from stepscope.trace.codes import among, distinct, mapped, united
from stepscope.trace.forest import rows_of_track
from stepscope.trace.tables import I64, Bools, Kind, Rows, TrackKind

_INNER = (Kind.RUNTIME_CALL, Kind.SYNC)
_OPS = ("aten::", "autograd::engine::", "cudnn::", "mkldnn::")
"""Ops of PyTorch that call no Python code."""
_PROFILERS = "ProfilerStep"


def marked_inside(facts: Facts) -> float:
    """Of the instants at which steps begin and end, the share that lies inside what cannot mark them."""
    slices, markers = facts.trace.slices, facts.markers
    if markers.inferred or markers.on_device or not markers.slices.size or (markers.slices < 0).any():
        return 0.0
    tracks = slices.track[markers.slices]
    inside = edges = 0
    for track in distinct(tracks):
        if facts.trace.tracks.kind[track] != TrackKind.HOST_THREAD:
            continue
        mine = tracks == track
        times = united(np.concatenate([markers.start[mine], markers.end[mine]]))
        edges += times.size
        inside += int(_inside(facts, track, times).sum())
    return inside / edges if inside >= MARKED_INSIDE_LEAST else 0.0


def _inside(facts: Facts, track: int, times: I64) -> Bools:
    """Which instants lie inside an op or call of a track, or inside frames none of which is the profiler's. An op that
    several lie in is one whose end is wrong."""
    trace, slices = facts.trace, facts.trace.slices
    rows = np.arange(*rows_of_track(slices, track))
    kind, named = slices.kind[rows], slices.name[rows]
    inner = among(kind, _INNER) | ((kind == Kind.HOST_OP) & mapped(named, trace.strings, _is_op, np.bool_))
    frames = rows[kind == Kind.PYTHON_FRAME]
    own = mapped(slices.name[frames], trace.strings, of_the_profiler, np.bool_)
    begin, end = slices.start_ns[rows], slices.start_ns[rows] + slices.dur_ns[rows]
    inner &= np.searchsorted(times, end) - np.searchsorted(times, begin, "right") == 1
    inside = _covered(facts, rows[inner], times)
    if own.any() and facts.markers.source == _PROFILERS:
        inside |= _covered(facts, frames, times) & ~_covered(facts, frames[own], times, -ROUNDED_NS)
    return inside


def _is_op(name: str) -> bool:
    return name.startswith(_OPS)


def _covered(facts: Facts, rows: Rows, times: I64, within: int = ROUNDED_NS) -> Bools:
    """Which instants lie in one of the slices, by so much from its ends."""
    slices = facts.trace.slices
    start = slices.start_ns[rows]
    begin, end = start + within, start + slices.dur_ns[rows] - within
    long = end > begin
    return np.asarray(
        np.searchsorted(np.sort(begin[long]), times) > np.searchsorted(np.sort(end[long]), times, "right")
    )
