"""Losses of the unchanged job and of one with a cure."""

from __future__ import annotations

import pytest

from stepscope.capture.cures.half_precision import FP16
from stepscope.capture.cures.workers import WORKERS
from stepscope.report.trials import cells, notes
from stepscope.trials.document import of_cure
from stepscope.trials.values import compared


def test_equal_rounded_and_different() -> None:
    same = [2.0, 1.5, 1.25]
    assert compared([same, same], same).outcome == "equal"
    rounded = compared([same], [2.0, 1.5 * (1 + 1e-7), 1.25])
    assert (rounded.outcome, rounded.since) == ("rounding", None)
    differs = compared([same], [2.0, 1.5, 1.3])
    assert (differs.outcome, differs.since, differs.steps) == ("differs", 2, 3)
    assert differs.largest == (1.3 - 1.25) / 1.3


def test_a_job_that_does_not_repeat_itself_tells_nothing() -> None:
    found = compared([[2.0, 1.5], [2.0, 1.6]], [2.0, 1.5])
    assert found.outcome == "unknown"
    assert "by itself" in found.why


def test_no_loss_is_said() -> None:
    assert "--watch-value" in compared([[None, None]], [1.0]).why
    assert compared([], [1.0]).outcome == "unknown"
    assert compared([[1.0]], [None]).outcome == "unknown"


def test_nan_beside_nan_is_equal_and_beside_a_number_is_not() -> None:
    nan = float("nan")
    assert compared([[nan, 1.0]], [nan, 1.0]).outcome == "equal"
    found = compared([[1.0, 1.0]], [1.0, nan])
    assert (found.outcome, found.since, found.largest) == ("differs", 1, None)


@pytest.mark.parametrize(("outcome", "is_told"), [("differs", True), ("rounding", False)])
def test_where_losses_differ_what_the_cure_may_break_is_told(outcome: str, is_told: bool) -> None:
    row = {
        "name": "workers=2", "why": None, "verdict": "helps", "argument": None, "cures": [of_cure(WORKERS)],
        "measured": {"runs_needed": None}, "host_bytes": None, "device_bytes": None, "places": [],
        "values": {"outcome": outcome, "since": 1, "largest": 0.5, "steps": 9, "why": ""},
    }  # fmt: skip
    assert cells(row | {"cures": [of_cure(FP16)], "predicted": None, "verdict": "refused"})[0].endswith(
        "(changes results)"
    )
    assert any("random numbers drawn in the dataset become others" in note for note in notes(row)) == is_told
