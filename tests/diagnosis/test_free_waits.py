"""A wait that costs nothing is told of where a reader would look for it; how PyTorch itself tells of waits."""

from __future__ import annotations

import pytest

from stepscope.analysis.workload import Workload
from stepscope.diagnosis.finding import Diagnosis
from stepscope.diagnosis.limits import FREE_WAIT_SHARE
from stepscope.diagnosis.remedies import PYTORCH, SYNC_DEBUG
from tests.diagnosis.loops import CALL, diagnosed, loop, work
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event, Stream

STEP = 10_000


def waiting(blocked_us: int, idle_us: int = 0) -> list[Event]:
    """The device always has the work of a step ahead, but for some idle time; the host waits for it."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.python("train.py(12): mask", start + 100, blocked_us + 10)
        drawing.host("aten::nonzero", start + 100, blocked_us)
        drawing.sync(start + 100, blocked_us)
        work(drawing, start + idle_us, start + STEP, "long")

    return loop(STEP, step)


def told(diagnosis: Diagnosis) -> list[str]:
    return [notice.text for notice in diagnosis.notices if notice.code == "wait_costs_nothing"]


def test_a_long_wait_without_cost_is_explained():
    (text,) = told(diagnosed(waiting(9_000)))
    assert text.startswith("`aten::nonzero` (in `mask`, which begins at train.py:12) keeps the host waiting for ")
    assert "9.00 ms per step (90.0 %)" in text
    assert "the device is at work meanwhile" in text


def test_a_wait_that_one_of_two_devices_minds_costs_something():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.host("aten::nonzero", start + 1_000, 8_000)
        drawing.sync(start + 1_000, 8_000)
        busy, dry = drawing.launch(start + 10, CALL), drawing.launch(start + 40, CALL)
        drawing.kernel(busy, "long", start + 60, STEP - 100)
        drawing.kernel(dry, "short", start + 60, 5_000, Stream(1, 7))

    diagnosis = diagnosed(loop(STEP, step))
    assert not told(diagnosis)


@pytest.mark.parametrize(("share", "count"), [(FREE_WAIT_SHARE + 0.01, 1), (FREE_WAIT_SHARE - 0.01, 0)])
def test_from_the_limit_on(share: float, count: int):
    assert len(told(diagnosed(waiting(round(share * STEP))))) == count


def costly() -> Diagnosis:
    """The device runs dry behind each wait."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.host("aten::view", start, 2_000 - CALL)
        work(drawing, start + 2_000 - CALL, start + STEP)
        drawing.host("aten::nonzero", start + 2_100, STEP - 2_100)
        drawing.sync(start + 2_100, STEP - 2_100)

    return diagnosed(loop(STEP, step))


def test_a_wait_that_costs_is_a_finding_and_not_explained_away():
    found = costly()
    assert not told(found)
    assert [finding.rule for finding in found.findings] == ["sync_bound"]


def test_how_pytorch_itself_tells_of_waits_is_said():
    (finding,) = costly().findings
    assert 'torch.cuda.set_sync_debug_mode("warn")' in finding.fix
    assert "UserWarning: called a synchronizing CUDA operation" in finding.fix


@pytest.mark.parametrize("workload", [Workload(PYTORCH, newest=(1, 9)), Workload(PYTORCH, vendors=frozenset({"AMD"}))])
def test_it_is_said_only_where_pytorch_has_it(workload: Workload):
    assert not SYNC_DEBUG.fits(workload)
