"""The least time that work can take on a device, and kernels made faster no further than that.

Whatever is changed about a kernel, the bytes that remain have to move at the memory's bandwidth and its operations at
the peak of their number format (Williams, Waterman, Patterson 2009). Every prediction about kernels goes through
``faster`` or ``fused`` here, the only makers of ``Faster``. Where bytes, operations or peaks are not known, nothing
is bounded: the finding says that its saving is the most to expect.
"""

from __future__ import annotations

from dataclasses import field

import numpy as np

from stepscope.analysis.costs.call import CostKind
from stepscope.analysis.kernels import LOW_PRECISION
from stepscope.analysis.peaks import best_flops, device_peaks
from stepscope.analysis.roofline import OpRoof, Work, op_roofs
from stepscope.hardware.peaks import DevicePeaks
from stepscope.record import record
from stepscope.trace.codes import distinct, without
from stepscope.trace.sparse import PerSlice
from stepscope.trace.tables import F64, I64, NULL, Rows

_SIXTEEN_BITS = ("fp16", "bf16")


@record
class Faster:
    """Kernels of one device and what they would take. Made by ``faster`` and ``fused``, which bound it."""

    work: Work
    rows: Rows
    """Of the work."""
    ns: I64
    """What each takes then."""
    replaced: Rows = field(default_factory=lambda: np.empty(0, np.intp))
    """Those of them that another kernel does the work of: they are launched no more."""

    @property
    def gained_ns(self) -> int:
        """What the kernels of the used steps take less, added up."""
        return int((self.work.ns[self.rows] - self.ns)[self.work.used[self.rows]].sum())


def faster(work: Work, rows: Rows, wished_ns: F64, target: str | None = None) -> Faster:
    """Kernels that do their ops' work in less time, with operands of another format where ``target`` names one."""
    now = work.ns[rows]
    least = least_ns(work, target)[rows]
    return Faster(work, rows, np.rint(np.clip(wished_ns, least, now)).astype(np.int64))


def fused(work: Work, rows: Rows, first: Rows, wished_ns: F64, least: F64) -> Faster:
    """Runs of kernels that one kernel replaces each; ``first`` begins each run among the rows, and a value per run
    follows. A run's time is shared out among its kernels as it is now.
    """
    now = work.ns[rows]
    total = np.add.reduceat(now, first)
    left = np.clip(wished_ns, least, total) / np.maximum(total, 1)
    size = np.diff(np.append(first, len(rows)))
    replaced = without(rows, rows[first])
    return Faster(work, rows, np.rint(now * np.repeat(left, size)).astype(np.int64), replaced)


def least_ns(work: Work, target: str | None = None) -> F64:
    """Per row of the work the least time for its share of its op; 0 where nothing is known.

    Operands of more than 16 bits move half their bytes where ``target`` has 16 or fewer.
    """
    peaks = device_peaks(work.trace, work.activity.device)
    if peaks is None or not work.rows.size:
        return np.zeros(work.rows.size)
    share = _share_of_op(work)
    narrower = np.array([target in LOW_PRECISION and g.precision not in LOW_PRECISION for g in work.groups], np.bool_)
    moved = _known(work, work.costs.bytes) * np.where(narrower, 0.5, 1.0)[work.group]
    rates = np.array([_rate(peaks, target or group.precision) for group in work.groups])[work.group]
    computing = _known(work, work.costs.flops) / rates
    return np.asarray(np.minimum(np.maximum(_moving_ns(peaks, moved), computing) * share, work.ns), np.float64)


def least_of(work: Work, moved: F64, flops: F64, precision: str | None) -> F64:
    """The least time for so many bytes and operations."""
    peaks = device_peaks(work.trace, work.activity.device)
    if peaks is None:
        return np.zeros(len(moved))
    return np.maximum(_moving_ns(peaks, moved), flops / _rate(peaks, precision))


def reached(
    products: list[OpRoof], precision: str | None, flops: float | None = None, *, on_units: bool = True
) -> float | None:
    """The highest rate, in operations per ns, that products of a format reach in this profile (the two 16-bit ones are
    alike), on the matrix units unless said; with ``flops`` only of those that compute half to twice as much in one
    call. None where there are none.
    """
    alike = _SIXTEEN_BITS if precision in _SIXTEEN_BITS else (precision,)
    rates = [
        op.roof.flops_per_s / 1e9
        for op in products
        if op.kind in (CostKind.GEMM, CostKind.ATTENTION)
        and op.roof.precision in alike
        and (op.roof.matrix_units or not on_units)
        and op.roof.flops_per_s
        and (flops is None or flops / 2 <= (op.roof.flops or 0) / op.roof.count <= flops * 2)
    ]
    return max(rates, default=None)


def reached_ns(work: Work, target: str) -> F64:
    """Per row of the work the time of its share of its op at the rate that products like it reach in another format in
    this profile; 0 where there are none."""
    products = op_roofs(work)
    flops = _known(work, work.costs.flops)
    shortest = np.zeros(len(flops))
    for one in distinct(flops[(flops > 0) & work.eligible]):
        rate = reached(products, target, one)
        if rate is not None:
            shortest[flops == one] = one / rate
    return shortest * _share_of_op(work)


def _known(work: Work, column: PerSlice[np.int64]) -> F64:
    owned = column[work.owner]
    return np.where((work.owner >= 0) & (owned != NULL), owned, 0).astype(np.float64)


def _share_of_op(work: Work) -> F64:
    """How much of its op each row does: all kernels share it as they share its time, but where some compute matrix
    products these alone."""
    _, dense = np.unique(work.owner, return_inverse=True)
    dense = dense.reshape(-1)
    products = np.bincount(dense, work.eligible)[dense] > 0
    weight = np.where(products & ~work.eligible, 0, work.ns).astype(np.float64)
    return weight / np.maximum(np.bincount(dense, weight)[dense], 1.0)


def _moving_ns(peaks: DevicePeaks, moved: F64) -> F64:
    return moved / (peaks.memory_bandwidth.value / 1e9) if peaks.memory_bandwidth else np.zeros(len(moved))


def _rate(peaks: DevicePeaks, precision: str | None) -> float:
    """Operations per ns at best; infinitely many where that is not known."""
    best = best_flops(peaks, precision) if precision else None
    return best / 1e9 if best else float("inf")
