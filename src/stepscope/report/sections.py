"""The tables of the long report as neutral rows of text, which the terminal and markdown renderers share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stepscope.report import efficiency_sections, input_pipeline, labels, phrases
from stepscope.report.memory_sections import memory
from stepscope.report.op_sections import layers, ops
from stepscope.report.phrases import Document
from stepscope.report.section import ABSENT, Column, Section, cut, name, number, place, rate, text, yes
from stepscope.units import format_bytes, format_count, format_ns, format_share


def sections(document: Document) -> list[Section]:
    """Every table of the long report that has rows."""
    analyses = document["analyses"]
    made = [
        _minor(analyses.get("minor_findings", [])),
        _steps(document["steps"]),
        *[_breakdown(entry, document) for entry in analyses.get("breakdown", [])],
        _outside(document["accounting"]),
        _phases(document["summary"]["phases_ns_per_step"]),
        *_idle(analyses.get("idle"), phrases.step_names(document)),
        _syncs(analyses.get("syncs", [])),
        _copies(analyses.get("copies", [])),
        input_pipeline.table(analyses.get("input")),
        _launch_delay(analyses.get("launch_delay", [])),
        _precision(analyses.get("precision"), analyses.get("placement")),
        *_xla(analyses.get("xla"), phrases.step_names(document)),
        *efficiency_sections.kernels(analyses.get("kernels", [])),
        *efficiency_sections.roofline(analyses.get("roofline")),
        efficiency_sections.mfu(analyses.get("mfu", [])),
        *ops(analyses.get("ops")),
        *layers(analyses.get("layers", [])),
        *memory(analyses.get("memory"), phrases.step_names(document)),
        _functions(analyses.get("functions", [])),
        _files(document["profile"]),
    ]
    silent = {"device"} if len(document["profile"]["devices"]) < 2 else set()
    return [_without_silent_columns(section, silent) for section in made if section.rows]


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
            next(filter(None, map(phrases.locator, item["where"])), ABSENT),
        )
        for item in findings
    ]
    columns = (name("what"), number("per step"), number("a fix saves"), place("where"))
    return Section("Too little to gain for a finding", columns, rows)


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


def _breakdown(entry: dict[str, Any], document: Document) -> Section:
    where = "Host" if entry["device"] is None else _device_title(entry["device"], document)
    rank = (
        "" if entry["rank"] is None or len(document["profile"]["ranks"]) < 2 else f" of rank {entry['rank']}"
    )
    rows = [
        (
            labels.CATEGORIES[part["category"]].words,
            "works" if part["busy"] else "waits",
            format_ns(part["ns_per_step"]),
            format_share(part["share"]),
        )
        for part in entry["parts"]
        if part["ns_per_step"]
    ]
    note = f"{format_ns(entry['step_ns'])} per step" + (
        f", mean of {entry['steps']} steps" if entry["steps"] > 1 else ""
    )
    columns = (Column("part"), Column(""), number("per step"), number("share"))
    unused = ", unused" if entry.get("unused") else ""
    return Section(f"{where}{unused}{rank}: where each step's time goes", columns, rows, note)


def _device_title(device: int, document: Document) -> str:
    names = {entry["id"]: entry["name"] for entry in document["profile"]["devices"]}
    named = names.get(device)
    return f"Device {device}, {named}" if named else f"Device {device}"


_OUTSIDE = {
    "before": "before the first step",
    "after": "after the last step",
    "gap": "between two profiler cycles",
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


def _idle(idle: dict[str, Any] | None, steps: dict[int | None, str]) -> list[Section]:
    if idle is None:
        return []
    totals = [
        (
            text(entry["device"]),
            format_ns(entry["total_ns"]),
            format_ns(entry["between_steps_ns"]),
            format_ns(entry["within_steps_ns"]),
        )
        for entry in idle["per_device"]
    ]
    columns = (number("device"), number("idle in all"), number("before first op"), number("behind first op"))
    rows, left_out = cut((_gap(gap, steps) for gap in idle["gaps"]), len(idle["gaps"]))
    crosses = "+ crosses a step boundary" if any(gap["crosses_step"] for gap in idle["gaps"]) else ""
    gap_columns = (
        number("device"),
        number("step"),
        number("at"),
        number("idle"),
        Column("mostly"),
        name("first op after it"),
        place("place, or what the host is in"),
    )
    note = "; ".join(filter(None, (crosses, left_out)))
    meaning = "before first op: from the last op of the step before to the first one of the step, on the device"
    return [Section("Idle time", columns, totals, meaning), Section("Longest idle gaps", gap_columns, rows, note)]


def _gap(gap: dict[str, Any], steps: dict[int | None, str]) -> tuple[str, ...]:
    cause = max(gap["parts"], key=lambda name: gap["parts"][name], default=None)
    mostly = labels.CATEGORIES[cause].words if cause else ABSENT
    step = steps.get(gap["step"], ABSENT) + ("+" if gap["crosses_step"] else "")
    where = phrases.locator(gap["where"]) or gap["blocking"] or gap["launch"] or ABSENT
    return (
        text(gap["device"]),
        step,
        format_ns(gap["start_ns"]),
        format_ns(gap["dur_ns"]),
        mostly,
        text(gap["op"]),
        where,
    )


def _syncs(syncs: list[dict[str, Any]]) -> Section:
    rows, note = cut(
        (
            (
                text(sync["op"] if sync["op"] is not None else sync["call"]),
                text(sync.get("device")),
                rate(sync["per_step"]),
                format_ns(sync["blocked_ns_per_step"]),
                format_ns(sync["cost_ns_per_step"]),
                phrases.locator(sync["where"]) or ABSENT,
            )
            for sync in syncs
        ),
        len(syncs),
    )
    columns = (
        name("host waits in"),
        number("device"),
        number("per step"),
        number("host blocked"),
        number("device idle for it"),
        place("where"),
    )
    return Section("Waits of the host for the device (synchronisation), per step", columns, rows, note)


def _copies(copies: list[dict[str, Any]]) -> Section:
    rows, note = cut(
        (
            (
                copy["direction"],
                f"{copy['source_memory']} → {copy['target_memory']}",
                text(copy["op"]) + (" (nearest)" if copy["launch_link"] == "heuristic" else ""),
                text(copy.get("device")),
                rate(copy["per_step"]),
                format_bytes(copy["bytes_per_step"]),
                format_ns(copy["exposed_ns_per_step"]),
                yes(copy["every_step"]),
            )
            for copy in copies
        ),
        len(copies),
    )
    columns = (
        Column("copy"),
        Column("memory"),
        name("from op"),
        number("device"),
        number("per step"),
        number("bytes"),
        number("exposed"),
        Column("every step"),
    )
    return Section("Copies, per step", columns, rows, note)


def _launch_delay(delays: list[dict[str, Any]]) -> Section:
    rows = [
        (
            text(delay["device"]),
            format_count(delay["count"]),
            format_ns(delay["median_ns"]),
            format_ns(delay["p95_ns"]),
            format_share(delay["waiting_share"]),
        )
        for delay in delays
    ]
    columns = (
        number("device"),
        number("launches"),
        number("median"),
        number("p95"),
        number("step time spent waiting"),
    )
    return Section("From launch to start", columns, rows)


def _precision(precision: dict[str, Any] | None, placement: dict[str, Any] | None) -> Section:
    rows = []
    if precision is not None:
        cores = precision["tensor_core_share"]
        shares = ", ".join(f"{answer} {format_share(share)}" for answer, share in cores.items())
        narrow = phrases.low_precision(precision["low_precision_share"], precision.get("known_by_time"))
        rows.append(("16-bit kernels", narrow))
        rows.append(("tensor cores used, by kernel time", shares))
        rows.append(
            ("could use them and does not, per step", format_ns(precision["eligible_unused_ns_per_step"]))
        )
    if placement is not None:
        rows.append(("ops on the host", format_count(placement["host_ops"])))
        rows.append(("ops on the device", format_count(placement["device_ops"])))
    return Section("Precision and placement", (Column("what"), Column("value")), rows)


def _xla(xla: dict[str, Any] | None, steps: dict[int | None, str]) -> list[Section]:
    if xla is None:
        return []
    duty = [
        (
            text(entry["device"]),
            ABSENT if entry["executions"] is None else format_count(entry["executions"]),
            ABSENT if entry["executions"] is None else format_ns(entry["executing_ns_per_step"]),
            _duty(entry),
            ABSENT if entry["collective_share"] is None else format_share(entry["collective_share"]),
        )
        for entry in xla["duty_cycle"]
    ]
    columns = (
        number("device"),
        number("executions"),
        number("executing, per step"),
        number("duty cycle"),
        number("in collectives"),
    )
    building = xla["graph_building"]
    note = "" if building is None else (
        f"the host builds graphs for {format_ns(building['ns_per_step'])} per step, "
        f"{format_share(building['overlapped_share'])} of it while every device works"
    )
    return [Section("Compiled modules (XLA)", columns, duty, note), _compilations(xla["compilations"], steps)]


def _duty(entry: dict[str, Any]) -> str:
    if entry["executions"] is None:
        return "not recorded"
    return "unused" if entry["share"] is None else format_share(entry["share"])


def _compilations(found: list[dict[str, Any]], steps: dict[int | None, str]) -> Section:
    rows, note = cut(
        (
            (
                steps.get(entry["step"], ABSENT),
                format_ns(entry["dur_ns"]),
                text(entry["module"]),
                _shapes(entry),
                phrases.locator(entry["where"]) or ABSENT,
            )
            for entry in found
        ),
        len(found),
    )
    columns = (number("step"), number("time"), name("module"), Column("parameters"), place("where"))
    return Section("Compilations inside the profile", columns, rows, note)


def _shapes(entry: dict[str, Any]) -> str:
    if entry["changed"] is not None:
        return str(entry["changed"])
    now = entry["parameters"] if entry["parameters"] is not None else "not recorded"
    return f"{now} (compiled again)" if entry["again"] else now


def _functions(functions: list[dict[str, Any]]) -> Section:
    rows, note = cut(
        ((use["name"], format_ns(use["self_ns"]), format_count(use["count"])) for use in functions), len(functions)
    )
    columns = (name("function"), number("own time"), number("calls"))
    return Section("Functions by the time spent in their own code", columns, rows, note)


def _files(profile: dict[str, Any]) -> Section:
    rows = [
        (entry["path"], format_bytes(entry["bytes"]), format_count(entry["events"]))
        for entry in profile["files"]
    ]
    read = "read whole" if profile["complete"] else "not read whole: see the notices"
    note = ", ".join([profile["format"], read] + ([f"host {profile['host']}"] if profile["host"] else []))
    return Section("What was read", (place("file"), number("size"), number("events")), rows, note)
