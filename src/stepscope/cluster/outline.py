"""What the report of a job begins with, and its table of ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import PurePath
from typing import TypeVar

import numpy as np

from stepscope.analysis.categories import BUSY, CATEGORIES, Category
from stepscope.analysis.exchange.collectives import HOST
from stepscope.analysis.limits import P95_STEPS
from stepscope.analysis.outline import Breakdown, InputFile, Outline, Recorded, StepTime, Summary, Timed
from stepscope.analysis.summary import COLLECTIVES, apportion
from stepscope.cluster.job import JobFacts
from stepscope.cluster.limits import ROWS_SHOWN
from stepscope.cluster.matching import Lane
from stepscope.record import record
from stepscope.trace.tables import F64
from stepscope.trace.trace import Loss

_BREAKDOWNS = 64
_Value = TypeVar("_Value")


@record
class LaneRow:
    """A lane's mean step, and what the others wait for it; None where that is not told."""

    rank: int
    device: int | None
    host: str | None
    step_ns: int
    parts_ns_per_step: dict[Category, int]
    made_wait_ns_per_step: int | None
    late_steps: int | None
    p_value: float | None
    pipeline_wait_ns_per_step: int | None
    bottleneck: str
    findings: list[str]
    """Rules that found something in this rank alone."""


def outline(facts: JobFacts) -> Outline:
    """Of a job."""
    told = [_breakdown(facts, lane, mean) for lane, mean in list(facts.means.items())[:_BREAKDOWNS]]
    return Outline(_recorded(facts), [_timed(facts, at) for at in _shown(facts)], _summary(facts), told)


def _timed(facts: JobFacts, at: int) -> Timed:
    partial = facts.partials[at]
    return Timed(facts.ranks[at], partial.basis, partial.inferred, partial.steps, partial.rows, facts.parts[at])


def _shown(facts: JobFacts) -> list[int]:
    """The ranks whose rows are listed: all, or of very many the late ones and the first."""
    sizes = [len(partial.rows.phase) for partial in facts.partials]
    if sum(sizes) <= ROWS_SHOWN:
        return list(range(len(sizes)))
    late = Counter(facts.blame.lanes[step.lane].partial for step in facts.blame.steps) if facts.blame else Counter()
    order = [at for at, _ in late.most_common()] + [at for at in range(len(sizes)) if at not in late]
    kept, room = [], ROWS_SHOWN
    for at in order:
        room -= sizes[at]
        if room < 0:
            break
        kept.append(at)
    return sorted(kept)


def _recorded(facts: JobFacts) -> Recorded:
    partials = facts.partials
    hosts = {partial.host for partial in partials}
    return Recorded(
        format=_common(partial.format for partial in partials),
        framework=_common(partial.framework for partial in partials),
        files=[InputFile(partial.path, partial.bytes, partial.events) for partial in partials],
        ranks=list(facts.ranks),
        world_size=facts.world_size,
        devices=[device for partial in partials for device in partial.devices],
        on_cpu=all(partial.on_cpu for partial in partials),
        host=hosts.pop() if len(hosts) == 1 else None,
        epoch_ns=min((p.epoch_ns for p in partials if p.epoch_ns is not None), default=None),
        complete=all(partial.complete for partial in partials) and not facts.failed,
        events={"total": sum(partial.events for partial in partials)},
        losses=_losses(facts),
    )


def _losses(facts: JobFacts) -> list[Loss]:
    """What is lost of ranks; how much of one that could not be read is not known."""
    damaged = [
        Loss(
            "rank_damaged",
            1,
            f"Rank {rank} ({PurePath(partial.path).name}) could not be read whole.",
            lost_events=partial.lost_events,
            lost_bytes=partial.lost_bytes,
            damaged=True,
        )
        for rank, partial in zip(facts.ranks, facts.partials, strict=True)
        if not partial.complete
    ]
    return damaged + [
        Loss("rank_unreadable", 1, f"Rank {one.rank} ({PurePath(one.path).name}) could not be read.", damaged=True)
        for one in facts.failed
    ]


