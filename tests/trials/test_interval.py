"""The interval of what a cure saves, and how often it is wrong."""

from __future__ import annotations

import pytest

from stepscope.trials.interval import CHANCE, LOOKS, measured, student
from tests.trials.rates import SPREAD, rate


@pytest.mark.parametrize(
    ("freedom", "confidence", "t"),
    # Any table of Student's distribution, two-sided.
    [(1, 0.95, 12.706), (2, 0.95, 4.303), (3, 0.99, 5.841), (6, 0.95, 2.447), (9, 0.999, 4.781), (40, 0.95, 2.021)],
)
def test_students_t_is_that_of_the_tables(freedom: int, confidence: float, t: float) -> None:
    assert student(freedom, confidence) == pytest.approx(t, abs=6e-4)


def test_one_run_of_a_side_tells_nothing() -> None:
    found = measured([10.0], [5.0, 5.1])
    assert (found.half_ns, found.low_ns, found.verdict, found.runs_needed) == (None, None, "unknown", 2)


def test_verdicts() -> None:
    assert measured([100.0, 101.0, 99.0, 100.0], [50.0, 51.0, 49.0, 50.0]).verdict == "helps"
    assert measured([50.0, 51.0, 49.0, 50.0], [100.0, 101.0, 99.0, 100.0]).verdict == "hurts"
    assert measured([100.0, 100.2, 99.9, 100.1], [100.1, 100.0, 99.8, 100.2]).verdict == "nothing"
    noisy = measured([100.0, 130.0, 90.0, 110.0], [95.0, 120.0, 80.0, 105.0])
    assert noisy.verdict == "unknown"
    assert noisy.runs_needed is not None
    assert noisy.runs_needed > 4


def test_more_looks_ask_for_more() -> None:
    once, often = measured([10.0, 11.0], [9.0, 9.5], looks=1), measured([10.0, 11.0], [9.0, 9.5], looks=LOOKS)
    assert once.half_ns is not None
    assert often.half_ns is not None
    assert often.half_ns > once.half_ns


def test_the_same_job_on_both_sides_is_called_a_change_in_at_most_five_of_a_hundred() -> None:
    found = rate(0.0, spread=SPREAD, trials=4_000)
    assert found["helps"] + found["hurts"] <= CHANCE


def test_effects_are_found_with_the_stated_power() -> None:
    assert rate(0.10, spread=SPREAD, trials=1_000)["helps"] >= 0.95
    assert rate(0.05, spread=SPREAD, trials=1_000)["helps"] >= 0.90
    assert rate(0.05, spread=SPREAD, trials=1_000)["hurts"] == 0.0
