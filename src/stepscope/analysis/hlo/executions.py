"""Which recorded ops are one execution of an instruction: a library's call may run several kernels.

Of an instruction that an execution of its program runs once, the rows of one run are one execution; where no run is
recorded, rows that follow each other on a stream while other ops of the program run between executions. Else an
execution begins anew with each return of the kernel that the first one began with.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.hlo.programs import Place, Programs
from stepscope.trace.tables import I32, I64, NULL, Bools, Rows
from stepscope.trace.trace import Trace


def places_of(trace: Trace, programs: Programs) -> tuple[list[Place | None], Rows]:
    """The distinct instructions that ops of the trace are, and per row of its XLA ops which of them it is."""
    ops = trace.xla_ops
    keys = np.stack((ops.program, ops.module.astype(np.int64), ops.op.astype(np.int64)), axis=1)
    distinct, at = np.unique(keys, axis=0, return_inverse=True)
    return [programs.place(*key) for key in distinct.tolist()], np.asarray(at.reshape(-1), np.intp)


def leads(trace: Trace, at: Rows, once: Bools) -> I32:
    """Per row of the trace's XLA ops, the longest row (a row number of the same table) of the execution it is part of.

    ``at`` tells the instruction of each row and ``once`` which instructions a run of their program executes once.
    """
    ops, slices = trace.xla_ops, trace.slices
    device = np.full(len(slices), -1, np.int64)
    device[trace.device_ops.slice] = trace.device_ops.device
    stream = np.where(device[ops.slice] >= 0, slices.track[ops.slice], -1)
    order = np.lexsort((slices.start_ns[ops.slice], stream, ops.run, device[ops.slice]))
    begins = _begins(trace, order, at, once, stream)
    group = np.empty(len(ops), np.int64)
    group[order] = np.cumsum(begins) - 1
    by_run = once[at] & (ops.run != NULL)
    if by_run.any():
        keys = np.stack((device[ops.slice], ops.run, at.astype(np.int64)), axis=1)[by_run]
        _, shared = np.unique(keys, axis=0, return_inverse=True)
        group[by_run] = len(ops) + shared.reshape(-1)
    took = slices.dur_ns[ops.slice]
    ranked = np.lexsort((took, group))
    _, dense, count = np.unique(group, return_inverse=True, return_counts=True)
    longest = ranked[np.cumsum(count) - 1] if len(ops) else ranked
    return np.asarray(longest[dense.reshape(-1)], np.int32)


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
    pairs = np.unique(np.stack((program, here.astype(np.int64)), axis=1), axis=0) if order.size else np.empty((0, 2))
    several, counts = np.unique(pairs[:, 0], return_counts=True)
    alone = np.isin(program, several[counts == 1])
    return np.asarray(changes | (again & (alone | ~once[here])))
