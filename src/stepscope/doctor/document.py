"""The examination as one JSON-ready dict."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stepscope._version import __version__
from stepscope.doctor.checks import Check
from stepscope.doctor.outcome import CheckOutcome, State
from stepscope.doctor.profiles import Examined

SCHEMA = "stepscope.doctor/1"


def document(checks: Iterable[tuple[Check, CheckOutcome]], profiles: Iterable[Examined]) -> dict[str, Any]:
    """Everything that was found: ``checks`` and ``profiles``, and how many problems and warnings that makes."""
    made = [{"check": check.id, "title": check.title, **_outcome(outcome)} for check, outcome in checks]
    read = [
        {"path": one.path, "outcomes": [{"code": code, **_outcome(outcome)} for code, outcome in one.outcomes]}
        for one in profiles
    ]
    states = [item["state"] for item in (*made, *(outcome for one in read for outcome in _of(one)))]
    return {
        "schema": SCHEMA,
        "tool": {"name": "stepscope", "version": __version__},
        "problems": states.count(State.PROBLEM.value),
        "warnings": states.count(State.WARNING.value),
        "checks": made,
        "profiles": read,
    }


def _of(profile: dict[str, Any]) -> list[dict[str, Any]]:
    outcomes: list[dict[str, Any]] = profile["outcomes"]
    return outcomes


def _outcome(outcome: CheckOutcome) -> dict[str, Any]:
    return {"state": outcome.state.value, "sentence": outcome.sentence, "cure": outcome.cure}
