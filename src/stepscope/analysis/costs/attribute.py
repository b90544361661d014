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
from stepscope.trace.codes import grouped, mapped, marked
from stepscope.trace.forest import holding, inherit
from stepscope.trace.sparse import PerSlice, places
from stepscope.trace.tables import I32, I64, NULL, Rows
from stepscope.trace.trace import Trace

KINDS = tuple(CostKind)


@record
class OpCosts:
    """What host ops cost."""

    calls: list[Cost | None]
    """The distinct calls."""
    call: PerSlice[np.int32]
    """Which of them a slice is, -1 for slices without a cost or with one that XLA worked out."""
    kind: PerSlice[np.int32]
    """Place in ``KINDS``, -1 for slices without a cost."""
    flops: PerSlice[np.int64]
    bytes: PerSlice[np.int64]
    dims: PerSlice[np.int32]
    """Recorded shapes of the inputs (a code into the trace's strings), -1 where there are none."""
    compiled: list[ProgramPlace]
    """The distinct instructions that ops are by their programs."""
    place: PerSlice[np.int32]
    """Which of them a slice is, -1 for none."""
    lead: PerSlice[np.int32]
    """Of what executes an instruction, the slice whose cost it shares, else -1."""

    def place_of(self, slice: int) -> ProgramPlace | None:
        """The instruction that a slice executes, where its program is known."""
        return self.compiled[self.place[slice]] if self.place[slice] >= 0 else None


def op_costs(trace: Trace, programs: TracePrograms) -> OpCosts:
    """The cost of every host op with a formula and recorded shapes, and of every op of a program that is known."""
    ops, compiled = trace.host_ops, trace.xla_ops
    told = mapped(trace.slices.name[ops.slice], trace.strings, FORMULAS.__contains__, np.bool_)
    rows = np.flatnonzero(told & (ops.input_dims >= 0))
    calls, which = _distinct_costs(trace, rows)
    at = places(marked(np.concatenate((ops.slice[rows], compiled.slice)), len(trace.slices)))
    count = int(at.max(initial=-1)) + 2
    of = at[ops.slice[rows]]
    call, dims, kind = (np.full(count, -1, np.int32) for _ in range(3))
    flops, moved = np.full(count, NULL, np.int64), np.full(count, NULL, np.int64)
    call[of], dims[of] = which, ops.input_dims[rows]
    kind[of] = np.array([-1 if c is None else KINDS.index(c.kind) for c in calls], np.int32)[which]
    flops[of] = np.array([NULL if c is None or c.flops is None else c.flops for c in calls], np.int64)[which]
    moved[of] = np.array([NULL if c is None or c.bytes is None else c.bytes for c in calls], np.int64)[which]
    costed = np.flatnonzero(at >= 0)
    for code in np.unique(kind[of]).tolist():
        chosen = np.flatnonzero(kind[:-1] == code)
        holds = holding(marked(costed[chosen], len(trace.slices)), trace.slices.parent)
        kind[chosen[holds[costed[chosen]]]] = -1
    known, place, lead = _compiled(trace, programs, at, (kind, flops, moved))
    return OpCosts(
        calls=calls,
        call=PerSlice(at, call),
        kind=PerSlice(at, kind),
        flops=PerSlice(at, flops),
        bytes=PerSlice(at, moved),
        dims=PerSlice(at, dims),
        compiled=known,
        place=PerSlice(at, place),
        lead=PerSlice(at, lead),
    )


def _compiled(
    trace: Trace, programs: TracePrograms, place_of: I32, columns: tuple[I32, I64, I64]
) -> tuple[list[ProgramPlace], I32, I32]:
    """Set what ops of modules compiled by XLA cost; what the profile records of them counts before their program. The
    halves of what runs on its own (copy-start, copy-done) cost nothing: their time is not that of the work."""
    ops, own = trace.xla_ops, place_of[trace.xla_ops.slice]
    kind, flops, moved = columns
    whole = ~mapped(ops.category, trace.strings, is_half, np.bool_)
    says = whole & ((ops.flops != NULL) | (ops.bytes_accessed != NULL))
    instructions, at = places_of(trace, programs)
    once = np.array([one is not None and one.runs_once for one in instructions] + [False])
    known = np.array([one is not None for one in instructions] + [False])[at] & ~says & whole
    lead, place = np.full(kind.size, -1, np.int32), np.full(kind.size, -1, np.int32)
    of = leads(trace, at, once)
    told = [(NULL, NULL) if one is None else _told(one) for one in [*instructions, None]]
    rows = np.flatnonzero(known & (of == np.arange(len(ops))))
    for column, values in ((flops, [f for f, _ in told]), (moved, [b for _, b in told])):
        column[own[rows]] = np.array(values, np.int64)[at[rows]]
    kind[own[rows]] = KINDS.index(CostKind.COMPILED)
    lead[own[known]] = ops.slice[of[known]]
    kind[own[says]] = KINDS.index(CostKind.COMPILED)
    flops[own[says]], moved[own[says]] = ops.flops[says], ops.bytes_accessed[says]
    number = np.cumsum([one is not None for one in instructions]) - 1 if instructions else np.empty(0, np.int64)
    of_place = np.array(
        [*(int(number[i]) if one is not None else -1 for i, one in enumerate(instructions)), -1], np.int32
    )
    place[own] = of_place[at]
    return [one for one in instructions if one is not None], place, lead


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
    own, slices = np.full(len(trace.slices), -1, np.int32), costs.kind.slices
    own[slices] = np.where(costs.kind.values[:-1] >= 0, slices, costs.lead.values[:-1])
    around = inherit(own, trace.slices.parent)
    launched_by = np.where(activity.call >= 0, around[activity.call], -1)
    return np.asarray(np.where(own[activity.slice] >= 0, own[activity.slice], launched_by), np.int32)
