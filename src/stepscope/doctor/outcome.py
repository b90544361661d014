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
class Outcome:
    """How a check ended. ``cure`` is None where nothing needs one."""

    state: State
    sentence: str
    cure: str | None = None


def ok(sentence: str) -> Outcome:
    """All is well."""
    return Outcome(State.OK, sentence)


def warning(sentence: str, cure: str | None) -> Outcome:
    """Something may be missing, or costs time."""
    return Outcome(State.WARNING, sentence, cure)


def problem(sentence: str, cure: str) -> Outcome:
    """Capturing or reading fails."""
    return Outcome(State.PROBLEM, sentence, cure)


def not_applicable(sentence: str) -> Outcome:
    """There is nothing here to check."""
    return Outcome(State.NOT_APPLICABLE, sentence)
