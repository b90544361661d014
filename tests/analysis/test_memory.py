"""Memory: blocks and what they are for, peak, course, growth, fragmentation and headroom."""

from __future__ import annotations

import gzip
import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepscope
from stepscope.analysis.blocks import Held, held_over
from stepscope.analysis.facts import Facts
from stepscope.analysis.memory import POINTS, MemoryUse
from stepscope.trace.tables import NULL
from tests.diagnosis.loops import facts_with
from tests.kit.builder import TraceDrawing
from tests.kit.events import US, Event, Stream, Thread
from tests.kit.ledger import Ledger
from tests.kit.some import some
from tests.kit.traces import real_trace
from tests.support import facts_of

MIB = 1 << 20
KIB = 1 << 10


def only(facts: Facts) -> MemoryUse:
    (use,) = facts.memory
    return use


def training(steps: int = 6, kept: int = 0) -> tuple[TraceDrawing, Ledger]:
    """Steps of 1 ms: a forward pass, a backward one on its own thread, the optimizer's; ``kept`` bytes stay."""
    drawing = TraceDrawing()
    ledger = Ledger(drawing, in_use=100 * MIB)
    for number in range(steps):
        at = number * 1_000
        drawing.step(number, at, 1_000)
        drawing.annotation("forward", at, 300)
        drawing.host("aten::linear", at + 10, 80)
        activation = ledger.take(at + 20, 8 * MIB)
        ledger.give(at + 40, ledger.take(at + 30, 3 * MIB))
        drawing.host("autograd::engine::evaluate_function: AddmmBackward0", at + 400, 200, thread="autograd")
        drawing.host("AddmmBackward0", at + 410, 100, thread="autograd")
        gradient = ledger.take(at + 420, 2 * MIB, "autograd")
        passing = ledger.take(at + 430, 5 * MIB, "autograd")
        ledger.give(at + 560, passing, "autograd")
        ledger.give(at + 570, activation, "autograd")
        drawing.annotation("Optimizer.step#Adam.step", at + 700, 200)
        drawing.host("aten::_foreach_add_", at + 710, 50)
        if number == 0:
            ledger.take(at + 720, 4 * MIB)
        ledger.give(at + 800, gradient)
        if kept:
            drawing.host("aten::clone", at + 920, 20)
            ledger.take(at + 930, kept)
        launch = drawing.launch(at + 950)
        drawing.kernel(launch, "k", at + 960, 30)
    return drawing, ledger


# --- blocks ------------------------------------------------------------------------------------------------


