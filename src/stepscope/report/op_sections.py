"""The tables of ops and layers in the long report."""

from __future__ import annotations

from typing import Any

from stepscope.report import phrases
from stepscope.report.section import ABSENT, Column, Section, cut, name, number, place, rate, text, yes
from stepscope.units import format_count, format_ns, format_share


def ops(table: dict[str, Any] | None) -> list[Section]:
    """Ops by type and by place."""
    if table is None:
        return []
    cost, note = table["launch_cost_ns"], ""
    if cost is not None:
        note = f"tiny: what ran on the device takes, on average, no longer than a launch costs here ({format_ns(cost)})"
    rows, left_out = cut((_by_type(use) for use in table["by_type"]), table["types"])
    columns = (*_TIMES[:1], Column("side"), *_TIMES[1:], number("share"), Column("tiny"))
    made = Section("Ops by type, in the steps used", columns, rows, "; ".join(filter(None, (note, left_out))))
    rows, left_out = cut((_by_place(use) for use in table["by_place"]), table["places"])
    return [made, Section("Ops by place, in the steps used", (*_TIMES, place("where")), rows, left_out)]


_TIMES = (name("op"), number("count"), number("total"), number("mean"), number("own"), number("on device"))


def _times(use: dict[str, Any]) -> tuple[str, ...]:
    return (
        format_count(use["count"]),
        format_ns(use["total_ns"]),
        format_ns(use["mean_ns"]),
        format_ns(use["self_ns"]),
        format_ns(use["device_self_ns"]) if use["device_ops"] else ABSENT,
    )


def _by_type(use: dict[str, Any]) -> tuple[str, ...]:
    return (use["op"], use["side"], *_times(use), format_share(use["share"]), yes(use["launch_sized"]))


def _by_place(use: dict[str, Any]) -> tuple[str, ...]:
    return (use["name"] or use["op"], *_times(use), phrases.locator(use["where"]) or ABSENT)


def layers(found: list[dict[str, Any]]) -> list[Section]:
    """The layers of each device, dearest first."""
    return [_layers(one) for one in found]


def _layers(found: dict[str, Any]) -> Section:
    trains = any(layer["backward_ns_per_step"] for layer in found["layers"])
    rows, left_out = cut(
        (
            (
                layer["path"],
                text(found["device"]),
                format_ns(layer["forward_ns_per_step"]),
                *((format_ns(layer["backward_ns_per_step"]),) if trains else ()),
                format_share(layer["share"]),
                rate(layer["kernels_per_step"]),
                format_ns(layer["whole_ns_per_step"]),
            )
            for layer in found["layers"]
        ),
        found["count"],
    )
    columns = (
        name("layer"),
        number("device"),
        number("forward"),
        *((number("backward"),) if trains else ()),
        number("share"),
        number("kernels" if found["device"] is not None else "ops"),
        number("with layers inside"),
    )
    outside = f"{format_ns(found['outside_ns_per_step'])} of {format_ns(found['total_ns_per_step'])} in no layer"
    title = "Layers by the time of their kernels" if found["device"] is not None else "Layers by the time of their ops"
    return Section(f"{title}, per step", columns, rows, "; ".join(filter(None, (outside, left_out))))
