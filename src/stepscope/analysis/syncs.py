"""Host waits for the device: who waited, for how long, and how much idle time each wait is to blame for."""

from __future__ import annotations

import math
from dataclasses import replace
from enum import StrEnum

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.costs.call import parse_call
from stepscope.analysis.frame import parse_frame
from stepscope.analysis.host import HostActivity
from stepscope.analysis.limits import SHORT_WAIT_NS, WAIT_COST_NS
from stepscope.analysis.steps import Markers
from stepscope.analysis.where import Locator, Where
from stepscope.names.calls import without_version
from stepscope.names.sync_hints import SyncHint, frame_hint, hands_on_wait, sync_hint, takes_time
from stepscope.record import record
from stepscope.regex import regex
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, distinct, grouped, united
from stepscope.trace.tables import I32, I64, Bools, Kind, Rows
from stepscope.trace.trace import Trace


class Owner(StrEnum):
    """Whose a wait is: what taking it out would change."""

    PROGRAM = "program"
    LOOP = "loop"
    """A bare synchronise where a step begins or ends: it gives no value and mostly serves a timer."""
    TIMER = "timer"
    """A timer's, a benchmark's or a profiler's own, as the frame that asks for it says: it serves a measurement."""
    PROFILER = "profiler"
    """The profiler waits for its own records: gone with it."""


@record
class Sync:
    """All waits from one place in the program."""

    op: str | None
    """The outermost op that waits (``aten::item``), None for a bare synchronise call."""
    call: str
    where: Where
    count: int
    steps: frozenset[int]
    """Steps in which the place waited."""
    blocked_ns: int
    """Time the host was blocked while a device still worked, over the used steps."""
    cost_ns: int
    """Idle time these waits are to blame for, over the used steps."""
    hint: SyncHint | None
    slices: tuple[int, ...]
    replaced: str | None = None
    """The op that the hint is for."""
    owner: Owner = Owner.PROGRAM
    elements: int | None = None
    """Elements of the condition (of the first input, where none is boolean) it takes in, where shapes were recorded."""


def find_syncs(
    trace: Trace,
    busy: tuple[iv.Intervals, iv.Intervals],
    account: Account,
    host: HostActivity,
    locator: Locator,
    spans: tuple[Markers, tuple[int, ...]],
) -> list[Sync]:
    """The waits of the used steps (``spans``: markers and used steps), grouped by place, costliest first, as far as
    they concern a device; ``busy`` is when it worked and when any device did."""
    markers, used = spans
    waits = host.waits
    step = np.searchsorted(markers.start, waits.start, "right") - 1
    own_busy, any_busy = (iv.covered_between(worked, waits.start, waits.end) for worked in busy)
    cost = _cost_per_wait(trace, account, used)[waits.slice]
    # A wait for another device concerns this one where it idles for it.
    blocked = np.where(cost > 0, any_busy, own_busy)
    inside = among(step, used) & ((step < len(markers) - 1) | (waits.start < markers.end[-1]))
    # The first used step may pay for a wait of the step before.
    chosen = np.flatnonzero((inside & (blocked >= SHORT_WAIT_NS)) | (cost > 0))
    if not chosen.size:
        return []
    slices = waits.slice[chosen]
    group = wait_places(trace, locator, slices)
    syncs = []
    for members in np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group))[:-1]):
        rows = chosen[members]
        if rows.size:
            own = rows[inside[rows]]
            sums = int(blocked[own].sum()), int(cost[rows].sum())
            if sums[1] < WAIT_COST_NS * len(used) and not (blocked[own] >= SHORT_WAIT_NS).any():
                continue
            at = own if own.size else rows
            sync = _sync(trace, locator, waits.slice[at], frozenset(step[own].tolist()), sums)
            syncs.append(replace(sync, owner=_owner(trace, locator, host, markers, at)))
    return sorted(syncs, key=lambda sync: (-sync.cost_ns, -sync.blocked_ns))


_PROFILERS = regex(r"(?:^|/)(?:torch/(?:autograd/profiler|profiler/\w+)|stepscope/capture/\w+)\.py\(")


def _owner(trace: Trace, locator: Locator, host: HostActivity, markers: Markers, waits: Rows) -> Owner:
    """Whose the waits of one place are (positions in ``host.waits``)."""
    first = int(host.waits.slice[waits[0]])
    frames = [trace.name_of(at) for at in locator.enclosing(first) if trace.slices.kind[at] == Kind.PYTHON_FRAME]
    if any(map(_PROFILERS.search, frames)):
        return Owner.PROFILER
    bare = trace.slices.kind[first] == Kind.SYNC and locator.outermost_op(first) is None
    if bare and takes_time(next((frame for frame in frames if not hands_on_wait(frame)), "")):
        return Owner.TIMER
    return Owner.LOOP if bare and _at_the_edge(trace, host, markers, waits).all() else Owner.PROGRAM