def _common(values: Iterable[_Value]) -> _Value:
    return Counter(values).most_common(1)[0][0]


def _summary(facts: JobFacts) -> Summary:
    times, parts = list(facts.step_ns.values()), _whole(facts.mean_parts)
    total = sum(parts.values())
    on_devices = any(partial.basis == "device" for partial in facts.partials)
    of = {category: ns / total for category, ns in parts.items()} if total else {}
    busy = sum(share for category, share in of.items() if category in BUSY)
    talking = sum(of.get(category, 0.0) for category in COLLECTIVES)
    return Summary(
        step_time_ns=StepTime(
            int(np.median(times)) if times else None,
            facts.mean_step_ns,
            int(np.quantile(times, 0.95, method="nearest")) if len(times) >= P95_STEPS else None,
        ),
        unrecorded_step_ns=facts.told_step_ns if facts.unrecorded_share != 1 else None,
        steps_used=len(facts.used_steps),
        step_basis=("device" if on_devices else "host") if times else None,
        inferred=any(partial.inferred for partial in facts.partials),
        step_source=_common(partial.step_source for partial in facts.partials),
        parts_ns_per_step=parts,
        parts_share=of,
        device_busy_share=min(busy, 1.0) if on_devices and total else None,
        device_busy_share_without_collectives=min(max(busy - talking, 0.0), 1.0) if on_devices and total else None,
    )


def _whole(parts: dict[Category, float]) -> dict[Category, int]:
    """Whole numbers that keep the sum (largest remainder)."""
    return {c: ns for c, ns in apportion({c: round(ns * 1000) for c, ns in parts.items()}, 1000).items() if ns}


def _named(mean: F64) -> dict[Category, int]:
    return _whole({CATEGORIES[code]: float(mean[code]) for code in np.flatnonzero(mean).tolist()})


def _breakdown(facts: JobFacts, lane: Lane, mean: F64) -> Breakdown:
    parts = _named(mean)
    total = sum(parts.values())
    return Breakdown(
        rank=facts.ranks[lane.partial],
        device=device_of(lane),
        basis=facts.partials[lane.partial].basis,
        steps=len(facts.used_steps),
        parts=parts,
        shares={category: ns / total for category, ns in parts.items()},
    )


def device_of(lane: Lane) -> int | None:
    """A lane's device, None for the host."""
    return None if lane.device == HOST else lane.device


def rank_rows(facts: JobFacts) -> list[LaneRow]:
    """The mean step of every lane that counts."""
    blame, used = facts.blame, set(facts.used_steps)
    told = blame is not None and not facts.sampled
    place = {lane: at for at, lane in enumerate(blame.lanes)} if blame is not None and told else {}
    counted = [k for k, number in enumerate(blame.numbers) if number in used] if blame is not None else []
    late = Counter(step.lane for step in blame.steps if step.number in used) if blame is not None else Counter()
    cost = blame.cost[:, counted].mean(axis=1) if blame is not None and counted else None
    made = []
    for lane, mean in facts.means.items():
        partial, at = facts.partials[lane.partial], place.get(lane) if cost is not None else None
        made.append(
            LaneRow(
                rank=facts.ranks[lane.partial],
                device=device_of(lane),
                host=partial.host,
                step_ns=round(float(mean.sum())),
                parts_ns_per_step=_named(mean),
                made_wait_ns_per_step=round(float(cost[at])) if at is not None and cost is not None else None,
                late_steps=late[at] if at is not None else None,
                p_value=float(blame.p_values[at]) if at is not None and blame and blame.determined else None,
                pipeline_wait_ns_per_step=None if facts.sampled else facts.pipeline_wait_ns(lane),
                bottleneck=partial.bottleneck,
                findings=[finding.rule for finding in partial.findings],
            )
        )
    return made
