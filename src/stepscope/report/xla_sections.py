"""The sections about what XLA compiled and ran."""

from __future__ import annotations

from stepscope.document.programs import CompilationEntry, CountedEntry, DutyCycleEntry, LazyMetricsEntry, Xla
from stepscope.report.section import ABSENT, Section, number, rate
from stepscope.report.tables import Look, inserted, table
from stepscope.units import format_bytes, format_ns, format_share


def xla(modules: Xla | None, steps: dict[int | None, str]) -> list[Section]:
    """How busy compiled modules keep the devices, and what was compiled."""
    if modules is None:
        return []
    building = modules["graph_building"]
    note = (
        ""
        if building is None
        else (
            f"the host builds graphs for {format_ns(building['ns_per_step'])} per step, "
            f"{format_share(building['overlapped_share'])} of it while every device works"
        )
    )
    compiled = Look(cells={"step": lambda entry: steps.get(entry["step"], ABSENT), "parameters": _shapes})
    return [
        table("Compiled modules (XLA)", DutyCycleEntry, modules["duty_cycle"], note, Look(cells={"share": _duty})),
        table("Compilations inside the profile", CompilationEntry, modules["compilations"], look=compiled),
    ]


def _duty(entry: DutyCycleEntry) -> str:
    if entry["executions"] is None:
        return "not recorded"
    return "unused" if entry["share"] is None else format_share(entry["share"])


def _shapes(entry: CompilationEntry) -> str:
    if entry["changed"] is not None:
        return str(entry["changed"])
    now = entry["parameters"] if entry["parameters"] is not None else "not recorded"
    return f"{now} (compiled again)" if entry["again"] else now


def counters(metrics: LazyMetricsEntry | None) -> Section:
    """What PyTorch/XLA counted of itself in the recorded window: what falls back, compiles or moves data first."""
    rows = [] if metrics is None else metrics["counted"]
    counted = sorted(rows, key=lambda one: (not one["tells"], one["name"].startswith("xla::")))
    made = table("Counters of PyTorch/XLA", CountedEntry, counted, look=Look(cells={"total": _sum}))
    steps = None if metrics is None else metrics["steps"]
    per_step = [rate(None if steps is None else one["count"] / steps) for one in counted]
    return inserted(made, 2, number("per step"), per_step)


def _sum(one: CountedEntry) -> str:
    total = one["total"]
    if total is None or one["unit"] is None:
        return ABSENT
    return format_ns(round(total)) if one["unit"] == "ns" else format_bytes(round(total))
