"""The critical path in the report: its share by kind of time and by op, and as rows of a table."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from stepscope.analysis.categories import CATEGORIES
from stepscope.analysis.facts import Facts
from stepscope.whatif.critical import CriticalPath, critical_path, grouped, saving_ns

SHOWN = 12
"""Elements listed: each is replayed without."""

COLUMNS: dict[str, tuple[Any, str]] = {
    "step": (pl.Int64, "Index of the step whose time it is part of."),
    "start_ns": (pl.Int64, "Start, from the trace's origin; the elements of a step follow each other without a gap."),
    "dur_ns": (pl.Int64, "Duration; those of a step add up to the step's."),
    "category": (pl.String, "What the time goes to (docs/categories.md)."),
    "name": (pl.String, "The op, the wait, or the outermost host op; absent where nothing recorded has a name."),
    "device": (pl.Int64, "Device of the op; absent for the host's time."),
    "slice": (pl.Int64, "Row of the slices; absent for none."),
}


def entry(facts: Facts) -> dict[str, Any]:
    """The document's part."""
    path = critical_path(facts)
    if isinstance(path, str):
        return {"why_not": path, "steps": None, "total_ns": None, "parts": None, "ops": []}
    groups, total = grouped(facts, path), int(path.dur.sum())
    parts: dict[str, int] = {}
    for group in groups:
        parts[str(group.category)] = parts.get(str(group.category), 0) + group.total_ns
    return {
        "why_not": None,
        "steps": len(facts.used),
        "total_ns": total,
        "parts": dict(sorted(parts.items(), key=lambda part: -part[1])),
        "ops": [
            {
                "name": facts.trace.strings[group.name] if group.name >= 0 else None,
                "category": str(group.category),
                "total_ns": group.total_ns,
                "share": group.total_ns / total if total else 0.0,
                "count": int(group.rows.size),
                "zero_ns_per_step": saving_ns(facts, path, group.rows),
            }
            for group in groups[:SHOWN]
        ],
    }


def frame(facts: Facts | None) -> pl.DataFrame:
    """The elements in the order of time, one row each; none where there is no path."""
    path = critical_path(facts) if facts is not None else ""
    schema = {name: kind for name, (kind, _) in COLUMNS.items()}
    if facts is None or isinstance(path, str):
        return pl.DataFrame(schema=schema)
    return pl.DataFrame(_columns(facts, path), schema=schema)


def _columns(facts: Facts, path: CriticalPath) -> dict[str, Any]:
    slices, strings = facts.trace.slices, facts.trace.strings
    known = path.slice >= 0
    names = [strings[code] if held else None for code, held in zip(slices.name[path.slice], known, strict=True)]
    device = np.concatenate([np.full(len(a), a.device, np.int64) for a in facts.activities])[path.op]
    return {
        "step": path.step,
        "start_ns": path.start,
        "dur_ns": path.dur,
        "category": [str(CATEGORIES[code]) for code in path.category.tolist()],
        "name": names,
        "device": pl.Series(device).set(pl.Series(path.op < 0), None),
        "slice": pl.Series(path.slice.astype(np.int64)).set(pl.Series(~known), None),
    }
