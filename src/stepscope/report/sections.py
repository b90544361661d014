"""The tables of the long report as neutral rows of text, which the terminal and markdown renderers share."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from stepscope.document.findings import FindingEntry
from stepscope.document.kernels import LoggedOpEntry, PlacementEntry, PrecisionEntry
from stepscope.document.ops import FunctionUseEntry
from stepscope.document.profile import FileEntry, ProfileEntry
from stepscope.document.steps import AccountingRow, BreakdownEntry, BreakdownPart, StepEntry
from stepscope.document.waits import OverlapEntry
from stepscope.regex import regex
from stepscope.report import (
    annotation_sections,
    efficiency_sections,
    input_sections,
    labels,
    phrases,
    pods,
    program_sections,
    rank_sections,
    serving_sections,
    wait_sections,
    xla_sections,
)
from stepscope.report.memory_sections import memory, programs
from stepscope.report.op_sections import layers, ops
from stepscope.report.section import ABSENT, Column, Section, number, text
from stepscope.report.tables import Look, table
from stepscope.units import format_count, format_ns, format_share

if TYPE_CHECKING:
    from stepscope.document.report import Report as Document
    from stepscope.document.steps import Phases


def sections(document: Document) -> list[Section]:
    """Every table of the long report that has rows; of graphs that are captured those that speak of no step."""
    analyses = document["analyses"]
    if phrases.is_capture(document["summary"]):
        made = [*_breakdowns(document), *efficiency_sections.kernels(analyses.get("kernels", []))]
        return _shown([*made, _functions(analyses.get("functions", [])), _files(document["profile"])], document)
    made = [
        _minor(analyses.get("minor_findings", [])),
        *rank_sections.sections(analyses.get("ranks"), analyses.get("collectives", [])),
        _steps(document["steps"]),
        _beside(document),
        *_breakdowns(document),
        pods.counters(analyses.get("counters", [])),
        pods.network(analyses.get("network", [])),
        _outside(document["accounting"]),
        _phases(document["summary"]["phases_ns_per_step"]),
        table(_HIDDEN, OverlapEntry, analyses.get("overlap", [])),
        *serving_sections.tables(analyses.get("serving")),
        *wait_sections.idle(analyses.get("idle"), phrases.step_names(document)),
        wait_sections.syncs(analyses.get("syncs", [])),
        wait_sections.copies(analyses.get("copies", [])),
        annotation_sections.table(analyses.get("annotations")),
        input_sections.stages(analyses.get("input")),
        input_sections.iterators(analyses.get("input")),
        wait_sections.launch_delay(analyses.get("launch_delay", [])),
        _precision(analyses.get("precision"), analyses.get("placement")),
        _logged(analyses.get("logged_placement", [])),
        *xla_sections.xla(analyses.get("xla"), phrases.step_names(document)),
        xla_sections.counters(analyses.get("lazy_metrics")),
        *efficiency_sections.kernels(analyses.get("kernels", [])),
        *efficiency_sections.roofline(analyses.get("roofline")),
        efficiency_sections.mfu(analyses.get("mfu", [])),
        *program_sections.op_tree(analyses.get("op_tree", [])),
        *ops(analyses.get("ops")),
        *layers(analyses.get("layers", [])),
        *memory(analyses.get("memory"), phrases.step_names(document)),
        *programs(analyses.get("program_memory")),
        _functions(analyses.get("functions", [])),
        _files(document["profile"]),
    ]
    return _shown(made, document)


def _shown(made: list[Section], document: Document) -> list[Section]:
    silent = {"device"} if len(document["profile"]["devices"]) < 2 else set()
    return [_explained(_without_silent_columns(section, silent)) for section in made if section.rows]


_BEGINS = regex(rf":\d+{re.escape(phrases.BEGINS)}$")


def _explained(section: Section) -> Section:
    """With a word on lines at which functions begin, where it has any."""
    paths = [at for at, column in enumerate(section.columns) if column.path]
    if not any(_BEGINS.search(row[at]) for row in section.rows for at in paths):
        return section
    meaning = f"{phrases.BEGINS} behind a line: the function begins there"
    return replace(section, note="; ".join(filter(None, (section.note, meaning))))


def _without_silent_columns(section: Section, silent: set[str]) -> Section:
    """Leave out columns that tell nothing: absent in every row, or the device of a profile that has one."""
    told = [
        at
        for at, column in enumerate(section.columns)
        if column.title not in silent and any(row[at] != ABSENT for row in section.rows)
    ]
    columns = tuple(section.columns[at] for at in told)
    return replace(section, columns=columns, rows=[tuple(row[at] for at in told) for row in section.rows])


def _minor(findings: list[FindingEntry]) -> Section:
    look = Look(
        cells={
            "title": lambda item: item["title"].replace("`", ""),
            "saving_ns_per_step": lambda item: _saves(item["saving_ns_per_step"]),
            "saving_after_ns_per_step": lambda item: _saves(item.get("saving_after_ns_per_step")),
            "where": lambda item: next(filter(None, map(phrases.locator, item["where"])), ABSENT),
        }
    )
    more = any((item["saving_ns_per_step"] or 0) > (item["cost_ns_per_step"] or 0) for item in findings)
    note = "a fix saves more than its own time where what comes after can then begin earlier" if more else ""
    return table("Little or nothing to gain", FindingEntry, findings, note, look)


def _saves(ns: int | None) -> str:
    return ABSENT if ns is None else format_ns(ns) if ns else "nothing"


def _steps(steps: list[StepEntry]) -> Section:
    look = Look(cells={"number": lambda step: text(step["index"] if step["number"] is None else step["number"])})
    return table("Steps", StepEntry, steps, look=look)


def _beside(document: Document) -> Section:
    """The devices of one profile; a job's report compares its ranks."""
    entries = [] if phrases.is_job(document) else document["analyses"].get("breakdown", [])
    return pods.beside(entries, {entry["id"]: entry["name"] for entry in document["profile"]["devices"]})


