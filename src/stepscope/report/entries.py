"""Entries that several parts of the document have."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from stepscope.analysis.categories import Category
from stepscope.analysis.where import Where
from stepscope.diagnosis.finding import Finding, FixPart

if TYPE_CHECKING:
    from stepscope.document import findings as entry

Value = TypeVar("Value")


def finding_entry(finding: Finding, of_rank: int | None = None) -> entry.FindingEntry:
    """A finding as the document holds it; ``of_rank`` is that of a profile of one rank."""
    return {
        "id": finding.id,
        "rule": finding.rule,
        "title": finding.title,
        "why": finding.why,
        "fix": finding.fix,
        "cost_ns_per_step": finding.cost_ns_per_step,
        "saving_ns_per_step": finding.saving_ns_per_step,
        "saving_after_ns_per_step": finding.saving_after_ns_per_step,
        "predicted_step_ns": finding.predicted_step_ns,
        "best_step_ns": finding.best_step_ns,
        "prediction_basis": finding.prediction_basis,
        "not_determined": finding.not_determined,
        "basis": finding.basis,
        "confidence": finding.confidence,
        "seen_once": finding.seen_once,
        "provable": finding.provable,
        "rank": finding.rank if of_rank is None else of_rank,
        "device": finding.device,
        "where": [where for place in finding.where if (where := where_entry(place))],
        "fix_set": [_fix_part(part) for part in finding.fix_set],
        "options": [plain(option) for option in finding.options],
        "evidence": [plain(piece) for piece in finding.evidence],
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


def named(parts: Mapping[Category, Value]) -> dict[str, Value]:
    """Values by category, with plain names."""
    return {str(category): value for category, value in parts.items()}


def word(of: str) -> Any:
    """One of the words that a field can hold as the document holds it; which there are, the schema says."""
    return str(of)


def plain(of: Any) -> Any:
    """A dataclass whose fields are those that the document declares, as the document holds it."""
    return dataclasses.asdict(of)
