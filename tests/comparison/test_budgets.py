"""``--fail-if``: what can be said, what fires, and what cannot be checked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stepscope.analysis.categories import CATEGORIES, Category
from stepscope.cli.budgets import budgets_of
from stepscope.comparison import budgets
from stepscope.comparison.compare import Comparison, compare
from stepscope.comparison.side import Side
from stepscope.errors import UsageError
from tests.comparison.test_compare import input_bound, side
from tests.kit.plan import Plan


@pytest.fixture(scope="module")
def bound() -> Side:
    return side(input_bound())


@pytest.mark.parametrize(
    ("text", "fires"),
    [
        ("step_time > 1ms", True),
        ("step_time > 1s", False),
        ("device_busy < 99%", True),
        ("device_busy<1%", False),
        ("input > 20%", True),
        ("input >= 1 us", True),
        ("gc > 0%", False),
    ],
)
def test_one_profile(bound: Side, text: str, fires: bool):
    assert budgets.check(budgets.parse(text), bound).fired is fires


@pytest.mark.parametrize(
    ("text", "fires"),
    [
        ("step_time > +3%", True),
        ("step_time > +1ms", True),
        ("step_time > +10s", False),
        ("step_time < -3%", False),
        ("input > +5%", True),
        ("compute > +3%", False),
    ],
)
def test_a_change(bound: Side, text: str, fires: bool):
    found = compare(side(input_bound(input_us=20)), bound)
    outcome = budgets.check(budgets.parse(text), bound, found)
    assert outcome.fired is fires
    assert outcome.sentence.startswith(text)


def _slowed(share: float, step_noise: float) -> Comparison:
    """Two runs of 20 steps around 10 and 10 (1 + share) ms whose steps alternate by so much."""
    runs = []
    for mean in (1e7, 1e7 * (1 + share)):
        step_ns = np.round(mean * (1 + step_noise * np.tile([-1, 1, 1, -1], 5))).astype(np.int64)
        parts = np.zeros((20, len(CATEGORIES)))
        parts[:, Category.COMPUTE.code] = step_ns
        runs.append(replace(side(Plan(seed=0)), step_ns=step_ns, parts=parts, runs=(20,), work=None))
    return compare(*runs)


@pytest.mark.parametrize(
    ("share", "noise", "text", "fires"),
    [
        (0.0, 0.01, "step_time > +3%", False),
        (0.04, 0.01, "step_time > +3%", True),
        (0.02, 0.01, "step_time > +3%", False),
        (0.02, 0.01, "step_time > +100us", True),
        (0.02, 0.01, "compute > +3%", False),
        (0.04, 0.01, "compute > +3%", True),
        (-0.01, 0.01, "step_time > -3%", True),  # must become 3 % faster
        (-0.05, 0.01, "step_time > -3%", False),
        (0.5, 0.2, "step_time > +3%", True),
        (-0.5, 0.2, "step_time > +3%", False),
        (-0.12, 0.2, "step_time > +3%", False),  # its interval ends below the limit
    ],
)
def test_a_change_beside_its_limit(share: float, noise: float, text: str, fires: bool):
    found = _slowed(share, noise)
    outcome = budgets.check(budgets.parse(text), found.after, found)
    assert outcome.fired is fires
    assert "cannot be checked" not in outcome.sentence


@pytest.mark.parametrize("share", [0.0, 0.02, 0.08, -0.02])
def test_steps_too_noisy_for_the_limit_fire(share: float):
    found = _slowed(share, 0.2)
    outcome = budgets.check(budgets.parse("step_time > +3%"), found.after, found)
    assert outcome.fired
    assert "cannot be checked: step_time changed by" in outcome.sentence
    assert "several runs of each (--before, --after)" in outcome.sentence


def test_how_many_steps_would_check_it_is_said():
    found = _slowed(0.0, 0.06)
    assert "record about " in budgets.check(budgets.parse("step_time > +3%"), found.after, found).sentence


def test_a_share_of_next_to_nothing_does_not_fire(bound: Side):
    one, two = (replace(bound, parts=bound.parts.copy()) for _ in range(2))
    for run, ns in ((one, 100), (two, 400)):
        run.parts[:, Category.GC.code] = ns
    assert not budgets.check(budgets.parse("gc > +5%"), two, compare(one, two)).fired


def test_what_cannot_be_checked_fires(bound: Side):
    assert "not recorded" in budgets.check(budgets.parse("peak_memory > 1GiB"), bound).sentence
    assert budgets.check(budgets.parse("peak_memory > 1GiB"), bound).fired
    short = side(Plan(seed=0, steps=2))
    outcome = budgets.check(budgets.parse("step_time > +3%"), bound, compare(short, bound))
    assert outcome.fired
    assert "cannot be checked: the first profile has" in outcome.sentence


@pytest.mark.parametrize(
    "text",
    [
        "",
        "step_time",
        "speed > 3%",
        "step_time > +0%",
        "step_time > 3%",
        "step_time > +3GiB",
        "device_busy < 8 ms",
        "step_time = 3ms",
    ],
)
def test_what_is_no_condition_is_refused(text: str):
    with pytest.raises(UsageError, match=r"condition|no speed|share of what|no unit|exactly as long"):
        budgets.parse(text)


@pytest.mark.parametrize("text", ["device_busy < -3%", "peak_memory > +1GiB"])
def test_changes_are_of_times(bound: Side, text: str):
    with pytest.raises(UsageError, match="changes can be bounded of times only"):
        budgets.check(budgets.parse(text), bound, compare(bound, bound))


def test_a_change_of_one_profile_is_refused(bound: Side):
    with pytest.raises(UsageError, match="stepscope compare BEFORE AFTER"):
        budgets.check(budgets.parse("step_time > +3%"), bound)


def test_a_project_has_its_own(tmp_path: Path):
    inner = tmp_path / "src"
    inner.mkdir()
    assert budgets_of((), inner) == []
    (tmp_path / "pyproject.toml").write_text('[tool.stepscope]\nfail-if = ["step_time > +3%"]\n')
    assert [budget.text for budget in budgets_of((), inner)] == ["step_time > +3%"]
    assert budgets_of((), inner, changes=False) == []
    (tmp_path / "pyproject.toml").write_text('[tool.stepscope]\nfail-if = "step_time > +3%"\n')
    with pytest.raises(UsageError, match="must be a list"):
        budgets_of((), inner)
    for table in ('fail_if = ["step_time > +3%"]', 'fail-if = []\ncolour = "red"'):
        (tmp_path / "pyproject.toml").write_text(f"[tool.stepscope]\n{table}\n")
        with pytest.raises(UsageError, match=r"knows fail-if only, not (fail_if|colour)"):
            budgets_of((), inner)
    (tmp_path / "pyproject.toml").write_text("tool = 3\n")
    with pytest.raises(UsageError, match="cannot be read"):
        budgets_of((), inner)
    (tmp_path / "pyproject.toml").write_text("[tool")
    with pytest.raises(UsageError, match="cannot be read"):
        budgets_of((), inner)
