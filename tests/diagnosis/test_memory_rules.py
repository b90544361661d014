"""What is said of memory: notices of growth, fragmentation and room, and the finding that memory runs out."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from stepscope.diagnosis.finding import Diagnosis, Notice
from stepscope.diagnosis.limits import FRAGMENTED_SHARE, FULL_WITHIN_STEPS, HEADROOM_TIMES, MEMORY_FULL_SHARE
from tests.diagnosis.loops import CALL, diagnosed, loop, rules, work
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event
from tests.kit.ledger import Ledger

MIB = 1 << 20
US = 1_000
STEP = 10_000
SIZE = 1024 * MIB


def of_size(size: int | None) -> dict[str, object]:
    return {"deviceProperties": [] if size is None else [{"id": 0, "name": "GPU", "totalGlobalMem": size}]}


def said(found: Diagnosis) -> dict[str, Notice]:
    return {notice.code: notice for notice in found.notices if notice.code.startswith("memory")}


def using(
    kept: int = 0, in_use: int = 100, reserved: int = 200, activation: int = 10, more: int = 0, launches: int = 1
) -> list[Event]:
    """Steps that use so many bytes for a forward pass and keep some; the device is busy with one kernel or waits for
    the launches of many."""
    drawing = TraceDrawing()
    ledger = Ledger(drawing, in_use, reserved)
    for number in range(6):
        at = number * STEP
        drawing.step(number, at, STEP)
        drawing.annotation("forward", at, 400)
        drawing.host("aten::linear", at + 10, 80)
        block = ledger.take(at + 20, activation)
        drawing.host("aten::clone", at + 500, 20)
        if kept:
            ledger.take(at + 510, kept)
        if more:
            ledger.take_more(at + 530, more)
        ledger.give(at + 600, block)
        length = STEP // launches
        for k in range(launches):
            busy = length if launches == 1 else length // 2
            work(drawing, at + k * length, at + k * length + busy)
    return drawing.events()


# --- growth ------------------------------------------------------------------------------------------------


def test_a_leak_says_what_stays_where_and_when_the_device_is_full():
    notice = said(diagnosed(using(kept=MIB), of_size(SIZE)))["memory_growth"]
    assert "Memory in use on device 0 grows by 1.00 MiB in every step." in notice.text
    assert "It is full by step 1,021." in notice.text
    assert "(2.00 MiB in 2 blocks) is allocated in `aten::clone`." in notice.text
    assert "copy them to the host" in notice.text


@pytest.mark.parametrize(("steps", "told"), [(FULL_WITHIN_STEPS, True), (FULL_WITHIN_STEPS + 1, False)])
def test_growth_counts_where_it_fills_the_device(steps: int, told: bool):
    """The peak is that of the last step: six blocks are kept by then, and the activation is alive."""
    capacity = 100 + 10 + 6 * 8 + steps * 8
    assert ("memory_growth" in said(diagnosed(using(kept=8), of_size(capacity)))) is told


@pytest.mark.parametrize(("kept", "told"), [(MIB, True), (MIB - 1, False)])
def test_growth_where_the_size_of_the_device_was_not_recorded(kept: int, told: bool):
    found = said(diagnosed(using(kept=kept), of_size(None)))
    assert ("memory_growth" in found) is told
    assert not told or "full" not in found["memory_growth"].text


def test_a_loop_that_keeps_nothing_is_quiet():
    assert said(diagnosed(using(), of_size(SIZE))) == {}


# --- fragmentation -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("unused", "told"), [(FRAGMENTED_SHARE, True), (FRAGMENTED_SHARE - 0.01, False)])
def test_fragmentation_counts_where_the_device_is_full(unused: float, told: bool):
    reserved = 1000
    events = using(in_use=round(reserved * (1 - unused)) - 10, reserved=reserved)
    found = said(diagnosed(events, of_size(reserved)))
    assert ("memory_fragmentation" in found) is told
    assert not told or "expandable_segments:True" in found["memory_fragmentation"].text
    assert "memory_fragmentation" not in said(diagnosed(events, of_size(2 * reserved)))


def test_fragmentation_counts_where_more_is_taken_beside_what_is_free():
    notice = said(diagnosed(using(reserved=1000, more=300), of_size(100_000)))["memory_fragmentation"]
    assert "took more from the device 4 times in the steps" in notice.text


# --- room --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("share", "told"), [(MEMORY_FULL_SHARE, True), (MEMORY_FULL_SHARE - 0.01, False)])
def test_a_full_device_is_told(share: float, told: bool):
    found = said(diagnosed(using(in_use=850, reserved=round(1000 * share)), of_size(1000)))
    assert ("memory_full" in found) is told


def test_room_for_a_larger_batch_is_told_where_launches_are_waited_for():
    events = using(activation=100, reserved=300, launches=200)
    assert "launch_bound" in rules(diagnosed(events, of_size(900)))
    notice = said(diagnosed(events, of_size(900)))["memory_headroom"]
    assert "7.0 times as large" in notice.text
    assert "answer take longer" in notice.text


@pytest.mark.parametrize(("free", "told"), [(100, True), (99, False)])
def test_room_counts_from_twice_the_batch(free: int, told: bool):
    assert HEADROOM_TIMES == 2
    events = using(activation=100, in_use=100, reserved=300, launches=200)
    assert ("memory_headroom" in said(diagnosed(events, of_size(300 + free)))) is told


def test_room_is_not_told_where_the_device_is_busy():
    assert said(diagnosed(using(activation=100, reserved=300), of_size(900))) == {}


# --- allocator_retries -------------------------------------------------------------------------------------


def calling(calls: Sequence[str], in_steps: Sequence[int] = range(6)) -> list[Event]:
    """In an op at the start of these steps the host calls the driver's allocator for 1 ms each."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        names = calls if number in in_steps else ()
        held = len(names) * 1_000
        if held:
            drawing.host("aten::empty", start, held)
        for position, name in enumerate(names):
            drawing.call(name, start + 1_000 * position, 1_000)
        work(drawing, start + held, start + STEP)

    return loop(STEP, step)


