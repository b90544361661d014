"""Chains of memory-bound kernels that one kernel could do, and the time it would take.

A chain is a run of ops in a row on one stream, launched by one thread, each a single kernel of a fusable kind, in which
each op takes a tensor of the shape that the one before put out. Tensors are not recorded, so that it is the same one is
assumed. The fused kernel is modelled: it does not read what the op before put out, but still writes it, since what else
reads it is not recorded; the bytes that remain move at ``FUSED_BANDWIDTH_SHARE`` of the memory's bandwidth. It takes no
less than the device's shortest kernel, nor than a reduction or normalisation in it takes now.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.costs.attribute import KINDS
from stepscope.analysis.costs.call import CostKind, recorded_shapes
from stepscope.analysis.limits import FUSED_BANDWIDTH_SHARE
from stepscope.analysis.peaks import device_peaks
from stepscope.analysis.roofline import Work
from stepscope.record import record
from stepscope.trace.codes import among, grouped
from stepscope.trace.tables import NULL, Bools, Rows

POINTWISE = (CostKind.ELEMENTWISE, CostKind.COPY)
"""What every compiler fuses."""
_REDUCING = (CostKind.NORMALIZATION, CostKind.SOFTMAX, CostKind.REDUCTION)
FUSABLE = (*POINTWISE, *_REDUCING)
"""What TorchInductor and XLA fuse. TorchScript's fusers take no normalisation that a library does, and no backward of
one."""


@record
class Chains:
    """The chains of one device that would gain from fusion, in all steps.

    ``rows`` are the work's rows of all of them in order; ``first`` begins each, and a value per chain follows.
    """

    work: Work
    rows: Rows
    first: Rows
    now_ns: Rows
    fused_ns: Rows
    bytes_now: Rows
    bytes_left: Rows

    @property
    def used(self) -> Rows:
        """The chains of the used steps."""
        return np.flatnonzero(self.work.used[self.rows[self.first]])

    def names(self, at: int) -> tuple[str, ...]:
        """The ops of a chain."""
        trace, owner = self.work.trace, self.work.owner
        end = self.first[at + 1] if at + 1 < len(self.first) else len(self.rows)
        return tuple(trace.name_of(int(owner[row])) for row in self.rows[self.first[at] : end].tolist())


def fusable_chains(work: Work, apart: Rows, kinds: tuple[CostKind, ...] = FUSABLE) -> Chains | None:
    """The chains of a device of ops of some kinds; None where there are none, or its bandwidth is not known. Rows of
    the work that stand ``apart`` are in none."""
    peaks = device_peaks(work.trace, work.activity.device)
    if peaks is None or peaks.memory_bandwidth is None or not work.rows.size:
        return None
    order = np.lexsort((work.activity.start[work.rows], work.activity.stream[work.rows]))
    fusable = _fusable(work, kinds)
    fusable[apart] = False
    linked = _linked(work, order, fusable[order])
    ends = np.flatnonzero(~linked)
    begins = np.concatenate(([0], ends[:-1] + 1))
    longer = ends > begins
    if not longer.any():
        return None
    bandwidth = peaks.memory_bandwidth.value * FUSED_BANDWIDTH_SHARE / 1e9
    return _measured(work, order, begins[longer], ends[longer], bandwidth)


def _measured(work: Work, order: Rows, begins: Rows, ends: Rows, bandwidth: float) -> Chains | None:
    """Chains as stretches of ``order`` (ends included), those that gain; ``bandwidth`` in bytes per ns."""
    inside = np.concatenate([np.arange(a, b + 1) for a, b in zip(begins.tolist(), ends.tolist(), strict=True)])
    first = np.concatenate(([0], np.cumsum(ends - begins + 1)[:-1]))
    rows = order[inside]
    owner, costs = work.owner[rows], work.costs
    written = np.array([c.written or 0 if c else 0 for c in costs.calls], np.int64)[costs.call[owner]]
    last = np.append(first[1:], len(rows)) - 1
    passed_on = np.add.reduceat(written, first) - written[last]
    now = np.add.reduceat(costs.bytes[owner], first)
    left = now - passed_on
    ns = work.ns[rows]
    reduces = among(costs.kind[owner], [KINDS.index(kind) for kind in _REDUCING])
    floor = np.maximum(work.ns.min(), np.maximum.reduceat(np.where(reduces, ns, 0), first))
    total = np.add.reduceat(ns, first)
    fused = np.minimum(np.maximum(np.rint(left / bandwidth).astype(np.int64), floor), total)
    gains = fused < total
    if not gains.any():
        return None
    size = np.diff(np.append(first, len(rows)))
    starts = np.concatenate(([0], np.cumsum(size[gains])[:-1]))
    return Chains(work, rows[np.repeat(gains, size)], starts, total[gains], fused[gains], now[gains], left[gains])


def _linked(work: Work, order: Rows, fits: Bools) -> Bools:
    """Which rows, in order, hand what they put out to the next; ``fits`` says which may."""
    owner = work.owner[order]
    op = work.rows[order]
    activity, costs = work.activity, work.costs
    linked = np.zeros(order.size, np.bool_)
    place = _places_on_stream(work)[op]
    linked[:-1] = (
        (fits[:-1] & fits[1:])
        & (activity.stream[op[:-1]] == activity.stream[op[1:]])
        & (place[1:] == place[:-1] + 1)
        & (work.period[order[1:]] == work.period[order[:-1]])
        & (activity.thread[op[:-1]] == activity.thread[op[1:]])
    )
    before = np.flatnonzero(linked)
    if before.size:
        one, other = owner[before], owner[before + 1]
        pairs = costs.call[one], costs.call[other], costs.dims[other]
        first, at = grouped(*pairs)
        distinct = zip(*(column[first].tolist() for column in pairs), strict=True)
        linked[before] = np.array([_takes(work, *pair) for pair in distinct], np.bool_)[at]
    return linked


def _takes(work: Work, before: int, after: int, dims: int) -> bool:
    """Whether a call takes a tensor of the shape and size that another put out."""
    one, other = work.costs.calls[before], work.costs.calls[after]
    if one is None or other is None or not one.out or one.written is None or other.bytes is None:
        return False
    read = other.bytes - (other.written or 0)
    return one.out in recorded_shapes(work.trace.strings[dims]) and read >= one.written


def _fusable(work: Work, kinds: tuple[CostKind, ...]) -> Bools:
    """Rows that do all of the work of an op of some kinds, with known bytes."""
    mine = work.owner >= 0
    _, dense, count = np.unique(work.owner, return_inverse=True, return_counts=True)
    costs = work.costs
    known = among(costs.kind[work.owner], [KINDS.index(kind) for kind in kinds])
    known &= (costs.bytes[work.owner] != NULL) & (costs.call[work.owner] >= 0)
    return np.asarray(mine & (count[dense] == 1) & known & ~work.eligible)


def _places_on_stream(work: Work) -> Rows:
    """Per op of the activity, its place among all ops of its stream: what lies between two breaks a chain."""
    activity = work.activity
    order = np.lexsort((activity.start, activity.stream))
    place = np.empty(len(activity), np.intp)
    place[order] = np.arange(len(activity))
    return place
