"""tensor_cores_unused and low_precision_share: matrix work that runs on slower units or in wider numbers than needed.

Statements: (1) kernels of matrix multiplications, convolutions or attention certainly (by name) do not use the
device's tensor cores; unknown kernels never count. (2) fewer than ``LOW_PRECISION_SHARE`` of kernel time is in 16
bits or fewer, and matrix kernels run in fp32 or tf32 on tensor cores. The saving is the ratio of the device's peaks
(``hardware``), which is the most the change can gain; without known peaks it is not determined.
"""

from __future__ import annotations

import re

import numpy as np

from stepscope.analysis.facts import Facts
from stepscope.analysis.kernels import KernelUse, Precision, precision_of
from stepscope.analysis.where import Where
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.remedies import LOSS_SCALING, SIXTEEN_BITS, TF32, remedy
from stepscope.hardware.devices import lookup
from stepscope.hardware.peaks import DevicePeaks
from stepscope.limits import LOW_PRECISION_SHARE, PRECISION_KNOWN, PRECISION_UNKNOWN
from stepscope.names.kernels import Tri
from stepscope.units import format_ns, format_share
from stepscope.whatif.changes import scaled_kernels

WIDE = frozenset({"fp32", "tf32"})
SHOWN = 3

_FIX_DIMS = "\nFor 16-bit kernels that miss them, make sizes multiples of 8 (fp16, bf16) or 16 (fp8)."


def find(facts: Facts) -> list[Finding]:
    """One finding per device and statement; the second only where the first does not hold."""
    found = []
    for device in [activity.device for activity in facts.activities]:
        uses = tuple(use for use in facts.kernels.uses if use.device == device)
        peaks = _peaks(facts, device)
        if _has_none(facts, device, peaks):
            continue
        # Who computes in fp64 needs it: 16 bits are no advice for that, nor for what may be fp64.
        unused = [
            use
            for use in uses
            if use.traits.eligible and use.traits.tensor_core is Tri.NO and use.precision not in (None, "fp64")
        ]
        precision = precision_of(type(facts.kernels)(uses))
        if unused:
            found.append(_unused(facts, unused, peaks))
        elif _is_wide(precision):
            wide = [use for use in uses if use.traits.eligible and use.precision in WIDE]
            if wide:
                found.append(_wide(facts, wide, precision, peaks))
    return found


def _is_wide(precision: Precision) -> bool:
    """Whether hardly any kernel time is in 16 bits, where enough of it is known to say so."""
    low, known = precision.low_by_time, precision.known_by_time
    return low is not None and known is not None and low < LOW_PRECISION_SHARE and known >= PRECISION_UNKNOWN


def _has_none(facts: Facts, device: int, peaks: DevicePeaks | None) -> bool:
    """Whether the device certainly has no tensor or matrix units, or always uses them (TPUs).

    NVIDIA's came with compute capability 7.0.
    """
    described = next((d for d in facts.trace.info.devices if d.id == device), None)
    if described is not None and described.kind != "gpu":
        return True
    if peaks is not None:
        return not peaks.has_tensor_cores
    capability = described.compute_capability if described is not None else None
    return capability is not None and capability < (7, 0)


def _peaks(facts: Facts, device: int) -> DevicePeaks | None:
    described = next((d for d in facts.trace.info.devices if d.id == device), None)
    if described is None or described.name is None:
        return None
    return lookup(described.name, described.compute_capability)


def _cost(facts: Facts, uses: list[KernelUse]) -> int:
    return facts.per_step(sum(use.total_ns for use in uses))


def _unused(facts: Facts, uses: list[KernelUse], peaks: DevicePeaks | None) -> Finding:
    names = ", ".join(f"`{_short(use.name)}`" for use in uses[:SHOWN])
    return _finding(
        facts,
        uses,
        peaks,
        rule="tensor_cores_unused",
        title="Matrix work does not use the tensor cores",
        why=(
            f"{format_ns(_cost(facts, uses))} per step run in kernels that could use tensor cores and do not: {names} "
            f"({uses[0].traits.tensor_core_reason})."
        ),
    )


