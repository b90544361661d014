"""Time in which the thread of the steps was ready to run and had no core."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.core_waits import CoreWaits, core_waits
from stepscope.analysis.recording import run_of
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Diagnosis
from stepscope.formats.beside.rows import table_of
from stepscope.trace.tables import NULL, Looks
from stepscope.trace.trace import Trace
from tests.kit.builder import TraceDrawing
from tests.support import trace_of

STEP_NS = 20_000_000


def looked_at(trace: Trace, *looks: tuple[int, int]) -> Trace:
    """The trace with looks at its first thread: when each was, and how long the thread had waited for a core."""
    rows = [(at, 0, "/job/train.py", 7, "main", waited) for at, waited in looks]
    strings, table = table_of(trace.strings, Looks, rows)
    return replace(trace, strings=strings, looks=table)


def job(slow_ns: int) -> Trace:
    """Eight steps, of which the fifth takes longer in a function of the program."""
    drawing, start = TraceDrawing(), 0
    for number in range(8):
        length = STEP_NS + (number == 4) * slow_ns
        us = start // 1_000, length // 1_000
        drawing.step(number, *us)
        drawing.host("aten::mm", us[0] + us[1] - STEP_NS // 1_000 + 100, STEP_NS // 1_000 - 100)
        drawing.python("train.py(7): save_figures", us[0], us[1] - STEP_NS // 1_000 + 90)
        start += length
    return trace_of(drawing.events())


def told(waited_ns: int) -> Diagnosis:
    """Of a step that takes 30 ms longer, in which its thread waited so long for a core."""
    trace, over = job(30_000_000), 5 * STEP_NS + 30_000_000
    looks = [(0, 0), (4 * STEP_NS, 0), (over, waited_ns), (over + 3 * STEP_NS, waited_ns)]
    return diagnose(analyse(looked_at(trace, *looks)))


@pytest.mark.parametrize(
    ("waited_ns", "found", "said"), [(0, True, False), (29_000_000, False, True), (NULL, True, False)]
)
def test_a_step_that_was_slow_for_want_of_a_core_is_none_of_the_program_s(
    waited_ns: int, found: bool, said: bool
) -> None:
    told_ = told(waited_ns)
    assert any(each.rule == "slow_steps" for each in told_.findings) is found
    notices = {each.code: each.text for each in told_.notices}
    assert ("no_core" in notices) is said
    if said:
        assert "1 of 6 steps took much longer for that" in notices["no_core"]
        assert "19.3 % of its time" in notices["no_core"]


@pytest.mark.parametrize("starved_share", [0.0, 0.25])
def test_where_all_steps_had_no_core_for_a_while_savings_are_ranges(starved_share: float) -> None:
    """Two fifths of each step are Python of the program, and a quarter of all time no core was free."""
    drawing = TraceDrawing()
    for number in range(8):
        start = number * STEP_NS // 1_000
        drawing.step(number, start, STEP_NS // 1_000)
        drawing.python("train.py(7): save_figures", start, 8_000)
        drawing.host("aten::mm", start + 8_000, 12_000)
    looks = [(at, round(at * starved_share)) for at in range(0, 8 * STEP_NS + 1, 4_000_000)]
    found = diagnose(analyse(looked_at(trace_of(drawing.events()), *looks)))
    (finding,) = [each for each in found.findings if each.rule == "between_steps"]
    saving = 8_000_000
    assert finding.saving_ns_per_step == pytest.approx(saving * (1 - starved_share), rel=0.01)
    assert finding.predicted_step_ns == pytest.approx(STEP_NS - saving * (1 - starved_share), rel=0.01)
    notices = {each.code: each.text for each in found.notices}
    assert ("Savings are told as ranges" in notices.get("no_core", "")) is bool(starved_share)
    if starved_share:
        assert finding.best_step_ns == pytest.approx(STEP_NS - saving, rel=0.01)


def test_a_step_that_is_slow_for_the_program_too_stays_a_finding() -> None:
    assert any(each.rule == "slow_steps" for each in told(12_000_000).findings)


def test_what_may_have_passed_in_a_window_is_bounded_by_each_stretch_between_looks() -> None:
    waits = CoreWaits(np.array([0, 10, 20, 30]), np.array([0, 0, 8, 9]))

    def most(start: int, end: int) -> int:
        return sum(min(grown, max(0, min(end, at + 10) - max(start, at))) for at, grown in ((0, 0), (10, 8), (20, 1)))

    windows = [(start, end) for start in range(-2, 33) for end in range(start, 35)]
    start, end = np.array(windows, np.int64).T
    assert waits.most(start, end).tolist() == [most(*window) for window in windows]
    assert waits.between(np.array([5]), np.array([15])).tolist() == [4]


def test_a_wait_that_the_system_counts_at_its_end_passed_before() -> None:
    trace = looked_at(job(0), (0, 0), (10, 0), (20, 0), (30, 15))
    found = core_waits(trace, 0)
    assert found is not None
    assert found.waited_ns.tolist() == [0, 0, 5, 15]


@pytest.mark.parametrize("looks", [(), ((0, 0),), ((0, NULL), (10, NULL))])
def test_without_counts_nothing_is_known(looks: tuple[tuple[int, int], ...]) -> None:
    assert core_waits(looked_at(job(0), *looks), 0) is None


def beside(*threads: object) -> str | None:
    run = run_of({"machine": {"threads": list(threads)}})
    notices = diagnose(replace(analyse(job(0)), run=run)).notices
    return next((each.text for each in notices if each.code == "threads_beside"), None)


MONITOR = {
    "name": "Thread-1", "ran_ns": 61, "passed_ns": 100, "file": "/job/gil.py", "line": 3, "function": "monitor",
}  # fmt: skip


def test_threads_that_compute_beside_the_steps_are_named() -> None:
    said = beside(
        {"name": "loader", "ran_ns": 20, "passed_ns": 100}, {"name": "bar", "ran_ns": 2, "passed_ns": 100}, MONITOR
    )
    assert said is not None
    assert "`monitor` (gil.py:3) 61.0 % of the time, `loader` 20.0 % of the time." in said
    assert "bar" not in said


@pytest.mark.parametrize(
    "thread",
    [
        MONITOR | {"ran_ns": 9},
        MONITOR | {"ran_ns": "many"},
        MONITOR | {"passed_ns": 0},
        MONITOR | {"name": None},
        "monitor",
    ],
)
def test_who_hardly_runs_is_not_told_nor_what_is_no_thread(thread: object) -> None:
    assert beside(thread) is None
