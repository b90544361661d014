"""The tables of the long report as neutral rows of text, which the terminal and markdown renderers share."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from stepscope.report import (
    annotated,
    efficiency_sections,
    input_pipeline,
    labels,
    phrases,
    pods,
    program_sections,
    rank_sections,
    serving,
    wait_sections,
    xla_sections,
)
from stepscope.report.memory_sections import memory, programs
from stepscope.report.op_sections import layers, ops
from stepscope.report.phrases import Document
from stepscope.report.section import ABSENT, Column, Section, cut, name, number, place, rate, text, yes
from stepscope.units import format_bytes, format_count, format_ns, format_share


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
        _overlap(analyses.get("overlap", [])),
        *serving.tables(analyses.get("serving")),
        *wait_sections.idle(analyses.get("idle"), phrases.step_names(document)),
        wait_sections.syncs(analyses.get("syncs", [])),
        wait_sections.copies(analyses.get("copies", [])),
        annotated.table(analyses.get("annotations")),
        input_pipeline.table(analyses.get("input")),
        input_pipeline.iterators(analyses.get("input")),
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


_BEGINS = re.compile(rf":\d+{re.escape(phrases.BEGINS)}$")


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


def _minor(findings: list[dict[str, Any]]) -> Section:
    rows = [
        (
            item["title"].replace("`", ""),
            format_ns(item["cost_ns_per_step"]),
            _saves(item["saving_ns_per_step"]),
            _saves(item.get("saving_after_ns_per_step")),
            next(filter(None, map(phrases.locator, item["where"])), ABSENT),
        )
        for item in findings
    ]
    fix = number("a fix saves"), number("with those above fixed")
    columns = (name("what"), number("per step"), *fix, place("where"))
    more = any((item["saving_ns_per_step"] or 0) > (item["cost_ns_per_step"] or 0) for item in findings)
    note = "a fix saves more than its own time where what comes after can then begin earlier" if more else ""
    return Section("Little or nothing to gain", columns, rows, note)


def _saves(ns: int | None) -> str:
    return ABSENT if ns is None else format_ns(ns) if ns else "nothing"


def _steps(steps: list[dict[str, Any]]) -> Section:
    rows, note = cut(
        (
            (
                text(step["number"] if step["number"] is not None else step["index"]),
                text(step["rank"]),
                format_ns(step["dur_ns"]),
                format_ns(step["host_dur_ns"]),
                step["basis"],
                yes(step["complete"]),
            )
            for step in steps
        ),
        len(steps),
    )
    columns = (
        number("step"),
        number("rank"),
        number("step time"),
        number("host time"),
        Column("measured on"),
        Column("complete"),
    )
    return Section("Steps", columns, rows, note)


def _beside(document: Document) -> Section:
    """The devices of one profile; a job's report compares its ranks."""
    entries = [] if phrases.is_job(document) else document["analyses"].get("breakdown", [])
    return pods.beside(entries, {entry["id"]: entry["name"] for entry in document["profile"]["devices"]})


def _breakdowns(document: Document) -> list[Section]:
    """A table for each device; of a job of many ranks none, as their spread is told with them."""
    entries = document["analyses"].get("breakdown", [])
    many = phrases.is_job(document) and len(entries) > rank_sections.BREAKDOWNS_SHOWN
    return [] if many else [_breakdown(entry, document) for entry in entries]


def _breakdown(entry: dict[str, Any], document: Document) -> Section:
    where = "Host" if entry["device"] is None else _device_title(entry["device"], document)
    rank = (
        "" if entry["rank"] is None or len(document["profile"]["ranks"]) < 2 else f" of rank {entry['rank']}"
    )
    rows = [
        (
            labels.words(part["category"], document["summary"]["bottleneck"]),
            "works" if labels.works(part["category"]) else "waits",
            format_ns(part["ns_per_step"]),
            format_share(part["share"]),
        )
        for part in entry["parts"]
        if part["ns_per_step"]
    ]
    captures = phrases.is_capture(document["summary"])
    per, whose = ("in all", "the profile's") if captures else ("per step", "each step's")
    note = f"{format_ns(entry['step_ns'])} {per}" + (
        f", mean of {entry['steps']} steps" if entry["steps"] > 1 else ""
    )
    if entry.get("behind_ns"):
        note += f"; ends {format_ns(entry['behind_ns'])} after the first device"
    columns = (Column("part"), Column(""), number(per), number("share"))
    unused = ", unused" if entry.get("unused") else ""
    return Section(f"{where}{unused}{rank}: where {whose} time goes", columns, rows, note)