RETRY = ("cudaMalloc", "cudaFree", "cudaMalloc")


def test_requests_that_fail_are_a_finding_with_their_cost():
    (finding,) = diagnosed(calling(RETRY)).findings
    assert (finding.rule, finding.cost_ns_per_step) == ("allocator_retries", 3_000 * US)
    assert finding.saving_ns_per_step == pytest.approx(3_000 * US, rel=0.01)
    assert "In 4 of 4 steps the driver refused 4 requests" in finding.why
    assert (finding.basis, finding.confidence) == ("heuristic", "medium")
    assert "4 frees" in finding.why
    assert "expandable_segments:True" in finding.fix
    assert [place.op for place in finding.where] == ["aten::empty"]


def test_what_the_allocator_holds_unused_is_evidence():
    drawing = TraceDrawing()
    for event in calling(RETRY):
        drawing.add(event)
    Ledger(drawing, in_use=50 * MIB, reserved=100 * MIB).take(CALL, 10 * MIB)
    (finding,) = diagnosed(drawing.events()).findings
    assert "holds 100 MiB, of which 40.0 MiB (40.0 %) is not in use" in finding.why


@pytest.mark.parametrize("calls", [("cudaMalloc", "cudaMalloc", "cudaMalloc"), ("cudaFree", "cudaMalloc")])
def test_other_calls_of_the_allocator_are_no_retries(calls: tuple[str, ...]):
    assert rules(diagnosed(calling(calls))) == ["allocator_bound"]


@pytest.mark.parametrize("steps", [[0], [2]])
def test_retries_in_one_step_are_a_library_setting_up(steps: list[int]):
    found = diagnosed(calling(RETRY, steps))
    assert "allocator_retries" not in [f.rule for f in (*found.findings, *found.minor)]
