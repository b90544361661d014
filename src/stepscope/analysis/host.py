"""What the host threads did, as sets of time per thread and cause."""

from __future__ import annotations

from dataclasses import field, replace
from functools import cached_property

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.executors import Executors
from stepscope.analysis.limits import DISPATCH_GAP_NS
from stepscope.analysis.once import OneTimeWork
from stepscope.names.xla_hosts import INPUT_WAIT, XlaRole
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, used_codes
from stepscope.trace.forest import is_outermost, on_host_threads, rows_of_track
from stepscope.trace.tables import I32, I64, U8, Bools, Kind, Rows, TrackKind
from stepscope.trace.trace import Trace

NO_CAUSE = 255

_WRAPPERS = (XlaRole.STEP_MARKER, XlaRole.LAZY_PHASE, XlaRole.DISPATCH)
"""Ranges around all of these: only what nothing inside them explains is theirs."""
_CALL_KINDS = (Kind.RUNTIME_CALL, Kind.SYNC, Kind.ALLOCATION, Kind.COMPILE)
_COVER_KINDS = (Kind.ANNOTATION, Kind.PYTHON_FRAME, Kind.MODULE, Kind.STEP)
_FOLLOWED = {
    Category.COMPILE: XlaRole.COMPILE,
    Category.INFEED: XlaRole.INFEED,
    Category.TRANSFER: XlaRole.TRANSFER,
}
"""What XLA does on threads of its own while the main thread waits for it: sending batches, feeding them in, compiling.
The main thread then shows a wait, or nothing but ranges that the program named; what it waits for is what the helper
does.
"""
_ROLES = tuple(XlaRole)


def role_code(role: XlaRole) -> int:
    """The place of a role in ``HostActivity.roles``."""
    return _ROLES.index(role)


@record
class Waits:
    """Calls in which the host may have waited for the device."""

    slice: I32
    track: I32
    start: I64
    end: I64


