"""The simulated machine obeys its own laws: causality, order on a stream, blocking waits, time spent once."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.events import CALLS, DEVICE_WORK, US, Stream, Thread
from tests.kit.loop import run
from tests.kit.machine import Costs, Machine, Work
from tests.kit.plan import Part, Plan
from tests.kit.planted import CASES

COMPUTE = Stream(0, 7)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Any plan: causes together that no case plants together."""
    known: tuple[Part, ...] = ("forward", "backward", "optimizer")
    parts = st.lists(st.sampled_from(known), max_size=3).map(tuple)
    return Plan(
        steps=draw(st.integers(2, 5)),
        forward=draw(st.integers(1, 4)),
        backward=draw(st.integers(1, 6)),
        optimizer=draw(st.integers(0, 2)),
        kernel_us=draw(st.integers(1, 300)),
        dispatch_us=draw(st.integers(0, 30)),
        costs=Costs(queue_depth=draw(st.sampled_from((4, 1024)))),
        seed=draw(st.integers(0, 9)),
        jitter=draw(st.sampled_from((0.0, 0.3))),
        devices=draw(st.integers(1, 2)),
        layout=draw(st.sampled_from(("replicate", "pipeline"))),
        buckets=draw(st.integers(0, 3)),
        collective_us=draw(st.integers(1, 500)),
        input_us=draw(st.sampled_from((0, 20, 3000))),
        copy=draw(st.sampled_from(("", "pageable", "prefetched"))),
        syncs=draw(parts),
        work_after=draw(parts),
        work_us=draw(st.integers(0, 800)),
        python_us=draw(st.sampled_from((0, 4000))),
        gc_us=draw(st.sampled_from((0, 2000))),
        allocator_us=draw(st.sampled_from((0, 900))),
        earlier=draw(st.integers(0, 3)),
        last_share=draw(st.sampled_from((1.0, 0.5))),
    )


@given(plans())
def test_no_work_starts_before_its_call_and_streams_run_in_order(plan: Plan) -> None:
    machine = run(plan).machine
    events = machine.events()
    calls = {event.correlation: event for event in events if event.cat in CALLS}
    streams = defaultdict(list)
    for event in events:
        if event.cat in DEVICE_WORK:
            streams[event.track].append(event)
            if not event.name.startswith("warm_up"):
                assert event.start_ns >= calls[event.correlation].start_ns
    for work in streams.values():
        assert all(before.end_ns <= after.start_ns for before, after in pairwise(work))


@given(plans())
def test_host_time_is_spent_once_and_ranges_nest(plan: Plan) -> None:
    machine = run(plan).machine
    spans = machine.spans
    assert spans[0].start == 0
    assert all(before.end == after.start for before, after in pairwise(spans))
    assert spans[-1].end == machine.now
    for thread in ("main", "autograd"):
        open_ends: list[int] = []
        for event in machine.events():
            if event.track != Thread(thread) or not event.dur_ns:
                continue
            while open_ends and open_ends[-1] <= event.start_ns:
                open_ends.pop()
            assert not open_ends or event.end_ns <= open_ends[-1]
            open_ends.append(event.end_ns)


@given(plans())
def test_what_is_recorded_is_what_happened(plan: Plan) -> None:
    machine = run(plan).machine
    recorded = sorted(
        (event.start_ns, event.end_ns, event.track.device, event.track.stream)
        for event in machine.events()
        if isinstance(event.track, Stream) and event.cat in DEVICE_WORK
    )
    assert recorded == sorted((op.start, op.end, op.device, op.stream) for op in machine.ops)


def test_a_launch_takes_its_call_and_its_latency() -> None:
    machine = Machine(Costs(call_ns=5 * US, latency_ns=3 * US, between_ns=1 * US))
    machine.launch(Work("a", 20 * US))
    machine.launch(Work("b", 20 * US))
    assert [(op.call_start, op.call_end, op.start, op.end) for op in machine.ops] == [
        (0, 5 * US, 8 * US, 28 * US),
        (5 * US, 10 * US, 29 * US, 49 * US),
    ]


def test_a_wait_returns_when_the_stream_is_done() -> None:
    machine = Machine(Costs(sync_return_ns=4 * US))
    machine.launch(Work("a", 100 * US))
    machine.synchronize(stream=COMPUTE)
    assert machine.now == 5 * US + 3 * US + 100 * US + 4 * US
    assert machine.spans[-1].cause == "sync"


def test_an_event_holds_a_stream_back_to_the_nanosecond() -> None:
    machine = Machine()
    machine.launch(Work("a", 500 * US, stream=Stream(1, 7)))
    machine.wait_event(COMPUTE, machine.record_event(Stream(1, 7)))
    machine.launch(Work("b", 10 * US))
    first, second = machine.ops
    assert second.start == first.end
    assert second.awaited


def test_a_full_queue_blocks_the_launch() -> None:
    machine = Machine(Costs(queue_depth=2))
    for name in "abc":
        machine.launch(Work(name, 100 * US))
    first, _, third = machine.ops
    assert third.call_start is not None
    assert third.call_start < first.end
    assert third.call_end == first.end


def test_a_copy_from_pageable_memory_blocks_until_it_is_done() -> None:
    machine = Machine()
    machine.launch(Work("a", 100 * US))
    machine.blocking_copy(Work("copy", 50 * US, "gpu_memcpy", "copy_h2d", args={"direction": "HtoD"}), 20 * US)
    kernel, copy = machine.ops
    assert copy.start == kernel.end + machine.costs.between_ns
    assert copy.call_end == copy.end == machine.now


def test_the_same_seed_gives_the_same_profile_and_the_cause_does_not_change_the_draws() -> None:
    first, again = CASES["sync_bound"](), CASES["sync_bound"]()
    assert first.events == again.events
    quiet = run(Plan(jitter=0.05)).machine
    kernels = [event.dur_ns for event in first.events if event.cat == "kernel"]
    assert kernels == [event.dur_ns for event in quiet.events() if event.cat == "kernel"]
    assert len(set(kernels)) > 10


@pytest.mark.parametrize("name", ["healthy", "launched_before"])
def test_jitter_keeps_whole_microseconds(name: str) -> None:
    assert all(event.start_ns % US == 0 and (event.dur_ns or 0) % US == 0 for event in CASES[name]().events)
