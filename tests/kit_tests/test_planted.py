"""The planted truth adds up, says what was planted, and is what the machine did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given

from tests.kit.events import CALLS, DEVICE_WORK, MS, US, Event, Stream
from tests.kit.loop import run
from tests.kit.machine import Machine, Work
from tests.kit.plan import Plan
from tests.kit.planted import CASES, Planted, input_bound
from tests.kit.truth import BUSY, Mark, Row, Truth, account, mismatches
from tests.kit_tests.test_machine import plans

FROZEN = {
    *BUSY,
    "input",
    "sync",
    "compile",
    "allocator",
    "copy_staging",
    "launch",
    "launch_latency",
    "python",
    "checkpoint_io",
    "gc",
    "profiler",
    "dependency",
    "device_latency",
    "unknown_host",
    "unknown_device",
    "host_compute",
}
"""The category names a single-rank profile may have."""


@cache
def made(name: str) -> Planted:
    """Each case is simulated once."""
    return CASES[name]()


def each_case(
    but: tuple[str, ...] = (), *, of: Callable[[Planted], bool] = lambda planted: True
) -> pytest.MarkDecorator:
    """Parametrise over the cases that fit."""
    names = [name for name in CASES if name not in but and of(made(name))]
    return pytest.mark.parametrize("planted", [pytest.param(made(name), id=name) for name in names])


def rows_by_device(truth: Truth) -> dict[int | None, list[Row]]:
    devices: dict[int | None, list[Row]] = {}
    for row in truth.rows:
        devices.setdefault(row.device, []).append(row)
    return devices


def check_sums(truth: Truth) -> None:
    """Parts sum to each row exactly, rows tile, names are the frozen ones."""
    for rows in rows_by_device(truth).values():
        assert all(sum(row.parts.values()) == row.dur_ns for row in rows)
        assert all(before.end_ns == after.start_ns for before, after in pairwise(rows))
        assert {name for row in rows for name in (*row.parts, *row.open_ns)} <= FROZEN
        assert all(value >= 0 for row in rows for value in row.open_ns.values())


@each_case()
def test_parts_sum_and_rows_tile(planted: Planted) -> None:
    check_sums(planted.truth)


@given(plans())
def test_parts_sum_and_rows_tile_in_any_plan(plan: Plan) -> None:
    done = run(plan)
    truth = account(done.machine, done.marks)
    check_sums(truth)
    for device, rows in rows_by_device(truth).items():
        ops = [op for op in done.machine.ops if op.device == device]
        assert rows[0].start_ns == min(0, ops[0].start)
        assert rows[-1].end_ns == max(op.end for op in ops)


@each_case(but=("sampled",))
def test_busy_time_is_the_union_of_the_recorded_work(planted: Planted) -> None:
    """Independent of the machine: from the events, by sweeping over their edges."""
    for device, rows in rows_by_device(planted.truth).items():
        work = sorted(
            (event.start_ns, event.end_ns)
            for event in planted.events
            if event.cat in DEVICE_WORK and isinstance(event.track, Stream) and event.track.device == device
        )
        union, reach = 0, 0
        for start, end in work:
            union += max(end - max(start, reach), 0)
            reach = max(reach, end)
        assert sum(ns for row in rows for name, ns in row.parts.items() if name in BUSY) == union


@each_case(but=("sampled", "without_markers", "cpu_only", "two_cycles", "launched_before"))
def test_windows_end_with_the_last_op_of_their_step(planted: Planted) -> None:
    """E(k) from the recorded events: markers, calls and work alone."""
    marks = sorted(
        (event.start_ns, int(event.name.split("#")[1]))
        for event in planted.events
        if event.name.startswith("ProfilerStep#")
    )
    calls = {event.correlation: event.start_ns for event in planted.events if event.cat in CALLS}
    ends: Counter[tuple[int, int]] = Counter()
    for event in planted.events:
        if event.cat in DEVICE_WORK and isinstance(event.track, Stream):
            number = max(mark for mark in marks if mark[0] <= calls[event.correlation])[1]
            ends[event.track.device, number] = max(ends[event.track.device, number], event.end_ns)
    for device, rows in rows_by_device(planted.truth).items():
        reach = 0
        for row in rows:
            assert row.step is not None
            assert device is not None
            reach = max(reach, ends[device, row.step])
            assert row.end_ns == reach


@each_case(of=lambda planted: bool(planted.category))
def test_the_cause_is_where_the_case_says_and_pays(planted: Planted) -> None:
    """Removing the cause saves most of what its category holds, and never more than a little beyond it."""
    device = planted.truth.rows[0].device
    parts = planted.truth.mean_parts(device)
    cost = parts[planted.category] + (parts["launch_latency"] if planted.category == "launch" else 0)
    assert cost > 100 * US
    assert cost > 0.09 * planted.truth.mean_step_ns()
    if planted.without_ns:
        assert 0.8 * cost < planted.saving_ns < 1.2 * cost + 100 * US


@each_case(of=lambda planted: planted.quiet)
def test_a_quiet_case_has_nothing_to_find(planted: Planted) -> None:
    parts = planted.truth.mean_parts()
    idle = sum(ns for name, ns in parts.items() if name not in ("compute", "device_latency"))
    assert idle < 0.01 * planted.truth.mean_step_ns()


@each_case()
def test_what_is_left_open_is_small(planted: Planted) -> None:
    opened = planted.truth.mean_open(planted.truth.rows[0].device)
    assert sum(opened.values()) < 0.02 * planted.truth.mean_step_ns()
    assert max(opened.values(), default=0) <= 25 * US


# The cases against sums made by hand


def whole(planted: Planted, number: int, device: int | None = 0) -> dict[str, int]:
    return dict(planted.truth.row(number, device).parts)


def test_input_bound_by_hand() -> None:
    """The host is the limit: 7 ms of input, 10 µs to hand over to autograd, fourteen launches of 13 µs.

    Of the launch that ends the gap 6 µs lie before the call, 5 in it and 3 behind it.
    """
    planted = input_bound(jitter=0.0)
    step = 7_000 + 10 + 14 * 13
    assert planted.truth.step_ns(14) == step * US
    assert whole(planted, 14) == {
        "compute": 2_800 * US,
        "device_latency": 13 * US,
        "launch": (6 + 5) * US,
        "launch_latency": 3 * US,
        "input": (step - 2_800 - 13 - 6 - 5 - 3) * US,
    }


def test_sync_is_limited_to_the_lead_it_destroyed() -> None:
    """Twenty kernels of 22 µs and 1 µs between them against 13 µs per launch, and the hand-over's 10 µs."""
    planted = CASES["sync_limited"]()
    parts = whole(planted, 14)
    blocked = 203 * US
    assert parts["sync"] == blocked
    assert parts["launch"] == (900 + 6 + 5) * US - blocked
    assert parts["input"] == 20 * US
    assert planted.saving_ns == blocked