def test_what_blocks_are_for_is_told_by_when_they_came_and_went():
    drawing, _ = training()
    use = only(facts_of(drawing.events()))
    assert use.pool.blocks is not None
    totals: dict[Held, set[int]] = defaultdict(set)
    for code, size in zip(use.pool.blocks.held.tolist(), use.pool.blocks.bytes.tolist(), strict=True):
        totals[tuple(Held)[code]].add(size // MIB)
    assert totals == {
        Held.ACTIVATION: {8},
        Held.TEMPORARY: {3, 5},
        Held.GRADIENT: {2},
        Held.OPTIMIZER_STATE: {4},
    }


def test_the_peak_adds_up_and_says_where_each_part_was_allocated():
    drawing, _ = training()
    use = only(facts_of(drawing.events()))
    peak = use.peak
    # The optimizer's state came in step 0, so that the first of the highest peaks is in step 1.
    assert (peak.time_ns, peak.step) == (1_430 * US, 1)
    assert peak.allocated == 119 * MIB
    assert {held: size // MIB for held, size in peak.held.items()} == {
        Held.BEFORE: 100,
        Held.ACTIVATION: 8,
        Held.GRADIENT: 2,
        Held.OPTIMIZER_STATE: 4,
        Held.TEMPORARY: 5,
        Held.UNKNOWN: 0,
    }
    assert sum(peak.held.values()) == peak.allocated
    assert [(place.held, place.where.op, place.bytes // MIB, place.blocks) for place in peak.places] == [
        (Held.ACTIVATION, "aten::linear", 8, 1),
        (Held.TEMPORARY, "AddmmBackward0", 5, 1),
        (Held.OPTIMIZER_STATE, "aten::_foreach_add_", 4, 1),
        (Held.GRADIENT, "AddmmBackward0", 2, 1),
    ]


def test_the_line_that_allocated_is_named():
    drawing = TraceDrawing()
    drawing.python("train.py(31): forward", 0, 100)
    drawing.host("aten::mm", 10, 50)
    Ledger(drawing).take(20, MIB)
    (place,) = only(facts_of(drawing.events())).peak.places
    assert (place.where.file, place.where.line, place.where.op) == ("train.py", 31, "aten::mm")


def test_a_block_of_before_that_goes_is_no_longer_counted():
    drawing = TraceDrawing()
    ledger = Ledger(drawing, in_use=10 * MIB)
    ledger.give(5, (0x1234, 4 * MIB))
    ledger.take(10, MIB)
    use = only(facts_of(drawing.events()))
    assert held_over(use.pool, np.arange(2))[Held.BEFORE].tolist() == [6 * MIB, 6 * MIB]
    assert use.peak.allocated == 7 * MIB


def test_gradients_that_are_replaced_in_the_next_backward_pass_are_no_temporaries():
    drawing = TraceDrawing()
    ledger = Ledger(drawing)
    held = None
    for number in range(4):
        at = number * 1_000
        drawing.step(number, at, 1_000)
        drawing.host("AddmmBackward0", at + 400, 100)
        new = ledger.take(at + 410, MIB)
        if held:
            ledger.give(at + 450, held)
        held = new
    blocks = only(facts_of(drawing.events())).pool.blocks
    assert blocks is not None
    assert {tuple(Held)[code] for code in blocks.held.tolist()} == {Held.GRADIENT}


def test_blocks_that_cannot_be_followed_are_not_guessed():
    """A free is missing: more was allocated than is in use."""
    drawing = TraceDrawing()
    for at, address, total in ((10, 1, MIB), (20, 2, MIB), (30, 3, MIB)):
        drawing.memory(at, MIB, address, total)
    use = only(facts_of(drawing.events()))
    assert use.pool.blocks is None
    assert (use.peak.held, use.peak.places, use.course.held) == ({}, (), {})
    assert use.peak.allocated == MIB


def test_an_address_that_comes_twice_was_freed_unseen():
    drawing = TraceDrawing()
    drawing.memory(10, MIB, 1, 10 * MIB)
    drawing.memory(20, MIB, 1, 10 * MIB)
    use = only(facts_of(drawing.events()))
    assert use.pool.blocks is not None
    assert use.pool.blocks.ended.tolist() == [1, 2]


def test_without_totals_the_least_that_was_in_use_is_told():
    drawing = TraceDrawing()
    for at, size in ((10, 3 * MIB), (20, -5 * MIB), (30, 4 * MIB)):
        args = {"Bytes": size, "Device Id": 0, "Device Type": 1}
        drawing.add(Event("memory", "[memory]", Thread("main"), at * US, None, args=args))
    use = only(facts_of(drawing.events()))
    assert not use.pool.whole
    assert use.pool.blocks is None
    assert use.pool.allocated.tolist() == [5 * MIB, 0, 4 * MIB]
    assert use.peak.reserved is None


def test_memory_shared_between_processes_is_no_part_of_the_allocators():
    """PyTorch writes it with a total of 0 among the events of the host's allocator."""
    drawing = TraceDrawing()
    rows = (
        (10, 1, 100, 100, 0),
        (20, 2, 5000, 0, 5000),
        (30, 3, 50, 150, 0),
        (40, 9, -700, 0, 0),
        (50, 2, -5000, 0, 0),
    )
    for at, address, size, total, reserved in (*rows, (60, 1, -100, 50, 0), (70, 3, -50, 0, 0)):
        args = {"Bytes": size, "Addr": address, "Device Id": -1, "Device Type": 0}
        args |= {"Total Allocated": total, "Total Reserved": reserved}
        drawing.add(Event("memory", "[memory]", Thread("main"), at * US, None, args=args))
    plain, shared = facts_of(drawing.events()).memory
    assert plain.pool.allocated.tolist() == [100, 150, 50, 0]
    assert (shared.pool.allocator, shared.pool.bytes.tolist()) == ("shared memory", [5000, -700, -5000])
    assert all(pool.on_host and pool.device is None for pool in (plain.pool, shared.pool))


def test_sizes_that_cannot_be_are_not_counted():
    drawing = TraceDrawing()
    most = (1 << 63) - 1
    for at, size, total, held in (
        (10, MIB, MIB, most),
        (20, most, most, MIB),
        (30, -most, 0, -5),
        (40, MIB, 2 * MIB, 0),
    ):
        args = {"Bytes": size, "Addr": at, "Device Id": 0, "Device Type": 1}
        args |= {"Total Allocated": total, "Total Reserved": held}
        drawing.add(Event("memory", "[memory]", Thread("main"), at * US, None, args=args))
    use = only(facts_of(drawing.events()))
    assert use.pool.allocated.tolist() == [MIB, 0, 2 * MIB]
    assert use.pool.reserved.tolist() == [NULL, NULL, 0]
    assert use.pool.blocks is None


@pytest.mark.parametrize("seed", range(12))
def test_drawn_runs_add_up_at_every_event(seed: int):
    """Against the plainest bookkeeping: what is alive after each event, and the profile's own running total."""
    rng = random.Random(seed)
    drawing = TraceDrawing()
    before = [(0x9000 + i, rng.randrange(1, 50) * KIB) for i in range(6)]
    ledger = Ledger(drawing, in_use=sum(size for _, size in before) + 7 * KIB)
    alive: dict[int, int] = {}
    left, expected = list(before), []
    for at in range(10, 10 + 300 * 3, 3):
        name = rng.choice(("forward", "autograd::engine::x", "Optimizer.step#SGD.step", "aten::mm"))
        drawing.host(name, at, rng.choice((1, 2, 40)), "cpu_op", rng.choice(("main", "other")))
        thread = rng.choice(("main", "other"))
        if left and rng.random() < 0.05:
            ledger.give(at + 1, left.pop(), thread)
        elif alive and rng.random() < 0.45:
            address = rng.choice(list(alive))
            ledger.give(at + 1, (address, alive.pop(address)), thread)
        else:
            address, size = ledger.take(at + 1, rng.randrange(1, 100) * KIB, thread)
            alive[address] = size
        expected.append((ledger.total, 7 * KIB + sum(size for _, size in left), sum(alive.values())))
    use = only(facts_of(drawing.events()))
    held = held_over(use.pool, np.arange(len(expected)))
    within = sum((sizes for kind, sizes in held.items() if kind is not Held.BEFORE), np.zeros(len(expected), np.int64))
    found = list(zip(use.pool.allocated.tolist(), held[Held.BEFORE].tolist(), within.tolist(), strict=True))
    assert found == expected
    assert use.peak.allocated == max(total for total, _, _ in expected)
    assert sum(use.peak.held.values()) == use.peak.allocated
    assert sum(place.bytes for place in use.peak.places) == use.peak.allocated - use.peak.held[Held.BEFORE]


# --- course, growth, fragmentation, headroom ---------------------------------------------------------------


def test_the_course_keeps_the_peak_however_short():
    drawing = TraceDrawing()
    ledger = Ledger(drawing)
    for at in range(0, 9_000, 3):
        block = ledger.take(at, 90 * MIB if at == 4_500 else MIB)
        ledger.give(at + 1, block)
    course = only(facts_of(drawing.events())).course
    assert course.time_ns.size <= 2 * POINTS
    assert course.allocated.max() == 90 * MIB
    assert (np.diff(course.time_ns) > 0).all()
    assert (sum(course.held.values()) == course.allocated).all()  # type: ignore[union-attr]


def test_what_the_course_holds_between_bursts_is_what_was_in_use():
    drawing = TraceDrawing()
    ledger = Ledger(drawing)
    for burst in range(3):
        for at in range(5):
            ledger.give(burst * 3_000 + 2 * at + 1, ledger.take(burst * 3_000 + 2 * at, 50 * MIB))
    course = only(facts_of(drawing.events())).course
    before_silence = np.append(np.diff(course.time_ns) > 1_000_000, True)
    assert before_silence.sum() == 3
    assert not course.allocated[before_silence].any()


def test_a_leak_rises_in_every_step_by_blocks_that_stay():
    drawing, _ = training(kept=MIB)
    growth = only(facts_of(drawing.events())).growth
    assert growth is not None
    assert growth.per_step == (MIB, MIB, MIB)
    assert growth.grows
    assert [(place.where.op, place.bytes) for place in growth.places] == [("aten::clone", 2 * MIB)]


def test_a_loop_that_frees_what_it_takes_does_not_grow():
    drawing, _ = training()
    growth = only(facts_of(drawing.events())).growth
    assert growth is not None
    assert (growth.per_step, growth.grows, growth.places) == ((0, 0, 0), False, ())


def test_steps_that_only_vary_do_not_grow():
    """Each step's last block is larger than the one before, and freed in the next step."""
    drawing = TraceDrawing()
    ledger = Ledger(drawing)
    held = None
    for number in range(8):
        at = number * 1_000
        drawing.step(number, at, 1_000)
        drawing.kernel(drawing.launch(at + 10), "k", at + 20, 900)
        if held:
            ledger.give(at + 400, held)
        held = ledger.take(at + 500, (number + 1) * MIB)
    growth = only(facts_of(drawing.events())).growth
    assert growth is not None
    assert all(size > 0 for size in growth.per_step)
    assert not growth.grows


def test_two_steps_are_too_few_to_call_it_growth():
    drawing, _ = training(steps=4, kept=MIB)
    growth = only(facts_of(drawing.events())).growth
    assert growth is not None
    assert not growth.grows


def test_memory_taken_while_enough_was_free():
    """Of steps 1 to 4, which are used, in step 2; in step 3 so much was not free."""
    drawing = TraceDrawing()
    ledger = Ledger(drawing, in_use=80 * MIB, reserved=100 * MIB)
    for number in range(6):
        drawing.step(number, number * 1_000, 1_000)
        drawing.kernel(drawing.launch(number * 1_000 + 10), "k", number * 1_000 + 20, 900)
        ledger.take_more(number * 1_000 + 500, {0: 4, 2: 4, 3: 90}.get(number, 0) * MIB)
    use = only(facts_of(drawing.events()))
    assert use.fragmentation is not None
    assert use.fragmentation.taken_beside_free == 1
    assert (use.peak.allocated, use.peak.reserved) == (170 * MIB, 198 * MIB)
    assert use.fragmentation.free_bytes == 28 * MIB
    assert use.fragmentation.share == pytest.approx(28 / 198)


def test_headroom_is_what_the_device_has_beside_the_allocators_most():
    drawing, _ = training()
    header = {"deviceProperties": [{"id": 0, "name": "GPU", "totalGlobalMem": 1024 * MIB}]}
    use = only(facts_with(drawing.events(), **header))
    assert use.headroom is not None
    assert use.headroom.capacity_bytes == 1024 * MIB
    assert use.headroom.free_bytes == 1024 * MIB - (use.reserved_bytes or 0)
    assert use.headroom.batch_factor == pytest.approx(1 + use.headroom.free_bytes / (13 * MIB))


def test_memory_of_no_known_phase_may_grow_with_the_batch_too():
    drawing = TraceDrawing()
    drawing.kernel(drawing.launch(0), "k", 10, 10)
    Ledger(drawing, reserved=10 * MIB).take(10, 5 * MIB)
    use = only(facts_with(drawing.events(), deviceProperties=[{"id": 0, "name": "GPU", "totalGlobalMem": 20 * MIB}]))
    assert use.headroom is not None
    assert use.headroom.batch_factor == pytest.approx(3.0)


@pytest.mark.parametrize(("ops_on", "known"), [((2,), True), ((2, 3), False)], ids=["one device", "one of two"])
def test_the_only_allocator_is_the_only_devices_whatever_its_number(ops_on: tuple[int, ...], known: bool):
    """ROCm numbers the devices of ops as the node does, allocators those that the process sees."""
    drawing = TraceDrawing()
    for device in ops_on:
        drawing.kernel(drawing.launch(0), "k", 10, 10, Stream(device))
    Ledger(drawing, reserved=10 * MIB).take(10, 5 * MIB)
    listed = [{"id": i, "name": "GPU", "totalGlobalMem": 20 * MIB} for i in ops_on]
    (use,) = facts_with(drawing.events(), deviceProperties=listed).memory
    assert (use.headroom is not None) is known


def test_without_the_devices_size_there_is_no_headroom():
    drawing, _ = training()
    assert only(facts_with(drawing.events(), deviceProperties=[])).headroom is None


def test_a_profile_without_memory_has_none():
    drawing = TraceDrawing()
    drawing.kernel(drawing.launch(0), "k", 10, 10)
    assert facts_of(drawing.events()).memory == []


# --- calls of the driver -----------------------------------------------------------------------------------


def test_a_request_that_failed_is_told_from_plain_calls():
    drawing = TraceDrawing()
    for number in range(6):
        at = number * 1_000
        drawing.step(number, at, 1_000)
        drawing.kernel(drawing.launch(at + 900), "k", at + 910, 50)
        drawing.host("aten::empty", at + 100, 400)
        calls = ("cudaMalloc", "cudaFree", "cudaFree", "cudaMalloc") if number == 2 else ("cudaMalloc", "cudaMalloc")
        for position, name in enumerate(calls):
            drawing.call(name, at + 110 + 50 * position, 20)
        drawing.host("aten::empty", at + 600, 100)
        drawing.call("cudaFree", at + 610, 20)
    calls_found = facts_of(drawing.events()).allocator_calls
    assert calls_found is not None
    assert (calls_found.taken, calls_found.freed, calls_found.retries) == (8, 6, 1)
    assert (calls_found.retried_steps, calls_found.recur) == (1, False)


def test_without_ops_around_the_calls_retries_are_not_known():
    drawing = TraceDrawing()
    for position, name in enumerate(("cudaMalloc", "cudaFree", "cudaMalloc")):
        drawing.call(name, 10 + 50 * position, 20)
    found = facts_of(drawing.events()).allocator_calls
    assert found is not None
    assert found.retries is None


# --- real profiles -----------------------------------------------------------------------------------------

WITH_BLOCKS = ("h100_bert_small", "h100_qwen05b", "v100_two_ranks_rank1")


def _raw(name: str) -> list[dict[str, Any]]:
    text = gzip.decompress(real_trace(f"kineto/{name}.json.gz").read_bytes())
    events = [event for event in json.loads(text)["traceEvents"] if event.get("name") == "[memory]"]
    found = [event for event in events if event["args"]["Device Type"] == 1]
    return sorted(found, key=lambda event: event["ts"])


@pytest.mark.real
@pytest.mark.parametrize("name", some(WITH_BLOCKS, 2))
def test_real_peaks_against_the_file_itself(name: str):
    raw = _raw(name)
    use = _device(real_trace(f"kineto/{name}.json.gz"))
    totals = [event["args"]["Total Allocated"] for event in raw]
    assert use.pool.allocated.tolist() == totals
    assert use.peak.allocated == max(totals)
    alive: dict[int, int] = {}
    for event in raw[: totals.index(max(totals)) + 1]:
        address, size = event["args"]["Addr"], event["args"]["Bytes"]
        if size > 0:
            alive[address] = size
        else:
            alive.pop(address, None)
    assert use.peak.allocated - use.peak.held[Held.BEFORE] == sum(alive.values())
    assert sum(use.peak.held.values()) == use.peak.allocated
    held = held_over(use.pool, np.arange(len(raw)))
    # What was allocated before can only go.
    assert (np.diff(held[Held.BEFORE]) <= 0).all()
    assert (held[Held.BEFORE] >= 0).all()


@pytest.mark.real
def test_a_real_training_loop_neither_leaks_nor_runs_full():
    use = _device(real_trace("kineto/v100_two_ranks_rank1.json.gz"))
    assert use.growth is not None
    assert not use.growth.grows
    assert use.headroom is not None
    assert use.reserved_bytes == 12_782_141_440
    assert use.fragmentation is not None
    assert use.fragmentation.taken_beside_free == 0


@pytest.mark.real
def test_an_old_profile_without_addresses_says_the_least():
    use = _device(real_trace("kineto/v100_resnet50_workers0.json.gz"))
    assert not use.pool.whole
    assert use.pool.blocks is None
    assert use.peak.allocated > 1 << 30


@pytest.mark.real
def test_the_counters_of_a_timeline_are_its_tensors():
    (use,) = _facts(real_trace("timeline/tf1_timeline_memory.json")).memory
    raw = json.loads(real_trace("timeline/tf1_timeline_memory.json").read_text())["traceEvents"]
    values = [value for event in raw if event["ph"] == "C" for value in event["args"].values()]
    assert (use.pool.on_host, use.pool.allocator, use.pool.whole) == (True, "cpu", False)
    assert use.peak.allocated == max(values)
    assert use.pool.allocated.size == len(values)


@pytest.mark.real
def test_a_session_tells_what_its_nodes_allocated():
    (use,) = _facts(real_trace("timeline/tf1_run_metadata.pb")).memory
    assert (use.pool.on_host, use.pool.allocator, use.pool.whole, use.pool.blocks) == (True, "cpu", False, None)
    assert use.peak.allocated > 0


@pytest.mark.real
def test_every_device_of_jax_has_its_allocator():
    uses = _facts(real_trace("xplane/mi300_jax_conv.xplane.pb")).memory
    assert [(use.pool.device, use.pool.allocator) for use in uses] == [(n, f"GPU_{n}_bfc") for n in range(8)]
    for use in uses:
        assert sum(use.peak.held.values()) == use.peak.allocated
        assert (use.pool.reserved == NULL).all()


def _facts(path: Path) -> Facts:
    return stepscope.open(str(path)).facts


def _device(path: Path) -> MemoryUse:
    return next(use for use in _facts(path).memory if not use.pool.on_host)
