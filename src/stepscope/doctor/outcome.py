"""What a check says: whether all is well, in one sentence, and the cure where it is not."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """How it stands: a problem prevents capturing or reading, a warning may, or costs something."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"
    NOT_APPLICABLE = "not_applicable"


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """How a check ended. ``cure`` is None where nothing needs one."""

    state: State
    sentence: str
    cure: str | None = None


def ok(sentence: str) -> CheckOutcome:
    """All is well."""
    return CheckOutcome(State.OK, sentence)


def warning(sentence: str, cure: str | None) -> CheckOutcome:
    """Something may be missing, or costs time."""
    return CheckOutcome(State.WARNING, sentence, cure)


def problem(sentence: str, cure: str) -> CheckOutcome:
    """Capturing or reading fails."""
    return CheckOutcome(State.PROBLEM, sentence, cure)


def not_applicable(sentence: str) -> CheckOutcome:
    """There is nothing here to check."""
    return CheckOutcome(State.NOT_APPLICABLE, sentence)
