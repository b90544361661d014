"""The cure that is read first has its own figure beside it, and says whose saving the headline is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stepscope.analysis.recording import run_of
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Finding
from tests.kit.builder import TraceDrawing
from tests.support import facts_of

MS = 1_000
RANGE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def told(cores: int) -> Finding:
    """Of steps of 10 ms, of which 8 go by in taking eight samples, on a machine of so many cores."""
    drawing, length = TraceDrawing(), 10 * MS
    for number in range(12):
        start = number * length
        drawing.step(number, start, length)
        drawing.annotation(RANGE, start, 8 * MS)
        for sample in range(8):
            drawing.python("data.py(18): __getitem__", start + 50 + sample * 950, 940)
        drawing.host("aten::mm", start + 8_100, 1_800)
    machine = {"cores": cores, "machine_cores": cores, "workers": 0}
    step = {"recorded": length * 1_000, "unrecorded": length * 1_000}
    facts = replace(facts_of(drawing.events()), run=run_of({"machine": machine, "step_ns": step}))
    return next(found for found in diagnose(facts).findings if found.rule == "input_bound")


def test_where_cheaper_code_comes_first_its_saving_is_there_and_workers_are_told_to_be_the_headline():
    found = told(cores=2)
    first, second = found.fix.splitlines()[:2]
    assert first.startswith(
        "Make `__getitem__` (data.py:18) cheaper, or do its work ahead of time, which saves up to 7.5"
    )
    assert second.endswith("per step, the saving told above.")
    workers, cheaper = found.options
    assert found.predicted_step_ns == workers.predicted_step_ns > cheaper.predicted_step_ns


def test_where_workers_do_most_of_it_they_come_first_and_are_the_headline():
    found = told(cores=16)
    assert "num_workers=" in found.fix.split("A batch takes")[0]
    assert "the saving told above" not in found.fix
    assert found.options[0].workers
    assert found.saving_ns_per_step == pytest.approx(8_000_000, rel=0.15)
