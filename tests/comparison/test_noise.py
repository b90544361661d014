"""The interval of a difference: its width, how often it misses, and what it says of few steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from stepscope.comparison.limits import COMPARED_STEPS, RUN_TO_RUN_SHARE
from stepscope.comparison.noise import Difference
from stepscope.comparison.noise import difference as of_runs

TIMES = arrays.arrays(np.int64, st.integers(COMPARED_STEPS, 30), elements=st.integers(0, 10**12))


def difference(before: np.ndarray, after: np.ndarray) -> Difference:
    return of_runs([before], [after])


def test_welch_by_hand():
    # Variances 1 and 4 of three steps each: 2.94 degrees of freedom -> 2. Their ranks 0 1 2 follow each other by 0,
    # freed of bias by 1/3, drawn to 0.3 by ten steps that were not seen: 0.3077.
    found = difference(np.array([9, 10, 11]), np.array([11, 13, 15]))
    follows = (3 * 1 / 3 + 10 * 0.3) / 13
    half = 4.303 * (5 / 3 * (1 + follows) / (1 - follows)) ** 0.5
    assert found.measured_noise_ns == pytest.approx(half)
    assert not found.beyond_noise


def test_runs_of_the_same_code_are_taken_to_differ():
    # Steps without noise of their own: what is left is 1.96 √2 RUN_TO_RUN_SHARE.
    found = difference(np.full(20, 1e6), np.full(20, 1e6))
    assert found.noise_ns == pytest.approx(1.96 * 2**0.5 * RUN_TO_RUN_SHARE * 1e6)
    assert found.measured_noise_ns == 0


def test_students_interval_of_several_runs_by_hand():
    # Means 10, 12 and 15, 17; pooled variance 2 with two degrees of freedom.
    before, after = ([np.full(5, mean) for mean in means] for means in ((10, 12), (15, 17)))
    found = of_runs(before, after)
    assert found.ns == 5
    assert found.noise_ns == pytest.approx(4.303 * 2**0.5)
    assert found.noise_ns == found.measured_noise_ns


def test_steps_of_more_runs_do_not_hide_that_runs_differ():
    rng = np.random.default_rng(7)
    sides = [[rng.normal(mean, 1, 1000) for mean in (90, 100, 110)] for _ in range(2)]
    assert of_runs(*sides).noise_ns > 10


def test_too_few_steps_have_no_noise():
    found = difference(np.array([10, 11]), np.array([20, 21, 22]))
    assert not found.determined
    assert not found.beyond_noise
    assert not found.within(10)
    assert found.ns == 10.5


def test_all_of_an_interval_lies_within_a_share():
    assert Difference(100, 103, 6, 6).within(0.1)
    assert not Difference(100, 103, 8, 8).within(0.1)
    assert not Difference(100, 97, 8, 8).within(0.1)


def test_two_bad_steps_side_by_side_do_not_make_steps_follow_each_other():
    rng = np.random.default_rng(7)
    plain, bad = rng.normal(100, 5, 20), rng.normal(100, 5, 20)
    bad[[10, 11]] = 160
    apart = bad.copy()
    apart[[3, 11]], apart[10] = 160, bad[3]
    together, spread = difference(plain, bad), difference(plain, apart)
    assert together.measured_noise_ns == pytest.approx(spread.measured_noise_ns, rel=0.25)


@given(TIMES)
def test_a_run_does_not_differ_from_itself(run):
    assert not difference(run, run).beyond_noise


@given(TIMES, TIMES)
def test_swapping_the_runs_turns_the_difference_round(one, two):
    forth, back = difference(one, two), difference(two, one)
    assert forth.ns == -back.ns
    assert forth.noise_ns == pytest.approx(back.noise_ns, rel=1e-9, abs=1e-3)
