"""What a comparison needs of a run: of one profile, or of a job of many ranks; and of several runs of the same code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from stepscope.analysis.categories import BUSY, CATEGORIES, Category
from stepscope.analysis.contradictions import contradictions
from stepscope.analysis.facts import Facts
from stepscope.analysis.summary import COLLECTIVES, busy_share
from stepscope.cluster.cause import mean_parts
from stepscope.cluster.job import JobFacts
from stepscope.comparison.apart import usual
from stepscope.comparison.limits import COMPARED_STEPS
from stepscope.comparison.noise import Runs
from stepscope.comparison.stacks import Stacks, stacks
from stepscope.comparison.work import StepWork, step_work
from stepscope.diagnosis.finding import Diagnosis, Finding
from stepscope.errors import UsageError
from stepscope.record import record
from stepscope.trace.tables import F64, I64
from stepscope.units import format_count
from stepscope.whatif.predictor import Predictor
from stepscope.whatif.recording import told_step_ns

_LOST = "lost device activity: record it again"
_NAMED = 4
"""Damaged ranks that are named."""


@record
class Side:
    """One of two runs that are compared, or several runs of the same code."""

    step_ns: I64
    """Duration of each step that stands for its run (``comparison.apart``), one run after another."""
    parts: I64 | F64
    """Shape (those steps, categories): ns, mean over devices (and ranks)."""
    runs: tuple[int, ...]
    """How many of the steps are each run's."""
    apart_ns: tuple[int, ...]
    """Durations of the steps that were left out as far slower."""
    median_step_ns: int | None
    basis: str
    """Whether step times are the device's or the host's."""
    devices: int | None
    """Of the whole job; None where none was recorded."""
    world_size: int | None
    """Processes of the whole job."""
    ranks: tuple[int, ...]
    """Those that were read, where they are told."""
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
    too_few: str | None
    """Why the noise of its steps is not known, as the end of a sentence."""
    damaged: str | None
    """What of it could not be read."""
    unrecorded_share: float | None
    """What a step takes when nobody records, as a share of a recorded one; None where that is not known."""
    work: StepWork | None
    """What its steps are made of; None of a job, whose ranks are compared one by one for that."""
    stacks: Stacks
    """The Python in its steps; none of a job."""

    @property
    def knows(self) -> bool:
        """Whether it is known what steps take when nobody records."""
        return self.unrecorded_share is not None

    def by_run(self, values: I64 | F64) -> Runs:
        """One value per step as one array per run."""
        ends = np.cumsum(self.runs).tolist()
        return [values[end - count : end] for end, count in zip(ends, self.runs, strict=True)]


def of_profile(facts: Facts, diagnosis: Diagnosis) -> Side:
    """A run of one profile."""
    info = facts.trace.info
    kept = usual(facts.step_ns[list(facts.used)], _parts_per_step(facts))
    left = [facts.used[at] for at in np.flatnonzero(~kept).tolist()]
    usual_steps = replace(facts, used=tuple(step for step in facts.used if step not in left))
    step_ns = facts.step_ns[list(usual_steps.used)]
    apart = sorted((*left, *(slow.step for slow in facts.slow)))
    used = sum(activity.device not in facts.unused for activity in facts.activities)
    return Side(
        step_ns=step_ns,
        parts=_parts_per_step(usual_steps),
        runs=(len(step_ns),),
        apart_ns=tuple(facts.step_ns[apart].tolist()),
        median_step_ns=facts.median_step_ns,
        basis=facts.basis,
        devices=used * (info.world_size or 1) or None,
        world_size=info.world_size,
        ranks=() if info.rank is None else (info.rank,),
        busy_share=busy_share(facts, collectives=True),
        busy_share_without_collectives=busy_share(facts, collectives=False),
        peak_memory=max((use.peak.allocated for use in facts.memory), default=None),
        findings=diagnosis.findings,
        minor=diagnosis.minor,
        replayed=diagnosis.replayed,
        verdict=diagnosis.verdict,
        setting={
            "devices": _counted(device.name for device in info.devices),
            "world size": None if info.world_size is None else str(info.world_size),
            "ranks read": "1",
            "frameworks": info.framework,
            "formats": info.format,
            "step marks": facts.markers.source,
        },
        lost=facts.device_lost,
        not_comparable=_not_comparable(facts),
        too_few=_too_few(len(step_ns)),
        damaged=None if facts.trace.completeness.complete else "is damaged: what could be read of it is compared",
        unrecorded_share=_unrecorded_share(facts),
        work=step_work(usual_steps),
        stacks=stacks(usual_steps),
    )


def _unrecorded_share(facts: Facts) -> float | None:
    told, mean = told_step_ns(facts), facts.mean_step_ns
    return told / mean if told and mean and facts.run.unrecorded_ns and facts.run.recorded_ns else None


