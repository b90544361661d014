"""Which threads the host has, and what each of their slices is: asked of its name, once per distinct name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.executors import find_executors
from stepscope.analysis.host import NO_CAUSE, HostActivity, Waits, for_devices, role_code
from stepscope.analysis.limits import CACHE_LOOKUP_NS
from stepscope.analysis.once import Once, OneTimeWork
from stepscope.analysis.turns import taking_turns
from stepscope.names.calls import frees, is_blocking_copy
from stepscope.names.hosts import HostRole, classify_host_name
from stepscope.names.xla_hosts import MISS_EVIDENCE, XlaRole, classify_xla_name, is_lazy_phase, runs_program
from stepscope.trace.codes import among, mapped
from stepscope.trace.forest import holding, inherit, is_outermost, on_host_threads, outermost
from stepscope.trace.tables import I32, U8, Bools, Direction, Kind, MemoryKind, TrackKind
from stepscope.trace.trace import Trace

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
_NAMED_KINDS = (Kind.ANNOTATION, Kind.STEP, Kind.HOST_OP, Kind.PYTHON_FRAME, Kind.MODULE, Kind.OVERHEAD)


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
    on_host = on_host_threads(trace)
    if pool:
        on_host = on_host & among(slices.track, pool)
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
    named = _by_name(trace, _cause_code, _NAMED_KINDS)
    np.copyto(causes, named, where=named != NO_CAUSE)
    for role, cause in _XLA_CAUSES.items():
        mine = roles == role_code(role)
        if role is XlaRole.DISPATCH:  # what a call is for says more than that it is one
            mine &= causes != Category.CHECKPOINT_IO.code
        causes[mine] = cause.code
    # The program of a call in which something was built was not in the cache: the rest of the call built it too.
    built = holding(among(roles, [role_code(role) for role in MISS_EVIDENCE]), slices.parent)
    causes[built & (roles == role_code(XlaRole.DISPATCH))] = Category.GRAPH_BUILD.code
    return causes


def _sets_up(trace: Trace) -> Bools:
    """Frees that end before the device ever worked: there was nothing to free, so that they create the context."""
    slices = trace.slices
    sets_up = np.zeros(len(slices), np.bool_)
    if not len(trace.device_ops):
        return sets_up
    begun = slices.start_ns[trace.device_ops.slice].min()
    rows = np.flatnonzero((slices.kind == Kind.ALLOCATION) & (slices.start_ns + slices.dur_ns <= begun))
    sets_up[rows] = mapped(slices.name[rows], trace.strings, frees, np.bool_)
    return sets_up


def _by_name(trace: Trace, code_of: Callable[[str, bool], int], kinds: Sequence[Kind]) -> U8:
    """Per slice of some kinds the code of its name, asked with whether that is of a Python frame; else ``NO_CAUSE``."""
    slices, strings = trace.slices, trace.strings
    texts = len(strings)
    # Every text as the name of a frame, and as one of something else.
    codes = slices.name + (slices.kind == Kind.PYTHON_FRAME) * np.int32(texts)
    by_name = mapped(codes, range(2 * texts), lambda code: code_of(strings[code % texts], code >= texts), np.uint8)
    by_name[~among(slices.kind, kinds)] = NO_CAUSE
    return by_name


def _cause_code(name: str, is_python: bool) -> int:
    role = classify_host_name(name, is_python)
    return NO_CAUSE if role is None else _ROLE_CAUSES[role].code


def _xla_roles(trace: Trace) -> U8:
    """Per slice, the code of what XLA does in it, ``NO_CAUSE`` for none; PyTorch's own profiler records no XLA."""
    slices = trace.slices
    if trace.info.framework == "PyTorch":
        return np.full(len(slices), NO_CAUSE, np.uint8)
    roles = _by_name(trace, _xla_code, (*_NAMED_KINDS, Kind.RUNTIME_CALL))
    if trace.info.framework == "PyTorch/XLA":
        rows = np.flatnonzero((slices.kind == Kind.ANNOTATION) & (roles == NO_CAUSE))
        rows = rows[mapped(slices.name[rows], trace.strings, is_lazy_phase, np.bool_)]
        roles[rows] = role_code(XlaRole.LAZY_PHASE)
    roles[_looks_up(trace, roles)] = NO_CAUSE
    return roles


def _looks_up(trace: Trace, roles: U8) -> Bools:
    """Frames of the functions that trace and compile which found what they wanted in a cache: they took next to no
    time, and nothing of the framework's own ranges inside them says that anything was built."""
    slices = trace.slices
    builds = among(roles, [role_code(role) for role in MISS_EVIDENCE])
    frames = builds & (slices.kind == Kind.PYTHON_FRAME)
    short = frames & ~holding(builds & ~frames, slices.parent)
    outer = outermost(frames, slices.parent)
    return np.asarray(short & short[outer] & (slices.dur_ns[outer] < CACHE_LOOKUP_NS))


def _xla_code(name: str, is_python: bool) -> int:
    role = classify_xla_name(name, is_python)
    return NO_CAUSE if role is None else role_code(role)


def _waits(trace: Trace, roles: U8, main: int) -> Waits:
    """Synchronise calls, blocking copies, and the calls behind copies that return only when the stream reached them.

    A copy to pageable host memory blocks its caller until it is done; one from pageable memory until the stream has
    reached it and the data is staged (CUDA documentation, "API synchronization behavior"), so that this wait ends
    where the copy begins: the time to send the data is the copy's.
    """
    slices, ops = trace.slices, trace.device_ops
    runtime = np.flatnonzero(slices.kind == Kind.RUNTIME_CALL)
    blocking = slices.kind == Kind.SYNC
    blocking[runtime] = mapped(slices.name[runtime], trace.strings, is_blocking_copy, np.bool_)
    # XLA's worker threads wait for each other all the time; a step is held up where its own thread waits.
    waiting = among(roles, (role_code(XlaRole.WAIT), role_code(XlaRole.FETCH))) & (slices.track == main)
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
    rows = np.flatnonzero(blocking & on_host_threads(trace)).astype(np.int32)
    return Waits(rows, slices.track[rows], slices.start_ns[rows], end[rows])


def _inside_programs(trace: Trace) -> Bools:
    """Which slices lie where a host thread itself runs a compiled program."""
    codes = [code for code, name in enumerate(trace.strings) if runs_program(name)]
    programs = np.where(among(trace.slices.name, codes), 0, -1).astype(np.int32)
    return np.asarray(inherit(programs, trace.slices.parent) >= 0)
