"""A wait for another thread, a process, or what comes in is no work of the thread that waits."""

from __future__ import annotations

import pytest

from stepscope.diagnosis.finding import Diagnosis
from stepscope.names.hosts import awaits_others
from tests.diagnosis.loops import CALL, diagnosed
from tests.kit.builder import TraceDrawing

US, STEP, WAIT, LATE, STEPS = 1_000, 10_000, 6_000, 40_000, 12
TITLE = "Steps wait for another thread or process, or for what comes in"


def waiting(*frames: str, late: bool = False, device: bool = False) -> Diagnosis:
    """Steps of 10 ms, 6 in nested frames below the loop's function; one is 40 ms longer where something is late."""
    drawing, start = TraceDrawing(), 0
    for number in range(STEPS):
        wait = WAIT + LATE * (late and number == STEPS // 2)
        length = STEP + wait - WAIT
        drawing.step(number, start, length)
        drawing.python("train.py(5): main", start, length - 10)
        for depth, frame in enumerate(frames):
            drawing.python(frame, start + 20 + depth, wait - 2 * depth)
        drawing.host("aten::linear", start + wait + 30, STEP - WAIT - 100)
        if device:
            drawing.kernel(drawing.launch(start + wait + 40, CALL), "gemm", start + wait + 50, STEP - WAIT - 60)
        start += length
    return diagnosed(drawing.events())


@pytest.mark.parametrize("device", [False, True])
def test_it_is_told_without_a_saving(device: bool):
    (found,) = waiting("queue.py(154): get", "threading.py(295): wait", device=device).findings
    assert (found.rule, found.title) == ("between_steps", TITLE)
    assert found.cost_ns_per_step == pytest.approx(WAIT * US, rel=0.02)
    assert (found.saving_ns_per_step, found.best_step_ns) == (None, None)
    assert "every N steps" not in found.fix
    assert (found.where[0].file, found.where[0].function) == ("train.py", "main")


def test_a_step_in_which_it_was_late_says_so():
    found = {each.rule: each for each in waiting("queue.py(154): get", late=True).findings}
    assert "is waited for" in found["slow_steps"].title
    assert found["slow_steps"].saving_ns_per_step is None


def test_python_that_works_is_told_as_ever():
    found = {each.rule: each for each in waiting("report.py(9): log", late=True).findings}
    assert found["between_steps"].saving_ns_per_step is not None
    assert "as Python code runs that launches nothing" in found["slow_steps"].title
    assert TITLE not in {each.title for each in found.values()}


@pytest.mark.parametrize(
    ("name", "awaits"),
    [
        ("/usr/lib/python3.11/queue.py(171): get", True),
        ("concurrent/futures/_base.py(428): result", True),
        ("multiprocessing/connection.py(246): recv", True),
        ("<built-in method acquire of _thread.lock object at 0x7f1>", True),
        ("<built-in method recv_into of _socket.socket object at 0x7f1>", True),
        ("my_queue.py(3): get", False),
        ("queue.py(209): _qsize", False),
        ("<built-in method acquire of Camera object at 0x7f1>", False),
        ("<built-in function sleep>", False),
    ],
)
def test_names(name: str, awaits: bool):
    assert awaits_others(name) == awaits
