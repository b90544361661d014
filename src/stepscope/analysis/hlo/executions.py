"""Which recorded ops are one execution of an instruction: a library's call may run several kernels.

Of an instruction that an execution of its program runs once, the rows of one run are one execution; where no run is
recorded, rows that follow each other on a stream while other ops of the program run between executions. Else an
execution begins anew with each return of the kernel that the first one began with.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.hlo.programs import ProgramPlace, TracePrograms
from stepscope.trace.codes import among, grouped
from stepscope.trace.tables import I32, I64, NULL, Bools, Rows
from stepscope.trace.trace import Trace


def places_of(trace: Trace, programs: TracePrograms) -> tuple[list[ProgramPlace | None], Rows]:
    """The distinct instructions that ops of the trace are, and per row of its XLA ops which of them it is."""
    ops = trace.xla_ops
    keys = ops.program, ops.module, ops.op
    first, at = grouped(*keys)
    return [programs.place(*key) for key in zip(*(column[first].tolist() for column in keys), strict=True)], at


def leads(trace: Trace, at: Rows, once: Bools) -> I32:
    """Per row of the trace's XLA ops, the longest row (a row number of the same table) of the execution it is part of.

    ``at`` tells the instruction of each row and ``once`` which instructions a run of their program executes once.
    """
    ops, slices = trace.xla_ops, trace.slices
    device = np.full(len(slices), -1, trace.device_ops.device.dtype)
    device[trace.device_ops.slice] = trace.device_ops.device
    stream = np.where(device[ops.slice] >= 0, slices.track[ops.slice], -1)
    order = np.lexsort((slices.start_ns[ops.slice], stream, ops.run, device[ops.slice]))
    begins = _begins(trace, order, at, once, stream)
    group = np.empty(len(ops), np.int64)
    group[order] = np.cumsum(begins) - 1
    by_run = once[at] & (ops.run != NULL)
    if by_run.any():
        group[by_run] = len(ops) + grouped(*(column[by_run] for column in (device[ops.slice], ops.run, at)))[1]
    took = slices.dur_ns[ops.slice]
    ranked = np.lexsort((took, group))
    dense = grouped(group)[1]
    longest = ranked[np.cumsum(np.bincount(dense)) - 1] if len(ops) else ranked
    return np.asarray(longest[dense], np.int32)


def _begins(trace: Trace, order: Rows, at: Rows, once: Bools, stream: I64) -> Bools:
    """Which rows, in order, begin an execution."""
    ops, name = trace.xla_ops, trace.slices.name
    here, track, run = at[order], stream[order], ops.run[order]
    changes = np.ones(order.size, np.bool_)
    changes[1:] = (np.diff(here) != 0) | (np.diff(track) != 0) | (np.diff(run) != 0)
    stretch = np.cumsum(changes) - 1
    first = np.flatnonzero(changes)
    named = name[ops.slice[order]]
    again = named == named[first[stretch]] if order.size else changes
    program = ops.program[order]
    several, counts = np.unique(program[grouped(program, here)[0]], return_counts=True)
    alone = among(program, several[counts == 1])
    return np.asarray(changes | (again & (alone | ~once[here])))
