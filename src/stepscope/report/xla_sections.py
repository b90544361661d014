"""The sections about what XLA compiled and ran."""

from __future__ import annotations

from typing import Any

from stepscope.report import phrases
from stepscope.report.section import ABSENT, Column, Section, cut, name, number, place, rate, text
from stepscope.units import format_bytes, format_count, format_ns, format_share


def xla(found: dict[str, Any] | None, steps: dict[int | None, str]) -> list[Section]:
    """How busy compiled modules keep the devices, and what was compiled."""
    if found is None:
        return []
    duty = [
        (
            text(entry["device"]),
            ABSENT if entry["executions"] is None else format_count(entry["executions"]),
            ABSENT if entry["executions"] is None else format_ns(entry["executing_ns_per_step"]),
            _duty(entry),
            ABSENT if entry["collective_share"] is None else format_share(entry["collective_share"]),
        )
        for entry in found["duty_cycle"]
    ]
    columns = (
        number("device"),
        number("executions"),
        number("executing, per step"),
        number("duty cycle"),
        number("in collectives"),
    )
    building = found["graph_building"]
    note = "" if building is None else (
        f"the host builds graphs for {format_ns(building['ns_per_step'])} per step, "
        f"{format_share(building['overlapped_share'])} of it while every device works"
    )
    return [Section("Compiled modules (XLA)", columns, duty, note), _compilations(found["compilations"], steps)]


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


def counters(found: dict[str, Any] | None) -> Section:
    """What PyTorch/XLA counted of itself in the recorded window: what falls back, compiles or moves data first."""
    columns = (name("name"), number("in the window"), number("per step"), number("together"))
    if found is None:
        return Section("Counters of PyTorch/XLA", columns, ())
    counted = sorted(found["counted"], key=lambda one: (not one["tells"], one["name"].startswith("xla::")))
    rows, note = cut(
        (
            (
                one["name"],
                format_count(one["count"]),
                rate(None if found["steps"] is None else one["count"] / found["steps"]),
                _sum(one["total"], one["unit"]),
            )
            for one in counted
        ),
        len(counted),
    )
    return Section("Counters of PyTorch/XLA", columns, rows, note)


def _sum(total: float | None, unit: str | None) -> str:
    if total is None or unit is None:
        return ABSENT
    return format_ns(round(total)) if unit == "ns" else format_bytes(round(total))
