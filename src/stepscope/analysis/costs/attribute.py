"""Which op each device op works for, and what that op costs: every FLOP is counted once.

An op costs what its formula says unless an op of the same kind inside it has a cost: ``aten::linear`` leaves its
product to ``aten::addmm``, whose shapes and types are those of the kernel (autocast casts between the two). A device op
works for the innermost op with a cost around its launch, and an op none works for costs the device nothing. A backward
op is an op of its own. Ops of modules compiled by XLA carry the cost that the profile records of them, else what their
program says (``analysis/hlo``); the kernels of one execution share it.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.costs.call import Cost, CostKind
from stepscope.analysis.costs.table import FORMULAS, cost_of
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.hlo.executions import leads, places_of
from stepscope.analysis.hlo.programs import ProgramPlace, TracePrograms
from stepscope.record import record
from stepscope.trace.codes import grouped, mapped
from stepscope.trace.forest import holding, inherit
from stepscope.trace.tables import I32, I64, NULL, Rows
from stepscope.trace.trace import Trace

KINDS = tuple(CostKind)


@record
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
    compiled: list[ProgramPlace]
    """The distinct instructions that ops are by their programs."""
    place: I32
    """Which of them a slice is, -1 for none."""
    lead: I32
    """Of what executes an instruction, the slice whose cost it shares, else -1."""

    def place_of(self, slice: int) -> ProgramPlace | None:
        """The instruction that a slice executes, where its program is known."""
        return self.compiled[self.place[slice]] if self.place[slice] >= 0 else None


def op_costs(trace: Trace, programs: TracePrograms) -> OpCosts:
    """The cost of every host op with a formula and recorded shapes, and of every op of a program that is known."""
    ops, slices, n = trace.host_ops, trace.slices, len(trace.slices)
    told = mapped(slices.name[ops.slice], trace.strings, FORMULAS.__contains__, np.bool_)
    rows = np.flatnonzero(told & (ops.input_dims >= 0))
    calls, at = _distinct_costs(trace, rows)
    call, dims, kind = (np.full(n, -1, np.int32) for _ in range(3))
    flops, moved = np.full(n, NULL, np.int64), np.full(n, NULL, np.int64)
    of = ops.slice[rows]
    call[of], dims[of] = at, ops.input_dims[rows]
    kind[of] = np.array([-1 if c is None else KINDS.index(c.kind) for c in calls], np.int32)[at]
    flops[of] = np.array([NULL if c is None or c.flops is None else c.flops for c in calls], np.int64)[at]
    moved[of] = np.array([NULL if c is None or c.bytes is None else c.bytes for c in calls], np.int64)[at]
    for code in np.unique(kind[ops.slice[rows]]).tolist():
        chosen = kind == code
        kind[chosen & holding(chosen, slices.parent)] = -1
    places, place, lead = _compiled(trace, programs, kind, flops, moved)
    return OpCosts(calls, call, kind, flops, moved, dims, places, place, lead)


def _compiled(
    trace: Trace, programs: TracePrograms, kind: I32, flops: I64, moved: I64
) -> tuple[list[ProgramPlace], I32, I32]:
    """Set what ops of modules compiled by XLA cost; what the profile records of them counts before their program. The
    halves of what runs on its own (copy-start, copy-done) cost nothing: their time is not that of the work."""
    ops, n = trace.xla_ops, len(trace.slices)
    whole = ~mapped(ops.category, trace.strings, is_half, np.bool_)
    says = whole & ((ops.flops != NULL) | (ops.bytes_accessed != NULL))
    places, at = places_of(trace, programs)
    once = np.array([one is not None and one.runs_once for one in places] + [False])
    known = np.array([one is not None for one in places] + [False])[at] & ~says & whole
    lead, place = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    of = leads(trace, at, once)
    told = [(NULL, NULL) if one is None else _told(one) for one in [*places, None]]
    rows = np.flatnonzero(known & (of == np.arange(len(ops))))
    for column, values in ((flops, [f for f, _ in told]), (moved, [b for _, b in told])):
        column[ops.slice[rows]] = np.array(values, np.int64)[at[rows]]
    kind[ops.slice[rows]] = KINDS.index(CostKind.COMPILED)
    lead[ops.slice[known]] = ops.slice[of[known]]
    kind[ops.slice[says]] = KINDS.index(CostKind.COMPILED)
    flops[ops.slice[says]], moved[ops.slice[says]] = ops.flops[says], ops.bytes_accessed[says]
    number = np.cumsum([one is not None for one in places]) - 1 if places else np.empty(0, np.int64)
    of_place = np.array([*(int(number[i]) if one is not None else -1 for i, one in enumerate(places)), -1], np.int32)
    place[ops.slice] = of_place[at]
    return [one for one in places if one is not None], place, lead


def is_half(category: str) -> bool:
    """Whether an op only starts or awaits what runs on its own.

    >>> is_half("copy-start"), is_half("all-reduce-done"), is_half("fusion")
    (True, True, False)
    """
    return category.endswith(("-start", "-done", "-update"))


def _told(one: ProgramPlace) -> tuple[int, int]:
    return tuple(NULL if value is None else value for value in (one.cost.flops, one.cost.bytes))  # type: ignore[return-value]


def _distinct_costs(trace: Trace, rows: Rows) -> tuple[list[Cost | None], Rows]:
    """The costs of the distinct calls among some host ops, and which of them each is."""
    ops = trace.host_ops
    columns = (trace.slices.name[ops.slice], ops.input_dims, ops.input_types, ops.concrete_inputs)
    told = [column[rows] for column in columns]
    first, at = grouped(*told)
    text = [*trace.strings, None]
    calls = zip(*(column[first].tolist() for column in told), strict=True)
    costs = [cost_of(trace.strings[name], text[d], text[t], text[v]) for name, d, t, v in calls]
    return costs, at


def owners(trace: Trace, costs: OpCosts, activity: DeviceActivity) -> I32:
    """Per op of a device, the slice of the op whose cost it shares: a host op; where XLA compiled it itself, or the
    longest of the execution it is part of."""
    own = np.where(costs.kind >= 0, np.arange(len(costs.kind), dtype=np.int32), costs.lead).astype(np.int32)
    around = inherit(own, trace.slices.parent)
    launched_by = np.where(activity.call >= 0, around[activity.call], -1)
    return np.asarray(np.where(own[activity.slice] >= 0, own[activity.slice], launched_by), np.int32)
