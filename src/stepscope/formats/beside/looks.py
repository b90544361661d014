"""Looks at the thread of a job, as ``stepscope run`` keeps them: in PyTorch's profile, else in its manifest."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from itertools import accumulate
from pathlib import PurePath
from typing import Any

import msgspec
import numpy as np

from stepscope.formats.beside.entries import entry_of
from stepscope.formats.beside.rows import table_of
from stepscope.names.frames import called_name, frame_parts, names_function
from stepscope.trace import tables as t
from stepscope.trace.codes import grouped, used_codes
from stepscope.trace.trace import Trace


class Looked(msgspec.Struct):
    """What ``capture/lines.py`` saw."""

    places: list[tuple[str, int, str]]
    time_ns: list[int]
    """Unix times, each but the first from the one before."""
    place: list[int]
    thread: int | None = None
    """The system's number of the thread."""
    core_wait_ns: list[int | None] | None = None
    """How long it had waited for a core; each but the first from the one before, None where that was not read."""
    calls: list[tuple[str, int, str, dict[str, int]]] = []
    """Functions of the program (file, first line, name), and at which line each calls what (``capture/call_sites.py``);
    profiles of PyTorch hold that of every call themselves."""

    def rows(self, track: int, epoch_ns: int) -> list[tuple[int, int, str, int, str, int]]:
        """Rows of the table, in order of time: the looks that met code of the program's own. ``epoch_ns`` is the Unix
        time of the trace's origin."""
        times = (np.cumsum(np.array(self.time_ns, np.int64)) - epoch_ns).tolist()
        waited = [t.NULL] * len(times)
        told = [(look, step) for look, step in enumerate(self.core_wait_ns or ()) if step is not None]
        for (look, _), upto in zip(told, accumulate(step for _, step in told), strict=True):
            waited[look] = upto - told[0][1]
        seen = sorted(each for each in zip(times, self.place, waited, strict=True) if each[1] >= 0)
        return [
            (time, track, file, line, function, core_wait)
            for time, place, core_wait in seen
            if abs(time) < 1 << 61
            for file, line, function in (self.places[place],)
        ]


def looked_of(given: Any) -> Looked | None:
    """What was seen, None where it makes no sense."""
    try:
        looked = msgspec.convert(given, Looked)
    except msgspec.ValidationError:
        return None
    sound = len(looked.time_ns) == len(looked.place) and all(0 <= line < 1 << 31 for _, line, _ in looked.places)
    sound = sound and max(map(abs, looked.time_ns), default=0) < 1 << 62
    sound = sound and all(0 < line < 1 << 31 for *_, lines in looked.calls for line in lines.values())
    waited = looked.core_wait_ns
    if waited is not None:
        steps = [step for step in waited if step is not None]
        sound = sound and len(waited) == len(looked.time_ns) and min(steps, default=0) >= 0 and sum(steps) < 1 << 62
    return looked if sound and max(looked.place, default=-1) < len(looked.places) else None


def with_looks(trace: Trace, manifest: Mapping[str, Any] | None, name: str) -> Trace:
    """The trace with the looks at its thread that the manifest's entry of that file holds.

    A trace that has some already (a saved one) stays as it is.
    """
    looked, epoch = looked_of(entry_of(manifest, name).get("looks")), trace.info.origin_epoch_ns
    if len(trace.looks) or looked is None or epoch is None:
        return trace
    track = _track_of(trace, looked.thread)
    if track < 0:
        return trace
    strings, looks = table_of(trace.strings, t.Looks, looked.rows(track, epoch))
    frames = _called(trace, looked) if not len(trace.frames) else trace.frames
    return dataclasses.replace(trace, strings=strings, looks=looks, frames=frames)


def _called(trace: Trace, looked: Looked) -> t.Frames:
    """The calls made by functions of which it is known at which line they call what."""
    slices, strings = trace.slices, trace.strings
    rows = np.flatnonzero((slices.kind == t.Kind.PYTHON_FRAME) & (slices.parent >= 0))
    known: dict[tuple[str, int, str], list[tuple[str, dict[str, int]]]] = {}
    for path, first, function, calls in looked.calls:
        known.setdefault((PurePath(path).name, first, function), []).append((path, calls))

    def at(caller: int) -> dict[str, int]:
        parts = frame_parts(strings[caller])
        its = known.get((PurePath(parts[0]).name, *parts[1:]), []) if parts else []
        mine = [calls for path, calls in its if names_function(strings[caller], path, parts[2])] if parts else []
        return mine[0] if len(mine) == 1 else {}

    callers, names = slices.name[slices.parent[rows]], slices.name[rows]
    pairs, of = grouped(callers, names)
    per_caller = {caller: at(caller) for caller in used_codes(callers, len(strings)).tolist()}
    asked = zip(callers[pairs].tolist(), names[pairs].tolist(), strict=True)
    lines = [per_caller[caller].get(called_name(strings[name]), t.NULL) for caller, name in asked]
    line_of: t.I64 = np.array(lines, np.int64)[of]
    told = np.flatnonzero(line_of != t.NULL)
    return t.Frames(rows[told].astype(np.int32), line_of[told], np.full(told.size, t.Begun.CALLED, np.uint8))


def _track_of(trace: Trace, thread: int | None) -> int:
    """The host thread of that number; where none has it (JAX numbers threads in its own way) the one whose steps were
    marked, as the thread that is looked at marks them, else the one that most Python code ran on. -1 for none."""
    tracks, slices = trace.tracks, trace.slices
    hosts = np.flatnonzero(tracks.kind == t.TrackKind.HOST_THREAD)
    named = [track for track in hosts.tolist() if trace.strings[int(tracks.thread[track])] == str(thread)]
    if named:
        return int(named[0])
    for kind in (t.Kind.STEP, t.Kind.PYTHON_FRAME):
        held = np.bincount(slices.track[slices.kind == kind], minlength=len(tracks))[hosts]
        if held.any():
            return int(hosts[held.argmax()])
    return -1
