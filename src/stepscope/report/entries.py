"""Entries that several parts of the document have."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stepscope.analysis.categories import Category
from stepscope.analysis.where import Where
from stepscope.diagnosis.finding import Finding, FixPart

if TYPE_CHECKING:
    from stepscope.document import findings as entry

_INTERNAL = ("change", "next_waits", "loading", "around", "ranks")


def finding_entry(finding: Finding, of_rank: int | None = None) -> dict[str, Any]:
    """A finding as the document holds it; ``of_rank`` is that of a profile of one rank."""
    made = {
        field.name: getattr(finding, field.name) for field in dataclasses.fields(finding) if field.name not in _INTERNAL
    }
    return made | {
        "rank": finding.rank if of_rank is None else of_rank,
        "where": [where_entry(place) for place in finding.where],
        "fix_set": [_fix_part(part) for part in finding.fix_set],
        "options": [dataclasses.asdict(option) for option in finding.options],
        "evidence": [dataclasses.asdict(piece) for piece in finding.evidence],
    }


def _fix_part(part: FixPart) -> entry.FixPartEntry:
    return {
        "title": part.title,
        "where": where_entry(part.where),
        "fix": part.fix,
        "cost_ns_per_step": part.cost_ns_per_step,
        "saving_alone_ns_per_step": part.saving_alone_ns_per_step,
    }


def where_entry(place: Where | None) -> entry.WhereEntry | None:
    """A place as the document holds it."""
    return plain(place) if place else None


def named(parts: Mapping[Category, Any]) -> dict[str, Any]:
    """Values by category, with plain names."""
    return {str(category): value for category, value in parts.items()}


def plain(of: Any) -> Any:
    """A dataclass whose fields are those that the document declares, as the document holds it."""
    return dataclasses.asdict(of)
