"""Threads of processes as tracks, for dialects whose events lie on the threads that did the work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from stepscope.formats.chrome.conversion import Conversion, Identifier
from stepscope.formats.chrome.sorting import POINTS, Fate
from stepscope.trace import tables as t
from stepscope.trace.codes import among


def process_names(conversion: Conversion) -> dict[Identifier, str]:
    """What each process is called: its name, with its number where several share the name; else its number."""
    given = {pid: name for (pid, _), name in conversion.named_by("process_name").items() if name}
    shared = Counter(given.values())
    called = {pid: name if shared[name] == 1 else f"{name} ({pid})" for pid, name in given.items()}
    return {pid: called.get(pid, str(pid)) for pid, _ in conversion.events.lanes if pid is not None}


def host_track(
    conversion: Conversion, lane: int, holds_slices: bool, processes: dict[Identifier, str], labels: dict[int, str]
) -> int:
    """The track of one thread; what is not drawn on a thread (asynchronous operations, counters) gets another kind."""
    pid, tid = conversion.events.lanes[lane]
    of_thread = holds_slices and lane < conversion.sorting.thread_lanes
    return conversion.builder.track(
        t.TrackKind.HOST_THREAD if of_thread else t.TrackKind.OTHER,
        processes.get(pid),
        None if tid is None else str(tid),
        label=labels.get(lane),
    )


def tracks_of_lanes(conversion: Conversion, make: Callable[[int, bool], int]) -> t.I32:
    """Lane -> track, made by ``make(lane, whether it holds slices)``; -1 for lanes that only have a name."""
    e = conversion.events
    held = np.bincount(e.lane[conversion.rows], minlength=len(e.lanes)) > 0
    used = np.bincount(e.lane[among(conversion.fate, (Fate.SLICE, *POINTS))], minlength=len(e.lanes)) > 0
    return np.array([make(lane, bool(held[lane])) if used[lane] else -1 for lane in range(len(e.lanes))], np.int32)


def labels_of(conversion: Conversion) -> dict[int, str]:
    """The names of threads by lane."""
    names = conversion.named_by("thread_name")
    return {number: names[lane] for number, lane in enumerate(conversion.events.lanes) if names.get(lane)}
