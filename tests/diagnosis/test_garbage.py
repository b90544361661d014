"""Garbage collected while input is made, or code compiled, goes with that: it is told first, whatever each saves."""

from __future__ import annotations

import pytest

from stepscope.diagnosis.finding import Diagnosis
from tests.diagnosis.loops import diagnosed
from tests.kit.builder import TraceDrawing

STEP, COLLECTS = 10_000, 60_000
RANGE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def told(*, inside: bool, every: int) -> Diagnosis:
    """Twelve steps, 2 ms of each for a batch; one of so many collects garbage for 60, in there or behind it."""
    drawing, start = TraceDrawing(), 0
    for number in range(12):
        collects = COLLECTS * (number % every == every - 1)
        making = 2_000 + collects * inside
        drawing.step(number, start, STEP + collects)
        drawing.annotation(RANGE, start, making)
        drawing.python("data.py(18): __getitem__", start + 10, making - 100)
        if collects:
            drawing.annotation("gc", start + (100 if inside else 2_100), COLLECTS)
        drawing.host("aten::linear", start + 2_100 + collects, 7_500)
        start += STEP + collects
    return diagnosed(drawing.events())


@pytest.mark.parametrize(("every", "rule"), [(5, "slow_steps"), (1, "between_steps")])
def test_it_is_told_behind_the_input(every: int, rule: str):
    first, garbage = told(inside=True, every=every).findings[:2]
    assert first.rule == "input_bound"
    assert garbage.rule == rule
    assert "while it makes input" in garbage.title
    assert "100 % of it passes while input is made" in garbage.why
    assert garbage.saving_ns_per_step is not None
    assert first.saving_ns_per_step is not None
    assert garbage.saving_ns_per_step > first.saving_ns_per_step
    assert garbage.saving_after_ns_per_step == 0


@pytest.mark.parametrize("every", [5, 1])
def test_elsewhere_it_is_a_cause_of_its_own(every: int):
    garbage, other = told(inside=False, every=every).findings[:2]
    assert "garbage" in garbage.title
    assert "input" not in garbage.title
    assert garbage.saving_after_ns_per_step is None
    assert other.rule == "input_bound"


@pytest.mark.parametrize(("every", "rule"), [(5, "slow_steps"), (1, "between_steps")])
def test_while_code_is_compiled_it_is_told_behind_that(every: int, rule: str):
    drawing, start = TraceDrawing(), 0
    for number in range(12):
        collects = COLLECTS * (number % every == every - 1)
        drawing.step(number, start, STEP + collects)
        drawing.annotation("_compile.compile_inner (dynamo_timed)", start, 5_000 + collects)
        if collects:
            drawing.annotation("gc", start + 100, COLLECTS)
        drawing.host("aten::linear", start + 5_100 + collects, 4_800)
        start += STEP + collects
    diagnosis = diagnosed(drawing.events())
    first, garbage = diagnosis.findings[:2]
    assert (first.rule, garbage.rule) == ("recompilation", rule)
    assert "while it compiles" in garbage.title
    assert garbage.saving_after_ns_per_step == 0
    assert diagnosis.plan == (first.id, garbage.id)