def _at_the_edge(trace: Trace, host: HostActivity, markers: Markers, waits: Rows) -> Bools:
    """Which waits have no launch between them and the beginning or the end of their step."""
    launches = np.sort(trace.slices.start_ns[united(trace.launches.call)])
    start, end = host.waits.start[waits], host.waits.end[waits]
    step = np.searchsorted(markers.start, start, "right")
    begun = np.insert(markers.start, 0, np.iinfo(np.int64).min)[step]
    over = np.append(markers.start, np.iinfo(np.int64).max)[step]
    none_before = np.searchsorted(launches, begun) == np.searchsorted(launches, start)
    none_after = np.searchsorted(launches, end) == np.searchsorted(launches, over)
    return np.asarray(none_before | none_after)


def _cost_per_wait(trace: Trace, account: Account, used: tuple[int, ...]) -> I64:
    """Per slice, the idle time in the used steps' rows it is to blame for as a wait."""
    cost = np.zeros(len(trace.slices), np.int64)
    if account.idle is not None:
        blame = account.idle.blame
        counted = among(account.rows.at(account.idle.gaps.start[blame.gap]), account.step_rows(used))
        np.add.at(cost, blame.wait[counted], blame.ns[counted])
    return cost


def returning_syncs(
    trace: Trace, host: HostActivity, locator: Locator, markers: Markers, used: tuple[int, ...], known: I32
) -> list[Sync]:
    """The other places that wait in every used step, of the loop's threads and most often first: they found the device
    done, so they blocked nobody. ``known`` are waits of the places that did."""
    waits = host.waits
    step = np.searchsorted(markers.start, waits.start, "right") - 1
    rows = np.flatnonzero(among(step, used) & among(trace.slices.track[waits.slice], host.loop))
    if not rows.size:
        return []
    place = wait_places(trace, locator, waits.slice)
    rows = rows[~among(place[rows], place[among(waits.slice, known)])]
    syncs = []
    for site in distinct(place[rows]):
        own = rows[place[rows] == site]
        steps = frozenset(step[own].tolist())
        if len(steps) == len(used):
            syncs.append(_sync(trace, locator, waits.slice[own], steps, (0, 0)))
    return sorted(syncs, key=lambda sync: -sync.count)


def wait_places(trace: Trace, locator: Locator, slices: I32) -> I64:
    """Per wait a number that is equal for waits from the same place in the program."""
    return grouped(trace.slices.name[slices], locator.group(slices))[1].astype(np.int64)


def _sync(trace: Trace, locator: Locator, slices: I32, steps: frozenset[int], sums: tuple[int, int]) -> Sync:
    first = int(slices[0])
    around = locator.enclosing(first)
    hint, op = _hint(trace, around)
    return Sync(
        op=locator.outermost_op(first),
        call=without_version(trace.name_of(first)),
        where=locator.where(first),
        count=slices.size,
        steps=steps,
        blocked_ns=sums[0],
        cost_ns=sums[1],
        hint=hint,
        slices=tuple(slices.tolist()),
        replaced=trace.name_of(op) if op is not None else None,
        elements=_elements(trace, op) if op is not None else None,
    )


def _hint(trace: Trace, around: list[int]) -> tuple[SyncHint | None, int | None]:
    """What is known of a wait, from the frames of libraries between it and the user's own code, outermost first, else
    from the ops around it; and the slice of that op."""
    frames = []
    for at in around:
        if trace.slices.kind[at] == Kind.PYTHON_FRAME:
            frame = parse_frame(trace.name_of(at))
            if frame is not None and frame.is_users:
                break
            frames.append(trace.name_of(at))
    by_frame = next((hint for name in reversed(frames) if (hint := frame_hint(name)) is not None), None)
    if by_frame is not None:
        return by_frame, None
    for at in reversed(around):
        if trace.slices.kind[at] == Kind.HOST_OP and (hint := sync_hint(trace.name_of(at))) is not None:
            return hint, at
    return None, None


def _elements(trace: Trace, op: int) -> int | None:
    ops = trace.host_ops
    at = np.flatnonzero(ops.slice == op)
    if not at.size or ops.input_dims[at[0]] < 0 or ops.input_types[at[0]] < 0:
        return None
    call = parse_call(trace.strings[ops.input_dims[at[0]]], trace.strings[ops.input_types[at[0]]], None)
    if call is None:
        return None
    every = range(len(call.shapes))
    boolean = [shape for k in every if call.types[k : k + 1] == ("bool",) and (shape := call.shape(k)) is not None]
    listed = [shape for k in every for shape in call.tensors(k) or ()]
    shapes = boolean or listed or [shape for shape in (call.shape(0),) if shape is not None]
    return max(map(math.prod, shapes), default=None)
