"""Comparisons of simulated runs whose difference is known, and of real ones with themselves."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.categories import CATEGORIES, Category
from stepscope.comparison.apart import usual
from stepscope.comparison.compare import Comparison, compare
from stepscope.comparison.side import Side, of_profile, several
from stepscope.diagnosis.engine import diagnose
from stepscope.errors import UsageError
from stepscope.report.comparison import finding, make
from tests.kit.events import Event
from tests.kit.loop import run
from tests.kit.plan import Plan
from tests.kit.planted import CASES
from tests.kit.traces import OF_KINDS
from tests.support import real_facts, trace_of


def side_of(events: tuple[Event, ...]) -> Side:
    facts = analyse(trace_of(events))
    return of_profile(facts, diagnose(facts))


@cache
def side(plan: Plan) -> Side:
    return side_of(tuple(run(plan).machine.events()))


def input_bound(**changes: object) -> Plan:
    return replace(CASES["input_bound"]().plan, **changes)


@pytest.mark.parametrize("seed", range(1, 9))
def test_two_runs_of_the_same_code_do_not_differ(seed: int):
    found = compare(side(Plan(seed=0, jitter=0.05)), side(Plan(seed=seed, jitter=0.05)))
    assert found.changed is False
    assert found.achieved is None


@pytest.mark.parametrize("name", OF_KINDS)
def test_a_real_run_does_not_differ_from_itself(name: str):
    facts = real_facts(name)
    one = of_profile(facts, diagnose(facts))
    found = compare(one, one)
    assert not found.changed
    assert (found.changed is None) == (found.not_determined is not None)
    assert (found.kernels, found.ops, found.layers, found.differences) == ((), (), (), ())
    assert all(change.state == "stays" for change in found.findings)
    assert not any(part.told for part in found.parts)


@pytest.fixture(scope="module")
def repaired() -> Comparison:
    """The loader was slow, and is not any more."""
    return compare(side(input_bound()), side(input_bound(input_us=20)))


def test_the_step_is_shorter_by_what_the_cause_took(repaired: Comparison):
    planted = CASES["input_bound"]()
    assert repaired.changed is True
    assert -repaired.step.ns == pytest.approx(planted.saving_ns, rel=0.02)
    assert repaired.step.low_ns < repaired.step.ns < repaired.step.high_ns < 0


def test_the_cause_is_what_changed_and_the_finding_is_gone(repaired: Comparison):
    assert repaired.parts[0].category == "input"
    assert repaired.parts[0].told
    (gone,) = [change for change in repaired.findings if change.state == "gone"]
    assert gone.before is not None
    assert gone.before.rule == "input_bound"


def test_what_was_predicted_is_held_against_what_came(repaired: Comparison):
    assert repaired.achieved is not None
    assert repaired.achieved.gone == ("input_bound.1",)
    assert abs(repaired.achieved.off_share) < 0.01


def test_the_parts_sum_to_the_step(repaired: Comparison):
    assert sum(part.difference.ns for part in repaired.parts) == pytest.approx(repaired.step.ns, abs=2)


def test_going_back_is_slower_and_the_finding_is_new():
    found = compare(side(input_bound(input_us=20)), side(input_bound()))
    assert found.changed is True
    assert found.step.ns > 0
    assert [change.state for change in found.findings if change.after and change.after.rule == "input_bound"] == ["new"]


def test_another_kernel_for_the_same_op_is_that_kernel_renamed():
    events = tuple(run(Plan(seed=0, jitter=0.05)).machine.events())
    names = [event.name for event in events if event.cat == "kernel"]
    old = max(set(names), key=names.count)
    slower = tuple(
        replace(event, name="sm90_other_kernel", dur_ns=(event.dur_ns or 0) // 2) if event.name == old else event
        for event in events
    )
    (change,) = compare(side_of(events), side_of(slower)).kernels
    assert (change.name, change.renamed) == (old, "sm90_other_kernel")
    assert change.count_before == change.count_after
    assert change.difference.share == pytest.approx(-0.5, abs=0.01)


def test_too_few_steps_are_not_compared():
    short = side(Plan(seed=0, steps=2))
    found = compare(short, side(Plan(seed=0)))
    assert found.changed is None
    assert found.not_determined is not None
    assert found.not_determined.startswith("the first profile has ")
    assert found.unfit == found.not_determined


def test_other_devices_are_named():
    one = side(Plan(seed=0))
    other = replace(one, setting={**one.setting, "world size": "8"})
    assert compare(one, other).differences == ("Different world size: not recorded, then 8.",)


def _with_steps(steps_ms: list[float], **changes: object) -> Side:
    step_ns = np.array([ms * 1e6 for ms in steps_ms], np.int64)
    parts = np.zeros((len(step_ns), len(CATEGORIES)))
    return replace(side(Plan(seed=0)), step_ns=step_ns, parts=parts, runs=(len(step_ns),), work=None, **changes)


def test_steps_that_could_not_show_it_tell_nothing():
    found = compare(_with_steps([10, 40, 20, 70, 15, 30]), _with_steps([25, 30, 60, 20, 90, 45]))
    assert found.changed is None
    assert found.unfit is None
    assert found.not_determined is not None
    assert found.not_determined.startswith("these steps could show a change of more than ±")


def test_what_was_sampled_has_no_differences_to_table():
    sampled = replace(side(input_bound()), not_comparable="was sampled: record whole steps")
    found = compare(sampled, side(input_bound(input_us=20)))
    assert found.changed is None
    assert (found.parts, found.kernels, found.ops, found.layers) == ((), (), (), ())
    assert found.step.noise_ns is None


def test_runs_with_and_without_a_device_have_no_differences_to_table():
    found = compare(side(Plan(seed=0)), replace(side(Plan(seed=0)), basis="host"))
    assert found.not_determined == "one profile has device activity and the other has not: record both alike"
    assert found.parts == ()


def test_several_runs_are_taken_together():
    before = several([_with_steps([10, 10.1, 9.9]), _with_steps([11, 11.1, 10.9], verdict="the middle one"),
                      _with_steps([12, 12.1, 11.9])])  # fmt: skip
    assert before.runs == (3, 3, 3)
    assert before.verdict == "the middle one"
    same, slower = (several([_with_steps([base + ms + 0.3, base + ms, base + ms - 0.3]) for ms in (0, 1, 2)])
                    for base in (10.1, 16))  # fmt: skip
    found = compare(before, same)
    assert found.changed is None  # runs that differ by a tenth tell no change of less
    assert found.not_determined is not None
    assert "record more runs" in found.not_determined
    assert compare(before, slower).changed is True


def test_a_run_named_twice_is_refused():
    with pytest.raises(UsageError, match="same profile"):
        several([_with_steps([10, 11, 12]), _with_steps([10, 11, 12])])


def test_a_finding_of_another_rank_says_so():
    one, two = side(input_bound()), side(input_bound())
    moved = replace(two, findings=tuple(replace(f, title=f"{f.title} (rank 1)") for f in two.findings))
    made = [finding(change) for change in make(compare(one, moved), ("one", "two"))["findings"]]
    assert made
    assert all(" (rank 1) (stays: " in line and "; before: " in line for line in made)


STEADY = np.full(13, 10_000_000) + np.arange(13) * 10_000


def _parts(category: Category, bad: dict[int, int]) -> np.ndarray:
    parts = np.zeros((13, len(CATEGORIES)))
    for step, ns in bad.items():
        parts[step, category.code] = ns
    return parts


@pytest.mark.parametrize(
    ("category", "bad", "left"),
    [
        (Category.PYTHON, {4: 200_000_000}, [4]),
        (Category.COLLECTIVE_WAIT, {4: 200_000_000}, [4]),
        (Category.PYTHON, {4: 2_000_000}, []),  # slower, but not beyond half a step
        (Category.PYTHON, {4: 200_000_000, 9: 200_000_000}, [4, 9]),
        (Category.PYTHON, dict.fromkeys((2, 4, 9), 200_000_000), []),  # more than rare
        (Category.INPUT, {4: 200_000_000}, []),  # what the run pays for
    ],
)
def test_which_steps_are_left_out(category: Category, bad: dict[int, int], left: list[int]):
    steps = STEADY.copy()
    for step, ns in bad.items():
        steps[step] += ns
    assert np.flatnonzero(~usual(steps, _parts(category, bad))).tolist() == left


def test_a_steady_run_loses_no_step():
    assert usual(np.full(20, 10), np.zeros((20, len(CATEGORIES)))).all()
    assert usual(np.array([10, 10, 10, 90]), np.zeros((4, len(CATEGORIES)))).all()
