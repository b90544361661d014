"""The report's figures of ops and layers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from stepscope.analysis.facts import Facts
from stepscope.analysis.ops import OpTable, OpUse

ROWS = 50
"""Ops, places and layers that a report lists."""


def ops(table: OpTable) -> dict[str, Any]:
    """``analyses.ops``."""
    places = merged(table.by_place, table.launch_cost_ns)
    return {
        "launch_cost_ns": table.launch_cost_ns,
        "device_ns": table.device_ns,
        "outside_ns": table.outside_ns,
        "types": len(table.by_type),
        "places": len(places),
        "by_type": [_use(use) for use in table.by_type[:ROWS]],
        "by_place": [_use(use) for use in places[:ROWS]],
    }


def merged(uses: Iterable[OpUse], launch_cost_ns: int | None) -> list[OpUse]:
    """Uses of one op from one line as one, whatever calls lead there: by most device time, then time of their own.

    Of several modules none is named, as none is where they differ: layers have times of their own.
    """
    groups: dict[tuple[Any, ...], list[OpUse]] = {}
    for use in uses:
        place = use.where and (use.where.file, use.where.line, use.where.function, use.where.op)
        groups.setdefault((use.op, use.name, use.side, place), []).append(use)
    made = [_sum(group, launch_cost_ns) for group in groups.values()]
    return sorted(made, key=lambda use: (-use.device_self_ns, -use.self_ns, use.op))


def _sum(group: list[OpUse], launch_cost_ns: int | None) -> OpUse:
    first = group[0]
    if len(group) == 1:
        return first
    added = ("count", "total_ns", "self_ns", "share", "device_ops", "device_ns", "device_self_ns")
    total = {name: sum(getattr(use, name) for use in group) for name in added}
    known = launch_cost_ns is not None and total["device_ops"]
    tiny = total["device_ns"] <= (launch_cost_ns or 0) * total["device_ops"] if known else None
    where = first.where
    if where is not None:
        others = [use.where for use in group if use.where is not None]
        module = where.module if all(other.module == where.module for other in others) else None
        annotation = where.annotation if all(other.annotation == where.annotation for other in others) else None
        where = dataclasses.replace(where, module=module, annotation=annotation)
    return dataclasses.replace(first, **total, launch_sized=tiny, where=where)


def _use(use: OpUse) -> dict[str, Any]:
    made = {field.name: getattr(use, field.name) for field in dataclasses.fields(use)}
    where = None if use.where is None else dataclasses.asdict(use.where)
    return made | {"mean_ns": round(use.mean_ns), "where": where}


def layers(facts: Facts) -> list[dict[str, Any]]:
    """``analyses.layers``."""
    return [
        {
            "device": found.device,
            "total_ns_per_step": facts.per_step(found.total_ns),
            "outside_ns_per_step": facts.per_step(found.outside_ns),
            "count": len(found.layers),
            "layers": [
                {
                    "path": layer.path,
                    "forward_ns_per_step": facts.per_step(layer.forward_ns),
                    "backward_ns_per_step": facts.per_step(layer.backward_ns),
                    "whole_ns_per_step": facts.per_step(layer.whole_ns),
                    "kernels_per_step": layer.kernels / len(facts.used),
                    "share": layer.own_ns / found.total_ns if found.total_ns else 0.0,
                }
                for layer in found.layers[:ROWS]
            ],
        }
        for found in facts.layers
        if found.layers
    ]
