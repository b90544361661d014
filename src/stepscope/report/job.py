"""The report of a job of many ranks: the same document, with ``analyses.ranks`` and ``analyses.collectives``."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import PurePath
from typing import Any

import numpy as np

from stepscope._version import __version__
from stepscope.analysis.categories import BUSY, CATEGORIES, Category
from stepscope.analysis.exchange.asked import NOTHING_GIVEN, Asked
from stepscope.analysis.exchange.collectives import HOST
from stepscope.analysis.limits import P95_STEPS
from stepscope.analysis.summary import COLLECTIVES, apportion
from stepscope.cluster.blame import Straggler
from stepscope.cluster.job import JobFacts
from stepscope.cluster.matching import Lane
from stepscope.cluster.partial import Partial
from stepscope.diagnosis.finding import Diagnosis
from stepscope.document import REPORT_SCHEMA
from stepscope.report import exchange
from stepscope.report.document import finding_entry
from stepscope.report.labels import CATEGORIES as LABELS
from stepscope.report.limits import ROWS_SHOWN
from stepscope.trace.tables import F64, NULL

_BREAKDOWNS = 64


def make(facts: JobFacts, diagnosis: Diagnosis, asked: Asked = NOTHING_GIVEN) -> dict[str, Any]:
    """The whole report of a job."""
    shown = _shown(facts)
    return {
        "schema": REPORT_SCHEMA,
        "tool": {"name": "stepscope", "version": __version__},
        "profile": _profile(facts, diagnosis),
        "steps": [row for at in shown for row in _steps(facts, at)],
        "accounting": [row for at in shown for row in _rows(facts, at)],
        "summary": _summary(facts, diagnosis),
        "findings": [finding_entry(one) for one in diagnosis.findings],
        "plan": list(diagnosis.plan),
        "whatif": dataclasses.asdict(diagnosis.whatif),
        "analyses": {
            "breakdown": [_breakdown(facts, lane, mean) for lane, mean in list(facts.means.items())[:_BREAKDOWNS]],
            "minor_findings": [finding_entry(one) for one in diagnosis.minor],
            "ranks": _ranks(facts),
            **exchange.of_job(facts, asked),
        },
    }


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


def _profile(facts: JobFacts, diagnosis: Diagnosis) -> dict[str, Any]:
    partials = facts.partials
    hosts = {partial.host for partial in partials}
    devices = [device for partial in partials for device in partial.devices]
    return {
        "format": _common([partial.format for partial in partials]),
        "framework": _common([partial.framework for partial in partials]),
        "files": [{"path": p.path, "bytes": p.bytes, "events": p.events} for p in partials],
        "ranks": facts.ranks,
        "world_size": facts.world_size,
        "devices": [{"id": d.id, "name": d.name, "kind": d.kind, "memory_bytes": d.memory_bytes} for d in devices],
        "accelerators": 0 if all(partial.on_cpu for partial in partials) else None,
        "host": hosts.pop() if len(hosts) == 1 else None,
        "epoch_ns": min((p.epoch_ns for p in partials if p.epoch_ns is not None), default=None),
        "complete": all(partial.complete for partial in partials) and not facts.failed,
        "events": {"total": sum(partial.events for partial in partials)},
        "losses": [
            *(
                _loss("rank_damaged", f"Rank {rank} ({PurePath(p.path).name}) could not be read whole.", p)
                for rank, p in zip(facts.ranks, partials, strict=True) if not p.complete
            ),
            *(
                _loss("rank_unreadable", f"Rank {one.rank} ({PurePath(one.path).name}) could not be read.")
                for one in facts.failed
            ),
        ],
        "notices": [dataclasses.asdict(notice) for notice in diagnosis.notices],
    }  # fmt: skip


def _loss(code: str, text: str, partial: Partial | None = None) -> dict[str, Any]:
    """What is lost of a rank; how much of one that could not be read is not known."""
    events, size = (partial.lost_events, partial.lost_bytes) if partial else (0, 0)
    return {
        "code": code, "count": 1, "text": text,
        "first_offset": None, "lost_events": events, "lost_bytes": size, "damaged": True,
    }  # fmt: skip


def _common(values: list[Any]) -> Any:
    return Counter(values).most_common(1)[0][0]


def _steps(facts: JobFacts, at: int) -> list[dict[str, Any]]:
    partial, steps = facts.partials[at], facts.partials[at].steps
    return [
        {
            "rank": facts.ranks[at],
            "index": k,
            "number": None if steps.number[k] == NULL else int(steps.number[k]),
            "start_ns": int(steps.start[k]),
            "dur_ns": int(steps.dur[k]),
            "host_dur_ns": int(steps.host_dur[k]),
            "basis": partial.basis,
            "inferred": partial.inferred,
            "complete": bool(steps.complete[k]),
            "slow": bool(steps.slow[k]),
        }
        for k in range(len(steps.start))
    ]


def _rows(facts: JobFacts, at: int) -> list[dict[str, Any]]:
    rows, parts = facts.partials[at].rows, facts.parts[at]
    return [
        {
            "rank": facts.ranks[at],
            "device": _device(int(rows.device[i])),
            "step": None if rows.step[i] < 0 else int(rows.step[i]),
            "phase": rows.phase[i],
            "start_ns": int(rows.start[i]),
            "dur_ns": int(rows.dur[i]),
            "parts": {str(CATEGORIES[code]): int(ns) for code, ns in enumerate(parts[i].tolist()) if ns},
        }
        for i in range(len(rows.phase))
    ]


def _device(number: int) -> int | None:
    return None if number == HOST else number


def _summary(facts: JobFacts, diagnosis: Diagnosis) -> dict[str, Any]:
    times = list(facts.step_ns.values())
    parts = _whole(list(facts.mean_parts.items()))
    total = sum(parts.values())
    on_devices = any(partial.basis == "device" for partial in facts.partials)
    of = {category: ns / total for category, ns in parts.items()} if total else {}
    busy = sum(share for category, share in of.items() if category in BUSY)
    talking = sum(of.get(category, 0.0) for category in COLLECTIVES)
    return {
        "verdict": diagnosis.verdict,
        "bottleneck": diagnosis.bottleneck,
        "step_time_ns": {
            "median": int(np.median(times)) if times else None,
            "mean": facts.mean_step_ns,
            "p95": int(np.quantile(times, 0.95, method="nearest")) if len(times) >= P95_STEPS else None,
        },
        "unrecorded_step_ns": facts.told_step_ns if facts.unrecorded_share != 1 else None,
        "steps_used": len(facts.used_steps),
        "steps_slow": 0,
        "step_basis": ("device" if on_devices else "host") if times else None,
        "inferred": any(partial.inferred for partial in facts.partials),
        "step_source": _common([partial.step_source for partial in facts.partials]),
        "parts_ns_per_step": {str(category): ns for category, ns in parts.items()},
        "parts_share": {str(category): share for category, share in of.items()},
        "device_busy_share": min(busy, 1.0) if on_devices and total else None,
        "device_busy_share_without_collectives": min(max(busy - talking, 0.0), 1.0) if on_devices and total else None,
        "device_ops_share": {"by_count": None, "by_time": None},
        "low_precision_share": {"by_count": None, "by_time": None},
        "launch_wait_share": None,
        "idle_between_steps_ns": None,
        "idle_within_steps_ns": None,
        "phases_ns_per_step": None,
    }


def _whole(parts: list[tuple[Category, float]]) -> dict[Category, int]:
    """Whole numbers that keep the sum (largest remainder)."""
    return {c: ns for c, ns in apportion({c: round(ns * 1000) for c, ns in parts}, 1000).items() if ns}


def _named(mean: F64) -> list[tuple[Category, float]]:
    return [(CATEGORIES[code], float(mean[code])) for code in np.flatnonzero(mean).tolist()]


def _breakdown(facts: JobFacts, lane: Lane, mean: F64) -> dict[str, Any]:
    partial = facts.partials[lane.partial]
    parts = _whole(_named(mean))
    total = sum(parts.values())
    return {
        "rank": facts.ranks[lane.partial],
        "device": _device(lane.device),
        "basis": partial.basis,
        "steps": len(facts.used_steps),
        "unused": False,
        "step_ns": total,
        "parts": [
            {
                "category": str(c), "label": LABELS[c].words, "busy": LABELS[c].busy, "ns_per_step": ns,
                "share": ns / total,
            }
            for c, ns in sorted(parts.items(), key=lambda pair: -pair[1])
        ],
    }  # fmt: skip


def _ranks(facts: JobFacts) -> dict[str, Any]:
    blame = facts.blame
    return {
        "world_size": facts.world_size,
        "present": len(facts.partials),
        "missing": facts.missing[:ROWS_SHOWN],
        "unreadable": [dataclasses.asdict(one) for one in facts.failed],
        "clocks": [_clock(facts, at) for at in range(len(facts.partials))],
        "determined": bool(blame is not None and blame.determined and not facts.sampled),
        "stragglers": [_straggler(facts, one) for one in blame.stragglers] if blame and not facts.sampled else [],
        "steps": _late_steps(facts),
        "per_rank": _per_rank(facts),
    }


def _clock(facts: JobFacts, at: int) -> dict[str, Any]:
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


def _straggler(facts: JobFacts, one: Straggler) -> dict[str, Any]:
    assert facts.blame is not None
    lane = facts.blame.lanes[one.lane]
    cause = facts.cause_of(lane, one.waited_ns)
    return {
        "rank": facts.ranks[lane.partial],
        "device": _device(lane.device),
        "host": facts.partials[lane.partial].host,
        "waited_ns_per_step": one.waited_ns,
        "saving_ns_per_step": one.saving_ns,
        "steps": one.steps,
        "p_value": one.p_value,
        "cause": cause.cause,
        "category": None if cause.category is None else str(cause.category),
        "excess_ns_per_step": {str(category): ns for category, ns in cause.excess.items()},
        "kernels": [{"name": name, "times": times} for name, times in cause.kernels],
    }


def _late_steps(facts: JobFacts) -> list[dict[str, Any]]:
    if facts.blame is None or facts.sampled:
        return []
    blame = facts.blame
    return [
        {
            "number": late.number,
            "dur_ns": facts.every_step_ns.get(late.number),
            "used": late.number in facts.step_ns,
            "rank": facts.ranks[blame.lanes[late.lane].partial],
            "device": _device(blame.lanes[late.lane].device),
            "waited_ns": late.waited_ns,
            "cause": facts.cause_of(blame.lanes[late.lane], late.waited_ns, [late.number]).cause,
            "chain": [facts.ranks[blame.lanes[lane].partial] for lane in late.chain],
        }
        for late in blame.steps
    ]


def _per_rank(facts: JobFacts) -> list[dict[str, Any]]:
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
            {
                "rank": facts.ranks[lane.partial],
                "device": _device(lane.device),
                "host": partial.host,
                "step_ns": round(float(mean.sum())),
                "parts_ns_per_step": {str(c): ns for c, ns in _whole(_named(mean)).items()},
                "made_wait_ns_per_step": round(float(cost[at])) if at is not None and cost is not None else None,
                "late_steps": late[at] if at is not None else None,
                "p_value": float(blame.p_values[at]) if at is not None and blame and blame.determined else None,
                "pipeline_wait_ns_per_step": None if facts.sampled else facts.pipeline_wait_ns(lane),
                "bottleneck": partial.bottleneck,
                "findings": [finding.rule for finding in partial.findings],
            }
        )
    return made
