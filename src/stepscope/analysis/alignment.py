"""Matrix products whose sizes are no multiples of what the matrix units take at once, and what padding would save.

A product is aligned where its three sizes are multiples of 16 bytes (NVIDIA, Matrix Multiplication Background User's
Guide: 8 for 16-bit operands, 16 for 8-bit ones). Convolutions are exempt: cuDNN pads them itself from 7.6.3 on. What
padding saves is known in two cases: a kernel beside the matrix units would run on them (ratio of the peaks), and one on
them would run at the rate of this profile's aligned products of the format and half to twice the operations. Either
way the padding's own operations are added.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from stepscope.analysis.costs.call import CostKind, recorded_operands
from stepscope.analysis.peaks import device_peaks
from stepscope.analysis.roofline import OpRoof, Work, op_roofs

MULTIPLES = {"fp16": 8, "bf16": 8, "int8": 16, "fp8": 16}
"""Elements in 16 bytes."""


@dataclass(frozen=True, slots=True)
class Misaligned:
    """Calls of one product of odd sizes in the used steps."""

    op: OpRoof
    sizes: tuple[int, int, int]
    """Rows, summed length and columns."""
    multiple: int
    padded_ns: int | None
    """Time with sizes padded; None where nothing tells."""


def misaligned(work: Work) -> list[Misaligned]:
    """The products of odd sizes of a device that run slower for it or may, longest first."""
    products = [op for op in op_roofs(work) if op.kind is CostKind.GEMM and op.roof.precision in MULTIPLES]
    found = []
    for op in products:
        sizes = recorded_operands(op.name, op.dims or "")
        multiple = MULTIPLES[op.roof.precision or ""]
        if sizes is None or min(sizes) == 1 or all(size % multiple == 0 for size in sizes):
            continue
        found.append(Misaligned(op, sizes, multiple, _padded_ns(work, op, products, sizes, multiple)))
    return found


def _padded_ns(
    work: Work, op: OpRoof, products: list[OpRoof], sizes: tuple[int, int, int], multiple: int
) -> int | None:
    growth = prod(-(-size // multiple) * multiple for size in sizes) / prod(sizes)
    if not op.roof.matrix_units:
        peaks = device_peaks(work.trace, work.activity.device)
        now, goal = op.roof.peak_flops, peaks.matrix_flops(op.roof.precision or "") if peaks else None
        return round(op.roof.ns * growth * min(now / goal, 1.0)) if now and goal else None
    own = (op.roof.flops or 0) / op.roof.count
    peers = [
        peer.roof
        for peer in products
        if peer.roof.precision == op.roof.precision
        and peer.roof.matrix_units
        and (other := recorded_operands(peer.name, peer.dims or "")) is not None
        and all(size % multiple == 0 for size in other)
        and own / 2 <= (peer.roof.flops or 0) / peer.roof.count <= own * 2
    ]
    flops, ns = sum(peer.flops or 0 for peer in peers), sum(peer.ns for peer in peers)
    return round((op.roof.flops or 0) * growth * ns / flops) if flops else None
