"""Worker processes that are started for every epoch are a finding of their own; a first start is not."""

from __future__ import annotations

import pytest

from stepscope.diagnosis.finding import Finding
from tests.diagnosis.loops import diagnosed, loop, work
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event

STEP = 20_000
LOADER = "torch/utils/data/dataloader.py"
TAKE = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
START = f"{LOADER}(492): __iter__"


def epochs(*starting: int, ends: bool = True, steps: int = 8, device: bool = False) -> list[Event]:
    """Steps of 20 ms. Those ``starting`` an epoch wait 2 ms for old workers, where there are any, 6 ms for two new ones
    and 3 ms for the first batch; all others wait 100 µs for theirs."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.python("train.py(9): main", start, STEP - 10)
        at = start + 10
        if number in starting:
            if ends:
                drawing.python(f"{LOADER}(1606): _shutdown_workers", at, 2_000)
                drawing.python("multiprocessing/process.py(142): join", at + 10, 1_900)
                at += 2_000
            drawing.python(START, at, 6_000)
            for worker in range(2):
                drawing.python("multiprocessing/process.py(110): start", at + 100 + 2_500 * worker, 2_000)
            at += 6_000
            drawing.annotation(TAKE, at, 3_000)
            at += 3_000
        else:
            drawing.annotation(TAKE, at, 100)
            at += 100
        if device:
            work(drawing, at, start + STEP)
        else:
            drawing.host("aten::linear", at, start + STEP - 100 - at)

    return loop(STEP, step, steps)


def starts(events: list[Event]) -> list[Finding]:
    return [found for found in diagnosed(events).findings if found.rule == "worker_starts"]


@pytest.mark.parametrize("device", [False, True])
def test_workers_started_again_cost_their_start_their_end_and_a_late_first_batch(device: bool):
    (found,) = starts(epochs(2, 5, device=device))
    # Of the first batch no more counts than a process takes to start: 2 ms of its 3.
    assert found.cost_ns_per_step == pytest.approx(2 * 10_000_000 / 6, rel=0.02)
    assert found.saving_ns_per_step == pytest.approx(2 * 10_000_000 / 6, rel=0.05)
    assert (found.where[0].file, found.where[0].function) == ("train.py", "main")
    assert "2 processes, 6.00 ms" in found.why
    assert "every 3 steps" in found.why
    assert "persistent_workers=True" in found.fix


def test_input_bound_tells_only_what_is_left():
    left = [found for found in diagnosed(epochs(2, 5)).findings if found.rule == "input_bound"]
    assert sum(found.cost_ns_per_step or 0 for found in left) < 600_000


def test_one_start_behind_other_batches_is_told_as_seen_once():
    (found,) = starts(epochs(4))
    assert found.title.endswith("(seen once)")
    assert found.confidence == "low"
    assert "only if the loop begins anew that often" in found.why


def test_the_first_start_of_a_job_is_none():
    assert starts(epochs(0, ends=False)) == []


def test_workers_that_stay_are_none():
    assert starts(epochs()) == []


def test_steps_that_start_workers_are_no_slow_ones_for_some_python_beside_it():
    """Starting them leaves some Python behind: more than half of a short step, and little of what they take longer."""
    drawing, at = TraceDrawing(), 0
    for number in range(12):
        length = 42_000 if number % 4 == 2 else 2_000
        drawing.step(number, at, length)
        drawing.python("train.py(9): main", at, length - 10)
        if number % 4 == 2:
            drawing.python(START, at + 10, 38_000)
            drawing.python("multiprocessing/process.py(110): start", at + 20, 37_000)
        drawing.annotation(TAKE, at + length - 1_900, 100)
        drawing.host("aten::linear", at + length - 1_700, 1_600)
        at += length
    found = diagnosed(drawing.events())
    assert found.findings[0].rule == "worker_starts"
    assert "slow_steps" not in {finding.rule for finding in found.findings}
    assert "every 4 steps" in found.findings[0].why
