"""Which op each device op works for, and what that op costs: every FLOP is counted once.

An op costs what its formula says unless an op of the same kind inside it has a cost: ``aten::linear`` leaves its
product to ``aten::addmm``, whose shapes and types are those of the kernel (autocast casts between the two). A device op
works for the innermost op with a cost around its launch, and an op none works for costs the device nothing. A backward
op is an op of its own. Ops of modules compiled by XLA carry the cost the compiler worked out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stepscope.analysis.costs.call import Cost, CostKind
from stepscope.analysis.costs.table import FORMULAS, cost_of
from stepscope.analysis.device import DeviceActivity
from stepscope.trace.codes import mapped
from stepscope.trace.forest import holding, inherit
from stepscope.trace.tables import I32, I64, NULL, Rows
from stepscope.trace.trace import Trace

KINDS = tuple(CostKind)


@dataclass(frozen=True)
class OpCosts:
    """What host ops cost; arrays have one value per slice."""

    calls: list[Cost | None]
    """The distinct calls."""
    call: I32
    """Which of them a slice is, -1 for slices without a cost or with one that XLA worked out."""
    kind: I32
    """Place in ``KINDS``, -1 for slices without a cost."""
    flops: I64
    bytes: I64
    dims: I32
    """Recorded shapes of the inputs (a code into the trace's strings), -1 where there are none."""


def op_costs(trace: Trace) -> OpCosts:
    """The cost of every host op with a formula and recorded shapes."""
    ops, slices, n = trace.host_ops, trace.slices, len(trace.slices)
    told = mapped(slices.name[ops.slice], trace.strings, FORMULAS.__contains__, np.bool_)
    rows = np.flatnonzero(told & (ops.input_dims >= 0))
    calls, at = _distinct_costs(trace, rows)
    call, dims = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    call[ops.slice[rows]], dims[ops.slice[rows]] = at, ops.input_dims[rows]
    # One more than there are calls, so that -1 finds "none".
    kind = np.array([-1 if c is None else KINDS.index(c.kind) for c in [*calls, None]], np.int32)[call]
    flops = np.array([NULL if c is None or c.flops is None else c.flops for c in [*calls, None]], np.int64)[call]
    moved = np.array([NULL if c is None or c.bytes is None else c.bytes for c in [*calls, None]], np.int64)[call]
    for code in np.unique(kind[ops.slice[rows]]).tolist():
        chosen = kind == code
        kind[chosen & holding(chosen, slices.parent)] = -1
    compiled = trace.xla_ops
    says = (compiled.flops != NULL) | (compiled.bytes_accessed != NULL)
    kind[compiled.slice[says]] = KINDS.index(CostKind.COMPILED)
    flops[compiled.slice], moved[compiled.slice] = compiled.flops, compiled.bytes_accessed
    return OpCosts(calls, call, kind, flops, moved, dims)


def _distinct_costs(trace: Trace, rows: Rows) -> tuple[list[Cost | None], Rows]:
    """The costs of the distinct calls among some host ops, and which of them each is."""
    ops = trace.host_ops
    columns = (trace.slices.name[ops.slice], ops.input_dims, ops.input_types, ops.concrete_inputs)
    calls, at = np.unique(np.stack([column[rows] for column in columns], axis=1), axis=0, return_inverse=True)
    text = [*trace.strings, None]
    costs = [cost_of(trace.strings[name], text[d], text[t], text[v]) for name, d, t, v in calls.tolist()]
    return costs, np.asarray(at.reshape(-1), np.intp)


def owners(trace: Trace, costs: OpCosts, activity: DeviceActivity) -> I32:
    """Per op of a device, the slice of the op whose cost it shares: a host op, or itself where XLA compiled it."""
    own = np.where(costs.kind >= 0, np.arange(len(costs.kind), dtype=np.int32), -1).astype(np.int32)
    around = inherit(own, trace.slices.parent)
    launched_by = np.where(activity.call >= 0, around[activity.call], -1)
    return np.asarray(np.where(own[activity.slice] >= 0, activity.slice, launched_by), np.int32)
