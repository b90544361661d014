"""Branches of a graph that do not need each other, and that one stream runs one after another.

TensorFlow gives each device one stream for computing, so that what a graph would allow to run side by side does not.
Told only where the profile proves it: every node that ran was recorded with its inputs (TensorFlow 1's StepStats and
Timelines), control inputs among them, and no way leads from any op of one branch to any op of the other. The longest
chain of ops that need each other is one branch, the longest chain beside it the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.facts import Facts
from stepscope.analysis.limits import BRANCH_OPS, BRANCH_SHARE
from stepscope.record import record
from stepscope.trace.codes import among
from stepscope.trace.tables import I64, Kind, Rows
from stepscope.trace.trace import Trace


@record
class Branch:
    """A chain of ops."""

    scope: str
    """The name scope that its ops share, else its first op."""
    ops: int
    """How many compute."""
    ns: int
    """Their time in the used steps."""


@record
class Branches:
    """Two branches of which neither needs the other, on one stream of a device."""

    device: int
    longer: Branch
    shorter: Branch
    compute_ns: int
    """Time of all that computes there in the used steps."""


@record
class _Graph:
    """Nodes in an order in which each comes behind what it needs."""

    names: tuple[str, ...]
    needs: tuple[tuple[int, ...], ...]


def independent_branches(facts: Facts) -> list[Branches]:
    """Per device the two longest branches, where both are long; none without the graph's edges."""
    if not len(facts.trace.nodes) or not facts.used:
        return []
    graph = _graph(facts.trace)
    if graph is None:
        return []
    by_device = []
    for activity, account in facts.devices:
        windows = facts.used_windows(account)
        branches = None if activity.device in facts.unused else _of_device(facts.trace, graph, activity, windows)
        by_device += [] if branches is None else [branches]
    return by_device


def _graph(trace: Trace) -> _Graph | None:
    """The graph by the names of its nodes; None where it is not known whole, or where nodes run in a loop."""
    nodes = trace.nodes
    own = np.flatnonzero(among(trace.slices.kind[nodes.slice], (Kind.HOST_OP, Kind.RUNTIME_CALL, Kind.OTHER)))
    if not (nodes.inputs[own] >= 0).any():
        return None
    pairs = np.unique(np.stack((nodes.node[own], nodes.inputs[own])), axis=1).T.tolist()
    given = {trace.strings[node]: trace.strings[inputs] if inputs >= 0 else "" for node, inputs in pairs}
    makers = {name: {_maker(one, given) for one in _inputs(name, text, given)} for name, text in given.items()}
    if any(None in made_by for made_by in makers.values()):
        return None  # nothing is known of a node that was not recorded
    try:
        names = tuple(TopologicalSorter(makers).static_order())
    except CycleError:
        return None
    place = {str(name): at for at, name in enumerate(names)}
    needs = tuple(tuple(sorted(place[str(one)] for one in makers[str(name)])) for name in names)
    return _Graph(tuple(place), needs)


def _inputs(name: str, text: str, given: Mapping[str, str]) -> list[str]:
    """What a node takes in; of one that receives (``node/_12``) also the node that sent."""
    inputs = [one.strip() for one in text.split(",") if one.strip()]
    sender = _sender(name)
    return [*inputs, sender] if sender in given else inputs


def _maker(text: str, given: Mapping[str, str]) -> str | None:
    """The node behind an input (``a``, ``b:1``, ``^c``); None where it was not recorded."""
    name = text.removeprefix("^").partition(":")[0]
    return next((one for one in (name, _sender(name)) if one in given), None)


def _sender(name: str) -> str:
    """The node whose tensor comes from another part of the graph under this name; empty where it is no such name."""
    base, mark, number = name.rpartition("/_")
    return base if mark and number.isdigit() else ""


