"""Python functions that launch nothing and are called so often, between launches, that the device waits for them.

A stretch of a millisecond or more is Python's own cause; what is told here hides in many short pieces among the
launches: a walk over the modules to find a device, a check of arguments in every call. A function counts with all that
it calls, as long as none of it runs an op, calls the device's runtime, waits, or does what has a cause of its own.
PyTorch's own code around ops (modules, autograd, optimizers) is part of launching; walks over modules are not.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import HOST_CAUSES, Category
from stepscope.analysis.frame import parse_frame
from stepscope.analysis.host import NO_CAUSE, HostActivity, helpers
from stepscope.analysis.own_code import in_framework
from stepscope.names.hosts import Giving, gives_ops, is_frameworks_own, only_wraps
from stepscope.names.libraries import is_no_place
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, distinct, mapped
from stepscope.trace.forest import holding, is_outermost
from stepscope.trace.tables import I32, I64, Bools, Kind, Rows
from stepscope.trace.trace import Trace

_WORK = (Kind.HOST_OP, Kind.RUNTIME_CALL, Kind.SYNC, Kind.ALLOCATION, Kind.COMPILE)


@record
class SilentFunction:
    """All calls of one function, in the used steps, for which a device waited."""

    name: str
    """As recorded."""
    calls: Rows
    """Slices, those for which the device waited longest first."""
    ns: int
    """Time in which the device had nothing to do meanwhile."""


@record
class Silence:
    """What one device waits for in functions that launch nothing: those that are worth naming."""

    functions: tuple[SilentFunction, ...] = ()
    """Longest first."""
    spans: tuple[tuple[int, iv.Intervals], ...] = ()
    """Per thread, when it was in them; what has a cause of its own is left out."""

    @property
    def time(self) -> iv.Intervals:
        """When any thread was in one of them."""
        return iv.union(*(np.concatenate(part) for part in zip(iv.EMPTY, *(s for _, s in self.spans), strict=True)))


def silent_calls(trace: Trace, host: HostActivity, tracks: list[int]) -> I32:
    """The outermost calls, on threads that launch, of Python functions in which nothing is launched."""
    slices, strings = trace.slices, trace.strings
    frame = slices.kind == Kind.PYTHON_FRAME
    if not frame.any():
        return np.empty(0, np.int32)
    works = among(slices.kind, _WORK) | (host.causes != NO_CAUSE) | (host.roles != NO_CAUSE)
    works[_handing_over(trace, host, frame)] = True
    named = mapped(slices.name, strings, _is_told, np.bool_)
    chosen = named & frame & ~works & ~holding(works, slices.parent) & among(slices.track, tracks)
    built_in = np.flatnonzero(chosen & mapped(slices.name, strings, _is_built_in, np.bool_))
    chosen[built_in[in_framework(trace)[slices.parent[built_in]]]] = False
    calls = np.flatnonzero(is_outermost(chosen, slices.parent))
    return calls.astype(np.int32)


def _is_told(name: str) -> bool:
    """Whether a function is worth naming: not what gives ops to a device, nor what only wraps others."""
    frame = parse_frame(name)
    if frame is None:
        return gives_ops(name) is not Giving.C and not name.startswith("nn.Module: ")
    return not is_no_place(frame.file) and not is_frameworks_own(name) and not only_wraps(name)


def _is_built_in(name: str) -> bool:
    """Whether it is a function in C: where JAX or TensorFlow calls it, it belongs to how they run ops."""
    return parse_frame(name) is None


def _handing_over(trace: Trace, host: HostActivity, frame: Bools) -> Rows:
    """Frames of the main thread during which the threads work that it waits for, autograd's among them."""
    slices = trace.slices
    theirs = np.sort(slices.start_ns[among(slices.track, host.turns) & among(slices.kind, _WORK)])
    rows = np.flatnonzero(frame & (slices.track == host.main)) if theirs.size else np.empty(0, np.intp)
    start, dur = slices.start_ns[rows], slices.dur_ns[rows]
    return rows[np.searchsorted(theirs, start + dur, "right") > np.searchsorted(theirs, start, "left")]


def silence(trace: Trace, host: HostActivity, calls: I32, account: Account, rows: list[int], least_ns: int) -> Silence:
    """The functions for which a device waits ``least_ns`` or more in some rows of its account, among silent calls."""
    assert account.idle is not None
    gaps, pieces = account.idle.gaps, account.idle.pieces
    chosen = (pieces.category == Category.LAUNCH.code) & among(account.rows.at(pieces.start), rows)
    start, end = pieces.start[chosen], pieces.end[chosen]
    track = busy_thread(host, gaps.thread[pieces.gap[chosen]], start, end)
    slices, waited = trace.slices, np.zeros(calls.size, np.int64)
    for thread in distinct(slices.track[calls]):
        mine = slices.track[calls] == thread
        begun = slices.start_ns[calls[mine]]
        idle: iv.Intervals = (start[track == thread], end[track == thread])
        waited[mine] = iv.covered_between(idle, begun, begun + slices.dur_ns[calls[mine]])
    total = np.bincount(slices.name[calls], waited, len(trace.strings)).astype(np.int64)
    some = np.flatnonzero(total >= max(least_ns, 1))  # Of all names few: this is asked for every device.
    hot = some[np.argsort(-total[some], kind="stable")].tolist()
    functions = tuple(_function(trace, calls, waited, code, int(total[code])) for code in hot)
    return Silence(functions, _spans(trace, host, calls[among(slices.name[calls], hot)]))


def _function(trace: Trace, calls: I32, waited: I64, code: int, ns: int) -> SilentFunction:
    mine = np.flatnonzero((trace.slices.name[calls] == code) & (waited > 0))
    longest = mine[np.argsort(-waited[mine], kind="stable")]
    return SilentFunction(trace.strings[code], calls[longest].astype(np.intp), ns)


def _spans(trace: Trace, host: HostActivity, calls: I32) -> tuple[tuple[int, iv.Intervals], ...]:
    slices, of_thread = trace.slices, []
    for thread in distinct(slices.track[calls]):
        mine = calls[slices.track[calls] == thread]
        spans = iv.of(slices, mine)
        spans = iv.intersect(spans, host.time(thread, Category.LAUNCH))
        for earlier in HOST_CAUSES[: HOST_CAUSES.index(Category.LAUNCH)]:
            spans = iv.subtract(spans, host.time(thread, earlier))
        of_thread.append((thread, spans))
    return tuple(of_thread)


def busy_thread(host: HostActivity, thread: I32, start: I64, end: I64) -> I32:
    """The launching thread of each stretch where it did something, else the main one, which hands it work; of
    executors the one that did most."""
    track = host.busiest(np.where(thread >= 0, thread, host.main).astype(np.int32), start, end)
    for other in distinct(track[track != host.main]):
        mine = np.flatnonzero(track == other)
        active = iv.covered_between(host.active(other), start[mine], end[mine])
        track[mine[active == 0]] = host.main
    return track


def helping_thread(host: HostActivity, cause: Category, track: I32, start: I64, end: I64) -> I32:
    """The thread of each stretch, or the helper it waits for where that did more of the cause."""
    track = track.copy()
    own = np.zeros(track.size, np.int64)
    for thread in distinct(track):
        mine = track == thread
        own[mine] = iv.covered_between(host.own_time(thread, cause), start[mine], end[mine])
    for helper in helpers(host, cause):
        done = iv.covered_between(host.own_time(helper, cause), start, end)
        track[done > own], own = helper, np.maximum(own, done)
    return track
