"""The table of compiled programs' ops by scope."""

from __future__ import annotations

from stepscope.document.programs import ProgramEntry, ProgramNode, ProgramOp
from stepscope.report import labels
from stepscope.report.section import ABSENT, Section
from stepscope.report.tables import Look, table
from stepscope.units import format_ns

_MFU = "MFU: of the peak, by matrix products alone"
_PROGRAMS = 5
"""Programs whose ops the long report lists; the JSON report holds more."""


def op_tree(programs: list[ProgramEntry]) -> list[Section]:
    """Programs by time, and the ops of those that take longest."""
    if not programs:
        return []
    look = Look(
        cells={
            "module": _titled,
            "rematerialised_ns": lambda one: _some(one["rematerialised_ns"]),
            "waiting_ns": lambda one: _some(one["waiting_ns"]),
            "outside_compilation_ns": lambda one: _some(one["outside_compilation_ns"]),
            "unknown": _unknown,
        }
    )
    return [table("Compiled programs by time", ProgramEntry, programs, _MFU, look), *map(_tree, programs[:_PROGRAMS])]


def _some(ns: int) -> str:
    return format_ns(ns) if ns else ABSENT


def _unknown(one: ProgramEntry) -> str:
    return ", ".join(f"{part['name']} {format_ns(part['ns'])}" for part in one["unknown"][:3]) or ABSENT


def _titled(one: ProgramEntry) -> str:
    return one["module"] if one["program"] is None else f"{one['module']}({one['program']})"


def _tree(one: ProgramEntry) -> Section:
    look = Look(cells={"name": _named, "rematerialised": _remarks})
    title = f"Ops of {_titled(one)} by scope, device {one['device']}"
    return table(title, ProgramNode, one["nodes"], look=look, total=one["count_of_nodes"])


def _named(node: ProgramNode) -> str:
    times = f" × {node['times']}" if "times" in node else ""
    return f"{'· ' * node['depth']}{node['name']}{times}"


def _remarks(op: ProgramOp) -> str:
    remarks = [] if op["category"] == "compute" else [labels.CATEGORIES[op["category"]].words]
    remarks += ["computed again"] if op["rematerialised"] else []
    remarks += ["on the host"] if op["outside_compilation"] else []
    remarks += [f"work of {op['unknown']} not known"] if op["unknown"] else []
    return ", ".join(remarks) or ABSENT
