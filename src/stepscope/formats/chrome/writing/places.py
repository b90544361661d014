"""Where slices are drawn: processes and threads of the file, and more threads where slices of a track overlap.

Viewers build a tree per thread from times alone: of two slices that cross, Perfetto drops the later. So a slice that
starts inside another and ends after it moves to a thread of its own ("stream 7 (2)").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

import numpy as np

from stepscope.formats.chrome.own import OwnTrack
from stepscope.formats.chrome.writing.text import quoted
from stepscope.record import record
from stepscope.trace import tables as t
from stepscope.trace.lanes import lanes_of
from stepscope.trace.trace import Trace

_LARGEST = (1 << 32) - 1
"""Viewers hold process and thread ids in 32 bits."""


@record
class Places:
    """The lanes (threads of the file) that a trace is drawn on."""

    of_track: t.I32
    """The first lane of each track."""
    of_slice: t.I32
    """The lane of each slice."""
    lanes: list[tuple[int, int]]
    """Process and thread id of each lane."""
    metadata: list[str]
    """The events that name processes and threads, as JSON."""
    tracks: list[OwnTrack]


def places_of(trace: Trace) -> Places:
    """Give every track, and every slice that overlaps others there, a place."""
    slices, tracks = trace.slices, trace.tracks
    copy = lanes_of(slices.track, slices.start_ns, slices.dur_ns, nesting=True)
    copies = np.ones(len(tracks), np.int64)
    begins = np.flatnonzero(np.diff(slices.track, prepend=-1))
    copies[slices.track[begins]] = np.maximum.reduceat(copy, begins) + 1
    first = np.concatenate(([0], np.cumsum(copies)[:-1])).astype(np.int32)
    rows = tracks.frame(trace.strings).to_dicts()
    lanes = _lanes(rows, first.tolist(), copies.tolist())
    own = [
        OwnTrack(lanes=[lanes[low + i] for i in range(size)], **row)
        for row, low, size in zip(rows, first.tolist(), copies.tolist(), strict=True)
    ]
    kinds = {device.id: device.kind.upper() for device in trace.info.devices}
    return Places(first, first[slices.track] + copy, lanes, list(_names(own, kinds)), own)


def _lanes(rows: Sequence[dict[str, object]], first: list[int], copies: list[int]) -> list[tuple[int, int]]:
    """Process and thread id per lane: those recorded where they are numbers and free, else others."""
    processes: dict[tuple[bool, object], list[int]] = {}
    for track, row in enumerate(rows):
        on_device = row["device"] is not None
        processes.setdefault((not on_device, row["device"] if on_device else row["process"]), []).append(track)
    # Devices claim their numbers first: readers take a device's process id for its number.
    ordered = sorted(processes, key=lambda process: process[0])
    pids = dict(zip(ordered, _ids([_number(name) for _, name in ordered]), strict=True))
    lanes = [(0, 0)] * sum(copies)
    for process, tracks in processes.items():
        places = [first[track] for track in tracks]
        places += [first[track] + i for track in tracks for i in range(1, copies[track])]
        wanted = [_number(rows[track]["thread"] if process[0] else rows[track]["stream"]) for track in tracks]
        for lane, tid in zip(places, _ids(wanted + [None] * (len(places) - len(tracks))), strict=True):
            lanes[lane] = (pids[process], tid)
    return lanes


def _ids(wanted: Sequence[int | None]) -> list[int]:
    """Distinct numbers: the wanted ones where nobody before wants the same, else free ones."""
    owner = {number: at for at, number in reversed(list(enumerate(wanted))) if number is not None}
    free = (number for number in count(1) if number not in owner)
    return [number if number is not None and owner[number] == at else next(free) for at, number in enumerate(wanted)]


def _number(name: object) -> int | None:
    if isinstance(name, str) and name.isascii() and name.isdigit() and len(name) < 11:
        name = int(name)
    return name if isinstance(name, int) and 0 <= name <= _LARGEST else None


def _names(tracks: Sequence[OwnTrack], kinds: dict[int, str]) -> Iterator[str]:
    named: set[int] = set()
    for track in tracks:
        for number, (pid, tid) in enumerate(track.lanes):
            if pid not in named:
                named.add(pid)
                yield _metadata("process_name", pid, tid, "name", _process_name(track, kinds))
                order = pid if track.device is None else _LARGEST + track.device
                yield _metadata("process_sort_index", pid, tid, "sort_index", order)
            name = _thread_name(track) + (f" ({number + 1})" if number else "")
            yield _metadata("thread_name", pid, tid, "name", name)


def _process_name(track: OwnTrack, kinds: dict[int, str]) -> str:
    if track.device is not None:
        return f"{kinds.get(track.device, 'GPU')} {track.device}"
    return track.process or "process"


def _thread_name(track: OwnTrack) -> str:
    return track.label or (f"stream {track.stream}" if track.stream is not None else track.thread or "thread")


def _metadata(name: str, pid: int, tid: int, key: str, value: str | int) -> str:
    text = quoted(value) if isinstance(value, str) else str(value)
    return f'{{"ph":"M","name":"{name}","pid":{pid},"tid":{tid},"ts":0,"args":{{"{key}":{text}}}}}'
