"""The Python of two runs as one tree of stacks, with the time in each function of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from stepscope.analysis.alike import numberless
from stepscope.analysis.facts import Facts
from stepscope.record import record
from stepscope.regex import regex
from stepscope.trace.tables import I32, I64, Kind, Rows

_LEAST = 0.003
"""A stack that takes less than this share of the longer side would be no box that is seen."""
_LISTED = 400
_FUNCTIONS = (Kind.PYTHON_FRAME, Kind.MODULE)
_LINE = regex(r"\(\d+\)(?=: )| at 0x[0-9a-f]+")
_PLUMBING = "torch/nn/modules/module.py: "
"""Calls a module's ``forward``, whose caller and own functions say all."""
_MODULE = "nn.Module: "

Stacks = dict[tuple[str, ...], int]
"""Of each stack, outermost function first, the time in it in a used step, mean ns; functions without their lines, which
every edit moves, built-in ones without the address of their object, modules without their numbers."""


@record
class Call:
    """A function where it is called; 0 on the side that does not call it there."""

    name: str
    caller: int
    """Place of its caller in the list, -1 for none."""
    before_ns: int
    """Mean per step, with what it calls."""
    after_ns: int


def stacks(facts: Facts) -> Stacks:
    """The Python functions in the used steps, of the threads that ran ops, if any did; none where Python was not
    recorded."""
    slices, used = facts.trace.slices, list(facts.used)
    rows = np.flatnonzero(np.isin(slices.kind, _FUNCTIONS))
    worked = np.unique(slices.track[slices.kind == Kind.HOST_OP])
    of_these = np.isin(slices.track[rows], worked)
    rows = rows[of_these] if of_these.any() else rows
    if not rows.size or not used:
        return {}
    start = facts.markers.start[used]
    time = _within(start, start + facts.host_step_ns[used], slices.start_ns[rows], slices.dur_ns[rows])
    rows, time = rows[time > 0], time[time > 0]
    names = facts.trace.strings
    nodes: list[tuple[int, int]] = []
    node, callers = np.full(len(slices), -1, np.int64), _callers(slices.parent, slices.kind, rows)
    total: dict[int, int] = defaultdict(int)
    for at in _by_depth(slices.depth[rows]):
        caller = np.where(callers[at] >= 0, node[callers[at]], -1)
        keys, which = np.unique(np.stack((caller, slices.name[rows[at]])), axis=1, return_inverse=True)
        which = which.reshape(-1)
        sums = np.zeros(keys.shape[1], np.int64)
        np.add.at(sums, which, time[at])
        node[rows[at]] = len(nodes) + which
        total.update({len(nodes) + k: ns for k, ns in enumerate(sums.tolist())})
        nodes += [(int(one), int(name)) for one, name in keys.T]
    paths: list[tuple[str, ...]] = []
    totals: Stacks = defaultdict(int)
    for at_node, (caller_node, name) in enumerate(nodes):
        path, told = paths[caller_node] if caller_node >= 0 else (), _told(names[name])
        if not told.startswith(_PLUMBING):
            path = (*path, told)
            totals[path] += total[at_node]
        paths.append(path)
    return {path: ns // len(used) for path, ns in totals.items()}


def calls(before: Stacks, after: Stacks) -> tuple[Call, ...]:
    """What both call, callers before what they call; what takes least is left out."""
    both = {path: (before.get(path, 0), after.get(path, 0)) for path in before.keys() | after.keys()}
    whole = max((sum(ns for path, ns in side.items() if len(path) == 1) for side in (before, after)), default=0)
    seen = [path for path, ns in both.items() if max(ns) >= _LEAST * whole and max(ns)]
    listed = sorted(seen, key=lambda path: (-max(both[path]), len(path), path))[:_LISTED]
    place: dict[tuple[str, ...], int] = {}
    made: list[Call] = []
    for path in sorted(listed, key=lambda path: (len(path), -max(both[path]), path)):
        if len(path) > 1 and path[:-1] not in place:
            continue
        place[path] = len(made)
        made.append(Call(path[-1], place.get(path[:-1], -1), *both[path]))
    return tuple(made)


def _within(start: I64, end: I64, begin: I64, dur: I64) -> I64:
    """How much of each slice lies in the windows, which do not overlap."""
    before = np.concatenate((np.zeros(1, np.int64), np.cumsum(end - start)))

    def covered(time: I64) -> I64:
        at = np.searchsorted(start, time, "right") - 1
        inside = np.minimum(time, end[at]) - start[at]
        covered: I64 = np.where(at >= 0, before[at] + inside, 0)
        return covered

    return covered(begin + dur) - covered(begin)


def _callers(parent: I32, kind: np.ndarray[tuple[int], np.dtype[np.uint8]], rows: Rows) -> I64:
    """The Python function around each, -1 for none: calls and ops between them are none."""
    callers = parent[rows].astype(np.int64)
    while (other := np.flatnonzero((callers >= 0) & ~np.isin(kind[callers], _FUNCTIONS))).size:
        callers[other] = parent[callers[other]]
    return callers


def _by_depth(depth: np.ndarray[tuple[int], np.dtype[np.int16]]) -> Iterator[Rows]:
    """Places of the same depth, the least first."""
    order = np.argsort(depth, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(depth[order])) + 1)


def _told(name: str) -> str:
    return numberless(name) if name.startswith(_MODULE) else _LINE.sub("", name)
