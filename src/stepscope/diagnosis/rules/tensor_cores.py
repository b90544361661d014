"""tensor_cores_unused and low_precision_share: matrix work that runs on slower units or in wider numbers than needed.

Statements: (1) kernels of matrix multiplications, convolutions or attention certainly (by name) do not use the
device's tensor cores; unknown kernels never count. (2) fewer than ``LOW_PRECISION_SHARE`` of kernel time is in 16
bits or fewer, and matrix kernels run in fp32 or tf32 on tensor cores. Where mixed precision is on, what is left in 32
bits is ``amp_partial``. The saving is the ratio of the device's peaks (``hardware``), which is the most the change can
gain, and, where bytes are known, no more than memory allows (``analysis/narrower.py``); without known peaks it is not
determined.
"""

from __future__ import annotations

from collections.abc import Callable

from stepscope.analysis.facts import Facts
from stepscope.analysis.kernels import LOW_PRECISION, Precision, precision_of
from stepscope.diagnosis.finding import Finding
from stepscope.diagnosis.matrix_work import (
    Kernel,
    MatrixWork,
    beside_units,
    is_wide,
    matrix_finding,
    matrix_works,
    named,
    sixteen_bits,
)
from stepscope.limits import LOW_PRECISION_SHARE, PRECISION_KNOWN, PRECISION_UNKNOWN
from stepscope.units import format_ns, format_share

_FIX_DIMS = "For 16-bit kernels that miss them, make sizes multiples of 8 (fp16, bf16) or 16 (fp8)."
_FIX_NARROW = (
    "They are narrow already: make sizes and strides multiples of 8 (fp16, bf16) or 16 (fp8), and keep tensors "
    "contiguous."
)


def find(facts: Facts) -> list[Finding]:
    """One finding per device and statement; the second only where the first does not hold."""
    found = []
    for work in matrix_works(facts):
        unused = _is_unused_narrow if work.is_mixed else beside_units
        device = work.work.activity.device
        precision = precision_of(type(facts.kernels)(tuple(u for u in facts.kernels.uses if u.device == device)))
        if work.uses(unused):
            found.append(_unused(work, unused))
        elif _is_wide(precision) and work.uses(is_wide):
            found.append(_wide(work, precision))
    return found


def _is_wide(precision: Precision) -> bool:
    """Whether hardly any kernel time is in 16 bits, where enough of it is known to say so."""
    low, known = precision.low_by_time, precision.known_by_time
    return low is not None and known is not None and low < LOW_PRECISION_SHARE and known >= PRECISION_UNKNOWN


def _is_unused_narrow(kernel: Kernel) -> bool:
    return beside_units(kernel) and not is_wide(kernel)


def _unused(work: MatrixWork, chosen: Callable[[Kernel], bool]) -> Finding:
    uses = work.uses(chosen)
    narrow = [use.precision in LOW_PRECISION for use in uses]
    fixes = [] if all(narrow) else [sixteen_bits(work, uses)]
    fixes += [_FIX_NARROW if all(narrow) else _FIX_DIMS] if any(narrow) else []
    return matrix_finding(
        work,
        chosen,
        rule="tensor_cores_unused",
        title=f"Matrix work does not use the {work.units}",
        why=(
            f"{format_ns(work.cost(uses))} per step run in kernels that could use {work.units} and do not: "
            f"{named(uses)} ({uses[0].traits.tensor_core_reason})."
        ),
        fix="\n".join(fixes),
        target=work.sixteen_bits,
    )


def _wide(work: MatrixWork, precision: Precision) -> Finding:
    uses = work.uses(is_wide)
    return matrix_finding(
        work,
        is_wide,
        rule="low_precision_share",
        title="Matrix work runs in 32 bits",
        why=(
            f"Only {format_share(precision.low_by_time)} of {_known(precision)} is in 16 bits or fewer; "
            f"{format_ns(work.cost(uses))} per step are matrix kernels in {uses[0].precision} "
            f"({uses[0].precision_reason})."
        ),
        fix=sixteen_bits(work, uses),
        target=work.sixteen_bits,
    )


def _known(precision: Precision) -> str:
    share = precision.known_by_time or 0.0
    if share >= PRECISION_KNOWN:
        return "kernel time"
    return f"the {format_share(share)} of kernel time whose precision is known"
