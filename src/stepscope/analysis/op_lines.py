"""Uses of ops by the line that they come from."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from stepscope.analysis.ops import OpUse


def by_line(uses: Iterable[OpUse], launch_cost_ns: int | None) -> list[OpUse]:
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
