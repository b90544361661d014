"""Matrix products whose sizes are no multiples of what the matrix units take at once, and what padding would save.

A product is aligned where its three sizes are multiples of 16 bytes (NVIDIA, Matrix Multiplication Background User's
Guide: 8 for 16-bit operands, 16 for 8-bit ones). Convolutions are exempt: cuDNN pads them itself from 7.6.3 on. What
padding saves is known in two cases: one on the matrix units would run at the rate of this profile's aligned products of
the format and half to twice the operations, and a kernel beside them would run on them (that rate, else the ratio of
the peaks). Either way the padding's own operations and bytes are added, and no product takes less than its bytes and
operations need (``analysis/floors.py``). Libraries of today mask odd sizes: where a product of sizes that fit no better
runs at full rate in this very profile, its sizes are not what slows another.
"""

from __future__ import annotations

from math import gcd, prod

import numpy as np

from stepscope.analysis.costs.call import CostKind, recorded_operands
from stepscope.analysis.floors import Faster, faster, least_of, reached
from stepscope.analysis.limits import FULL_RATE_SHARE
from stepscope.analysis.peaks import device_peaks
from stepscope.analysis.roofline import OpRoof, Work, op_roofs
from stepscope.record import record

MULTIPLES = {"fp16": 8, "bf16": 8, "int8": 16, "fp8": 16}
"""Elements in 16 bytes."""

Sizes = tuple[int, int, int]


@record
class Misaligned:
    """Calls of one product of odd sizes in the used steps."""

    op: OpRoof
    sizes: Sizes
    """Rows, summed length and columns."""
    multiple: int
    padded_ns: int | None
    """Time with sizes padded; None where nothing tells."""

    @property
    def fit(self) -> int:
        """Elements that all sizes are multiples of, as far as it matters."""
        return gcd(self.multiple, *self.sizes)


def misaligned(work: Work) -> list[Misaligned]:
    """The products of odd sizes of a device that run slower for it or may, longest first."""
    products = [op for op in op_roofs(work) if op.kind is CostKind.GEMM and op.roof.precision in MULTIPLES]
    aligned = [op for op in products if (sizes := _sizes(op)) and not _is_odd(sizes, _multiple(op))]
    ops = []
    for op in products:
        sizes, multiple = _sizes(op), _multiple(op)
        if sizes is None or min(sizes) == 1 or not _is_odd(sizes, multiple):
            continue
        ops.append(Misaligned(op, sizes, multiple, _padded_ns(work, op, aligned, sizes)))
    best = {precision: reached(products, precision) for precision in MULTIPLES}
    return [one for one in ops if not any(_clears(other, one, aligned, best) for other in ops)]


def with_padding(work: Work, one: Misaligned) -> Faster:
    """The kernels of a product, in all steps, with its sizes padded."""
    rows = work.rows_of(one.op)
    share = (one.padded_ns or one.op.roof.ns) / one.op.roof.ns
    return faster(work, rows, work.ns[rows].astype(np.float64) * share)


def _sizes(op: OpRoof) -> Sizes | None:
    return recorded_operands(op.name, op.dims or "")


def _multiple(op: OpRoof) -> int:
    return MULTIPLES[op.roof.precision or ""]


def _is_odd(sizes: Sizes, multiple: int) -> bool:
    return any(size % multiple for size in sizes)


def _clears(fast: Misaligned, other: Misaligned, aligned: list[OpRoof], best: dict[str, float | None]) -> bool:
    """Whether a product shows that sizes like another's do not slow this device: its own fit no better, and it runs on
    the matrix units as fast as aligned ones of its size do, or as any of its format where there are none."""
    roof = fast.op.roof
    if roof.precision != other.op.roof.precision or fast.fit > other.fit or not roof.matrix_units:
        return False
    rate = (roof.flops_per_s or 0.0) / 1e9
    like = reached(aligned, roof.precision, (roof.flops or 0) / roof.count)
    if like is not None:
        return rate >= FULL_RATE_SHARE * like
    any_rate = best[roof.precision or ""]
    return other is not fast and any_rate is not None and rate >= FULL_RATE_SHARE * any_rate


def _padded_ns(work: Work, op: OpRoof, aligned: list[OpRoof], sizes: Sizes) -> int | None:
    multiple, roof = _multiple(op), op.roof
    larger = tuple(-(-size // multiple) * multiple for size in sizes)
    growth = prod(larger) / prod(sizes)
    flops = (roof.flops or 0) * growth
    like = reached(aligned, roof.precision, (roof.flops or 0) / roof.count)
    if like is not None:
        wished = flops / like
    elif not roof.matrix_units:
        peaks = device_peaks(work.trace, work.activity.device)
        now, goal = roof.peak_flops, peaks.matrix_flops(roof.precision or "") if peaks else None
        if not now or not goal:
            return None
        wished = roof.ns * growth * min(now / goal, 1.0)
    else:
        return None
    moved = np.array([(roof.bytes or 0) * _operands(larger) / _operands(sizes)])
    least = float(least_of(work, moved, np.array([flops]), roof.precision)[0])
    return round(max(wished, least))


def _operands(sizes: tuple[int, ...]) -> int:
    """Elements of both operands and of the product."""
    n, k, m = sizes
    return n * k + k * m + n * m