def _device_title(device: int, document: Document) -> str:
    names = {entry["id"]: entry["name"] for entry in document["profile"]["devices"]}
    named = names.get(device)
    return f"Device {device}, {named}" if named else f"Device {device}"


_OUTSIDE = {
    "before": "before the first step",
    "after": "after the last step",
    "gap": "between steps: the profiler paused, or the loop did something else",
}


def _outside(accounting: list[dict[str, Any]]) -> Section:
    found = [row for row in accounting if row["phase"] != "step" and row["dur_ns"]]
    rows, note = cut(
        (
            (
                text(row["device"]),
                _OUTSIDE[row["phase"]],
                format_ns(row["start_ns"]),
                format_ns(row["dur_ns"]),
            )
            for row in found
        ),
        len(found),
    )
    return Section(
        "Time outside the steps",
        (number("device"), Column("when"), number("at"), number("time")),
        rows,
        note,
    )


def _phases(phases: dict[str, int] | None) -> Section:
    rows = [(labels.PHASES.get(phase, phase), format_ns(ns)) for phase, ns in (phases or {}).items() if ns]
    return Section("Device time by phase", (Column("phase"), number("per step")), rows)


def _overlap(overlap: list[dict[str, Any]]) -> Section:
    rows = [
        (
            found["what"],
            format_ns(found["ns_per_step"]),
            format_ns(found["hidden_ns_per_step"]),
            format_share(found["hidden_share"]),
        )
        for found in overlap
    ]
    columns = (Column("what"), number("per step"), number("hidden"), number("of it"))
    return Section("Collectives and copies that other work hides", columns, rows)


def _logged(found: list[dict[str, Any]]) -> Section:
    """Ops on the host of which a log beside the profile says that they were placed there."""
    placed = Column("placed on"), Column("others of its type on")
    columns = (name("op"), *placed, number("per step"), number("time, per step"))
    rows, note = cut(
        (
            (one["name"], one["device"], one["also_on"] or ABSENT, rate(one["per_step"]), format_ns(one["ns_per_step"]))
            for one in found
        ),
        len(found),
    )
    return Section("Ops on the CPU by the log of device placement", columns, rows, note)


def _precision(precision: dict[str, Any] | None, placement: dict[str, Any] | None) -> Section:
    rows = []
    if precision is not None:
        cores = precision["tensor_core_share"]
        shares = ", ".join(f"{answer} {format_share(share)}" for answer, share in cores.items())
        narrow = phrases.low_precision(precision["low_precision_share"], precision.get("known_by_time"))
        rows.append((narrow.name, narrow.text))
        rows.append(("tensor cores used, by kernel time", shares))
        rows.append(
            ("could use them and does not, per step", format_ns(precision["eligible_unused_ns_per_step"]))
        )
    if placement is not None:
        rows.append(("ops on the host", format_count(placement["host_ops"])))
        rows.append(("ops on the device", format_count(placement["device_ops"])))
    return Section("Precision and placement", (Column("what"), Column("value")), rows)


def _functions(functions: list[dict[str, Any]]) -> Section:
    rows, note = cut(
        ((use["name"], format_ns(use["self_ns"]), format_count(use["count"])) for use in functions), len(functions)
    )
    columns = (name("function"), number("own time"), number("calls"))
    return Section("Functions by the time spent in their own code", columns, rows, note)


def _files(profile: dict[str, Any]) -> Section:
    files = profile["files"]
    rows, few = cut(
        ((entry["path"], format_bytes(entry["bytes"]), format_count(entry["events"])) for entry in files), len(files)
    )
    read = "read whole" if profile["complete"] else "not read whole: see the notices"
    host = f"host {profile['host']}" if profile["host"] else ""
    note = ", ".join(filter(None, (profile["format"], read, host, few)))
    return Section("What was read", (place("file"), number("size"), number("events")), rows, note)
