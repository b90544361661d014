"""What the rules on matrix work share: which kernels, what another format saves, where they come from."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stepscope.analysis.facts import Facts
from stepscope.analysis.floors import Faster, faster, reached_ns
from stepscope.analysis.kernels import LOW_PRECISION, KernelGroup, KernelUse
from stepscope.analysis.narrower import halved_by_autocast, shares_in_format
from stepscope.analysis.peaks import device_peaks, takes
from stepscope.analysis.phases import Phase, device_phases, phase_code
from stepscope.analysis.places import Place, find_places
from stepscope.analysis.roofline import Work
from stepscope.diagnosis.evidence import placed
from stepscope.diagnosis.evidence import shares as by_place
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.limits import MIXED_SHARE
from stepscope.diagnosis.remedies import LOSS_SCALING, SIXTEEN_BITS, TF32, remedy
from stepscope.hardware.peaks import DevicePeaks
from stepscope.names.kernels import Tri
from stepscope.record import record
from stepscope.trace.codes import among
from stepscope.trace.shared import shared
from stepscope.trace.tables import F64, Bools
from stepscope.whatif.changes import faster_kernels

WIDE = frozenset({"fp32", "tf32"})
SHOWN = 3

NO_PEAKS = "the device's peaks are not known to stepscope, so no saving is given"
OF_PEAKS = (
    " The saving assumes the ratio of the device's peaks and, where shapes are known, no more than memory and the "
    "rates of this profile allow: it is the most to expect."
)
HALVED = " Memory-bound kernels of ops that then run in 16 bits move half the bytes: they are taken to halve."

Kernel = KernelGroup | KernelUse


@shared
def _uses_of_devices(facts: Facts) -> dict[int, list[KernelUse]]:
    by_device: dict[int, list[KernelUse]] = {}
    for use in facts.kernels.uses:
        by_device.setdefault(use.device, []).append(use)
    return by_device


@record
class MatrixWork:
    """The kernels of one device and what it can do at best."""

    facts: Facts
    work: Work
    peaks: DevicePeaks | None

    def uses(self, chosen: Callable[[Kernel], bool]) -> list[KernelUse]:
        """The kernels of the used steps that are chosen, longest first."""
        return [use for use in _uses_of_devices(self.facts).get(self.work.activity.device, ()) if chosen(use)]

    def rows(self, chosen: Callable[[Kernel], bool]) -> Bools:
        """Which rows of the work are chosen kernels."""
        return np.array([chosen(group) for group in self.work.groups], np.bool_)[self.work.group]

    @property
    def is_mixed(self) -> bool:
        """Whether mixed precision is on: most time of matrix work of known precision is in 16 bits or fewer."""
        known = self.uses(lambda kernel: kernel.traits.eligible and kernel.precision is not None)
        low = sum(use.total_ns for use in known if use.precision in LOW_PRECISION)
        return bool(known) and low >= MIXED_SHARE * sum(use.total_ns for use in known)

    @property
    def sixteen_bits(self) -> str:
        """The 16-bit format to recommend."""
        return "fp16" if self.takes("bf16") is False else "bf16"

    def takes(self, precision: str) -> bool | None:
        """Whether the matrix units take a format; None where the profile does not tell."""
        return takes(self.facts.trace.info.device(self.work.activity.device), precision)

    @property
    def units(self) -> str:
        """What those who made the device call what multiplies matrices."""
        return matrix_units(self.facts)

    def cost(self, uses: list[KernelUse]) -> int:
        """Their time per step."""
        return self.facts.per_step(sum(use.total_ns for use in uses))


def matrix_units(facts: Facts) -> str:
    """What those who made the devices call what multiplies matrices."""
    return "matrix cores" if facts.workload.vendors == {"AMD"} else "tensor cores"


def matrix_works(facts: Facts) -> list[MatrixWork]:
    """The work of the devices that have tensor or matrix units and do not always use them."""
    works = [MatrixWork(facts, work, device_peaks(facts.trace, work.activity.device)) for work in facts.work]
    return [work for work in works if not _has_none(work)]


def _has_none(work: MatrixWork) -> bool:
    """Whether the device certainly has no tensor or matrix units, or always uses them (TPUs).

    NVIDIA's came with compute capability 7.0.
    """
    described = work.facts.trace.info.device(work.work.activity.device)
    if described is not None and described.kind != "gpu":
        return True
    if work.peaks is not None:
        return not work.peaks.has_tensor_cores
    capability = described.compute_capability if described is not None else None
    return capability is not None and capability < (7, 0)


def beside_units(kernel: Kernel) -> bool:
    """Whether a kernel of matrix products certainly does not use the matrix units. Who computes in fp64 needs it: other
    formats are no advice for that, nor for what may be fp64.
    """
    return kernel.traits.eligible and kernel.traits.tensor_core is Tri.NO and kernel.precision not in (None, "fp64")


def is_wide(kernel: Kernel) -> bool:
    """Whether a kernel of matrix products takes operands of 32 bits."""
    return kernel.traits.eligible and kernel.precision in WIDE


class MatrixAdvice(NamedTuple):
    """What a rule says of kernels in its own words."""

    rule: str
    title: str
    why: str
    fix: str


def matrix_finding(work: MatrixWork, chosen: Callable[[Kernel], bool], advice: MatrixAdvice, *, target: str) -> Finding:
    """Chosen kernels would take less time in the format ``target``."""
    facts, uses = work.facts, work.uses(chosen)
    places = _places(facts, uses)
    why = advice.why + by_place(facts, places, "Their time")
    shares = None if work.peaks is None else shares_in_format(work.work, work.rows(chosen), work.peaks, target)
    if shares is None:
        change, saving = None, None
    else:
        # The first sixteen bits of a job also make what runs between its products narrower.
        why += OF_PEAKS
        if work.peaks is not None and target in LOW_PRECISION and not work.is_mixed:
            halved = halved_by_autocast(work.work, work.peaks, _in_optimizer(work))
            why += HALVED if (halved & work.work.used).any() else ""
            shares = np.where(halved, 0.5, shares)
        slower = _in_format(work.work, shares, target)
        change, saving = faster_kernels(facts, slower), facts.per_step(slower.gained_ns)
    return Finding(
        rule=advice.rule,
        device=work.work.activity.device,
        title=advice.title,
        why=why,
        fix=paragraphs(advice.fix),
        basis="modelled",
        confidence="low",
        where=placed(facts, places),
        cost_ns_per_step=work.cost(uses),
        saving_ns_per_step=saving,
        change=change,
        prediction_basis=None if saving is None else "first_order",
        not_determined=NO_PEAKS if saving is None else None,
    )


def _in_format(work: Work, shares: F64, target: str) -> Faster:
    """Rows at shares of their time, products no faster than others like them run in the format ``target`` now."""
    rows = np.flatnonzero(shares < 1)
    wished = np.where(work.eligible, np.maximum(work.ns * shares, reached_ns(work, target)), work.ns * shares)
    return faster(work, rows, wished[rows], target)


def _in_optimizer(work: MatrixWork) -> Bools:
    phases = device_phases(work.facts.trace, work.work.activity)[work.work.rows]
    return np.asarray(phases == phase_code(Phase.OPTIMIZER))


def sixteen_bits(work: MatrixWork, uses: list[KernelUse]) -> str:
    """How to run matrix work in 16 bits, and short of that in TF32."""
    workload, dtype = work.facts.workload, work.sixteen_bits
    device = "xpu" if workload.vendors == {"Intel"} else "cuda"
    named = {"bf16": "bfloat16", "fp16": "float16"}[dtype]
    fixes = [remedy(SIXTEEN_BITS, workload).format(dtype=named, device=device)]
    fixes += [remedy(LOSS_SCALING, workload)] if dtype == "fp16" else []
    fixes += [remedy(TF32, workload)] if work.takes("tf32") and any(use.precision == "fp32" for use in uses) else []
    return "\n".join(filter(None, fixes))


def named(uses: list[KernelUse]) -> str:
    """The longest of some kernels, for people."""
    return ", ".join(f"`{_short(use.name)}`" for use in uses[:SHOWN])


def _short(name: str) -> str:
    """A kernel's name without its template arguments and parameters."""
    return re.split(r"[<(]", name.removeprefix("void "))[0] or name[:60]


def _places(facts: Facts, uses: list[KernelUse]) -> tuple[Place, ...]:
    """Where most time of these kernels is launched from; ops compiled by XLA say themselves where they come from."""
    activity, account = facts.devices[facts.at[uses[0].device]]
    slices, names = facts.trace.slices, {use.name for use in uses}
    codes = [code for code, text in enumerate(facts.trace.strings) if text in names]
    compiled = among(activity.slice, facts.trace.xla_ops.slice)
    mine = among(slices.name[activity.slice], codes) & facts.in_used_steps(account, activity.start)
    rows = np.flatnonzero((activity.launched | compiled) & mine)
    told_by = np.where(compiled, activity.slice, activity.call)[rows].astype(np.int32)
    return find_places(facts.locator, told_by, (activity.end - activity.start)[rows])