@record
class HostActivity:
    """The host side of a trace: per thread and cause, the time it covers."""

    trace: Trace
    main: int
    """Track of the thread that runs the training loop, -1 where there is no host thread."""
    backward: tuple[int, ...]
    """Tracks of autograd's threads: the main thread waits for them while they launch the backward pass."""
    markers: I32
    """Slices that mark the steps."""
    causes: U8
    """Per slice, the code of the cause its name or kind says, ``NO_CAUSE`` for none."""
    roles: U8
    """Per slice, the code of what XLA does in it, ``NO_CAUSE`` for none."""
    waits: Waits
    once: OneTimeWork
    pool: tuple[int, ...] = ()
    """Tracks among which the work of a step moves, so that what one does all do: lanes that hold nodes of a graph; the
    main thread and the executors that run graphs for it."""
    executors: Executors | None = None
    workers: tuple[int, ...] = ()
    """Tracks of the program's own threads that launch while the main thread waits for them (``analysis/turns.py``)."""
    produced: I32 = field(default_factory=lambda: np.empty(0, np.int32))
    """Slices in which the program makes a batch itself (``analysis/producing.py``)."""
    _sets: dict[tuple[int, Category], iv.Intervals] = field(default_factory=dict)

    @cached_property
    def called_python(self) -> I32:
        """The ranges of host threads in which a compiled program calls Python, without those inside of others."""
        calling = self.in_role(XlaRole.CALLBACK) & on_host_threads(self.trace)
        return np.flatnonzero(is_outermost(calling, self.trace.slices.parent)).astype(np.int32)

    def time(self, track: int, cause: Category) -> iv.Intervals:
        """When a thread did something of that cause; ``launch`` is dispatching, ``python`` any cover by a frame."""
        key = (track, cause)
        if key not in self._sets:
            # Of events that lost their names nothing is known, and what the others did says little of the whole.
            nameless = self.trace.completeness.nameless
            self._sets[key] = iv.EMPTY if nameless else self._make(track, cause)
        return self._sets[key]

    @property
    def blocked(self) -> iv.Intervals:
        """When the main thread was in a wait for the device."""
        mine = self.waits.track == self.main
        return iv.union(self.waits.start[mine], self.waits.end[mine])

    @property
    def has_cause(self) -> Bools:
        """Which slices say by their name or kind what the host does."""
        return np.asarray(self.causes != NO_CAUSE)

    @property
    def turns(self) -> tuple[int, ...]:
        """Tracks of other threads that the main one waits for while they launch: autograd's and the program's own."""
        return (*self.backward, *self.workers)

    @property
    def loop(self) -> tuple[int, ...]:
        """Tracks of the training loop: the main thread, or the whole pool."""
        return self.pool or (self.main,)

    def _make(self, track: int, cause: Category) -> iv.Intervals:
        if track not in self.pool or cause is Category.LAUNCH:
            mine = self.own_time(track, cause)
            return iv.joined([mine, followed(self, cause)]) if track == self.main else mine
        covered = iv.joined([self.own_time(member, cause) for member in self.pool])
        # A node that waits for input holds nothing up while others compute.
        return iv.subtract(covered, self._computing()) if cause is Category.INPUT else covered

    def _computing(self) -> iv.Intervals:
        busy = []
        for member in self.pool:
            low, kinds, causes = self._of_track(member)
            working = self._cover(low, among(kinds, (Kind.HOST_OP, Kind.RUNTIME_CALL)))
            busy.append(iv.subtract(self.alone(member, working), self._cover(low, causes == Category.INPUT.code)))
        return iv.joined(busy)

    def alone(self, track: int, spans: iv.Intervals) -> iv.Intervals:
        """Time of a thread but for what the main one spends waiting for executors, whatever range is around it."""
        return iv.subtract(spans, self.executors.waits) if self.executors and track == self.main else spans

    def own_time(self, track: int, cause: Category) -> iv.Intervals:
        """The same of what the thread itself did."""
        low, kinds, causes = self._of_track(track)
        if cause is Category.LAUNCH:
            dispatching = self._dispatching_with(track)
            # A program that calls Python launches nothing meanwhile.
            python = self._cover(low, causes == Category.PYTHON.code)
            return iv.subtract(dispatching, python) if len(python[0]) else dispatching
        if cause is Category.PYTHON:
            # The markers of the steps cover everything: they say nothing of what ran.
            chosen = among(kinds, _COVER_KINDS) & ~among(np.arange(low, low + kinds.size), self.markers)
            chosen |= causes == cause.code
        else:
            chosen = causes == cause.code
        if cause is Category.GRAPH_BUILD:
            wraps = among(self.roles[low : low + kinds.size], [role_code(role) for role in _WRAPPERS])
            explained = self._cover(low, (causes != NO_CAUSE) & ~wraps)
            parts = self._cover(low, chosen & ~wraps), iv.subtract(self._cover(low, chosen & wraps), explained)
            return iv.joined(parts)
        covered = self._cover(low, chosen)
        if cause is Category.PYTHON:
            return self.alone(track, covered)
        if cause is Category.COMPILE:
            return iv.joined([covered, self._overhead(cause), self.once.spans(track=track)])
        return iv.joined([covered, self._overhead(cause)]) if cause is Category.PROFILER else covered

    def in_role(self, role: XlaRole) -> Bools:
        """Which slices are of a role of XLA's."""
        return np.asarray(self.roles == role_code(role))

    @cached_property
    def takes_batch(self) -> Bools:
        """Which slices take a step's batch, on whichever host thread the step's graph does it."""
        slices = self.trace.slices
        used = used_codes(slices.name, len(self.trace.strings))
        codes = [code for code in used.tolist() if INPUT_WAIT.search(self.trace.strings[code])]
        on_host = on_host_threads(self.trace)
        return np.asarray((self.causes == Category.INPUT.code) & on_host & among(slices.name, codes))

    def active(self, track: int) -> iv.Intervals:
        """When a thread was in anything but a Python frame: frames of a worker's main loop cover its idling too."""
        tracks = self.pool if track in self.pool else (track,)
        of_tracks = [self._of_track(member)[:2] for member in tracks]
        frames = Kind.PYTHON_FRAME, Kind.MODULE
        return iv.joined([self._cover(low, ~among(kinds, frames)) for low, kinds in of_tracks])

    def busiest(self, tracks: I32, start: I64, end: I64) -> I32:
        """Threads of stretches: of executors' and of the one that they work for, the one that did most in each."""
        if self.executors is None:
            return tracks
        members = np.array(self.pool, np.int32)
        worked = np.stack([iv.covered_between(self._dispatching(member), start, end) for member in self.pool])
        most = members[worked.argmax(0)]
        own = (worked * (members[:, None] == tracks)).sum(0)
        # Where none of them calls the framework, the main thread's Python is what they wait for.
        other = (own < worked.max(0)) | (worked.max(0) == 0)
        return np.where(among(tracks, members) & other, most, tracks).astype(np.int32)

    def _of_track(self, track: int) -> tuple[int, U8, U8]:
        slices = self.trace.slices
        low, high = rows_of_track(slices, track)
        kinds, causes = slices.kind[low:high], self.causes[low:high]
        if self.executors is None:
            return low, kinds, causes
        ahead = self.executors.ahead[low:high]
        return low, np.where(ahead, np.uint8(Kind.OTHER), kinds), np.where(ahead, np.uint8(NO_CAUSE), causes)

    def _dispatching_with(self, track: int) -> iv.Intervals:
        """When a thread dispatches, or those that it works together with."""
        # Main and autograd threads take turns, so their dispatching is one stretch.
        for group, dispatching in self._together:
            if track in group:
                return dispatching
        return _closed(self._dispatching(track), DISPATCH_GAP_NS)

    @cached_property
    def _together(self) -> list[tuple[frozenset[int], iv.Intervals]]:
        groups = (self.pool, (self.main, *self.turns))
        return [
            (frozenset(group), _closed(iv.joined([self._dispatching(member) for member in group]), DISPATCH_GAP_NS))
            for group in groups
        ]

    def _dispatching(self, track: int) -> iv.Intervals:
        low, kinds, causes = self._of_track(track)
        named = among(causes, (Category.INPUT.code, Category.LAUNCH.code))
        return self.alone(track, self._cover(low, among(kinds, (*_CALL_KINDS, Kind.HOST_OP)) | named))

    def _cover(self, low: int, chosen: Bools) -> iv.Intervals:
        return iv.of(self.trace.slices, low + np.flatnonzero(chosen))

    def _overhead(self, cause: Category) -> iv.Intervals:
        """The profiler's overhead, and what it counts as such, holds up whichever thread is in a call; the profile
        draws it on a row of its own."""
        return iv.of(self.trace.slices, self._overheads[self.causes[self._overheads] == cause.code])

    @cached_property
    def _overheads(self) -> Rows:
        return np.flatnonzero(self.trace.slices.kind == Kind.OVERHEAD)


