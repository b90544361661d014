"""What the host threads did, as sets of time per thread and cause."""

from __future__ import annotations

from dataclasses import field, replace
from functools import cached_property, partial

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.executors import Executors, find_executors
from stepscope.analysis.followed import followed, for_devices
from stepscope.analysis.limits import CACHE_LOOKUP_NS, DISPATCH_GAP_NS
from stepscope.analysis.once import Once, OneTimeWork
from stepscope.analysis.turns import taking_turns
from stepscope.names.calls import CallRole, classify_call
from stepscope.names.hosts import HostRole, classify_host_name
from stepscope.names.xla_hosts import (
    INPUT_WAIT,
    MISS_EVIDENCE,
    XlaRole,
    classify_xla_name,
    is_lazy_phase,
    runs_program,
)
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, mapped, used_codes
from stepscope.trace.forest import holding, inherit, is_outermost, outermost, rows_of_track
from stepscope.trace.tables import I32, I64, U8, Bools, Direction, Kind, MemoryKind, TrackKind
from stepscope.trace.trace import Trace

NO_CAUSE = 255

_ROLE_CAUSES = {
    HostRole.PROFILER: Category.PROFILER,
    HostRole.GC: Category.GC,
    HostRole.COMPILE: Category.COMPILE,
    HostRole.CHECKPOINT_IO: Category.CHECKPOINT_IO,
    HostRole.INPUT: Category.INPUT,
}
_XLA_CAUSES = {
    XlaRole.GRAPH_BUILD: Category.GRAPH_BUILD,
    XlaRole.COMPILE: Category.COMPILE,
    XlaRole.TRANSFER: Category.TRANSFER,
    XlaRole.INFEED: Category.INFEED,
    XlaRole.CALLBACK: Category.PYTHON,
    XlaRole.INPUT: Category.INPUT,
    XlaRole.STEP_MARKER: Category.GRAPH_BUILD,
    XlaRole.LAZY_PHASE: Category.GRAPH_BUILD,
    # Starting a program that is compiled already, loading it included, is launching it.
    XlaRole.EXECUTE: Category.LAUNCH,
    XlaRole.DISPATCH: Category.LAUNCH,
}
_WRAPPERS = (XlaRole.STEP_MARKER, XlaRole.LAZY_PHASE, XlaRole.DISPATCH)
"""Ranges around all of these: only what nothing inside them explains is theirs."""
_NAMED_KINDS = (Kind.ANNOTATION, Kind.STEP, Kind.HOST_OP, Kind.PYTHON_FRAME, Kind.MODULE, Kind.OVERHEAD)
_CALL_KINDS = (Kind.RUNTIME_CALL, Kind.SYNC, Kind.ALLOCATION, Kind.COMPILE)
_COVER_KINDS = (Kind.ANNOTATION, Kind.PYTHON_FRAME, Kind.MODULE, Kind.STEP)


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
        slices, threads = self.trace.slices, self.trace.tracks.kind == TrackKind.HOST_THREAD
        calling = self.in_role(XlaRole.CALLBACK) & threads[slices.track]
        return np.flatnonzero(is_outermost(calling, slices.parent)).astype(np.int32)

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
        found = []
        for member in self.pool:
            low, kinds, causes = self._of_track(member)
            working = self._cover(low, among(kinds, (Kind.HOST_OP, Kind.RUNTIME_CALL)))
            found.append(iv.subtract(self.alone(member, working), self._cover(low, causes == Category.INPUT.code)))
        return iv.joined(found)

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
            wraps = among(self.roles[low : low + kinds.size], [_role_code(role) for role in _WRAPPERS])
            explained = self._cover(low, (causes != NO_CAUSE) & ~wraps)
            parts = self._cover(low, chosen & ~wraps), iv.subtract(self._cover(low, chosen & wraps), explained)
            return iv.union(*(np.concatenate(part) for part in zip(*parts, strict=True)))
        covered = self._cover(low, chosen)
        if cause is Category.PYTHON:
            return self.alone(track, covered)
        if cause is Category.COMPILE:
            return iv.joined([covered, self._overhead(cause), self.once.spans(track=track)])
        return iv.joined([covered, self._overhead(cause)]) if cause is Category.PROFILER else covered

    def in_role(self, role: XlaRole) -> Bools:
        """Which slices are of a role of XLA's."""
        return np.asarray(self.roles == _role_code(role))

    @cached_property
    def takes_batch(self) -> Bools:
        """Which slices take a step's batch, on whichever host thread the step's graph does it."""
        slices = self.trace.slices
        used = used_codes(slices.name, len(self.trace.strings))
        codes = [code for code in used.tolist() if INPUT_WAIT.search(self.trace.strings[code])]
        on_host = self.trace.tracks.kind[slices.track] == TrackKind.HOST_THREAD
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
        rows = low + np.flatnonzero(chosen)
        start = self.trace.slices.start_ns[rows]
        return iv.union(start, start + self.trace.slices.dur_ns[rows])

    def _overhead(self, cause: Category) -> iv.Intervals:
        """The profiler's overhead, and what it counts as such, holds up whichever thread is in a call; the profile
        draws it on a row of its own."""
        chosen = (self.trace.slices.kind == Kind.OVERHEAD) & (self.causes == cause.code)
        return self._cover(0, chosen)


