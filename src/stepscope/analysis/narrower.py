"""What kernels would take with operands of another format: the model behind mixed precision and TF32.

A kernel of matrix products scales with the ratio of the device's peaks, but not beyond the rate that products like it
reach in the other format in this very profile, and takes no less than its op's bytes and operations need
(``analysis/floors.py``). Under automatic mixed precision memory-bound kernels of ops that then run in 16 bits move half
the bytes in half the time; ops that autocast keeps in fp32 (PyTorch, Autocast Op Reference), casts and optimizers do
not gain. The bytes of either are known only where shapes were recorded.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.costs.attribute import KINDS
from stepscope.analysis.costs.call import CostKind
from stepscope.analysis.limits import ROOF_NEAR_SHARE
from stepscope.analysis.roofline import Work
from stepscope.hardware.peaks import DevicePeaks
from stepscope.names.kernels import Tri
from stepscope.trace.codes import among, distinct, mapped
from stepscope.trace.tables import F64, NULL, Bools

_FP32_OPS = frozenset(
    f"aten::{name}"
    for name in (
        *("pow", "exp", "log", "rsqrt", "reciprocal", "erf", "native_layer_norm", "native_group_norm"),
        *("native_layer_norm_backward", "native_group_norm_backward", "_fused_rms_norm", "_fused_rms_norm_backward"),
    )
)
_HALVED_KINDS = [KINDS.index(kind) for kind in (CostKind.ELEMENTWISE, CostKind.NORMALIZATION)]


def shares_in_format(work: Work, chosen: Bools, peaks: DevicePeaks, target: str) -> F64 | None:
    """Per row, the share of its time that chosen kernels of matrix products take by the ratio of the device's peaks; 1
    for other rows, None where a peak is not known.
    """
    goal = peaks.matrix_flops(target)
    ratios = np.ones(len(work.groups))
    for at in distinct(work.group[chosen]):
        group = work.groups[at]
        own = group.precision or "fp32"
        on_matrix = group.traits.tensor_core is Tri.YES
        now = peaks.matrix_flops(own) if on_matrix else peaks.vector_flops(own)
        if goal is None or now is None:
            return None
        ratios[at] = min(now / goal, 1.0)
    return np.where(chosen, ratios[work.group], 1.0)


def halved_by_autocast(work: Work, peaks: DevicePeaks, optimizer: Bools) -> Bools:
    """Rows that move fp32 near the memory's bandwidth for ops that autocast runs in 16 bits; ``optimizer`` are the rows
    of the optimizer's step.
    """
    if peaks.memory_bandwidth is None or not work.rows.size:
        return np.zeros(work.rows.size, np.bool_)
    names, owner = work.trace.slices.name, work.owner
    keeps = mapped(names[owner], work.trace.strings, _FP32_OPS.__contains__, np.bool_)
    near = _bytes(work) / np.maximum(work.ns, 1) * 1e9 >= ROOF_NEAR_SHARE * peaks.memory_bandwidth.value
    fp32 = np.array([group.precision == "fp32" for group in work.groups], np.bool_)[work.group]
    kind = among(work.costs.kind[owner], _HALVED_KINDS)
    return np.asarray((owner >= 0) & kind & near & fp32 & ~keeps & ~optimizer)


def _bytes(work: Work) -> F64:
    """Per row, the bytes of its op where the row does all of it, else 0."""
    _, dense, count = np.unique(work.owner, return_inverse=True, return_counts=True)
    moved = work.costs.bytes[work.owner]
    return np.where((work.owner >= 0) & (count[dense] == 1) & (moved != NULL), moved, 0).astype(np.float64)
