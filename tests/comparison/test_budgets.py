"""``--fail-if``: what can be said, what fires, and what cannot be checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.comparison import budgets
from stepscope.comparison.compare import compare
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


def test_a_change_within_the_noise_does_not_fire():
    one, two = side(Plan(seed=0, jitter=0.05)), side(Plan(seed=3, jitter=0.05))
    outcome = budgets.check(budgets.parse("step_time > +0%"), two, compare(one, two))
    assert not outcome.fired
    assert "within the noise" in outcome.sentence


def test_what_cannot_be_checked_fires(bound: Side):
    assert "not recorded" in budgets.check(budgets.parse("peak_memory > 1GiB"), bound).sentence
    assert budgets.check(budgets.parse("peak_memory > 1GiB"), bound).fired
    short = side(Plan(seed=0, steps=2))
    outcome = budgets.check(budgets.parse("step_time > +3%"), bound, compare(short, bound))
    assert outcome.fired
    assert "cannot be checked: the first profile has" in outcome.sentence


@pytest.mark.parametrize(
    "text",
    ["", "step_time", "speed > 3%", "step_time > 3%", "step_time > +3GiB", "device_busy < 8 ms", "step_time = 3ms"],
)
def test_what_is_no_condition_is_refused(text: str):
    with pytest.raises(UsageError, match=r"condition|no speed|share of what|no unit"):
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
    assert budgets.of_project(inner) == []
    (tmp_path / "pyproject.toml").write_text('[tool.stepscope]\nfail-if = ["step_time > +3%"]\n')
    assert [budget.text for budget in budgets.of_project(inner)] == ["step_time > +3%"]
    (tmp_path / "pyproject.toml").write_text('[tool.stepscope]\nfail-if = "step_time > +3%"\n')
    with pytest.raises(UsageError, match="must be a list"):
        budgets.of_project(inner)
    (tmp_path / "pyproject.toml").write_text("[tool")
    with pytest.raises(UsageError, match="cannot be read"):
        budgets.of_project(inner)