def test_a_chain_pays_only_as_a_whole() -> None:
    chain, places = CASES["sync_chain"](), CASES["sync_in_three_places"]()
    step = chain.truth.mean_step_ns()
    assert step - chain.without_ns["one"] < 0.05 * chain.saving_ns
    assert step - chain.without_ns["two"] < 0.10 * chain.saving_ns
    step = places.truth.mean_step_ns()
    for place in ("forward", "backward", "optimizer"):
        assert 0.25 * places.saving_ns < step - places.without_ns[place] < 0.42 * places.saving_ns


def test_a_copy_that_nothing_runs_beside_is_exposed_and_one_beside_compute_is_not() -> None:
    exposed, hidden = CASES["exposed_copy"](), CASES["hidden_copy"]()
    copies = [event.dur_ns or 0 for event in exposed.events if event.cat == "gpu_memcpy"]
    assert sum(row.parts.get("copy_h2d", 0) for row in exposed.truth.rows) == sum(copies)
    inner = [hidden.truth.row(number) for number in hidden.truth.used()]
    assert sum(row.parts.get("copy_h2d", 0) for row in inner) == 0
    assert len([event for event in hidden.events if event.cat == "gpu_memcpy"]) == 8


def test_staging_belongs_to_the_copy() -> None:
    assert whole(CASES["copy_staging"](), 14)["copy_staging"] == 1_200 * US


def test_a_stretch_without_cover_is_unknown() -> None:
    seen, unseen = CASES["python_annotated"](), CASES["python_unseen"]()
    assert whole(seen, 14)["python"] == whole(unseen, 14)["unknown_host"] > 4 * MS


