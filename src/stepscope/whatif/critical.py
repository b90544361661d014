"""The critical path: the chain of ops, launches, waits and host work that sets each step's time.

It is walked backwards through the dependency graph, at the times that were measured: from the op whose end ends the
step, over whatever the replay says it waited for last, to where the step begins. Its elements tile the step, so that
they add up to its duration exactly.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from stepscope.analysis.categories import CATEGORIES, HOST_CAUSES, Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.limits import DISPATCH_GAP_NS
from stepscope.compiled import kernel
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, distinct, united
from stepscope.trace.forest import is_outermost
from stepscope.trace.shared import shared
from stepscope.trace.tables import I32, I64, U8, Kind, Rows
from stepscope.whatif.change import Change
from stepscope.whatif.changes import alone
from stepscope.whatif.graph import Graph
from stepscope.whatif.predictor import predictor
from stepscope.whatif.records import NONE, Instant, ReplayedOps

_RUN, _ARRIVAL, _HANDOVER, _RESIDUAL, _CALLED, _HOST, _RETURN, _CALL = range(8)
"""What a link of the chain is; ``ref`` is an op, of ``_HOST`` a line, of the last two a wait."""
_BY_LAUNCH, _BY_OP, _BY_NOTHING = range(3)

_CATEGORY = {
    _ARRIVAL: Category.LAUNCH_LATENCY,
    _HANDOVER: Category.DEVICE_LATENCY,
    _RESIDUAL: Category.UNKNOWN_DEVICE,
    _CALLED: Category.HOST_COMPUTE,
    _RETURN: Category.SYNC,
    _CALL: Category.SYNC,
}


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """Elements in the order of time, of the used steps; one value per element."""

    step: I32
    start: I64
    dur: I64
    category: U8
    slice: I32
    """The op, wait or host op it is or belongs to, -1 where nothing recorded is."""
    op: I32
    """The op among ``Graph.ops`` that runs, -1 for none."""
    line: I32
    """The host line whose own work it is (``Graph.tracks``), -1 for none."""


@shared
def critical_path(facts: Facts) -> CriticalPath | str:
    """The path of the used steps, else why there is none, in words that follow "because"."""
    replayed = predictor(facts)
    if isinstance(replayed, str):
        return replayed
    graph, bounds = replayed.graph, facts.step_bounds
    steps = np.array([step for step in facts.used if bounds[1][step] > bounds[0][step]], np.int32)
    links = _walked(facts, graph, bounds[0][steps], bounds[1][steps])
    return _elements(facts, graph, steps, links)


@dataclass(frozen=True, slots=True)
class _Links:
    """What the walk found, each step from its end to its beginning."""

    step: I64
    start: I64
    end: I64
    what: I64
    ref: I64


def _walked(facts: Facts, graph: Graph, begin: I64, end: I64) -> _Links:
    ops = graph.ops
    used = np.flatnonzero(np.concatenate([np.full(len(a), a.device not in facts.unused) for a in facts.activities]))
    used = used[np.argsort(ops.end[used], kind="stable")]
    last = used[np.maximum(np.searchsorted(ops.end[used], end, "right") - 1, 0)]
    walk = _Walk(graph)
    for number, (of, until, op) in enumerate(zip(begin.tolist(), end.tolist(), last.tolist(), strict=True)):
        walk.step(number, of, until, op)
    columns = np.array(walk.links or np.empty((0, 5)), np.int64).T
    return _Links(*columns)


def _bindings(ops: ReplayedOps, before: I64) -> tuple[I64, U8]:
    """Per op, the op it waited for last and by what it was bound: of what the replay lets it wait for the latest."""
    never = np.iinfo(np.int64).min // 4
    known = ops.call >= 0
    arrived = np.where(known, ops.launch + ops.latency, never)
    freed = np.where(before >= 0, ops.end[before] + ops.pause, never)
    awaited = np.where(ops.awaits >= 0, ops.end[ops.awaits], never)
    by_op = np.maximum(freed, awaited)
    bound = np.where(awaited > freed, ops.awaits, before).astype(np.int64)
    by = np.where(by_op >= arrived, _BY_OP, _BY_LAUNCH)
    return bound, np.where(~known & (bound < 0), _BY_NOTHING, by).astype(np.uint8)


@kernel
def _op_before(order: I64, stream: I32, end: I64) -> I64:
    """Per op, the op of its stream that ends last of those that start before it; -1 for none."""
    reach = np.full(stream.max() + 1 if stream.size else 0, -1, np.int64)
    ops = np.full(stream.size, -1, np.int64)
    for i in order:
        at = stream[i]
        ops[i] = reach[at]
        if reach[at] < 0 or end[i] > end[reach[at]]:
            reach[at] = i
    return ops


class _Walk:
    """Goes from the end of a step to its beginning. The cursor is an op, or a place on a host line; time only falls."""

    def __init__(self, graph: Graph) -> None:
        ops, waits = graph.ops, graph.waits
        before = _op_before(np.argsort(ops.start, kind="stable"), ops.stream, ops.end)
        self._bound, self._by = (column.tolist() for column in _bindings(ops, before))
        self._start, self._end, self._launch = ops.start.tolist(), ops.end.tolist(), ops.launch.tolist()
        self._residual, self._called = ops.residual.tolist(), ops.called.tolist()
        until = np.where(waits.for_start, ops.start[waits.op], ops.end[waits.op])
        self._blocked = np.where((waits.op >= 0) & (until > waits.start), until, NONE).tolist()
        self._wait_op, self._for_start, self._begun = waits.op.tolist(), waits.for_start.tolist(), waits.start.tolist()
        host = [np.flatnonzero(graph.line == line) for line in range(len(graph.tracks))]
        self._time = [graph.time[rows].tolist() for rows in host]
        ends = [np.where(graph.kind[rows] == Instant.WAIT_END, graph.ref[rows], NONE) for rows in host]
        self._wait = [column.tolist() for column in ends]
        line = np.zeros(graph.calls.size + 1, np.int32)
        launches = graph.kind == Instant.LAUNCH
        line[graph.ref[launches]] = graph.line[launches]
        self._line = line[ops.call].tolist()
        self.links: list[tuple[int, int, int, int, int]] = []
        self._step = self._first = self._t = 0

    def step(self, number: int, begin: int, end: int, op: int) -> None:
        """Walk one step, which ends with this op."""
        self._step, self._first, self._t = number, begin, end
        seen: set[tuple[int, bool]] = set()
        at: tuple[int, bool] | None = (op, True) if self._start[op] < end <= self._end[op] else None
        line = 0
        while self._t > begin:
            if at is not None and at not in seen:
                seen.add(at)
                at, line = self._op(*at)
            else:
                at = self._host(line)

    def _link(self, start: int, what: int, ref: int) -> None:
        """What lasted from some time to where the walk is, which goes on there."""
        start = max(min(start, self._t), self._first)
        if start < self._t:
            self.links.append((self._step, start, self._t, what, ref))
            self._t = start

    def _op(self, op: int, runs: bool) -> tuple[tuple[int, bool] | None, int]:
        """The run of an op and the delay before it; the op it was bound by, or the host line it was launched from."""
        if runs:
            self._link(self._start[op], _RUN, op)
        by, bound = self._by[op], self._bound[op]
        begun = self._end[bound] if by == _BY_OP else self._launch[op] if by == _BY_LAUNCH else self._t
        self._link(max(begun, self._t - self._residual[op]), _RESIDUAL, op)
        self._link(max(begun, self._t - self._called[op]), _CALLED, op)
        self._link(begun, _HANDOVER if by == _BY_OP else _ARRIVAL, op)
        return ((bound, True) if by == _BY_OP else None), self._line[op]

    def _host(self, line: int) -> tuple[int, bool] | None:
        """What a host line did before now, back to the wait whose end let it go on: the op that was waited for."""
        times, waits = self._time[line], self._wait[line]
        place = bisect_right(times, self._t) - 1
        while place >= 0 and self._t > self._first:
            if line and self._t - times[place] > DISPATCH_GAP_NS:
                break  # It was idle, and began where the main line was.
            self._link(times[place], _HOST, line)
            wait = waits[place]
            place -= 1
            if wait == NONE or times[place + 1] > self._t:
                continue
            if NONE != self._blocked[wait] <= self._t:
                self._link(self._blocked[wait], _RETURN, wait)
                return self._wait_op[wait], not self._for_start[wait]
            self._link(self._begun[wait], _CALL, wait)
        if not line:
            self._link(self._first, _HOST, 0)
            return None
        return self._host(0)


def _elements(facts: Facts, graph: Graph, steps: I32, links: _Links) -> CriticalPath:
    """The links in the order of time, with what the host did told by its cause."""
    host = links.what == _HOST
    parts = [_recorded(facts, graph, _Links(*(getattr(links, f.name)[~host] for f in fields(links))))]
    for line in distinct(links.ref[host]):
        mine = host & (links.ref == line)
        parts += _by_cause(facts, (line, graph.tracks[line]), links.step[mine], links.start[mine], links.end[mine])
    step, start, end, category, own, op, at = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(start, kind="stable")
    columns = steps[step[order]], start[order], (end - start)[order], category[order].astype(np.uint8)
    return CriticalPath(*columns, *(column[order].astype(np.int32) for column in (own, op, at)))


_Part = tuple[I64, I64, I64, I64, I64, I64, I64]
"""Step, start, end, category, slice, op, line."""


def _recorded(facts: Facts, graph: Graph, links: _Links) -> _Part:
    """The links that are ops and waits, or the time before ops."""
    activities = facts.activities
    own = np.concatenate([a.slice for a in activities])
    booked = np.concatenate([a.category for a in activities]).astype(np.int64)
    waits = (links.what == _RETURN) | (links.what == _CALL)
    runs = links.what == _RUN
    category = np.zeros(links.what.size, np.int64)
    for what, told in _CATEGORY.items():
        category[links.what == what] = told.code
    category[runs] = booked[links.ref[runs]]
    slices = np.full(links.what.size, NONE, np.int64)
    slices[waits] = graph.waits.slice[links.ref[waits]]
    slices[~waits] = own[links.ref[~waits]]
    none = np.full(runs.size, NONE, np.int64)
    return links.step, links.start, links.end, category, slices, np.where(runs, links.ref, NONE), none


def _by_cause(facts: Facts, of: tuple[int, tuple[int, ...]], step: I64, start: I64, end: I64) -> list[_Part]:
    """Stretches of a host line cut where its cause changes; what no cause explains is not recorded. Stretches follow
    each other without overlap."""
    line, tracks = of
    order = np.argsort(start, kind="stable")
    step, start, end = step[order], start[order], end[order]
    left: iv.Intervals = (start, end)
    parts = []
    for category, spans in _causes(facts, tracks):
        inside = _pieces(left, spans)
        left = iv.subtract(left, spans) if inside[0].size else left
        parts.append((inside, category))
    parts.append((_pieces((start, end), left), Category.UNKNOWN_HOST))
    around = _Around(facts, tracks)
    made: list[_Part] = []
    for (begun, over), category in parts:
        mine = step[np.searchsorted(start, begun, "right") - 1]
        booked, none, here = (np.full(begun.size, value, np.int64) for value in (category.code, NONE, line))
        made.append((mine, begun, over, booked, around.of(begun, over), none, here))
    return made


def _causes(facts: Facts, tracks: tuple[int, ...]) -> list[tuple[Category, iv.Intervals]]:
    return [(cause, iv.joined([alone(facts, track, cause) for track in tracks])) for cause in HOST_CAUSES]


def _pieces(stretches: iv.Intervals, spans: iv.Intervals) -> iv.Intervals:
    """What of some stretches, which may touch each other, lies in a set: cut where a stretch ends."""
    begun, over = iv.union(*iv.intersect(iv.union(*stretches), spans)) if spans[0].size else iv.EMPTY
    if not begun.size:
        return iv.EMPTY
    cuts = united(*stretches)
    at = np.maximum(np.searchsorted(begun, cuts, "right") - 1, 0)
    cuts = cuts[(begun[at] < cuts) & (cuts < over[at])]
    return np.sort(np.append(begun, cuts)), np.sort(np.append(over, cuts))


class _Around:
    """The outermost host op around a stretch of a host line."""

    def __init__(self, facts: Facts, tracks: tuple[int, ...]) -> None:
        slices = facts.trace.slices
        outer = is_outermost(slices.kind == Kind.HOST_OP, slices.parent) & among(slices.track, np.array(tracks))
        rows = np.flatnonzero(outer)
        self._rows = rows[np.argsort(slices.start_ns[rows], kind="stable")]
        self._start = slices.start_ns[self._rows]
        self._end = self._start + slices.dur_ns[self._rows]

    def of(self, start: I64, end: I64) -> I64:
        """Its slice per stretch, -1 where none holds the middle of it."""
        if not self._rows.size:
            return np.full(start.size, NONE, np.int64)
        middle = (start + end) // 2
        at = np.maximum(np.searchsorted(self._start, middle, "right") - 1, 0)
        return np.where((self._start[at] <= middle) & (middle < self._end[at]), self._rows[at], NONE)


@dataclass(frozen=True, slots=True)
class CriticalGroup:
    """Elements of one name and category."""

    name: int
    """Code of the text, -1 where nothing recorded has a name."""
    category: Category
    total_ns: int
    rows: Rows


def grouped(facts: Facts, path: CriticalPath) -> list[CriticalGroup]:
    """The elements by name and category, those that take most first."""
    names = np.where(path.slice >= 0, facts.trace.slices.name[path.slice], NONE).astype(np.int64)
    keys = (names << 8) | path.category
    distinct, which = np.unique(keys, return_inverse=True)
    total = np.zeros(distinct.size, np.int64)
    np.add.at(total, which, path.dur)
    by_group = np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which, minlength=distinct.size))[:-1])
    order = np.lexsort((distinct, -total)).tolist()
    return [
        CriticalGroup(int(distinct[k]) >> 8, CATEGORIES[int(distinct[k]) & 255], int(total[k]), by_group[k])
        for k in order
    ]


def without(facts: Facts, path: CriticalPath, rows: Rows) -> Change | None:
    """The replay's change in which some elements take no time; None for delays, which no change of a program removes.

    What stays of the path is a chain still, so that a step gains no more than they took.
    """
    replayed = predictor(facts)
    assert not isinstance(replayed, str)
    graph, ops, lines = replayed.graph, path.op[rows], path.line[rows]
    if (ops >= 0).all():
        duration = graph.ops.end - graph.ops.start
        duration[ops] = 0
        return Change(op_ns=duration)
    if (lines >= 0).all():
        start, end = path.start[rows], (path.start + path.dur)[rows]
        of = distinct(lines)
        return Change({graph.tracks[line][0]: iv.union(start[lines == line], end[lines == line]) for line in of})
    waits = path.slice[rows]
    if (path.category[rows] == Category.SYNC.code).all() and (waits >= 0).all():
        return Change(waits=frozenset(waits.tolist()))
    return None


def saving_ns(facts: Facts, path: CriticalPath, rows: Rows) -> int | None:
    """What a step gains where some elements take no time, by the replay, and no more than they took of it."""
    replayed, change = predictor(facts), without(facts, path, rows)
    if isinstance(replayed, str) or change is None:
        return None
    return min(replayed.saving_ns(change), facts.per_step(int(path.dur[rows].sum())))


def columns(facts: Facts) -> dict[str, list[Any]]:
    """The elements in the order of time as lists by column; none where there is no path."""
    path = critical_path(facts)
    if isinstance(path, str):
        return {}
    slices, strings = facts.trace.slices, facts.trace.strings
    device = [activity.device for activity in facts.activities for _ in range(len(activity))]
    return {
        "step": path.step.tolist(),
        "start_ns": path.start.tolist(),
        "dur_ns": path.dur.tolist(),
        "category": [str(CATEGORIES[code]) for code in path.category.tolist()],
        "name": [strings[slices.name[at]] if at >= 0 else None for at in path.slice.tolist()],
        "device": [device[op] if op >= 0 else None for op in path.op.tolist()],
        "slice": [at if at >= 0 else None for at in path.slice.tolist()],
    }
