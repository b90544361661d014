"""Which forward op a backward op differentiates."""

from __future__ import annotations

import numpy as np

from stepscope.trace.forest import inherit
from stepscope.trace.tables import I32, I64, NULL, FlowKind
from stepscope.trace.trace import Trace


def forward_of(trace: Trace) -> I32:
    """Per slice, the forward op that an enclosing backward op belongs to, -1 for none."""
    sources = np.full(len(trace.slices), -1, np.int32)
    backward, forward = differentiated(trace)
    sources[backward] = forward
    return inherit(sources, trace.slices.parent)


def differentiated(trace: Trace) -> tuple[I32, I32]:
    """Backward ops and the forward op of each; of one that stands there twice the last counts.

    Arrows of the profile say so; where it draws none, autograd's sequence numbers do: a backward op carries that of
    the last op the forward began with it.
    """
    flows, ops = trace.flows, trace.host_ops
    drawn = flows.kind == FlowKind.FORWARD_BACKWARD
    targets, sources = [flows.target[drawn]], [flows.source[drawn]]
    backward = np.flatnonzero((ops.forward_thread > 0) & (ops.sequence != NULL))
    forward = np.flatnonzero((ops.forward_thread <= 0) & (ops.sequence != NULL))
    if backward.size and forward.size:
        targets.insert(0, ops.slice[backward])
        sources.insert(0, _last_with_number(trace, ops.slice, ops.sequence, (forward, backward)))
    return np.concatenate(targets), np.concatenate(sources)


def _last_with_number(trace: Trace, slices: I32, number: I64, rows: tuple[I64, I64]) -> I32:
    """Per backward op, the forward op with its number that began last before it, -1 for none."""
    forward, backward = rows
    start = trace.slices.start_ns[slices]
    both = np.concatenate((forward, backward))
    is_forward = np.arange(both.size) < forward.size
    order = np.lexsort((is_forward, start[both], number[both]))
    latest = np.maximum.accumulate(np.where(is_forward[order], np.arange(order.size), -1))
    last = np.where(latest >= 0, both[order[latest]], -1)
    last = np.where((last >= 0) & (number[last] == number[both[order]]), slices[last], -1)
    made = np.empty(both.size, np.int32)
    made[order] = last
    return made[forward.size :]
