"""What was promised of a finding is held against what came, also where it became less."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stepscope.analysis.recording import RecordedRun
from stepscope.comparison.compare import Comparison, compare
from stepscope.comparison.side import Side, of_profile
from stepscope.diagnosis.engine import diagnose
from stepscope.report.comparison import make, text
from tests.kit.builder import TraceDrawing
from tests.support import facts_of

US, STEPS, REST = 1_000, 10, 2_000
IN_LOOP = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
IN_WORKERS = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def run(input_us: int, loader: str = IN_LOOP, *, unrecorded: float | None = 1.0, workers: int = 0) -> Side:
    """Steps that wait for input and then compute for 2 ms, on two cores; recorded by ``stepscope run`` or not."""
    drawing, step = TraceDrawing(), input_us + REST
    for number in range(STEPS):
        start = number * step
        drawing.step(number, start, step)
        drawing.annotation(loader, start, input_us)
        drawing.python("data.py(12): augment", start, input_us)
        drawing.host("aten::mm", start + input_us, REST)
    known = RecordedRun() if unrecorded is None else RecordedRun(step * US, round(unrecorded * step * US))
    facts = replace(facts_of(drawing.events()), run=replace(known, cores=2, machine_cores=2, workers=workers))
    return of_profile(facts, diagnose(facts))


def found(before: Side, after: Side) -> Comparison:
    made = compare(before, after)
    assert made.achieved is not None
    return made


def test_a_cheaper_function_is_promised_the_part_that_went() -> None:
    achieved = found(run(20_000), run(5_000)).achieved
    assert achieved is not None
    assert (achieved.gone, achieved.less) == ((), ("input_bound.1",))
    assert achieved.predicted_step_ns == pytest.approx(7_000 * US, rel=0.01)
    assert abs(achieved.off_share) < 0.01


def test_workers_are_promised_what_the_cores_can_do() -> None:
    # 22 ms of work on two cores: 11 to 15 ms, of which 13 came.
    made = found(run(20_000), run(9_900, IN_WORKERS, workers=2))
    achieved = made.achieved
    assert achieved is not None
    assert achieved.less == ("input_bound.1",)
    assert achieved.best_step_ns == pytest.approx(11_000 * US, rel=0.01)
    assert achieved.off_share == 0
    said = text(make(made, ("a", "b")))
    assert "With less of “The main thread waits for input data” a step was predicted to take 11.0 ms to" in said
    assert "(as promised)" in said


def test_what_stays_is_promised_nothing() -> None:
    assert compare(run(20_000), run(19_000)).achieved is None


def test_both_runs_are_told_of_as_when_nobody_records() -> None:
    achieved = found(run(20_000, unrecorded=0.8), run(5_000, unrecorded=0.9)).achieved
    assert achieved is not None
    assert achieved.unrecorded
    assert achieved.measured_step_ns == pytest.approx(0.9 * 7_000 * US)


def test_where_one_run_does_not_know_that_both_are_as_recorded() -> None:
    achieved = found(run(20_000, unrecorded=0.8), run(5_000, unrecorded=None)).achieved
    assert achieved is not None
    assert not achieved.unrecorded
    assert achieved.measured_step_ns == 7_000 * US
    assert achieved.predicted_step_ns == pytest.approx(7_000 * US, rel=0.25)  # half of the calls are in the loader
