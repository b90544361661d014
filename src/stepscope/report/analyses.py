"""``analyses`` of one profile: the tables that no short text shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stepscope.analysis.accounting import Account
from stepscope.analysis.annotations import annotation_times
from stepscope.analysis.categories import BUSY, CATEGORIES
from stepscope.analysis.copies import Copies
from stepscope.analysis.facts import Facts
from stepscope.analysis.functions import functions_by_self_time, only_functions
from stepscope.analysis.gaps import Gap, longest_gaps
from stepscope.analysis.kernels import precision_of
from stepscope.analysis.lazy_metrics import LazyMetrics
from stepscope.analysis.logged_placement import LoggedOp
from stepscope.analysis.overlap import Overlap, overlaps
from stepscope.analysis.pods import counters, network
from stepscope.analysis.serving import serving
from stepscope.analysis.syncs import Sync
from stepscope.analysis.xla import XlaFacts
from stepscope.report import annotated, critical, efficiency, input_pipeline, op_costs
from stepscope.report import serving as served
from stepscope.report.entries import named, plain, where_entry
from stepscope.report.memory import memory
from stepscope.report.op_tree import op_tree
from stepscope.report.program_memory import program_memory

if TYPE_CHECKING:
    from stepscope.document import kernels, programs, waits
    from stepscope.document.report import Analyses

KERNELS_SHOWN = 50


def analyses(facts: Facts) -> Analyses:
    """All but those of what devices exchange."""
    made: Analyses = {"memory": memory(facts)}
    if (of_programs := program_memory(facts)) is not None:
        made["program_memory"] = of_programs
    if facts.activities:
        made |= {
            "idle": {
                "per_device": [_idle(account) for account in facts.accounts],
                "gaps": [_gap(gap) for gap in longest_gaps(facts)],
            },
            "launch_delay": [_delay(facts, at) for at in range(len(facts.delays))],
            "syncs": [_sync(facts, at, sync) for at, syncs in enumerate(facts.syncs) for sync in syncs],
            "copies": [_copy(facts, at, copies) for at, ways in enumerate(facts.copies) for copies in ways],
            "overlap": [_overlap(facts, each) for each in overlaps(facts)],
            "critical_path": critical.entry(facts),
            "kernels": efficiency.kernels(facts),
            "roofline": efficiency.roofline(facts),
            "mfu": efficiency.mfu(facts),
            "op_tree": op_tree(facts),
        }
        if any(device.kind == "gpu" for device in facts.trace.info.devices):
            made["precision"] = _precision(facts)
    if only_functions(facts.trace):
        made["functions"] = [plain(use) for use in functions_by_self_time(facts.trace)[:KERNELS_SHOWN]]
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
        made["placement"] = plain(facts.placement)
    return made | _beside(facts)


def _beside(facts: Facts) -> Analyses:
    """What files beside the profile add to it."""
    made: Analyses = {}
    if facts.lazy_metrics is not None:
        made["lazy_metrics"] = _lazy_metrics(facts.lazy_metrics)
    if facts.logged_ops:
        made["logged_placement"] = [_logged(facts, one) for one in facts.logged_ops]
    return made


def _served_and_counted(facts: Facts) -> Analyses:
    """What few profiles have: iterations of a server, counters of devices, exchanges over the network."""
    made: Analyses = {}
    if counted := counters(facts):
        made["counters"] = [plain(use) for use in counted]
    if exchanged := network(facts):
        made["network"] = [plain(use) for use in exchanged]
    if (ran := serving(facts)) is not None:
        made["serving"] = served.entry(ran)
    return made


def _overlap(facts: Facts, overlap: Overlap) -> waits.OverlapEntry:
    devices = len(facts.working)
    return {
        "what": overlap.what,
        "ns_per_step": facts.per_step(overlap.ns // devices),
        "hidden_ns_per_step": facts.per_step(overlap.hidden_ns // devices),
        "hidden_share": overlap.hidden_share,
    }


def _idle(account: Account) -> waits.DeviceIdle:
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


def _gap(gap: Gap) -> waits.GapEntry:
    made: waits.GapEntry = plain(gap)
    made["parts"], made["where"] = named(gap.parts), where_entry(gap.where)
    return made


def _delay(facts: Facts, at: int) -> waits.LaunchDelayEntry:
    delay, account = facts.delays[at], facts.accounts[at]
    total = int(account.parts[facts.used_rows(account)].sum())
    return {
        "device": delay.device,
        "count": delay.count,
        "median_ns": delay.median_ns,
        "p95_ns": delay.p95_ns,
        "waiting_share": delay.waiting_ns / total if total else None,
    }


def _sync(facts: Facts, at: int, sync: Sync) -> waits.SyncEntry:
    return {
        "device": facts.activities[at].device,
        "op": sync.op,
        "call": sync.call,
        "count": sync.count,
        "per_step": sync.count / len(facts.used),
        "blocked_ns_per_step": facts.per_step(sync.blocked_ns),
        "cost_ns_per_step": facts.per_step(sync.cost_ns),
        "where": where_entry(sync.where),
        "cause": sync.hint.cause if sync.hint else None,
    }


def _copy(facts: Facts, at: int, copies: Copies) -> waits.Copy:
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
        "where": where_entry(copies.where),
    }


def _xla(facts: Facts, xla: XlaFacts) -> programs.Xla:
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
                "step": compilation.step,
                "start_ns": int(facts.trace.slices.start_ns[compilation.slice]),
                "dur_ns": compilation.ns,
                "module": compilation.module,
                "parameters": compilation.parameters,
                "previous_parameters": compilation.previous,
                "changed": compilation.changed,
                "again": compilation.again,
                "where": where_entry(facts.locator.where(compilation.slice)),
            }
            for compilation in xla.compilations
        ],
    }


def _logged(facts: Facts, one: LoggedOp) -> kernels.LoggedOpEntry:
    made: Any = plain(one)
    made["per_step"], made["ns_per_step"] = one.count / len(facts.used), facts.per_step(made.pop("ns"))
    logged: kernels.LoggedOpEntry = made
    return logged


def _lazy_metrics(metrics: LazyMetrics) -> programs.LazyMetricsEntry:
    counted = [plain(one) | {"tells": metrics.tells(one)} for one in metrics.counted]
    return {"steps": metrics.steps, "counted": counted}


def _precision(facts: Facts) -> kernels.PrecisionEntry:
    precision = precision_of(facts.kernels)
    return {
        "low_precision_share": {"by_count": precision.low_by_count, "by_time": precision.low_by_time},
        "known_by_time": precision.known_by_time,
        "tensor_core_share": {
            "yes": precision.tensor_core_by_time.get("yes"),
            "no": precision.tensor_core_by_time.get("no"),
            "unknown": precision.tensor_core_by_time.get("unknown"),
        },
        "eligible_unused_ns_per_step": facts.per_step(precision.eligible_unused_ns),
    }
