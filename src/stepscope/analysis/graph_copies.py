"""Copies within a device right before and after launches of graphs.

A graph reads and writes the addresses it was recorded with: what is not there yet is copied into its inputs before it,
and what must outlive the next launch out of its outputs after it. A profile does not show addresses, so that copies
count by their place: nothing else is launched between them and the graph.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.device import DeviceActivity
from stepscope.names.calls import is_graph_launch
from stepscope.names.kernels import Family, describe
from stepscope.record import record
from stepscope.regex import regex
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, mapped, united
from stepscope.trace.forest import outermost
from stepscope.trace.tables import I64, U8, Bools, Kind, Rows
from stepscope.trace.trace import Trace

_OTHER, _COPY, _GRAPH, _BESIDE = range(4)
_ASKS = regex(r"^aten::(?:_foreach_copy_?|copy_|clone|contiguous|_to_copy|to)$")


@record
class GraphCopies:
    """The copies of one device that stand beside launches of graphs."""

    ops: Rows
    """Places in its ``DeviceActivity``."""
    before: Bools
    """Which of them stand before a graph, rather than only behind one."""


def graph_copies(trace: Trace, activity: DeviceActivity, steps: I64) -> GraphCopies:
    """The copies beside graph launches; launches follow each other on each thread, in each of the steps that begin at
    ``steps``."""
    ops = np.flatnonzero(activity.launched)
    order = ops[np.argsort(activity.call[ops], kind="stable")]
    what = _what(trace, activity)[order]
    kept = what != _BESIDE
    order, what = order[kept], what[kept]
    if not (what == _GRAPH).any() or not (what == _COPY).any():
        return GraphCopies(np.empty(0, np.intp), np.empty(0, np.bool_))
    calls = activity.call[order]
    step = np.searchsorted(steps, trace.slices.start_ns[calls], "right")
    line = trace.slices.track[calls] * np.int64(steps.size + 1) + step
    begins = np.concatenate(([True], (what[1:] != what[:-1]) | (line[1:] != line[:-1])))
    run = np.cumsum(begins) - 1
    kind, of_line = what[begins], line[begins]
    graph = kind == _GRAPH
    before = np.append(graph[1:] & (of_line[1:] == of_line[:-1]), False)
    behind = np.append(False, graph[:-1] & (of_line[1:] == of_line[:-1]))
    beside = (kind == _COPY) & (before | behind)
    chosen = order[beside[run]]
    return GraphCopies(chosen.astype(np.intp), (before & beside)[run][beside[run]])


def _what(trace: Trace, activity: DeviceActivity) -> U8:
    """Per op: a copy within the device, part of a graph, what may stand between them, or anything else."""
    slices = trace.slices
    copies = activity.category == Category.COPY_D2D.code
    copies |= mapped(slices.name[activity.slice], trace.strings, _copies, np.bool_) & (
        activity.category == Category.COMPUTE.code
    )
    graph = mapped(slices.name[np.maximum(activity.call, 0)], trace.strings, is_graph_launch, np.bool_)
    beside = among(activity.category, [c.code for c in (Category.COPY_H2D, Category.COPY_D2H, Category.MEMSET)])
    kinds = np.full(len(activity), _OTHER, np.uint8)
    kinds[copies] = _COPY
    kinds[beside] = _BESIDE
    kinds[graph & activity.launched] = _GRAPH
    return kinds


def _copies(name: str) -> bool:
    return describe(name).family is Family.COPY


def asking(trace: Trace, activity: DeviceActivity, ops: Rows) -> iv.Intervals:
    """When a host thread asked for these copies: in the op that copies, else in the call."""
    slices, calls = trace.slices, united(activity.call[ops])
    asks = (slices.kind == Kind.HOST_OP) & mapped(slices.name, trace.strings, _is_asking, np.bool_)
    outer = outermost(asks, slices.parent)[calls]
    rows = united(np.where(outer >= 0, outer, calls))
    return iv.of(slices, rows)


def _is_asking(name: str) -> bool:
    return _ASKS.match(name) is not None