def host_activity(trace: Trace, markers: I32, once: OneTimeWork) -> HostActivity:
    """Classify every host slice by its name, once per distinct name; ``markers`` are the slices that mark steps,
    ``once`` is the work that is done once."""
    pool = _pool(trace)
    main = main_thread(trace, pool)
    executors = None if pool else find_executors(trace, main)
    pool = pool if executors is None else (main, *executors.tracks)
    roles = _xla_roles(trace)
    causes = _causes(trace, roles, once)
    waits = _waits(trace, roles, main)
    backward = _backward_threads(trace, main)
    workers = () if pool else taking_turns(trace, main, backward)
    made = HostActivity(trace, main, backward, markers, causes, roles, waits, once, pool, executors, workers)
    return replace(made, waits=for_devices(made), _sets={})


def _pool(trace: Trace) -> tuple[int, ...]:
    """Host tracks that hold nodes of a TensorFlow graph: no profile says which thread of the pool ran a node."""
    tracks = np.unique(trace.slices.track[trace.nodes.slice])
    return tuple(tracks[trace.tracks.kind[tracks] == TrackKind.HOST_THREAD].tolist())


def main_thread(trace: Trace, pool: tuple[int, ...] = ()) -> int:
    """The track with step markers, else the host thread with most time covered by ops, calls and annotations.

    Where there is a ``pool``, one of its tracks.
    """
    slices = trace.slices
    on_host = trace.tracks.kind[slices.track] == TrackKind.HOST_THREAD
    if pool:
        on_host &= among(slices.track, pool)
    for kinds in ((Kind.STEP,), (Kind.HOST_OP, Kind.ANNOTATION, Kind.RUNTIME_CALL), (Kind.PYTHON_FRAME,)):
        rows = np.flatnonzero(among(slices.kind, kinds) & on_host)
        if rows.size:
            weight = np.bincount(slices.track[rows], slices.dur_ns[rows])
            count = np.bincount(slices.track[rows])
            return int(count.argmax() if Kind.STEP in kinds else weight.argmax())
    return -1


def _backward_threads(trace: Trace, main: int) -> tuple[int, ...]:
    """Threads other than the main one on which autograd's engine ran."""
    engine = [code for code, text in enumerate(trace.strings) if text.startswith("autograd::engine::")]
    tracks = np.unique(trace.slices.track[among(trace.slices.name, engine)])
    return tuple(track for track in tracks.tolist() if track != main)


def _causes(trace: Trace, roles: U8, once: OneTimeWork) -> U8:
    slices = trace.slices
    causes = np.full(len(slices), NO_CAUSE, np.uint8)
    causes[(slices.kind == Kind.ALLOCATION) & ~_sets_up(trace)] = Category.ALLOCATOR.code
    causes[slices.kind == Kind.COMPILE] = Category.COMPILE.code
    causes[once.slice[once.rows(Once.LOADING, Once.START_UP)]] = Category.COMPILE.code
    causes[slices.kind == Kind.OVERHEAD] = Category.PROFILER.code
    for kind in _NAMED_KINDS:
        rows = np.flatnonzero(slices.kind == kind)
        cause_of = partial(_cause_code, is_python=kind == Kind.PYTHON_FRAME)
        found = mapped(slices.name[rows], trace.strings, cause_of, np.uint8)
        causes[rows[found != NO_CAUSE]] = found[found != NO_CAUSE]
    for role, cause in _XLA_CAUSES.items():
        mine = roles == _role_code(role)
        if role is XlaRole.DISPATCH:  # what a call is for says more than that it is one
            mine &= causes != Category.CHECKPOINT_IO.code
        causes[mine] = cause.code
    # The program of a call in which something was built was not in the cache: the rest of the call built it too.
    built = holding(among(roles, [_role_code(role) for role in MISS_EVIDENCE]), slices.parent)
    causes[built & (roles == _role_code(XlaRole.DISPATCH))] = Category.GRAPH_BUILD.code
    return causes


def _sets_up(trace: Trace) -> Bools:
    """Frees that end before the device ever worked: there was nothing to free, so that they create the context."""
    slices = trace.slices
    found = np.zeros(len(slices), np.bool_)
    if not len(trace.device_ops):
        return found
    begun = slices.start_ns[trace.device_ops.slice].min()
    rows = np.flatnonzero((slices.kind == Kind.ALLOCATION) & (slices.start_ns + slices.dur_ns <= begun))
    found[rows] = mapped(slices.name[rows], trace.strings, _frees, np.bool_)
    return found


def _frees(name: str) -> bool:
    return classify_call(name).role is CallRole.FREE


