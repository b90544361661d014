"""Comparisons of simulated runs whose difference is known, and of real ones with themselves."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from stepscope.analysis.facts import analyse
from stepscope.comparison.compare import Comparison, compare
from stepscope.comparison.side import Side, of_profile
from stepscope.diagnosis.engine import diagnose
from tests.kit.events import Event
from tests.kit.loop import run
from tests.kit.plan import Plan
from tests.kit.planted import CASES
from tests.kit.traces import KINETO_TRACES, real_trace
from tests.support import read_trace, trace_of


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


@pytest.mark.parametrize("name", KINETO_TRACES)
def test_a_real_run_does_not_differ_from_itself(name: str):
    facts = analyse(read_trace(real_trace(name)))
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


def test_other_devices_are_named():
    one = side(Plan(seed=0))
    other = replace(one, setting={**one.setting, "World size": "8"})
    assert compare(one, other).differences == ("World size differ: not recorded, then 8.",)
