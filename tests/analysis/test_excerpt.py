"""Some steps of a profile: what they are made of is kept, and they take as long as they took."""

from __future__ import annotations

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.excerpt import by_steps
from stepscope.analysis.facts import Facts
from stepscope.errors import UsageError
from stepscope.trace.select import select
from stepscope.trace.trace import Trace
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event
from tests.kit.traces import KINETO_TRACES
from tests.support import facts_of, real_facts


def running_ahead(steps: int = 6) -> list[Event]:
    """Steps 3, 4, … of 100 us on the host; each launches a kernel of 120 us, so that the device falls behind."""
    drawing = TraceDrawing()
    drawing.python("train.py(1): main", 0, 100 * steps)
    free = 0
    for step in range(steps):
        at = 100 * step
        drawing.step(3 + step, at, 100)
        free = max(free, at + 50)
        drawing.kernel(drawing.launch(at + 10, 5), f"gemm{3 + step}", free, 120)
        drawing.memory(at + 20, 512)
        free += 120
    return drawing.events()


def excerpt(facts: Facts, first: int | None, stop: int | None) -> Facts:
    return analyse(select(facts.trace, by_steps(facts, first, stop)))


def names(trace: Trace) -> set[str]:
    return {trace.name_of(row) for row in range(len(trace.slices))}


def test_steps_keep_their_ops_however_late_they_ran_and_no_others():
    facts = facts_of(running_ahead())
    part = excerpt(facts, 5, 7)
    assert part.markers.numbers == (5, 6)
    found = names(part.trace)
    # gemm4 still ran when step 5 began on the host: without it step 5 would seem to wait from its start.
    assert {name for name in found if name.startswith("gemm")} == {"gemm4", "gemm5", "gemm6"}
    assert "train.py(1): main" in found
    assert part.step_ns.tolist() == [120_000, 120_000]
    assert (part.trace.device_ops.launch >= 0).all()
    assert len(part.trace.memory) == 2


def test_one_step_open_ends_and_all():
    facts = facts_of(running_ahead())
    assert excerpt(facts, 5, 6).markers.numbers == (5,)
    assert excerpt(facts, None, 5).markers.numbers == (3, 4)
    assert excerpt(facts, 7, None).markers.numbers == (7, 8)
    assert excerpt(facts, None, None).step_ns.tolist() == facts.step_ns.tolist()
    assert by_steps(facts, 5, 6).words == "step 5"
    assert by_steps(facts, 5, 7).words == "steps 5 to 6"


def test_a_missing_step_is_refused_with_what_there_is():
    with pytest.raises(UsageError, match="no such step: this profile has steps 3 to 8"):
        by_steps(facts_of(running_ahead()), 9, None)


def test_numbers_that_repeat_are_refused():
    drawing = TraceDrawing()
    for at, number in enumerate((1, 2, 3, 1, 2, 3)):
        drawing.step(number, 100 * at, 100)
    facts = facts_of(drawing.events())
    with pytest.raises(UsageError, match="step 2 begins at 100 µs and step 2 begins at 400 µs; choose by time"):
        by_steps(facts, 2, 3)
    assert excerpt(facts, 1, 4).markers.numbers == (1, 2, 3, 1, 2, 3)


def test_ops_without_launches_are_kept_by_their_time():
    drawing = TraceDrawing()
    for step in range(4):
        drawing.step(step, 100 * step, 100)
        drawing.kernel(None, f"gemm{step}", 100 * step + 50, 40)
    part = excerpt(facts_of(drawing.events()), 1, 3)
    assert {name for name in names(part.trace) if name.startswith("gemm")} == {"gemm1", "gemm2"}


def test_markers_of_other_steps_that_reach_in_are_dropped():
    drawing = TraceDrawing()
    for step in (1, 2, 3):
        drawing.step(step, 100 * step, 100)
    drawing.step(9, 150, 100, thread="other")
    drawing.host("aten::mm", 210, 10)
    part = excerpt(facts_of(drawing.events()), 2, 3)
    assert part.markers.numbers == (2,)
    assert "ProfilerStep#9" not in names(part.trace)


@pytest.mark.parametrize("name", KINETO_TRACES)
def test_inner_steps_of_real_profiles_stay_what_they_were(name):
    facts = real_facts(name)
    numbers = facts.markers.numbers
    if len(numbers) < 4 or None in numbers:
        return
    part = excerpt(facts, numbers[1], None)
    assert part.markers.numbers == numbers[1:]
    assert part.step_ns[1:].tolist() == facts.step_ns[2:].tolist()
