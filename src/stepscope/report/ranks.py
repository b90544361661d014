"""``analyses.ranks`` of a job: its clocks, who was late in which step, and its ranks beside each other."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from stepscope.cluster.blame import Straggler
from stepscope.cluster.job import JobFacts
from stepscope.cluster.limits import ROWS_SHOWN
from stepscope.cluster.outline import LaneRow, device_of, rank_rows
from stepscope.cluster.path import job_path
from stepscope.report.entries import named, plain

if TYPE_CHECKING:
    from stepscope.document import ranks as entry


RANKS_ON_PATH = 64
"""Ranks listed of the critical path: those that set most of the step time."""


def ranks(facts: JobFacts) -> entry.RanksEntry:
    """``analyses.ranks``."""
    blame = facts.blame
    return {
        "world_size": facts.world_size,
        "present": len(facts.partials),
        "missing": facts.missing[:ROWS_SHOWN],
        "unreadable": [plain(one) for one in facts.failed],
        "clocks": [_clock(facts, at) for at in range(len(facts.partials))],
        "determined": bool(blame is not None and blame.determined and not facts.sampled),
        "stragglers": [_straggler(facts, one) for one in blame.stragglers] if blame and not facts.sampled else [],
        "steps": _late_steps(facts),
        "per_rank": [_row(one) for one in rank_rows(facts)],
        "critical_path": _path(facts),
    }


def _path(facts: JobFacts) -> entry.JobPathEntry:
    path = job_path(facts)
    if isinstance(path, str):
        return {
            "why_not": path,
            "steps": None,
            "ns_per_step": None,
            "longer_ns_per_step": None,
            "hops_per_step": None,
            "undivided_per_step": None,
            "parts_ns_per_step": None,
            "ranks": [],
        }
    count = len(path.steps)
    parts: dict[str, int] = defaultdict(int)
    ranks: dict[int, dict[str, int]] = defaultdict(dict)
    for at, category, ns in path.per_step:
        parts[str(category)] += ns
        ranks[at][str(category)] = ns
    total = sum(parts.values())
    told: list[entry.RankOnPath] = [
        {
            "rank": facts.ranks[at],
            "ns_per_step": sum(mine.values()),
            "share": sum(mine.values()) / total,
            "parts_ns_per_step": mine,
        }
        for at, mine in ranks.items()
    ]
    return {
        "why_not": None,
        "steps": count,
        "ns_per_step": total,
        "longer_ns_per_step": round(path.longer_ns / count),
        "hops_per_step": path.hops / count,
        "undivided_per_step": path.undivided / count,
        "parts_ns_per_step": dict(sorted(parts.items(), key=lambda part: -part[1])),
        "ranks": sorted(told, key=lambda one: -one["ns_per_step"])[:RANKS_ON_PATH],
    }


def _clock(facts: JobFacts, at: int) -> entry.RankClock:
    clock = facts.clocks[at]
    known = clock is not None and len(facts.partials) > 1
    return {
        "rank": facts.ranks[at],
        "offset_ns": round(clock.offset_ns) if known and clock else None,
        "drift": clock.drift if known and clock else None,
        "at_ns": clock.at_ns if known and clock else None,
        "uncertainty_ns": round(clock.uncertainty_ns) if known and clock else None,
        "collectives": clock.collectives if known and clock else 0,
    }


def _straggler(facts: JobFacts, one: Straggler) -> entry.StragglerEntry:
    assert facts.blame is not None
    lane = facts.blame.lanes[one.lane]
    cause = facts.cause_of(lane, one.waited_ns)
    return {
        "rank": facts.ranks[lane.partial],
        "device": device_of(lane),
        "host": facts.partials[lane.partial].host,
        "waited_ns_per_step": one.waited_ns,
        "saving_ns_per_step": one.saving_ns,
        "steps": one.steps,
        "p_value": one.p_value,
        "cause": cause.cause,
        "category": None if cause.category is None else str(cause.category),
        "excess_ns_per_step": named(cause.excess),
        "kernels": [{"name": name, "times": times} for name, times in cause.kernels],
    }


def _late_steps(facts: JobFacts) -> list[entry.LateStepEntry]:
    if facts.blame is None or facts.sampled:
        return []
    blame = facts.blame
    return [
        {
            "number": late.number,
            "dur_ns": facts.every_step_ns.get(late.number),
            "used": late.number in facts.step_ns,
            "rank": facts.ranks[blame.lanes[late.lane].partial],
            "device": device_of(blame.lanes[late.lane]),
            "waited_ns": late.waited_ns,
            "cause": facts.cause_of(blame.lanes[late.lane], late.waited_ns, [late.number]).cause,
            "chain": [facts.ranks[blame.lanes[lane].partial] for lane in late.chain],
        }
        for late in blame.steps
    ]


def _row(one: LaneRow) -> entry.RankRow:
    made: entry.RankRow = plain(one)
    made["parts_ns_per_step"] = named(one.parts_ns_per_step)
    return made
