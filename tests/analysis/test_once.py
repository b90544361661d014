"""Work that is done once: what is recognised as such, and where its time is booked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.limits import FIRST_LAUNCH_NS, SET_UP_NS
from stepscope.analysis.once import Once
from stepscope.diagnosis.engine import diagnose
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event, Thread
from tests.support import facts_of

US = 1_000
LONG = 2 * FIRST_LAUNCH_NS // US
SET_UP = 2 * SET_UP_NS // US


def booked(facts: Facts, category: Category) -> int:
    """What all rows book to a category, in µs."""
    return int(facts.accounts[0].parts[:, category.code].sum()) // US


def kinds(facts: Facts) -> list[str]:
    return [str(kind) for kind in facts.once.kind]


def launching(drawing: TraceDrawing, start: float, name: str, call: float = 5, count: int = 1) -> float:
    """Kernels of a name one after another, each behind its launch; where the last ends."""
    for _ in range(count):
        drawing.kernel(drawing.launch(start, call), name, start + call, 10)
        start += call + 10
    return start


# --- code loading ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "loading"), [(LONG, True), (FIRST_LAUNCH_NS // US - 1, False)])
def test_a_first_launch_that_takes_long_loads_code(first: float, loading: bool):
    drawing = TraceDrawing()
    at = launching(drawing, 0, "a", count=10)
    at = launching(drawing, at, "b", call=first)
    launching(drawing, at, "b", count=10)
    facts = facts_of(drawing.events())
    assert kinds(facts) == ["loading"] * loading
    assert booked(facts, Category.COMPILE) == first * loading


def test_a_later_launch_that_takes_long_does_not():
    drawing = TraceDrawing()
    at = launching(drawing, 0, "a", count=10)
    launching(drawing, at, "a", call=LONG)
    facts = facts_of(drawing.events())
    assert kinds(facts) == []
    assert booked(facts, Category.LAUNCH) >= LONG


def test_where_every_launch_is_a_first_one_those_that_take_long_load_code():
    drawing, at = TraceDrawing(), 0.0
    for name in "abcdef":
        at = launching(drawing, at, name, call=LONG)
    assert booked(facts_of(drawing.events()), Category.COMPILE) == 6 * LONG


def test_where_all_launches_take_long_the_first_ones_are_like_the_others():
    drawing = TraceDrawing()
    launching(drawing, launching(drawing, 0, "a", call=LONG, count=4), "b", call=LONG, count=4)
    assert kinds(facts_of(drawing.events())) == []


def test_a_first_launch_that_waits_for_a_busy_device_does_not():
    """The queue is full: the call returns when the device has done some of it."""
    drawing = TraceDrawing()
    drawing.kernel(drawing.launch(0), "a", 10, LONG + 50)
    drawing.kernel(drawing.launch(20, LONG), "b", LONG + 60, 10)
    assert kinds(facts_of(drawing.events())) == []


def test_a_first_launch_behind_one_that_does_not_start_does_not():
    """The device may well work on something that was not recorded."""
    drawing = TraceDrawing()
    first = drawing.launch(0)
    second = drawing.launch(20, LONG)
    drawing.kernel(first, "a", LONG + 30, 10)
    drawing.kernel(second, "b", LONG + 45, 10)
    assert kinds(facts_of(drawing.events())) == []


def test_what_the_profiler_says_of_loading_is_booked_to_the_thread_that_launches():
    drawing = TraceDrawing()
    at = launching(drawing, 0, "a", count=3)
    drawing.overhead(at + 10, 80, "Lazy Function Loading")
    launching(drawing, at, "b", call=100)
    facts = facts_of(drawing.events())
    assert (kinds(facts), booked(facts, Category.COMPILE), booked(facts, Category.PROFILER)) == (["loading"], 80, 0)


@pytest.mark.parametrize("name", ["cuModuleLoadData", "cuLibraryLoadData", "hipModuleLoadData"])
def test_calls_that_load_code_by_name(name: str):
    drawing = TraceDrawing()
    at = launching(drawing, 0, "a", count=3)
    drawing.call(name, at, 300)
    launching(drawing, at + 300, "b")
    facts = facts_of(drawing.events())
    assert (kinds(facts), booked(facts, Category.COMPILE)) == (["loading"], 300)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("cudaStreamCreateWithFlags", True),
        ("hipInit", True),
        ("cudaFree", False),  # under FIRST_ALLOCATION_NS
        ("cudaEventSynchronize", False),
        ("cudaProfilerStart", False),
        ("TfrtCpuExecutable::Execute", False),
    ],
)
def test_a_call_that_should_be_short_sets_something_up(name: str, told: bool):
    drawing = TraceDrawing()
    at = launching(drawing, 0, "a", count=3)
    drawing.call(name, at, SET_UP)
    launching(drawing, at + SET_UP, "b")
    assert kinds(facts_of(drawing.events())) == ["loading"] * told


@pytest.mark.parametrize(("later_us", "told"), [(40_000, True), (150_000, False)])
def test_a_first_allocation_that_later_ones_resemble_sets_nothing_up(later_us: int, told: bool):
    drawing = TraceDrawing()
    at = launching(drawing, 0, "a", count=3)
    for length in (150_000, later_us):
        drawing.call("cudaMalloc", at, length)
        at = launching(drawing, at + length, "a", count=3)
    facts = facts_of(drawing.events())
    assert kinds(facts) == ["loading"] * told
    assert booked(facts, Category.ALLOCATOR) == later_us + 150_000 * (not told)


def test_a_communicator_that_is_set_up():
    drawing = TraceDrawing()
    at = launching(drawing, 0, "a", count=3)
    drawing.annotation("ncclCommInitRankConfig", at, SET_UP)
    drawing.call("cudaMalloc", at + 10, SET_UP - 20)
    launching(drawing, at + SET_UP, "b")
    facts = facts_of(drawing.events())
    assert (booked(facts, Category.COMPILE), booked(facts, Category.ALLOCATOR)) == (SET_UP, 0)


# --- start-up ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cudaGetDeviceCount", "cudaFree", "hipInit", "cudaMalloc"])
def test_what_comes_before_the_device_ever_worked_is_start_up_and_in_no_step(name: str):
    drawing = TraceDrawing()
    drawing.call(name, 0, SET_UP)
    end = launching(drawing, SET_UP + 100, "a", count=10)
    facts = facts_of(drawing.events())
    assert kinds(facts) == ["start_up"]
    assert facts.step_ns.tolist() == [(end - SET_UP) * US]
    (account,) = facts.accounts
    assert account.rows.phases[0] == "before"
    assert int(account.duration_ns.sum()) == end * US


def test_a_marked_step_begins_after_start_up_too():
    drawing = TraceDrawing()
    for number, (start, length) in enumerate(((0, SET_UP + 500), (SET_UP + 500, 500), (SET_UP + 1000, 500))):
        drawing.step(number, start, length)
        launching(drawing, start + length - 400, f"k{number}", count=20)
    drawing.call("cudaSetDevice", 10, SET_UP)
    facts = facts_of(drawing.events())
    assert facts.markers.start.tolist() == [(SET_UP + 10) * US, (SET_UP + 500) * US, (SET_UP + 1000) * US]
    assert facts.accounts[0].rows.bounds[0] == 0
    assert facts.used == (0, 1, 2)


def test_start_up_behind_a_long_wait_for_input_leaves_the_step_whole():
    drawing = TraceDrawing()
    drawing.step(0, 0, 4 * SET_UP)
    drawing.input_wait(0, 2 * SET_UP)
    drawing.call("cudaSetDevice", 2 * SET_UP, SET_UP)
    launching(drawing, 3 * SET_UP, "a", count=10)
    facts = facts_of(drawing.events())
    assert facts.markers.start_up_ns == 0
    assert (booked(facts, Category.INPUT), booked(facts, Category.COMPILE)) == (2 * SET_UP, SET_UP)


# --- steps -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("loads", "used"), [((0,), (1,)), ((1,), (0,)), ((), (0, 1)), ((0, 1), (0, 1))])
def test_of_two_steps_the_one_that_loads_code_is_set_apart(loads: tuple[int, ...], used: tuple[int, ...]):
    facts = facts_of(_loading_in(2, loads))
    assert facts.used == used


def test_of_three_steps_two_may_be_warm_up():
    facts = facts_of(_loading_in(3, (0, 1)))
    assert facts.used == (2,)
    assert [(found.step, found.cause, found.once) for found in facts.slow] == [
        (0, Category.COMPILE, True),
        (1, Category.COMPILE, True),
    ]


def _loading_in(steps: int, loads: tuple[int, ...]) -> list[Event]:
    drawing, at = TraceDrawing(), 0.0
    for number in range(steps):
        begin = at
        if number in loads:
            at = launching(drawing, at, f"new{number}", call=LONG)
        at = launching(drawing, at, "a", count=20)
        drawing.step(number, begin, at - begin)
    return drawing.events()


# --- capture -----------------------------------------------------------------------------------------------


def capturing(
    drawing: TraceDrawing, start: float, launches: int = 10, vendor: str = "cuda", version: str = ""
) -> float:
    """A stream is captured; where that ends."""
    drawing.call(f"{vendor}StreamBeginCapture{version}", start, 5)
    for at in range(launches):
        drawing.host("aten::mm", start + 10 + 20 * at, 15)
        drawing.launch(start + 12 + 20 * at, name=f"{vendor}LaunchKernel")
    end = start + 10 + 20 * launches
    drawing.call(f"{vendor}StreamEndCapture{version}", end, 5)
    drawing.call(f"{vendor}GraphInstantiate{version}", end + 10, 50)
    return end + 60


@pytest.mark.parametrize(("vendor", "version"), [("cuda", ""), ("cuda", "_v10000"), ("hip", ""), ("cu", "_v2_ptsz")])
def test_launches_into_a_graph_are_neither_lost_nor_steps(vendor: str, version: str):
    drawing, at = TraceDrawing(), 0.0
    for _ in range(25):
        at = launching(drawing, at, "attention", count=2)
        at = launching(drawing, at, "copy")
        at = capturing(drawing, at, vendor=vendor, version=version)
    launching(drawing, at, "attention")
    facts = facts_of(drawing.events())
    assert facts.once.graphs == 25
    assert int(facts.once.captured.sum()) == 250
    assert facts.sampling.launches_without_op == 0
    assert facts.markers.source == "whole profile"
    assert facts.is_capture
    assert booked(facts, Category.COMPILE) == 25 * (10 + 200 + 5 + 50)


def test_autograds_launches_are_captured_too_and_others_run():
    drawing = TraceDrawing()
    launching(drawing, 0, "a")
    drawing.call("cudaStreamBeginCapture", 100, 5)
    drawing.launch(120, thread="autograd")
    launching(drawing, 140, "on another stream")
    drawing.call("cudaStreamEndCapture", 200, 5)
    launching(drawing, 300, "a")
    facts = facts_of(drawing.events())
    assert int(facts.once.captured.sum()) == 1


@pytest.mark.parametrize("thread", ["main", "capturer"])
def test_ops_that_are_captured_ran_nowhere(thread: str):
    """While one thread trains, another captures; or the same one does between two steps."""
    drawing, at = TraceDrawing(), 0.0
    for number in range(4):
        begin = at
        for _ in range(20):
            drawing.host("aten::mm", at, 15)
            drawing.kernel(drawing.launch(at + 2), "gemm", at + 15, 15)
            at += 20
        if number == 1:
            capture = TraceDrawing(first_correlation=1_000)
            end = capturing(capture, begin if thread != "main" else at, 5)
            for event in capture.events():
                drawing.add(replace(event, track=Thread(thread)))
            at = at if thread != "main" else end
        drawing.step(number, begin, at - begin)
    placed = facts_of(drawing.events()).placement
    assert placed is not None
    assert (placed.host_ops, placed.device_share_by_count) == (0, 1)


@pytest.mark.parametrize(("missing", "start", "end"), [("Begin", 0, 315), ("End", 100, 370)])
def test_a_capture_of_which_the_profile_holds_a_part(missing: str, start: int, end: int):
    drawing = TraceDrawing()
    drawing.host("aten::add", 0, 10)
    capturing(drawing, 100)
    launching(drawing, 330, "a")
    drawing.host("aten::add", 335, 10)
    events = [event for event in drawing.events() if f"{missing}Capture" not in event.name]
    facts = facts_of(events)
    spans = facts.once.spans(Once.CAPTURE)
    assert (spans[0].tolist()[0], spans[1].tolist()[0]) == (start * US, end * US)
    assert facts.once.graphs == 1


def test_steps_of_which_one_captures_are_a_profile_of_steps():
    drawing, at = TraceDrawing(), 0.0
    for number in range(5):
        begin = at
        if number == 1:
            at = capturing(drawing, at, 100)
        at = launching(drawing, at, "a", count=40)
        drawing.step(number, begin, at - begin)
    facts = facts_of(drawing.events())
    assert not facts.is_capture
    assert [(found.step, found.once) for found in facts.slow] == [(1, True)]
    assert facts.used == (2, 3)


# --- warm-up of a profile that shows no steps -----------------------------------------------------------------------


def warming(name: str = "", *, loads: bool = False, then: bool = True, marked: bool = False) -> list[Event]:
    """A second of a first use (a range of a name around it, or a call that loads code), then 20 ms of work."""
    drawing = TraceDrawing()
    if marked:
        drawing.step(0, 0, 1_100_000)
    drawing.kernel(drawing.launch(10), "fill", 20, 5)
    if name:
        drawing.annotation(name, 100, 1_000_000)
    drawing.host("aten::conv2d", 200, 999_000)
    drawing.call("cudaMalloc", 300, 300_000)
    drawing.call("cudaModuleLoadData" if loads else "cudaMalloc", 300_400, 690_000)
    drawing.kernel(drawing.launch(991_000), "conv", 991_010, 50)
    for at in range(20 if then else 0):
        launching(drawing, 1_001_000 + at * 1_000, "conv", count=1)
    return drawing.events()


@pytest.mark.parametrize("events", [warming("model|0|warmup|forward"), warming("Warm-up", loads=True)])
def test_warm_up_is_no_part_of_a_profile_taken_as_one_step(events: list[Event]):
    facts = facts_of(events)
    assert facts.step_ns.tolist() == [pytest.approx(19_000 * US, rel=0.1)]
    assert facts.markers.start_up_ns > 900_000 * US


@pytest.mark.parametrize(
    "events", [warming("model|0|measure|forward"), warming("lr warm up"), warming("warmup", then=False)]
)
def test_what_is_not_called_warm_up_or_is_all_there_is_stays(events: list[Event]):
    assert facts_of(events).step_ns[0] > 900_000 * US


def test_memory_that_a_warm_up_takes_is_no_finding():
    def told(name: str) -> list[str]:
        found = diagnose(facts_of(warming(name, marked=True)))
        return [finding.rule for finding in (*found.findings, *found.minor)]

    assert "allocator_bound" in told("forward")
    assert "allocator_bound" not in told("warmup forward")
