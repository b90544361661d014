"""The ranges that a program names (``record_function``, ``TraceAnnotation``, ``xp.Trace``): how they nest, and which
of them the host was in when it launched something.

On its own thread a range holds what begins inside it. A thread that works for another one (autograd's, an executor's,
those of data-parallel replicas) is inside the ranges of the one it works for too: the thread that handed the work over,
where the profile says so, else the main one, where that launches nothing itself meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.host import HostActivity
from stepscope.compiled import kernel
from stepscope.names.hosts import step_marker
from stepscope.record import record
from stepscope.regex import regex
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, distinct, marked, united, used_codes
from stepscope.trace.forest import holding, inherit, on_host_threads
from stepscope.trace.tables import I32, I64, Bools, FlowKind, Kind, Rows
from stepscope.trace.trace import Trace

Pieces = tuple[I64, I64, I32]
"""Starts, ends and owners of disjoint pieces, in time order."""

_NUMBER = regex(r"[\s_#:=]*\d+$")
_HANDED_ON = 16
"""Threads through which work may have gone from the range it belongs to."""


@record
class Ranges:
    """The annotations of a trace in order of start: one value per range. What marks the steps is none."""

    trace: Trace
    host: HostActivity
    slice: I32
    name: I32
    """Number of its name in ``names``."""
    names: tuple[str, ...]
    led: frozenset[int]
    """Tracks of threads that work for the main one while that launches nothing."""

    def __len__(self) -> int:
        """The number of ranges."""
        return len(self.slice)

    @cached_property
    def start(self) -> I64:
        """When each begins."""
        return self.trace.slices.start_ns[self.slice]

    @cached_property
    def end(self) -> I64:
        """When each ends."""
        return self.start + self.trace.slices.dur_ns[self.slice]

    @cached_property
    def by_track(self) -> dict[int, Pieces]:
        """Per thread, the innermost range at each instant: of those that cross, the one begun last."""
        track = self.trace.slices.track[self.slice]
        pieces_of: dict[int, Pieces] = {}
        for thread in distinct(track):
            rows = np.flatnonzero(track == thread).astype(np.int32)
            begin, end, owner = _innermost(self.start[rows], self.end[rows])
            pieces_of[thread] = begin, end, rows[owner]
        return pieces_of

    @cached_property
    def parent(self) -> I32:
        """Per range, the one around it, on its own thread or on the one that its thread works for; -1 for none."""
        slices = self.trace.slices
        number = np.full(len(slices), -1, np.int32)
        number[self.slice] = np.arange(len(self), dtype=np.int32)
        outer = slices.parent[self.slice]
        around = np.where(outer >= 0, inherit(number, slices.parent)[outer], -1).astype(np.int32)
        led = np.flatnonzero((around < 0) & among(slices.track[self.slice], list(self.led)))
        around[led] = self._on(self.host.main, self.start[led])
        # Every range comes behind the one around it.
        return np.where(around < np.arange(len(self)), around, np.int32(-1)).astype(np.int32)

    @cached_property
    def outermost_of_name(self) -> Bools:
        """Which ranges lie in no other of their name."""
        return _outermost_of_name(self.name, self.parent)

    def of_calls(self, calls: I32) -> I32:
        """The innermost range that each call (a slice, -1 for none) was made in or for; -1 for none."""
        slices, ranges = self.trace.slices, np.full(calls.size, -1, np.int32)
        at, rows = calls.copy(), np.flatnonzero(calls >= 0)
        for _ in range(_HANDED_ON):
            ranges[rows] = self._around(slices.track[at[rows]], slices.start_ns[at[rows]])
            rows = rows[(ranges[rows] < 0) & (self._handed[at[rows]] >= 0)]
            at[rows] = self._handed[at[rows]]
            if not rows.size:
                break
        rest = np.flatnonzero((ranges < 0) & (calls >= 0))
        rest = rest[among(slices.track[calls[rest]], list(self.led))]
        ranges[rest] = self._on(self.host.main, slices.start_ns[calls[rest]])
        return ranges

    def of_spans(self, spans: iv.Intervals, track: int) -> Pieces:
        """Which range a thread was in during some spans; what lies in none is left out."""
        own = self.by_track.get(track, _NONE)
        cut = [_cut(spans, own)]
        if track in self.led or track < 0:
            rest = iv.subtract(spans, iv.union(own[0], own[1]))
            cut.append(_cut(rest, self.by_track.get(self.host.main, _NONE)))
        start, end, owner = (np.concatenate(part) for part in zip(*cut, strict=True))
        return start, end, owner

    def _around(self, tracks: I32, times: I64) -> I32:
        ranges = np.full(times.size, -1, np.int32)
        for track in distinct(tracks):
            rows = np.flatnonzero(tracks == track)
            ranges[rows] = self._on(track, times[rows])
        return ranges

    def _on(self, track: int, times: I64) -> I32:
        begin, end, owner = self.by_track.get(track, _NONE)
        if not begin.size:
            return np.full(times.size, -1, np.int32)
        at = np.searchsorted(begin, times, "right") - 1
        inside = (at >= 0) & (times < end[np.maximum(at, 0)])
        return np.where(inside, owner[np.maximum(at, 0)], np.int32(-1)).astype(np.int32)

    @cached_property
    def _handed(self) -> I32:
        """Per slice, the one that handed its work to the thread it is on; -1 for none."""
        flows = self.trace.flows
        rows = np.flatnonzero(flows.kind == FlowKind.PRODUCER_CONSUMER)
        source = np.full(len(self.trace.slices), -1, np.int32)
        source[flows.target[rows]] = flows.source[rows]
        return inherit(source, self.trace.slices.parent)


_NONE: Pieces = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32))


def annotation_ranges(trace: Trace, host: HostActivity, markers: I32, activities: Sequence[DeviceActivity]) -> Ranges:
    """The annotations of host threads; ``markers`` are the slices that mark the steps."""
    slices = trace.slices
    chosen = among(slices.kind, (Kind.ANNOTATION, Kind.STEP))
    chosen &= on_host_threads(trace)
    chosen[markers[markers >= 0]] = False
    rows = np.flatnonzero(chosen)
    rows = rows[np.lexsort((-slices.dur_ns[rows], slices.start_ns[rows]))]
    number, names = _named(trace, rows)
    led = _led(trace, host, activities) if rows.size else frozenset()
    return Ranges(trace, host, rows.astype(np.int32), number, names, led)


def _named(trace: Trace, rows: Rows) -> tuple[I32, tuple[str, ...]]:
    """Numbers of names; ranges of steps that count on (``train 4``, ``train 5``) have one."""
    codes = trace.slices.name[rows]
    used = used_codes(codes, len(trace.strings)).tolist()
    told = {code: _without_number(trace.strings[code]) for code in used}
    numbers = {name: at for at, name in enumerate(dict.fromkeys(told.values()))}
    table = np.full(len(trace.strings), -1, np.int32)
    table[used] = [numbers[told[code]] for code in used]
    return table[codes], tuple(numbers)


def _without_number(name: str) -> str:
    marker = step_marker(name)
    return name if marker is None or marker.number is None else _NUMBER.sub("", name) or name


def _led(trace: Trace, host: HostActivity, activities: Sequence[DeviceActivity]) -> frozenset[int]:
    """Threads that launch while the main one does not, for most of what they launch; autograd's are known to."""
    slices, threads = trace.slices, set(host.backward)
    calls = united(np.concatenate([np.empty(0, np.int32), *(a.call[a.launched] for a in activities)]))
    launches = marked(calls, len(slices))
    gives = launches | ((slices.kind == Kind.HOST_OP) & holding(launches, slices.parent))
    gives |= among(slices.kind, (Kind.RUNTIME_CALL, Kind.SYNC))
    mine = np.flatnonzero(gives & (slices.track == host.main))
    busy = iv.of(slices, mine)
    for thread in distinct(slices.track[calls]):
        times = slices.start_ns[calls[slices.track[calls] == thread]]
        meanwhile = iv.covered_between(busy, times, times + 1)
        if thread != host.main and 2 * int(meanwhile.sum()) < times.size:
            threads.add(thread)
    return frozenset(threads)


