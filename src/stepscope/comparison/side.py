"""What a comparison needs of a run: of one profile, or of a job of many ranks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from stepscope.analysis.categories import BUSY, CATEGORIES, Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.summary import COLLECTIVES, busy_share
from stepscope.cluster.cause import mean_parts
from stepscope.cluster.findings import JobDiagnosis
from stepscope.cluster.job import JobFacts
from stepscope.comparison.work import StepWork, step_work
from stepscope.diagnosis.engine import Diagnosis
from stepscope.diagnosis.finding import Finding
from stepscope.limits import COMPARED_STEPS
from stepscope.trace.tables import F64, I64
from stepscope.units import format_count
from stepscope.whatif.predictor import Predictor


@dataclass(frozen=True, slots=True)
class Side:
    """One of two runs that are compared."""

    step_ns: I64
    """Duration of each used step."""
    parts: I64 | F64
    """Shape (used steps, categories): ns, mean over devices (and ranks)."""
    median_step_ns: int | None
    basis: str
    """Whether step times are the device's or the host's."""
    devices: int | None
    """Of the whole job; None where none was recorded."""
    busy_share: float | None
    busy_share_without_collectives: float | None
    peak_memory: int | None
    """Bytes of the fullest device; None where it was not recorded."""
    findings: tuple[Finding, ...]
    minor: tuple[Finding, ...]
    replayed: Predictor | str
    """What predicts its step without some findings, else why nothing does."""
    verdict: str
    setting: dict[str, str | None]
    """What else may make runs differ, by what it is called."""
    lost: bool
    """Whether device activity is lost, so that nothing is known of its parts."""
    not_comparable: str | None
    """Why nothing can be said of its steps, as the end of a sentence."""
    work: StepWork | None
    """What its steps are made of; None of a job, whose ranks are compared one by one for that."""


def of_profile(facts: Facts, diagnosis: Diagnosis) -> Side:
    """A run of one profile."""
    info = facts.trace.info
    reason = "lost device activity: record it again" if facts.device_lost else None
    reason = reason or _unfit(len(facts.used), facts.sampling.sampled)
    used = sum(activity.device not in facts.unused for activity in facts.activities)
    return Side(
        step_ns=facts.step_ns[list(facts.used)],
        parts=_parts_per_step(facts),
        median_step_ns=facts.median_step_ns,
        basis=facts.basis,
        devices=used * (info.world_size or 1) or None,
        busy_share=busy_share(facts, collectives=True),
        busy_share_without_collectives=busy_share(facts, collectives=False),
        peak_memory=max((use.peak.allocated for use in facts.memory), default=None),
        findings=diagnosis.findings,
        minor=diagnosis.minor,
        replayed=diagnosis.replayed,
        verdict=diagnosis.verdict,
        setting={
            "Devices": _counted(device.name for device in info.devices),
            "World size": None if info.world_size is None else str(info.world_size),
            "Frameworks": info.framework,
            "Formats": info.format,
            "Step marks": facts.markers.source,
        },
        lost=facts.device_lost,
        not_comparable=reason,
        work=step_work(facts),
    )


def of_job(facts: JobFacts, diagnosis: JobDiagnosis) -> Side:
    """A run of many ranks: steps are means over them."""
    first, numbers = facts.partials[0], facts.used_steps
    parts = np.zeros((len(numbers), len(CATEGORIES)))
    for at, number in enumerate(numbers):
        lanes = list(mean_parts(facts.partials, facts.parts, (number,)).values())
        parts[at] = np.mean(lanes, axis=0) if lanes else 0.0
    step_ns = np.array([facts.step_ns[number] for number in numbers if number in facts.step_ns], np.int64)
    names = [device.name for partial in facts.partials for device in partial.devices]
    used = sum(len(partial.devices) - len(partial.unused) for partial in facts.partials)
    busy = facts.mean_parts
    whole, has_device = sum(busy.values()), first.basis == "device"
    return Side(
        step_ns=step_ns,
        parts=parts,
        median_step_ns=int(np.median(step_ns)) if step_ns.size else None,
        basis=first.basis,
        devices=round(used / len(facts.partials) * (facts.world_size or len(facts.partials))) or None,
        busy_share=_share(busy, whole, set(BUSY)) if has_device else None,
        busy_share_without_collectives=_share(busy, whole, set(BUSY) - set(COLLECTIVES)) if has_device else None,
        peak_memory=None,
        findings=tuple(one.finding for one in diagnosis.findings),
        minor=tuple(one.finding for one in diagnosis.minor),
        replayed="ranks are replayed one by one; a job is not",
        verdict=diagnosis.verdict,
        setting={
            "Devices": _counted(names),
            "World size": None if facts.world_size is None else str(facts.world_size),
            "Ranks read": format_count(len(facts.partials)),
            "Frameworks": first.framework,
            "Formats": first.format,
            "Step marks": first.step_source,
        },
        lost=False,
        not_comparable=_unfit(len(step_ns), facts.sampled),
        work=None,
    )


def _unfit(steps: int, sampled: bool) -> str | None:
    if sampled:
        return "was sampled: record whole steps"
    if steps < COMPARED_STEPS:
        return (
            f"has {format_count(steps)} complete steps, too few to know its noise: record at least {COMPARED_STEPS}, "
            "better 20"
        )
    return None


def _parts_per_step(facts: Facts) -> I64:
    """Whole ns, mean over the devices that are used."""
    total = np.zeros((len(facts.used), len(CATEGORIES)), np.int64)
    for account in facts.working:
        for k, step in enumerate(facts.used):
            total[k] += account.parts[account.step_rows((step,))].sum(axis=0)
    return total // max(len(facts.working), 1)


def _share(parts: dict[Category, float], whole: float, chosen: set[Category]) -> float | None:
    return sum(ns for category, ns in parts.items() if category in chosen) / whole if whole else None


def _counted(names: Iterable[str | None]) -> str | None:
    told = sorted(name or "unnamed" for name in names)
    return ", ".join(f"{told.count(name)} × {name}" for name in dict.fromkeys(told)) or None
