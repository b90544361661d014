"""The interval of a difference: its width, how often it misses, and what it says of few steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from stepscope.comparison.noise import difference
from stepscope.limits import COMPARED_STEPS

TIMES = arrays.arrays(np.int64, st.integers(COMPARED_STEPS, 30), elements=st.integers(0, 10**12))


def test_welch_by_hand():
    # Means 10 and 13, variances 1 and 4, three steps each: error sqrt(1/3 + 4/3), 2.94 degrees of freedom -> 2.
    found = difference(np.array([9, 10, 11]), np.array([11, 13, 15]))
    half = 4.303 * (5 / 3) ** 0.5
    assert (found.low_ns, found.high_ns) == pytest.approx((3 - half, 3 + half))
    assert not found.beyond_noise


def test_too_few_steps_have_no_noise():
    found = difference(np.array([10, 11]), np.array([20, 21, 22]))
    assert not found.determined
    assert not found.beyond_noise
    assert not found.changed(10)
    assert found.ns == 10.5


def test_a_small_difference_is_none_however_sure():
    before = np.full(50, 1_000_000)
    assert difference(before, before + 1_000).beyond_noise
    assert not difference(before, before + 1_000).changed(1e6)
    assert difference(before, before + 30_000).changed(1e6)


@given(TIMES)
def test_a_run_does_not_differ_from_itself(run):
    assert not difference(run, run).beyond_noise


@given(TIMES, TIMES)
def test_swapping_the_runs_turns_the_difference_round(one, two):
    forth, back = difference(one, two), difference(two, one)
    assert forth.ns == -back.ns
    assert forth.low_ns == pytest.approx(-back.high_ns, rel=1e-9, abs=1e-3)
    assert forth.beyond_noise == back.beyond_noise


@pytest.mark.parametrize(("follows", "steps"), [(0.0, 4), (0.0, 20), (0.6, 40)])
def test_the_same_code_is_called_different_about_as_often_as_promised(follows: float, steps: int):
    rng = np.random.default_rng(7)
    missed = sum(difference(_run(rng, steps, follows), _run(rng, steps, follows)).beyond_noise for _ in range(1000))
    assert missed <= 75  # 5 % promised; steps that follow each other may miss somewhat more


def test_a_shift_of_twice_the_noise_is_found():
    rng = np.random.default_rng(7)
    found = sum(difference(_run(rng, 20, 0.0), _run(rng, 20, 0.0) + 200.0).beyond_noise for _ in range(200))
    assert found >= 190


def _run(rng: np.random.Generator, steps: int, follows: float) -> np.ndarray:
    noise = rng.normal(0, 100, steps)
    for k in range(1, steps):
        noise[k] = follows * noise[k - 1] + (1 - follows**2) ** 0.5 * noise[k]
    return 10_000 + noise