def _breakdowns(document: Document) -> list[Section]:
    """A table for each device; of a job of many ranks none, as their spread is told with them."""
    entries = document["analyses"].get("breakdown", [])
    many = phrases.is_job(document) and len(entries) > rank_sections.BREAKDOWNS_SHOWN
    return [] if many else [_breakdown(entry, document) for entry in entries]


def _breakdown(entry: BreakdownEntry, document: Document) -> Section:
    where = "Host" if entry["device"] is None else _device_title(entry["device"], document)
    rank = "" if entry["rank"] is None or len(document["profile"]["ranks"]) < 2 else f" of rank {entry['rank']}"
    captures = phrases.is_capture(document["summary"])
    per, whose = ("in all", "the profile's") if captures else ("per step", "each step's")
    note = f"{format_ns(entry['step_ns'])} {per}" + (f", mean of {entry['steps']} steps" if entry["steps"] > 1 else "")
    if behind := entry.get("behind_ns"):
        note += f"; ends {format_ns(behind)} after the first device"
    bottleneck = document["summary"]["bottleneck"]
    look = Look(
        cells={
            "category": lambda part: labels.words(part["category"], bottleneck),
            "busy": lambda part: "works" if labels.works(part["category"]) else "waits",
        },
        titles={"ns_per_step": per},
    )
    unused = ", unused" if entry.get("unused") else ""
    parts = [part for part in entry["parts"] if part["ns_per_step"]]
    return table(f"{where}{unused}{rank}: where {whose} time goes", BreakdownPart, parts, note, look)


def _device_title(device: int, document: Document) -> str:
    names = {entry["id"]: entry["name"] for entry in document["profile"]["devices"]}
    named = names.get(device)
    return f"Device {device}, {named}" if named else f"Device {device}"


_HIDDEN = "Collectives and copies that other work hides"
_OUTSIDE = {
    "before": "before the first step",
    "after": "after the last step",
    "gap": "between steps: the profiler paused, or the loop did something else",
}


def _outside(accounting: list[AccountingRow]) -> Section:
    outside = [row for row in accounting if row["phase"] != "step" and row["dur_ns"]]
    look = Look(cells={"phase": lambda row: _OUTSIDE[row["phase"]]})
    return table("Time outside the steps", AccountingRow, outside, look=look)


def _phases(phases: Phases | None) -> Section:
    rows = [
        (labels.PHASES.get(phase, phase), format_ns(ns))
        for phase, ns in cast("dict[str, int]", phases or {}).items()
        if ns
    ]
    return Section("Device time by phase", (Column("phase"), number("per step")), rows)


def _logged(entries: list[LoggedOpEntry]) -> Section:
    """Ops on the host of which a log beside the profile says that they were placed there."""
    return table("Ops on the CPU by the log of device placement", LoggedOpEntry, entries)


def _precision(precision: PrecisionEntry | None, placement: PlacementEntry | None) -> Section:
    rows = []
    if precision is not None:
        cores = cast("dict[str, float | None]", precision["tensor_core_share"])
        shares = ", ".join(f"{answer} {format_share(share)}" for answer, share in cores.items())
        narrow = phrases.low_precision(precision["low_precision_share"], precision.get("known_by_time"))
        rows.append((narrow.name, narrow.text))
        rows.append(("tensor cores used, by kernel time", shares))
        rows.append(("could use them and does not, per step", format_ns(precision["eligible_unused_ns_per_step"])))
    if placement is not None:
        rows.append(("ops on the host", format_count(placement["host_ops"])))
        rows.append(("ops on the device", format_count(placement["device_ops"])))
    return Section("Precision and placement", (Column("what"), Column("value")), rows)


def _functions(functions: list[FunctionUseEntry]) -> Section:
    return table("Functions by the time spent in their own code", FunctionUseEntry, functions)


def _files(profile: ProfileEntry) -> Section:
    read = "read whole" if profile["complete"] else "not read whole: see the notices"
    host = f"host {profile['host']}" if profile["host"] else ""
    return table("What was read", FileEntry, profile["files"], ", ".join(filter(None, (profile["format"], read, host))))
