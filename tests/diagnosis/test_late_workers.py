"""Workers that cannot keep up on a machine that has no core for more of them: their own code is what can be cheaper."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stepscope.analysis.recording import RecordedRun
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Finding
from tests.kit.builder import TraceDrawing
from tests.support import facts_of

MS = 1_000
LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def told(waits_ms: float, cores: int) -> Finding | None:
    """Of steps that compute for 10 ms, and wait as long for two workers."""
    drawing, length = TraceDrawing(), round((10 + waits_ms) * MS)
    for number in range(8):
        start = number * length
        drawing.step(number, start, length)
        drawing.annotation(LOADER, start, length - 10 * MS)
        drawing.python("<built-in method poll of select.poll object>", start, length - 10 * MS)
        drawing.host("aten::mm", start + length - 10 * MS, 10 * MS)
    facts = replace(facts_of(drawing.events()), run=RecordedRun(cores=cores, machine_cores=cores, workers=2))
    return next((found for found in diagnose(facts).findings if found.rule == "input_bound"), None)


def test_what_they_do_is_to_be_cheaper_and_all_of_the_wait_goes_at_most() -> None:
    found = told(30, 2)
    assert found is not None
    assert (found.saving_ns_per_step, found.predicted_step_ns) == (0, 40_000_000)
    assert found.best_step_ns is not None
    assert 0 < found.best_step_ns <= 10_000_000
    assert "on the 2 cores that this process may use more of them would gain nothing" in found.fix
    assert "record once with `num_workers=0`" in found.fix
    assert "num_workers=4" not in found.fix
    assert [option.predicted_step_ns for option in found.options] == [10_000_000]


def test_with_cores_left_more_of_them_are_the_cure() -> None:
    found = told(30, 16)
    assert found is not None
    assert (found.saving_ns_per_step or 0) > 20_000_000
    assert "would gain nothing" not in found.fix


@pytest.mark.parametrize("cores", [2, 16])
def test_a_short_wait_is_none_worth_a_word(cores: int) -> None:
    assert told(0.2, cores) is None