def _cause_code(name: str, *, is_python: bool) -> int:
    role = classify_host_name(name, is_python)
    return NO_CAUSE if role is None else _ROLE_CAUSES[role].code


_ROLES = tuple(XlaRole)


def _role_code(role: XlaRole) -> int:
    return _ROLES.index(role)


def _xla_roles(trace: Trace) -> U8:
    """Per slice, the code of what XLA does in it, ``NO_CAUSE`` for none; PyTorch's own profiler records no XLA."""
    slices = trace.slices
    roles = np.full(len(slices), NO_CAUSE, np.uint8)
    if trace.info.framework == "PyTorch":
        return roles
    for kind in (*_NAMED_KINDS, Kind.RUNTIME_CALL):
        rows = np.flatnonzero(slices.kind == kind)
        code_of = partial(_xla_code, is_python=kind == Kind.PYTHON_FRAME)
        roles[rows] = mapped(slices.name[rows], trace.strings, code_of, np.uint8)
    if trace.info.framework == "PyTorch/XLA":
        rows = np.flatnonzero((slices.kind == Kind.ANNOTATION) & (roles == NO_CAUSE))
        rows = rows[mapped(slices.name[rows], trace.strings, is_lazy_phase, np.bool_)]
        roles[rows] = _role_code(XlaRole.LAZY_PHASE)
    roles[_looks_up(trace, roles)] = NO_CAUSE
    return roles


def _looks_up(trace: Trace, roles: U8) -> Bools:
    """Frames of the functions that trace and compile which found what they wanted in a cache: they took next to no
    time, and nothing of the framework's own ranges inside them says that anything was built."""
    slices = trace.slices
    builds = among(roles, [_role_code(role) for role in MISS_EVIDENCE])
    frames = builds & (slices.kind == Kind.PYTHON_FRAME)
    short = frames & ~holding(builds & ~frames, slices.parent)
    outer = outermost(frames, slices.parent)
    return np.asarray(short & short[outer] & (slices.dur_ns[outer] < CACHE_LOOKUP_NS))


def _xla_code(name: str, *, is_python: bool) -> int:
    role = classify_xla_name(name, is_python)
    return NO_CAUSE if role is None else _role_code(role)


def _waits(trace: Trace, roles: U8, main: int) -> Waits:
    """Synchronise calls, blocking copies, and the calls behind copies that return only when the stream reached them.

    A copy to pageable host memory blocks its caller until it is done; one from pageable memory until the stream has
    reached it and the data is staged (CUDA documentation, "API synchronization behavior"), so that this wait ends
    where the copy begins: the time to send the data is the copy's.
    """
    slices, ops = trace.slices, trace.device_ops
    runtime = np.flatnonzero(slices.kind == Kind.RUNTIME_CALL)
    blocking = slices.kind == Kind.SYNC
    blocking[runtime] = mapped(slices.name[runtime], trace.strings, _is_blocking_copy, np.bool_)
    # XLA's worker threads wait for each other all the time; a step is held up where its own thread waits.
    waiting = among(roles, (_role_code(XlaRole.WAIT), _role_code(XlaRole.FETCH))) & (slices.track == main)
    blocking |= waiting & ~_inside_programs(trace)
    end = slices.start_ns + slices.dur_ns
    pageable = (ops.source_memory == MemoryKind.PAGEABLE) | (ops.target_memory == MemoryKind.PAGEABLE)
    to_host = (ops.direction == Direction.D2H) & (ops.target_memory != MemoryKind.PINNED)
    copies = np.flatnonzero((pageable | to_host) & (ops.launch >= 0))
    calls, begun = ops.launch[copies], slices.start_ns[ops.slice[copies]]
    blocking[calls] = True
    blocking &= not trace.completeness.nameless
    # A wait inside a wait is the same wait.
    blocking = is_outermost(blocking, slices.parent)
    end[calls] = np.where(to_host[copies], end[calls], np.clip(begun, slices.start_ns[calls], end[calls]))
    rows = np.flatnonzero(blocking & (trace.tracks.kind[slices.track] == TrackKind.HOST_THREAD)).astype(np.int32)
    return Waits(rows, slices.track[rows], slices.start_ns[rows], end[rows])


def _inside_programs(trace: Trace) -> Bools:
    """Which slices lie where a host thread itself runs a compiled program."""
    codes = [code for code, name in enumerate(trace.strings) if runs_program(name)]
    programs = np.where(among(trace.slices.name, codes), 0, -1).astype(np.int32)
    return np.asarray(inherit(programs, trace.slices.parent) >= 0)


def _is_blocking_copy(name: str) -> bool:
    return classify_call(name).role is CallRole.COPY_BLOCKING


def _closed(a: iv.Intervals, gap_ns: int) -> iv.Intervals:
    """A set with the gaps of at most ``gap_ns`` between its members filled."""
    if len(a[0]) == 0:
        return a
    starts, ends = iv.union(a[0], a[1] + gap_ns)
    return starts, ends - gap_ns