def _of_device(trace: Trace, graph: _Graph, activity: DeviceActivity, windows: tuple[I64, I64]) -> Branches | None:
    computes = activity.category == Category.COMPUTE.code
    at = np.searchsorted(windows[0], activity.start, "right") - 1
    rows = np.flatnonzero(computes & (at >= 0) & (activity.start < windows[1][np.maximum(at, 0)]))
    if np.unique(activity.stream[rows]).size != 1:
        return None
    weight = _weights(trace, graph, activity, rows)
    total = int((activity.end - activity.start)[rows].sum())
    main = _heaviest(graph, weight, frozenset())
    other = _heaviest(graph, weight, frozenset(main))
    bound = _reached(graph, [node for node in other if weight[node]])  # what both take in computes nothing
    longer = [node for node in main if not bound[node]]
    pair = [_branch(graph, weight, chain) for chain in (longer, other)]
    least = min(branch.ns for branch in pair)
    if min(branch.ops for branch in pair) < BRANCH_OPS or least < BRANCH_SHARE * total:
        return None
    shorter, first = sorted(pair, key=lambda branch: branch.ns)
    return Branches(activity.device, first, shorter, total)


def _weights(trace: Trace, graph: _Graph, activity: DeviceActivity, rows: Rows) -> list[int]:
    """Compute time per node: that of the kernels it launched."""
    place = {name: at for at, name in enumerate(graph.names)}
    node_of = np.full(len(trace.slices) + 1, -1, np.int32)
    node_of[trace.nodes.slice] = trace.nodes.node
    codes = node_of[np.where(activity.call[rows] >= 0, activity.call[rows], -1)]
    known = np.unique(codes[codes >= 0])
    number = np.full(len(trace.strings), -1, np.int64)
    number[known] = [place.get(trace.strings[code], -1) for code in known.tolist()]
    node = np.where(codes >= 0, number[codes], -1)
    sums = np.zeros(len(graph.names) + 1, np.int64)
    np.add.at(sums, node, (activity.end - activity.start)[rows])  # -1 is the last
    return [int(ns) for ns in sums[:-1].tolist()]


def _heaviest(graph: _Graph, weight: list[int], without: frozenset[int]) -> list[int]:
    """The chain of nodes, each of which needs the one before, with most time."""
    best, before = [0] * len(weight), [-1] * len(weight)
    for at, makers in enumerate(graph.needs):
        if at in without:
            continue
        maker = max((one for one in makers if one not in without), key=lambda one: best[one], default=-1)
        best[at] = weight[at] + (best[maker] if maker >= 0 else 0)
        before[at] = maker
    at = max(range(len(best)), key=lambda one: best[one])
    chain = []
    while at >= 0:
        chain.append(at)
        at = before[at]
    return chain[::-1]


def _reached(graph: _Graph, chain: list[int]) -> list[bool]:
    """Which nodes some of a chain need, or need some of it, however far."""
    behind, ahead = [False] * len(graph.names), [False] * len(graph.names)
    for at in chain:
        behind[at] = ahead[at] = True
    for at, makers in enumerate(graph.needs):
        behind[at] = behind[at] or any(behind[one] for one in makers)
    for at in range(len(graph.names) - 1, -1, -1):
        if ahead[at]:
            for one in graph.needs[at]:
                ahead[one] = True
    return [one or other for one, other in zip(behind, ahead, strict=True)]


def _branch(graph: _Graph, weight: list[int], chain: list[int]) -> Branch:
    computing = [at for at in chain if weight[at]]
    names = [graph.names[at] for at in computing]
    return Branch(_scope(names), len(computing), sum(weight[at] for at in computing))


def _scope(names: list[str]) -> str:
    """The name scope that some nodes share; where they share none the first node."""
    shared = []
    for pieces in zip(*(name.split("/")[:-1] for name in names), strict=False):
        if len(set(pieces)) > 1:
            break
        shared.append(pieces[0])
    return "/".join(shared) or next(iter(names), "")