def of_job(facts: JobFacts, diagnosis: Diagnosis) -> Side:
    """A run of many ranks: steps are means over them."""
    first, numbers = facts.partials[0], [number for number in facts.used_steps if number in facts.step_ns]
    every = np.zeros((len(numbers), len(CATEGORIES)))
    for at, number in enumerate(numbers):
        lanes = list(mean_parts(facts.partials, facts.parts, (number,)).values())
        every[at] = np.mean(lanes, axis=0) if lanes else 0.0
    durations = np.array([facts.step_ns[number] for number in numbers], np.int64)
    kept = usual(durations, every)
    step_ns, parts = durations[kept], every[kept]
    names = [device.name for partial in facts.partials for device in partial.devices]
    used = sum(len(partial.devices) - len(partial.unused) for partial in facts.partials)
    busy = facts.mean_parts
    whole, has_device = sum(busy.values()), first.basis == "device"
    return Side(
        step_ns=step_ns,
        parts=parts,
        runs=(len(step_ns),),
        apart_ns=tuple(durations[~kept].tolist()),
        median_step_ns=int(np.median(step_ns)) if step_ns.size else None,
        basis=first.basis,
        devices=round(used / len(facts.partials) * (facts.world_size or len(facts.partials))) or None,
        world_size=facts.world_size,
        ranks=tuple(facts.ranks),
        busy_share=_share(busy, whole, set(BUSY)) if has_device else None,
        busy_share_without_collectives=_share(busy, whole, set(BUSY) - set(COLLECTIVES)) if has_device else None,
        peak_memory=None,
        findings=diagnosis.findings,
        minor=diagnosis.minor,
        replayed=diagnosis.replayed,
        verdict=diagnosis.verdict,
        setting={
            "devices": _counted(names),
            "world size": None if facts.world_size is None else str(facts.world_size),
            "ranks read": format_count(len(facts.partials)),
            "frameworks": first.framework,
            "formats": first.format,
            "step marks": first.step_source,
        },
        lost=False,
        not_comparable=_sampled(facts.sampled),
        too_few=_too_few(len(step_ns)),
        damaged=_damage(facts),
        unrecorded_share=None if facts.unrecorded_share == 1 else facts.unrecorded_share,
        work=None,
        stacks={},
    )


def several(sides: Sequence[Side]) -> Side:
    """Several runs of the same code as one side: their steps, and all else of the run with the middle mean step.

    Raises UsageError where two are the same run, which would pass for runs that do not differ at all.
    """
    if len(sides) == 1:
        return sides[0]
    for at, one in enumerate(sides):
        if one.step_ns.size and any(np.array_equal(one.step_ns, other.step_ns) for other in sides[:at]):
            raise UsageError("two runs of one side are the same profile: name each run once")
    means = [float(side.step_ns.mean()) if side.step_ns.size else 0.0 for side in sides]
    middle = sides[sorted(range(len(sides)), key=means.__getitem__)[len(sides) // 2]]
    reasons = [side.not_comparable for side in sides if side.not_comparable]
    if len({side.basis for side in sides}) > 1:
        reasons.append("has runs with device activity and runs without: record all alike")
    return replace(
        middle,
        step_ns=np.concatenate([side.step_ns for side in sides]),
        parts=np.concatenate([side.parts for side in sides]),
        runs=tuple(count for side in sides for count in side.runs),
        apart_ns=tuple(ns for side in sides for ns in side.apart_ns),
        not_comparable=next(iter(reasons), None),
        too_few=next((side.too_few for side in sides if side.too_few), None),
        damaged=next((side.damaged for side in sides if side.damaged), None),
    )


def _not_comparable(facts: Facts) -> str | None:
    if contradictions(facts).withholds:
        return "is not what the job did: its notices say why"
    return _LOST if facts.device_lost else _sampled(facts.sampling.sampled)


def _sampled(sampled: bool) -> str | None:
    return "was sampled: record whole steps" if sampled else None


def _too_few(steps: int) -> str | None:
    if steps >= COMPARED_STEPS:
        return None
    return (
        f"has {format_count(steps)} complete steps, too few to know its noise: record at least {COMPARED_STEPS}, "
        "better 20"
    )


def _damage(facts: JobFacts) -> str | None:
    cut = [rank for rank, partial in zip(facts.ranks, facts.partials, strict=True) if not partial.complete]
    damaged = [f"of rank {rank} only a part could be read" for rank in cut[:_NAMED]]
    damaged += [f"{one.path} could not be read" for one in facts.failed[:_NAMED]]
    more = max(len(cut) - _NAMED, 0) + max(len(facts.failed) - _NAMED, 0)
    if not damaged:
        return None
    return "is damaged: " + ", ".join(damaged) + (f", and {more} more" if more else "")


def _parts_per_step(facts: Facts) -> I64:
    """Whole ns, mean over the devices that are used."""
    total = np.zeros((len(facts.used), len(CATEGORIES)), np.int64)
    place = {step: k for k, step in enumerate(facts.used)}
    for account in facts.working:
        rows = facts.used_rows(account)
        total[[place[account.rows.steps[row] or 0] for row in rows]] += account.parts[rows]
    return total // max(len(facts.working), 1)


def _share(parts: dict[Category, float], whole: float, chosen: set[Category]) -> float | None:
    return sum(ns for category, ns in parts.items() if category in chosen) / whole if whole else None


def _counted(names: Iterable[str | None]) -> str | None:
    told = sorted(name or "unnamed" for name in names)
    return ", ".join(f"{told.count(name)} × {name}" for name in dict.fromkeys(told)) or None
