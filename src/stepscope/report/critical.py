"""The critical path in the report: its share by kind of time and by op."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.analysis.facts import Facts
from stepscope.whatif.critical import critical_path, grouped, saving_ns

if TYPE_CHECKING:
    from stepscope.document import waits as told

SHOWN = 12
"""Elements listed: each is replayed without."""


def entry(facts: Facts) -> told.CriticalPathEntry:
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
