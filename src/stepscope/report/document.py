"""The neutral document every renderer works from: ``stepscope.report/1`` (its JSON Schema ships beside this file).

This only arranges what analysis and diagnosis computed; the numbers are theirs.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from stepscope._version import __version__
from stepscope.analysis import summary
from stepscope.analysis.accounting import Account
from stepscope.analysis.annotations import annotation_times
from stepscope.analysis.categories import BUSY, CATEGORIES, Category
from stepscope.analysis.exchange.asked import NOTHING_GIVEN, Asked
from stepscope.analysis.facts import Facts
from stepscope.analysis.functions import functions_by_self_time, only_functions
from stepscope.analysis.gaps import longest_gaps
from stepscope.analysis.kernels import precision_of
from stepscope.analysis.lazy_metrics import LazyMetrics
from stepscope.analysis.logged_placement import LoggedOp
from stepscope.analysis.overlap import Overlap, overlaps
from stepscope.analysis.pods import counters, ended_last, network
from stepscope.analysis.serving import serving
from stepscope.analysis.where import Where
from stepscope.analysis.xla import XlaFacts
from stepscope.diagnosis.finding import Diagnosis, Finding, FixPart
from stepscope.document import REPORT_SCHEMA
from stepscope.report import annotated, efficiency, exchange, input_pipeline, op_costs
from stepscope.report import serving as served
from stepscope.report.labels import CATEGORIES as LABELS
from stepscope.report.memory import memory
from stepscope.report.op_tree import op_tree
from stepscope.report.program_memory import program_memory
from stepscope.whatif.recording import unrecorded_step_ns

KERNELS_SHOWN = 50


@dataclasses.dataclass(frozen=True, slots=True)
class File:
    """An input file; ``bytes`` is its size on disk."""

    path: str
    bytes: int | None
    events: int | None


def make(facts: Facts, diagnosis: Diagnosis, files: list[File], asked: Asked = NOTHING_GIVEN) -> dict[str, Any]:
    """The whole report of one trace."""
    return whole(brief(facts, diagnosis, files), facts, diagnosis, asked)


def whole(begun: dict[str, Any], facts: Facts, diagnosis: Diagnosis, asked: Asked = NOTHING_GIVEN) -> dict[str, Any]:
    """The whole report of a trace from its brief one."""
    return {
        **begun,
        "analyses": begun["analyses"] | _analyses(facts, diagnosis) | exchange.of_profile(facts, diagnosis, asked),
    }


def brief(facts: Facts, diagnosis: Diagnosis, files: list[File]) -> dict[str, Any]:
    """The report without the tables that no short text shows: working those out takes as long as the rest of it."""
    return {
        "schema": REPORT_SCHEMA,
        "tool": {"name": "stepscope", "version": __version__},
        "profile": _profile(facts, diagnosis, files),
        "steps": _steps(facts),
        "accounting": [row for account in facts.accounts for row in _rows(facts, account)],
        "summary": _summary(facts, diagnosis),
        "findings": [finding_entry(finding, facts.trace.info.rank) for finding in diagnosis.findings],
        "plan": list(diagnosis.plan),
        "whatif": dataclasses.asdict(diagnosis.whatif),
        "analyses": {"breakdown": _breakdowns(facts)},
    }


def _profile(facts: Facts, diagnosis: Diagnosis, files: list[File]) -> dict[str, Any]:
    info = facts.trace.info
    return {
        "format": info.format,
        "framework": info.framework,
        "files": [dataclasses.asdict(file) for file in files],
        "ranks": [info.rank],
        "world_size": info.world_size,
        "devices": [{"id": d.id, "name": d.name, "kind": d.kind, "memory_bytes": d.memory_bytes} for d in info.devices],
        "accelerators": 0 if info.on_cpu else None,
        "host": info.host,
        "epoch_ns": info.origin_epoch_ns,
        "complete": facts.trace.completeness.complete,
        "events": {"total": facts.trace.completeness.events, **facts.trace.completeness.rows},
        "losses": [dataclasses.asdict(loss) for loss in facts.trace.completeness.losses],
        "notices": [dataclasses.asdict(notice) for notice in diagnosis.notices],
    }


def _steps(facts: Facts) -> list[dict[str, Any]]:
    slow = {found.step for found in facts.slow}
    return [
        {
            "rank": facts.trace.info.rank,
            "index": k,
            "number": facts.markers.numbers[k],
            "start_ns": int(facts.markers.start[k]),
            "dur_ns": int(facts.step_ns[k]),
            "host_dur_ns": int(facts.host_step_ns[k]),
            "basis": facts.basis,
            "inferred": facts.markers.inferred,
            "complete": facts.complete[k],
            "slow": k in slow,
        }
        for k in range(len(facts.markers))
    ]


def _rows(facts: Facts, account: Account) -> list[dict[str, Any]]:
    rows = account.rows
    return [
        {
            "rank": facts.trace.info.rank,
            "device": rows.device,
            "step": rows.steps[i],
            "phase": rows.phases[i],
            "start_ns": int(rows.bounds[i]),
            "dur_ns": int(rows.bounds[i + 1] - rows.bounds[i]),
            "parts": {str(CATEGORIES[code]): int(ns) for code, ns in enumerate(account.parts[i].tolist()) if ns},
        }
        for i in range(len(rows.steps))
    ]


def _summary(facts: Facts, diagnosis: Diagnosis) -> dict[str, Any]:
    median, p95 = summary.step_time(facts)
    median, mean, p95 = (None,) * 3 if facts.is_capture else (median, facts.mean_step_ns, p95)
    parts = summary.mean_parts(facts)
    idle = summary.idle_per_step(facts)
    placed, precision = facts.placement if facts.activities else None, precision_of(facts.kernels)
    return {
        "verdict": diagnosis.verdict,
        "bottleneck": diagnosis.bottleneck,
        "step_time_ns": {"median": median, "mean": mean, "p95": p95},
        "unrecorded_step_ns": None if facts.is_capture else unrecorded_step_ns(facts),
        "steps_used": len(facts.used),
        "steps_slow": len(facts.slow),
        "step_basis": facts.basis if facts.used else None,
        "inferred": facts.markers.inferred,
        "step_source": facts.markers.source,
        "parts_ns_per_step": _named(parts),
        "parts_share": _named(summary.shares(summary.total_parts(facts))),
        "device_busy_share": summary.busy_share(facts, collectives=True),
        "device_busy_share_without_collectives": summary.busy_share(facts, collectives=False),
        "duty_cycle_share": summary.duty_cycle_share(facts),
        "device_ops_share": {
            "by_count": placed.device_share_by_count if placed else None,
            "by_time": placed.device_share_by_time if placed else None,
        },
        "low_precision_share": {"by_count": precision.low_by_count, "by_time": precision.low_by_time},
        "precision_known_share": precision.known_by_time,
        "launch_wait_share": summary.launch_wait_share(facts),
        "idle_between_steps_ns": idle[0] if idle else None,
        "idle_within_steps_ns": idle[1] if idle else None,
        "phases_ns_per_step": summary.phases_per_step(facts),
    }


def _named(parts: dict[Category, Any]) -> dict[str, Any]:
    return {str(category): value for category, value in parts.items()}


_INTERNAL = ("change", "next_waits", "loading", "alone", "ranks")


def finding_entry(finding: Finding, of_rank: int | None = None) -> dict[str, Any]:
    """A finding as the document holds it; ``of_rank`` is that of a profile of one rank."""
    made = {
        field.name: getattr(finding, field.name) for field in dataclasses.fields(finding) if field.name not in _INTERNAL
    }
    return made | {
        "rank": finding.rank if of_rank is None else of_rank,
        "where": [_where(place) for place in finding.where],
        "fix_set": [_fix_part(part) for part in finding.fix_set],
        "options": [dataclasses.asdict(option) for option in finding.options],
        "evidence": [dataclasses.asdict(piece) for piece in finding.evidence],
    }


def _fix_part(part: FixPart) -> dict[str, Any]:
    return {
        "title": part.title,
        "where": _where(part.where),
        "fix": part.fix,
        "cost_ns_per_step": part.cost_ns_per_step,
        "saving_alone_ns_per_step": part.saving_alone_ns_per_step,
    }


def _where(place: Where | None) -> dict[str, Any] | None:
    return dataclasses.asdict(place) if place else None


def _analyses(facts: Facts, diagnosis: Diagnosis) -> dict[str, Any]:
    made: dict[str, Any] = {
        "minor_findings": [finding_entry(finding, facts.trace.info.rank) for finding in diagnosis.minor],
        "memory": memory(facts),
    }
    if (of_programs := program_memory(facts)) is not None:
        made["program_memory"] = of_programs
    if facts.activities:
        made |= {
            "idle": {
                "per_device": [_idle(account) for account in facts.accounts],
                "gaps": [_gap(gap) for gap in longest_gaps(facts)],
            },
            "launch_delay": [_delay(facts, at) for at in range(len(facts.delays))],
            "syncs": [_sync(facts, at, sync) for at, found in enumerate(facts.syncs) for sync in found],
            "copies": [_copy(facts, at, copies) for at, found in enumerate(facts.copies) for copies in found],
            "overlap": [_overlap(facts, found) for found in overlaps(facts)],
            "kernels": efficiency.kernels(facts),
            "roofline": efficiency.roofline(facts),
            "mfu": efficiency.mfu(facts),
            "op_tree": op_tree(facts),
        }
        if any(device.kind == "gpu" for device in facts.trace.info.devices):
            made["precision"] = _precision(facts)
    if only_functions(facts.trace):
        made["functions"] = [dataclasses.asdict(use) for use in functions_by_self_time(facts.trace)[:KERNELS_SHOWN]]
    if facts.ops is not None:
        made["ops"] = op_costs.ops(facts.ops)
    if facts.layers:
        made["layers"] = op_costs.layers(facts)
    named = annotation_times(facts)
    if named is not None:
        made["annotations"] = annotated.entry(facts, named)
    made |= _served_and_counted(facts)
    if facts.input_stages is not None:
        made["input"] = input_pipeline.entry(facts, facts.input_stages)
    if facts.xla is not None:
        made["xla"] = _xla(facts, facts.xla)
    if facts.placement is not None:
        made["placement"] = dataclasses.asdict(facts.placement)
    return made | _beside(facts)


def _beside(facts: Facts) -> dict[str, Any]:
    """What files beside the profile add to it."""
    made: dict[str, Any] = {}
    if facts.lazy_metrics is not None:
        made["lazy_metrics"] = _lazy_metrics(facts.lazy_metrics)
    if facts.logged_ops:
        made["logged_placement"] = [_logged(facts, one) for one in facts.logged_ops]
    return made


def _served_and_counted(facts: Facts) -> dict[str, Any]:
    """What few profiles have: iterations of a server, counters of devices, exchanges over the network."""
    ran = serving(facts)
    made = {
        "counters": [dataclasses.asdict(use) for use in counters(facts)],
        "network": [dataclasses.asdict(use) for use in network(facts)],
        "serving": None if ran is None else served.entry(ran),
    }
    return {name: entry for name, entry in made.items() if entry}


def _overlap(facts: Facts, found: Overlap) -> dict[str, Any]:
    devices = len(facts.working)
    return {
        "what": found.what,
        "ns_per_step": facts.per_step(found.ns // devices),
        "hidden_ns_per_step": facts.per_step(found.hidden_ns // devices),
        "hidden_share": found.hidden_share,
    }


def _breakdowns(facts: Facts) -> list[dict[str, Any]]:
    last = ended_last(facts)
    made = [_breakdown(facts, account) for account in facts.accounts if facts.used_rows(account)]
    return [entry | {"ended_last": last.get(entry["device"])} for entry in made]


def _breakdown(facts: Facts, account: Account) -> dict[str, Any]:
    rows = facts.used_rows(account)
    totals = summary.account_parts(facts, account)
    per_step = summary.apportion(totals, len(rows))
    of = summary.shares(totals)
    return {
        "rank": facts.trace.info.rank,
        "device": account.rows.device,
        "basis": facts.basis,
        "steps": len(rows),
        "unused": account.rows.device in facts.unused - facts.beside,
        "step_ns": sum(per_step.values()),
        "behind_ns": summary.behind_ns(facts, account),
        "parts": [
            {"category": str(c), "label": LABELS[c].words, "busy": LABELS[c].busy, "ns_per_step": ns, "share": of[c]}
            for c, ns in sorted(per_step.items(), key=lambda pair: -pair[1])
        ],
    }


def _idle(account: Account) -> dict[str, Any]:
    idle = [c.code for c in CATEGORIES if c not in BUSY]
    steps = [i for i, phase in enumerate(account.rows.phases) if phase == "step"]
    total = int(account.parts[steps][:, idle].sum())
    between = int(account.between_steps_ns[steps].sum())
    return {
        "device": account.rows.device,
        "total_ns": total,
        "between_steps_ns": between,
        "within_steps_ns": total - between,
    }


def _gap(gap: Any) -> dict[str, Any]:
    made = dataclasses.asdict(gap)
    return made | {"parts": _named(gap.parts), "where": _where(gap.where)}


def _delay(facts: Facts, at: int) -> dict[str, Any]:
    delay, account = facts.delays[at], facts.accounts[at]
    total = int(account.parts[facts.used_rows(account)].sum())
    return {
        "device": delay.device,
        "count": delay.count,
        "median_ns": delay.median_ns,
        "p95_ns": delay.p95_ns,
        "waiting_share": delay.waiting_ns / total if total else None,
    }


def _sync(facts: Facts, at: int, sync: Any) -> dict[str, Any]:
    return {
        "device": facts.activities[at].device,
        "op": sync.op,
        "call": sync.call,
        "count": sync.count,
        "per_step": sync.count / len(facts.used),
        "blocked_ns_per_step": facts.per_step(sync.blocked_ns),
        "cost_ns_per_step": facts.per_step(sync.cost_ns),
        "where": _where(sync.where),
        "cause": sync.hint.cause if sync.hint else None,
    }


def _copy(facts: Facts, at: int, copies: Any) -> dict[str, Any]:
    return {
        "device": facts.activities[at].device,
        "direction": str(copies.category).removeprefix("copy_"),
        "source_memory": copies.source_memory,
        "target_memory": copies.target_memory,
        "op": copies.op,
        "count": copies.count,
        "per_step": copies.count / len(facts.used),
        "bytes": copies.bytes,
        "bytes_per_step": None if copies.bytes is None else facts.per_step(copies.bytes),
        "exposed_ns_per_step": facts.per_step(copies.exposed_ns),
        "every_step": len(copies.steps) == len(facts.used),
        "launch_link": "recorded" if copies.launch_recorded else "heuristic",
        "where": _where(copies.where),
    }


def _xla(facts: Facts, xla: XlaFacts) -> dict[str, Any]:
    building = xla.building
    return {
        "duty_cycle": [
            {
                "device": duty.device,
                "executions": duty.executions,
                "executing_ns_per_step": None if duty.executing_ns is None else facts.per_step(duty.executing_ns),
                "share": duty.share,
                "collective_share": duty.collective_share,
            }
            for duty in xla.duty
        ],
        "graph_building": None
        if building is None
        else {
            "ns_per_step": facts.per_step(building.ns),
            "overlapped_share": building.overlapped_ns / building.ns,
        },
        "compilations": [
            {
                "step": found.step,
                "start_ns": int(facts.trace.slices.start_ns[found.slice]),
                "dur_ns": found.ns,
                "module": found.module,
                "parameters": found.parameters,
                "previous_parameters": found.previous,
                "changed": found.changed,
                "again": found.again,
                "where": _where(facts.locator.where(found.slice)),
            }
            for found in xla.compilations
        ],
    }


def _logged(facts: Facts, one: LoggedOp) -> dict[str, Any]:
    found = dataclasses.asdict(one)
    return found | {"per_step": one.count / len(facts.used), "ns_per_step": facts.per_step(found.pop("ns"))}


def _lazy_metrics(found: LazyMetrics) -> dict[str, Any]:
    counted = [dataclasses.asdict(one) | {"tells": found.tells(one)} for one in found.counted]
    return {"steps": found.steps, "counted": counted}


def _precision(facts: Facts) -> dict[str, Any]:
    found = precision_of(facts.kernels)
    return {
        "low_precision_share": {"by_count": found.low_by_count, "by_time": found.low_by_time},
        "known_by_time": found.known_by_time,
        "tensor_core_share": found.tensor_core_by_time or {"yes": None, "no": None, "unknown": None},
        "eligible_unused_ns_per_step": facts.per_step(found.eligible_unused_ns),
    }
