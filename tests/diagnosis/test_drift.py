"""Drifts of a run: found when there is one, and quiet otherwise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from stepscope.diagnosis.drift import DriftChange, RecordedWindow, RunCourse, UnrecordedPeriod

MS = 1_000_000
PERIOD_STEPS = 100


def periods(step_ms: Sequence[float], noise: float = 0.03, seed: int = 1) -> list[UnrecordedPeriod]:
    """A period of eight parts per step time, with lognormal noise."""
    spread = np.random.default_rng(seed).lognormal(0.0, noise, (len(step_ms), 8))
    return [
        UnrecordedPeriod(number * PERIOD_STEPS, tuple(int(ms * MS * part) for part in parts))
        for number, (ms, parts) in enumerate(zip(step_ms, spread, strict=True))
    ]


def changes(step_ms: Sequence[float], noise: float = 0.03, seed: int = 1) -> list[DriftChange]:
    course = RunCourse()
    return [change for period in periods(step_ms, noise, seed) if (change := course.period(period))]


def test_steps_that_become_slower_are_found_once() -> None:
    (change,) = changes([20] * 10 + [26] * 10)
    assert (change.category, change.first_step) == (None, 1000)
    assert change.drift.before_ns == pytest.approx(20 * MS, rel=0.05)
    assert change.drift.after_ns == pytest.approx(26 * MS, rel=0.05)


def test_steps_that_become_faster_again_are_found_too() -> None:
    slower, faster = changes([20] * 6 + [30] * 6 + [20] * 6)
    assert (slower.drift.ns > 0, faster.drift.ns < 0, faster.first_step) == (True, True, 1200)


def test_creeping_is_found() -> None:
    assert [change.drift.ns > 0 for change in changes([20 * 1.01**number for number in range(30)])] == [True, True]


@pytest.mark.parametrize("noise", [0.01, 0.1, 0.3])
def test_a_steady_run_is_quiet(noise: float) -> None:
    """A week of ten-minute periods, several times over."""
    assert sum(len(changes([20] * 1000, noise, seed)) for seed in range(5)) == 0


def test_one_busy_period_is_no_drift() -> None:
    assert changes([20] * 5 + [60] + [20] * 5 + [60] + [20] * 5) == []


def test_a_busy_moment_at_first_hides_nothing() -> None:
    course = RunCourse()
    course.period(UnrecordedPeriod(0, (20, 60, 20, 20, 40, 40, 20, 20)))
    found = [course.period(UnrecordedPeriod(at, (ns,) * 8)) for at, ns in ((1, 20), (2, 20), (3, 45), (4, 45))]
    assert [change is not None for change in found] == [False, False, False, True]


def test_periods_without_steps_say_nothing() -> None:
    course = RunCourse()
    assert [course.period(UnrecordedPeriod(number, ())) for number in range(3)] == [None] * 3


def test_recorded_steps_name_the_cause() -> None:
    course, found = RunCourse(), None
    for number, period in enumerate(periods([20] * 5 + [32] * 3)):
        input_ms, kernels_ms = (14, 12) if number >= 5 else (1, 13)
        parts = {"input": input_ms * MS, "compute": kernels_ms * MS, "launch": 6 * MS, "profiler": number * 4 * MS}
        course.window(RecordedWindow(period.first_step, sum(parts.values()), parts))
        found = found or course.period(period)
    assert found is not None
    assert found.causes == {"input": 13 * MS}


def test_a_category_that_drifts_while_steps_stay_is_found() -> None:
    course = RunCourse()
    found = []
    for number in range(20):
        input_ms = 8 if number >= 10 else 1
        parts = {"input": input_ms * MS + number, "compute": (20 - input_ms) * MS}
        found += course.window(RecordedWindow(number, 20 * MS, parts))
    assert [(change.category, change.drift.ns > 0) for change in found] == [("input", True)]
    assert found[0].first_step in range(8, 12)