def _wide(facts: Facts, uses: list[KernelUse], precision: Precision, peaks: DevicePeaks | None) -> Finding:
    return _finding(
        facts,
        uses,
        peaks,
        rule="low_precision_share",
        title="Matrix work runs in 32 bits",
        why=(
            f"Only {format_share(precision.low_by_time)} of {_known(precision)} is in 16 bits or fewer; "
            f"{format_ns(_cost(facts, uses))} per step are matrix kernels in {uses[0].precision} "
            f"({uses[0].precision_reason})."
        ),
    )


def _known(precision: Precision) -> str:
    share = precision.known_by_time or 0.0
    if share >= PRECISION_KNOWN:
        return "kernel time"
    return f"the {format_share(share)} of kernel time whose precision is known"


def _finding(
    facts: Facts, uses: list[KernelUse], peaks: DevicePeaks | None, *, rule: str, title: str, why: str
) -> Finding:
    dtype = "bf16" if peaks is None or peaks.supports("bf16") else "fp16"
    factors = None if peaks is None else _factors(uses, peaks, dtype)
    saving = None if factors is None else _saving(facts, uses, factors)
    missing = None if saving is not None else "the device's peaks are not known to stepscope, so no saving is given"
    framework = facts.trace.info.framework
    fix = remedy(SIXTEEN_BITS, framework).format(dtype={"bf16": "bfloat16", "fp16": "float16"}[dtype])
    fix += remedy(LOSS_SCALING, framework) if dtype == "fp16" else ""
    fix += remedy(TF32, framework) if peaks is not None and peaks.supports("tf32") else ""
    fix += _FIX_DIMS if any(use.precision in ("fp16", "bf16", "fp8") for use in uses) else ""
    why += "" if saving is None else " The saving assumes the ratio of the device's peaks: it is the most to expect."
    return Finding(
        rule=rule,
        device=uses[0].device,
        title=title,
        why=why,
        fix=paragraphs(fix),
        basis="modelled",
        confidence="low",
        where=_places(facts, uses),
        cost_ns_per_step=_cost(facts, uses),
        saving_ns_per_step=saving,
        change=None if factors is None else scaled_kernels(facts, factors),
        prediction_basis=None if saving is None else "first_order",
        not_determined=missing,
    )


def _short(name: str) -> str:
    """A kernel's name without its template arguments and parameters."""
    return re.split(r"[<(]", name.removeprefix("void "))[0] or name[:60]


def _places(facts: Facts, uses: list[KernelUse]) -> tuple[Where, ...]:
    """Where most time of these kernels is launched from; ops compiled by XLA say themselves where they come from."""
    activity = next(a for a in facts.activities if a.device == uses[0].device)
    slices, names = facts.trace.slices, {use.name for use in uses}
    codes = [code for code, text in enumerate(facts.trace.strings) if text in names]
    compiled = np.isin(activity.slice, facts.trace.xla_ops.slice)
    rows = np.flatnonzero((activity.launched | compiled) & np.isin(slices.name[activity.slice], codes))
    if rows.size == 0:
        return ()
    told_by = np.where(compiled, activity.slice, activity.call)
    group = facts.locator.group(told_by[rows])
    total = np.bincount(group, (activity.end - activity.start)[rows])
    first = {number: int(at) for at, number in reversed(list(enumerate(group.tolist())))}
    order = np.argsort(-total, kind="stable")[:SHOWN].tolist()
    places = (facts.locator.where(int(told_by[rows[first[number]]])) for number in order)
    return tuple(dict.fromkeys(place for place in places if place))


def _factors(uses: list[KernelUse], peaks: DevicePeaks, dtype: str) -> dict[str, float] | None:
    """Per kernel, its time at the device's peak for ``dtype`` as a share of today's; None where a peak is not known."""
    target = peaks.matrix_flops(dtype)
    factors = {}
    for use in uses:
        own = use.precision or "fp32"
        on_matrix = use.traits.tensor_core is Tri.YES
        now = peaks.matrix_flops(own) if on_matrix else peaks.vector_flops(own)
        if target is None or now is None:
            return None
        factors[use.name] = min(now / target, 1.0)
    return factors


def _saving(facts: Facts, uses: list[KernelUse], factors: dict[str, float]) -> int:
    return facts.per_step(round(sum(use.total_ns * (1 - factors[use.name]) for use in uses)))
