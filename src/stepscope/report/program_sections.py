"""The table of compiled programs' ops by scope."""

from __future__ import annotations

from typing import Any

from stepscope.report import labels
from stepscope.report.section import ABSENT, Column, Section, cut, name, number, text
from stepscope.units import format_count, format_ns, format_rate, format_share

_MFU = "MFU: of the peak, by matrix products alone"
_PROGRAMS = 5
"""Programs whose ops the long report lists; the JSON report holds more."""


def op_tree(found: list[dict[str, Any]]) -> list[Section]:
    """Programs by time, and the ops of those that take longest."""
    if not found:
        return []
    columns = (
        name("program"),
        number("device"),
        number("time"),
        number("rate"),
        number("bytes"),
        number("MFU"),
        number("computed again"),
        number("on the host"),
        number("waits"),
        Column("work not known"),
    )
    rows, left_out = cut((_program(one) for one in found), len(found))
    note = "; ".join(filter(None, (_MFU, left_out)))
    return [Section("Compiled programs by time", columns, rows, note), *map(_tree, found[:_PROGRAMS])]


def _program(one: dict[str, Any]) -> tuple[str, ...]:
    unknown = ", ".join(f"{part['name']} {format_ns(part['ns'])}" for part in one["unknown"][:3])
    return (
        _titled(one),
        str(one["device"]),
        format_ns(one["total_ns"]),
        _rate(one["flops_per_s"], "FLOP/s"),
        _rate(one["bytes_per_s"], "B/s"),
        ABSENT if one["utilisation"] is None else format_share(one["utilisation"]),
        *(format_ns(one[key]) if one[key] else ABSENT for key in _PARTS),
        unknown or ABSENT,
    )


_PARTS = ("rematerialised_ns", "outside_compilation_ns", "waiting_ns")


def _titled(one: dict[str, Any]) -> str:
    return one["module"] if one["program"] is None else f"{one['module']}({one['program']})"


def _tree(one: dict[str, Any]) -> Section:
    columns = (
        name("scope or op"),
        number("time"),
        number("count"),
        number("rate"),
        number("bytes"),
        Column("bound by"),
        Column("remarks"),
    )
    rows, note = cut((_node(node) for node in one["nodes"]), one["count_of_nodes"])
    return Section(f"Ops of {_titled(one)} by scope, device {one['device']}", columns, rows, note)


def _node(node: dict[str, Any]) -> tuple[str, ...]:
    op = node["op"] or {}
    remarks = [word for key, word in (("rematerialised", "computed again"), ("outside_compilation", "on the host"))
               if op.get(key)]  # fmt: skip
    remarks += [f"work of {op['unknown']} not known"] if op.get("unknown") else []
    if op and op["category"] != "compute":
        remarks = [labels.CATEGORIES[op["category"]].words, *remarks]
    return (
        f"{'· ' * node['depth']}{node['name']}",
        format_ns(node["total_ns"]),
        format_count(node["count"]),
        _rate(node["flops_per_s"], "FLOP/s"),
        _rate(node["bytes_per_s"], "B/s"),
        text(op.get("bound")),
        ", ".join(remarks) or ABSENT,
    )


def _rate(value: float | None, unit: str) -> str:
    return ABSENT if not value else format_rate(value, unit)