def helpers(host: HostActivity, cause: Category) -> tuple[int, ...]:
    """Tracks of threads that do something of a cause which the main one may be waiting for."""
    role, trace = _FOLLOWED.get(cause), host.trace
    if role is None or host.main < 0 or not len(trace.device_ops):
        return ()
    tracks = np.unique(trace.slices.track[host.in_role(role)]).tolist()
    own = (*host.loop, *host.turns)
    return tuple(track for track in tracks if track not in own and trace.tracks.kind[track] == TrackKind.HOST_THREAD)


def followed(host: HostActivity, cause: Category) -> iv.Intervals:
    """When helpers did something of a cause while the main thread was in a wait, or showed nothing but ranges that the
    program named."""
    done = [host.own_time(helper, cause) for helper in helpers(host, cause)]
    return iv.intersect(iv.joined(done), _waiting(host)) if done else iv.EMPTY


def for_devices(host: HostActivity) -> Waits:
    """The waits without those for a helper: half of the time or more it works, and no device does."""
    waits, trace = host.waits, host.trace
    helping = iv.joined([host.own_time(helper, cause) for cause in _FOLLOWED for helper in helpers(host, cause)])
    if not len(helping[0]):
        return waits
    helping = iv.subtract(helping, iv.of(trace.slices, trace.device_ops.slice))
    helped = 2 * iv.covered_between(helping, waits.start, waits.end) >= waits.end - waits.start
    kept = ~(helped & host.in_role(XlaRole.WAIT)[waits.slice])
    return replace(
        waits, slice=waits.slice[kept], track=waits.track[kept], start=waits.start[kept], end=waits.end[kept]
    )


def _waiting(host: HostActivity) -> iv.Intervals:
    slices = host.trace.slices
    low, high = rows_of_track(slices, host.main)
    mine = slice(low, high)
    waits = host.in_role(XlaRole.WAIT)[mine] | (slices.kind[mine] == Kind.SYNC)
    named = among(slices.kind[mine], (Kind.ANNOTATION, Kind.STEP)) & ~host.has_cause[mine]
    shows, waiting = (iv.of(slices, low + np.flatnonzero(chosen)) for chosen in (~waits & ~named, waits))
    silent = iv.complement(shows, int(slices.start_ns.min()), int((slices.start_ns + slices.dur_ns).max()))
    return iv.joined([silent, waiting, host.blocked])


def _closed(a: iv.Intervals, gap_ns: int) -> iv.Intervals:
    """A set with the gaps of at most ``gap_ns`` between its members filled."""
    if len(a[0]) == 0:
        return a
    starts, ends = iv.union(a[0], a[1] + gap_ns)
    return starts, ends - gap_ns
