"""Loader threads beside the launching one: only a contrast inside the profile shows that they hold it up."""

from __future__ import annotations

import pytest

from tests.diagnosis.loops import CALL, diagnosed, loop
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event

US = 1_000
STEP = 2_000


def beside(slow_us: int, threads: int = 2, *, fast_us: int = 20, loader: bool = True) -> list[Event]:
    """Five ops at the start of a step beside loader threads, each so long, and five by themselves."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        at = start
        for k in range(10):
            length = slow_us if k < 5 else fast_us
            drawing.host("aten::add", at, length)
            drawing.kernel(drawing.launch(at + length - CALL, CALL), "k", at + length, 5)
            at += length
            if k == 4:
                for thread in range(threads):
                    name = "load batch" if loader else "something"
                    drawing.annotation(name, start, at - start, f"loader {thread}")
                    drawing.host("aten::div", start, at - start, thread=f"loader {thread}")
        drawing.kernel(drawing.launch(at - CALL + 1, 1), "tail", at + 5, start + STEP - at - 5)

    return loop(STEP, step)


def contention(events: list[Event]):
    found = diagnosed(events)
    return [f for f in (*found.findings, *found.minor) if f.rule == "host_contention"]


def test_the_same_op_beside_loaders_and_by_itself():
    (finding,) = contention(beside(100))
    assert finding.cost_ns_per_step == 5 * 80 * US
    assert finding.saving_ns_per_step == pytest.approx(5 * 80 * US, rel=0.06)
    assert (finding.basis, finding.confidence) == ("heuristic", "low")
    assert "Beside 2 loader threads `aten::add` takes 100 µs on the launching thread, by itself 20.0 µs" in finding.why
    assert "OMP_NUM_THREADS" in finding.fix


@pytest.mark.parametrize(
    "events",
    [beside(39), beside(100, threads=1), beside(100, loader=False), beside(100, fast_us=100)],
    ids=["less than twice", "one thread", "threads that load nothing", "no contrast"],
)
def test_without_the_contrast_nothing_is_said(events: list[Event]):
    assert contention(events) == []