def _cut(spans: iv.Intervals, pieces: Pieces) -> Pieces:
    """The parts of pieces that lie in some spans."""
    start, end = iv.intersect((pieces[0], pieces[1]), spans)
    if not start.size:
        return _NONE
    return start, end, pieces[2][np.searchsorted(pieces[0], start, "right") - 1]


@kernel
def _innermost(start: I64, end: I64) -> Pieces:
    """Who is innermost when, of intervals in order of start and falling duration."""
    n = start.size
    out_start, out_end = np.empty(2 * n, np.int64), np.empty(2 * n, np.int64)
    out_owner = np.empty(2 * n, np.int32)
    stack = np.empty(n, np.int32)
    count = 0
    size = 0
    now = start[0] if n else 0
    for i in range(n + 1):
        while size > 0:
            top = stack[size - 1]
            over = end[top] if i == n else min(end[top], start[i])
            if over > now:
                out_start[count], out_end[count], out_owner[count] = now, over, top
                count += 1
                now = over
            if i < n and end[top] > start[i]:
                break
            size -= 1
        if i < n:
            now = start[i]
            stack[size] = i
            size += 1
    return out_start[:count], out_end[:count], out_owner[:count]


@kernel
def _outermost_of_name(name: I32, parent: I32) -> Bools:
    is_first = np.ones(name.size, np.bool_)
    for i in range(name.size):
        j = parent[i]
        while j >= 0:
            if name[j] == name[i]:
                is_first[i] = False
                break
            j = parent[j]
    return is_first
