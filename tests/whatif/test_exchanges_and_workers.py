"""What comes after a collective takes its result; threads that launch in turn with the main one hold up the step."""

from __future__ import annotations

import pytest

from stepscope.analysis.facts import Facts
from stepscope.whatif import changes
from stepscope.whatif.change import Change
from stepscope.whatif.graph import dependency_graph
from stepscope.whatif.replay import replay
from tests.diagnosis.loops import CALL, facts_with, loop
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event, Stream

US = 1_000
STEP = 10_000
BESIDE = Stream(stream=9)


def saved(facts: Facts, change: Change) -> float:
    graph, used = dependency_graph(facts), list(facts.used)
    assert replay(facts, graph, Change())[used].mean() == pytest.approx(facts.step_ns[used].mean(), rel=0.002)
    return float((replay(facts, graph, Change()) - replay(facts, graph, change))[used].mean()) / US


def without_waits(facts: Facts) -> Change:
    return Change(waits=frozenset(facts.host.waits.slice.tolist()))


def exchanging(*, beside: bool = False, second: bool = False) -> list[Event]:
    """Each step computes for 5 ms, then exchanges for 4 ms, then waits for that; the next step's compute comes 500 us
    later. ``beside`` the exchange the step computes once more; a ``second`` stream computes too."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        begin = start + 200
        drawing.kernel(drawing.launch(begin, CALL), "k", begin + CALL, 5_000)
        if second:
            drawing.kernel(drawing.launch(begin + 10, CALL), "k", begin + 10 + CALL, 4_000, BESIDE)
        drawing.collective(drawing.launch(begin + 20, CALL), begin + CALL + 5_010, 4_000, kind="allgather")
        if beside:
            drawing.kernel(drawing.launch(begin + 30, CALL), "k", begin + CALL + 5_100, 1_000)
        drawing.sync(begin + 40, 9_000 + CALL + 10 - 40)

    return loop(STEP, step)


@pytest.mark.parametrize("second", [False, True])
def test_what_comes_after_a_collective_takes_its_result(second: bool):
    """A step is the 9 ms of both, whoever waits for what: the wait costs what the device idles behind it."""
    facts = facts_with(exchanging(second=second))
    assert saved(facts, without_waits(facts)) == pytest.approx(985, abs=30)


def test_compute_that_ran_beside_a_collective_does_not_take_its_result():
    """Ops of the next step may then run beside it as well: the exchange is the shorter of the two streams' work."""
    facts = facts_with(exchanging(beside=True))
    assert saved(facts, without_waits(facts)) > 3_000


@pytest.mark.parametrize("stream", [Stream(stream=20), Stream()])
def test_who_waited_for_an_exchange_that_goes_waits_for_what_it_came_behind(stream: Stream):
    """Each step computes for 5 ms and then exchanges for 3, which the host waits for before it goes on for 1.5 ms: of
    9.5 ms all but the exchange stay, whether it is on a stream of its own or on that of what it takes."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.host("aten::step", start, 1_490)
        drawing.kernel(drawing.launch(start + 1_490, CALL), "k", start + 1_500, 5_000)
        drawing.collective(drawing.launch(start + 1_498, CALL), start + 6_505, 3_000, stream)
        drawing.sync(start + 1_505, 8_002, "cudaDeviceSynchronize")

    facts = facts_with(loop(9_510, step))
    assert saved(facts, changes.without_collectives(facts)) == pytest.approx(3_000, abs=20)


def handing(thread: str, frames: tuple[str, ...] = (), *, late: int = 0, busy: bool = False) -> list[Event]:
    """Each step launches 40 kernels from the main thread and 80 from another, one in 50 us each; the main one waits
    meanwhile, and goes on ``late`` after it. ``busy``: it calls ops all the while."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.python("train.py(50): step", start, STEP - 10)
        for at in range(40):
            drawing.host("aten::mul", start + at * 50, 40)
            drawing.kernel(drawing.launch(start + at * 50 + 30, CALL), "k", start + at * 50 + 40, 10)
        for depth, frame in enumerate(frames):
            drawing.python(frame, start + 2_005 + depth, 3_990 - 2 * depth)
        for at in range(80):
            begin = start + 2_005 + at * 50
            drawing.host("aten::add", begin, 40, thread=thread)
            drawing.kernel(drawing.launch(begin + 30, CALL, thread=thread), "k", begin + 40, 10)
            if busy:
                drawing.host("aten::empty", begin, 45)
        drawing.host("aten::item", start + 6_005 + late, 30)
        copy = drawing.call("cudaMemcpyAsync", start + 6_010 + late, CALL)
        drawing.copy(copy, "DtoH", start + 6_016 + late, 2, 4, "Pinned")
        drawing.sync(start + 6_016 + late, 10)

    return loop(STEP, step)


@pytest.mark.parametrize(
    "frames",
    [
        (),
        ("concurrent/futures/_base.py(430): result", "<built-in method acquire of _thread.lock object at 0x1>"),
        ("queue.py(160): get", "threading.py(320): wait"),
    ],
)
def test_what_a_worker_launches_is_what_the_step_waits_for(frames: tuple[str, ...]):
    """All 120 launches of 50 us each hold up the device, whichever thread they are on."""
    facts = facts_with(handing("worker", frames))
    assert len(facts.host.workers) == 1
    assert saved(facts, changes.without_dispatch(facts)) > 4_000


def test_a_pool_of_workers_that_follow_each_other_is_one_line():
    first, other = handing("worker"), handing("another", late=0)
    events = [event for event in first if event.start_ns < 3 * STEP * US]
    events += [event for event in other if event.start_ns >= 3 * STEP * US]
    facts = facts_with(events)
    assert len(facts.host.workers) == 2
    assert {*facts.host.workers, facts.host.main} == set(dependency_graph(facts).tracks[0])


@pytest.mark.parametrize("events", [handing("worker", busy=True), handing("worker", late=2_500)])
def test_a_thread_beside_the_main_one_is_no_worker_of_it(events: list[Event]):
    assert facts_with(events).host.workers == ()