def test_an_exposed_collective_is_busy_time_beside_nothing() -> None:
    assert whole(CASES["exposed_collective"](), 14)["collective"] == 900 * US


def test_each_device_of_a_pipeline_waits_for_the_other() -> None:
    planted = CASES["device_waits"]()
    first, second = whole(planted, 15, 0), whole(planted, 15, 1)
    assert first["compute"] == second["dependency"] - 5 * US == 1_200 * US
    assert second["compute"] == first["dependency"] - 7 * US == 1_600 * US


def test_work_from_before_the_profile_lies_before_the_first_step() -> None:
    planted = CASES["launched_before"]()
    before, first = planted.truth.rows[:2]
    assert (before.phase, before.step, before.dur_ns) == ("before", None, 20 * 200 * US)
    assert (first.step, first.start_ns) == (10, 20 * 200 * US)
    calls = {event.correlation for event in planted.events if event.cat in CALLS}
    assert len([e for e in planted.events if e.cat == "kernel" and e.correlation not in calls]) == 20


def test_a_step_cut_off_is_not_whole() -> None:
    truth = CASES["incomplete_last_step"]().truth
    assert [number for number, whole_step in truth.complete.items() if not whole_step] == [17]
    assert truth.used() == [11, 12, 13, 14, 15]


def test_between_two_cycles_lies_a_gap() -> None:
    planted = CASES["two_cycles"]()
    gap = next(row for row in planted.truth.rows if row.phase == "gap")
    assert gap.dur_ns == 50 * MS
    assert planted.truth.steps() == [*range(10, 16), *range(30, 36)]
    assert not [event for event in planted.events if gap.start_ns < event.start_ns < gap.end_ns]


def test_sampling_loses_launches_and_work_apart() -> None:
    planted = CASES["sampled"]()
    calls = {event.correlation for event in planted.events if event.cat in CALLS}
    work = {event.correlation for event in planted.events if event.cat in DEVICE_WORK}
    assert len(work - calls) > 0.05 * len(work)
    assert len(calls - work) > 0.05 * len(calls)


def test_without_a_device_the_host_is_accounted() -> None:
    truth = CASES["cpu_only"]().truth
    assert {row.device for row in truth.rows} == {None}
    assert set(truth.mean_parts(None)) == {"host_compute", "input", "python"}


def test_without_markers_the_same_kernels_come_each_step() -> None:
    events = CASES["without_markers"]().events
    assert not [event for event in events if event.name.startswith("ProfilerStep")]
    names = [event.name for event in events if event.cat == "kernel"]
    assert names == names[:14] * 12


def test_where_streams_overlap_compute_counts_before_collectives_and_copies() -> None:
    """compute 20-40, collective 10-50, copy 45-60 (µs).

    20 compute, 20 collective, 10 copy; then idle from 60 to 70.
    """
    machine = Machine()
    for category, start, dur, stream in (
        ("compute", 20, 20, 7),
        ("collective", 10, 40, 20),
        ("copy_h2d", 45, 15, 21),
        ("memset", 70, 5, 7),
    ):
        machine.now = start * US
        machine.earlier_work(Work(category, dur * US, category=category, stream=Stream(0, stream)))
    truth = account(machine, [Mark(1, 10 * US, 75 * US)])
    parts: Counter[str] = Counter()
    for row in truth.rows:
        parts.update(row.parts)
    assert parts == {
        "compute": 20 * US,
        "collective": 20 * US,
        "copy_h2d": 10 * US,
        "memset": 5 * US,
        "unknown_device": 10 * US,
    }


def test_mismatches_allow_what_is_open_and_name_the_rest() -> None:
    assert mismatches({"sync": 90, "launch": 10}, {"sync": 100}, {"sync": 10, "launch": 10}) == []
    found = mismatches({"sync": 80}, {"sync": 100, "input": 5}, {"sync": 10}, tolerance_ns=4)
    assert [line.split(":")[0] for line in found] == ["input", "sync"]


@each_case(but=("sampled", "launched_before"))
def test_a_gap_in_the_events_of_a_case_is_explained_by_a_call(planted: Planted) -> None:
    """No work but that of before the recording is without its call, so a reader can explain every gap."""
    calls: dict[int | None, Event] = {event.correlation: event for event in planted.events if event.cat in CALLS}
    assert all(event.correlation in calls for event in planted.events if event.cat in DEVICE_WORK)
