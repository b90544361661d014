from __future__ import annotations

from typing import Final

from stepscope.analysis.facts import Facts
from stepscope.analysis.kernels import KernelTable, KernelUse, PrecisionShares, precision_of
from stepscope.diagnosis.finding import Finding
from stepscope.diagnosis.limits import PRECISION_KNOWN, PRECISION_UNKNOWN
from stepscope.diagnosis.matrix_work import (
    MatrixAdvice,
    MatrixWork,
    is_wide,
    matrix_finding,
    matrix_works,
    sixteen_bits,
)
from stepscope.diagnosis.rule import Limit, Rule
from stepscope.diagnosis.rules.tensor_cores_unused import unused_of
from stepscope.units import format_ns, format_share

LOW_PRECISION_SHARE: Final = 0.10

RULE = Rule(
    id="low_precision_share",
    scope="device",
    pages=("kernels",),
    finds="Matrix work in wider numbers than needed.",
    statement="""\
Fewer than `LOW_PRECISION_SHARE` of kernel time is in 16 bits or fewer, and matrix kernels run in fp32 or tf32 on tensor
cores; where some do not use them, `tensor_cores_unused` says so instead. Where mixed precision is on, what is left in
32 bits is `amp_partial`. The saving is the ratio of the device's peaks, as there.""",
    limits=(
        Limit(
            "LOW_PRECISION_SHARE",
            LOW_PRECISION_SHARE,
            """\
Below this share of kernel time in 16 bits or fewer, precision is worth a finding (XProf uses the same 10 %).""",
        ),
    ),
    needs="Names of kernels; shapes, for the saving.",
    cure="A step whose matrix kernels run in 16 bits.",
    example="A model that trains in fp32 on an A100.",
    tried_for=("PyTorch", "TensorFlow"),
)


def find(facts: Facts) -> list[Finding]:
    """At most one finding per device."""
    findings = []
    uses: dict[int, list[KernelUse]] = {}
    for use in facts.kernels.uses:
        uses.setdefault(use.device, []).append(use)
    for work in matrix_works(facts):
        precision = precision_of(KernelTable(tuple(uses.get(work.work.activity.device, ()))))
        if not work.uses(unused_of(work)) and _is_wide(precision) and work.uses(is_wide):
            findings.append(_finding(work, precision))
    return findings


def _is_wide(precision: PrecisionShares) -> bool:
    """Whether hardly any kernel time is in 16 bits, where enough of it is known to say so."""
    low, known = precision.low_by_time, precision.known_by_time
    return low is not None and known is not None and low < LOW_PRECISION_SHARE and known >= PRECISION_UNKNOWN


def _finding(work: MatrixWork, precision: PrecisionShares) -> Finding:
    uses = work.uses(is_wide)
    advice = MatrixAdvice(
        rule=RULE.id,
        title="Matrix work runs in 32 bits",
        why=(
            f"Only {format_share(precision.low_by_time)} of {_known(precision)} is in 16 bits or fewer; "
            f"{format_ns(work.cost(uses))} per step are matrix kernels in {uses[0].precision} "
            f"({uses[0].precision_reason})."
        ),
        fix=sixteen_bits(work, uses),
    )
    return matrix_finding(work, is_wide, advice, target=work.sixteen_bits)


def _known(precision: PrecisionShares) -> str:
    share = precision.known_by_time or 0.0
    if share >= PRECISION_KNOWN:
        return "kernel time"
    return f"the {format_share(share)} of kernel time whose precision is known"
