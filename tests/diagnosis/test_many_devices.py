"""Several devices of one process: serialised, launched in turn, one overloaded, DataParallel; planted and healthy."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from stepscope.analysis.balance import balance
from stepscope.analysis.categories import Category
from stepscope.diagnosis.finding import Finding
from tests.diagnosis.loops import diagnosed, facts_with, loop
from tests.kit.builder import TraceDrawing
from tests.kit.drawing import LOADER
from tests.kit.events import Event, Stream, Thread, in_time_order

STEP = 4_000
RULES = {"devices_serialised", "launched_in_turn", "device_overloaded", "data_parallel"}
Kernel = tuple[int, int, int, int]
"""Device, start of its launch, its own start and duration."""


def devices(kernels: Sequence[Kernel], module: str = "") -> list[Event]:
    """The same kernels in every step."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        if module:
            drawing.python(module, start, STEP)
        for place, (device, launch, begin, dur) in enumerate(kernels):
            call = drawing.launch(start + launch, 5)
            drawing.kernel(call, f"k{place}", start + begin, dur, Stream(device, 7))

    return loop(STEP, step)


def found(events: list[Event]) -> dict[str, int | None]:
    diagnosis = diagnosed(events)
    return {f.rule: f.cost_ns_per_step for f in (*diagnosis.findings, *diagnosis.minor) if f.rule in RULES}


def even(count: int = 2) -> list[Kernel]:
    """Launched alternately, all compute at once."""
    return [(d, 10 * (2 * k + d), 60 + 1900 * k, 1_850) for k in range(2) for d in range(count)]


def test_devices_that_share_the_work_have_no_finding() -> None:
    assert found(devices(even())) == {}
    assert found(devices(even(4))) == {}


def finding_of(events: list[Event], rule: str) -> Finding:
    diagnosis = diagnosed(events)
    return next(f for f in (*diagnosis.findings, *diagnosis.minor) if f.rule == rule)


def test_one_device_after_another() -> None:
    events = devices([(0, 0, 20, 1_900), (1, 20, 1_950, 1_900)])
    assert found(events)["devices_serialised"] == 1_900_000
    finding = finding_of(events, "devices_serialised")
    assert finding.saving_ns_per_step == 1_900_000
    assert finding.predicted_step_ns == pytest.approx(2_100_000, rel=0.02)
    assert "never at the same time" in finding.why
    assert "split the work anew" not in finding.why


@pytest.mark.parametrize("busiest", [0, 1])
def test_no_pipeline_beats_its_busiest_stage(busiest: int) -> None:
    """Three quarters of the work on one device: what the other computes can be hidden, and no more."""
    long, short = (busiest, 3_000), (1 - busiest, 900)
    (one, first), (two, then) = (long, short) if busiest == 0 else (short, long)
    events = devices([(one, 0, 20, first), (two, 20, 30 + first, then)])
    finding = finding_of(events, "devices_serialised")
    assert finding.saving_ns_per_step == 900_000
    assert f"No step takes less than the 3.00 ms that device {busiest} computes" in finding.why
    assert "(then up to 1.05 ms more)" in finding.why


def with_peer_copy(between: int, blocked: bool) -> list[Event]:
    """Device 1 is given device 0's result when that is done: by a copy that waits for it, or by a host that does."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.kernel(drawing.launch(start, 5), "k0", start + 20, between - 20, Stream(0, 7))
        if blocked:
            drawing.sync(start + 10, between - 5)
        launch = start + (between + 5 if blocked else 10)
        copied = drawing.call("cudaMemcpyPeerAsync", launch, 5)
        drawing.copy(copied, "PtoP", start + between + 10, 50, stream=Stream(1, 8))
        drawing.kernel(drawing.launch(launch + 10, 5), "k1", start + between + 65, 900, Stream(1, 8))
        drawing.sync(start + between + 20, 960)

    return loop(STEP, step)


@pytest.mark.parametrize("blocked", [True, False])
def test_a_stage_that_waits_for_the_one_before_is_not_launched_in_turn(blocked: bool) -> None:
    """The host launches nothing for device 0 while device 1 waits: it is blocked, or the copy between them is."""
    events = with_peer_copy(3_000, blocked)
    assert "launched_in_turn" not in found(events)
    account = facts_with(events).accounts[1]
    row = account.step_rows((2,))[0]
    assert account.parts[row, Category.LAUNCH.code] < 800_000
    cause = Category.SYNC if blocked else Category.DEPENDENCY
    assert account.parts[row, cause.code] >= 2_900_000
    assert "idle_untold" not in {notice.code for notice in diagnosed(events).notices}


def test_what_a_device_waits_for_untold_names_the_device() -> None:
    """Means over all devices would not show it."""
    notices = diagnosed(devices([(0, 0, 20, 3_900), (1, 10, 2_000, 500), (1, 1_990, 2_600, 500)])).notices
    told = next(notice for notice in notices if notice.code == "idle_untold")
    assert "device 1 has work queued and does not begin it" in told.text


def test_idle_devices_are_not_serialised() -> None:
    """They are kept idle by something else."""
    assert "devices_serialised" not in found(devices([(0, 0, 20, 400), (1, 2_000, 2_020, 400)]))


def in_turn(count: int, each: int) -> list[Kernel]:
    """The host gives device 0 so many short kernels, then device 1; a device is done when its last is launched."""
    return [(d, 100 * (count * d + k), 20 + 100 * (count * d + k), each) for d in range(2) for k in range(count)]


def test_launches_of_one_device_after_the_other() -> None:
    """Each waits while the other is given its work: half of the step goes."""
    finding = finding_of(devices(in_turn(20, 90)), "launched_in_turn")
    assert finding.cost_ns_per_step == pytest.approx(2_000_000, rel=0.1)
    assert finding.saving_ns_per_step == pytest.approx(2_000_000, rel=0.1)


def test_launches_in_turn_cost_no_more_than_the_busiest_device_leaves() -> None:
    """Device 0 works all the time: device 1 could have its launches sooner, and the step would end no sooner."""
    first = [(0, 100 * k, 20 + 100 * k, 90) for k in range(14)]
    then = [(1, 1_500 + 100 * k, 1_520 + 100 * k, 90) for k in range(14)]
    last = [(0, 1_400, 1_420, 2_500), (1, 2_900, 2_920, 1_000)]
    finding = finding_of(devices([*first, *then, *last]), "launched_in_turn")
    assert finding.cost_ns_per_step == pytest.approx(1_500_000, rel=0.1)
    assert finding.saving_ns_per_step is not None
    assert finding.saving_ns_per_step < 100_000


def test_launches_in_turn_where_devices_stay_busy_cost_nothing() -> None:
    events = devices([(0, 0, 20, 3_900), (1, 10, 30, 3_900)])
    assert found(events).get("launched_in_turn", 0) <= 20_000  # type: ignore[operator]


def test_an_overloaded_device() -> None:
    events = devices([(0, 0, 40, 3_900), *((d, 10 * d, 60, 1_900) for d in range(1, 4))])
    diagnosis = diagnosed(events)
    finding = next(f for f in diagnosis.findings if f.rule == "device_overloaded")
    assert finding.device == 0
    assert finding.saving_ns_per_step == 3_900_000 - (3_900_000 + 3 * 1_900_000) // 4
    assert "devices_serialised" not in {f.rule for f in diagnosis.findings}


def data_parallel(module: str, launch_us: int, copy_us: int) -> list[Event]:
    """Threads of one process launch ten kernels for each device, after the model was copied to device 1."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.python(module, start, STEP)
        drawing.copy(drawing.call("cudaMemcpyPeerAsync", start, 5), "PtoP", start + 10, copy_us, stream=Stream(1, 7))
        for device in range(2):
            for k in range(10):
                at = start + copy_us + 20 + launch_us * k
                drawing.host("aten::mul", at, launch_us, thread=f"worker{device}")
                call = drawing.launch(at + launch_us - 10, 5, thread=f"worker{device}")
                drawing.kernel(call, "k", at + launch_us, 50, Stream(device, 7))

    return loop(STEP, step)


@pytest.mark.parametrize(
    "module", ["nn.Module: DataParallel_0", "torch/nn/parallel/data_parallel.py(171): forward", "DataParallel.forward"]
)
def test_data_parallel_is_named(module: str) -> None:
    assert "data_parallel" in found(data_parallel(module, 300, 500))
    assert "data_parallel" not in found(data_parallel("nn.Module: DistributedDataParallel_0", 300, 500))
    assert "data_parallel" not in found(devices([(0, 0, 20, 1_000), (0, 2_400, 2_420, 1_000)], module))


def test_data_parallel_is_promised_no_launching_away() -> None:
    """A process of its own launches the same kernels: what the threads take from each other is not recorded."""
    finding = finding_of(data_parallel("DataParallel.forward", 350, 5), "data_parallel")
    assert finding.saving_ns_per_step is None
    assert finding.not_determined is not None
    assert finding.cost_ns_per_step == pytest.approx(2_900_000, rel=0.1)


def test_data_parallel_is_promised_its_copies_away() -> None:
    """As far as they hold up the step: device 0 has none, and waits for nothing but launches."""
    finding = finding_of(data_parallel("DataParallel.forward", 300, 500), "data_parallel")
    assert finding.cost_ns_per_step == 500_000
    assert finding.not_determined is None
    assert finding.saving_ns_per_step is not None
    assert finding.saving_ns_per_step <= 500_000


def test_what_balance_measures() -> None:
    found_balance = balance(facts_with(devices([(0, 0, 20, 1_000), (1, 10, 520, 1_000)])))
    assert found_balance is not None
    assert found_balance.compute_ns == (1_000_000, 1_000_000)
    assert (found_balance.any_ns, found_balance.together_ns) == (1_500_000, 500_000)
    assert (found_balance.blocks, found_balance.first, found_balance.one_thread) == (1.0, 0, True)


Launched = tuple[int, int, str, int]
"""Device, start of its run of launches, the thread that launches, kernels of 90 µs."""


def by_threads(*runs: Launched, main: str = "", end: int = STEP) -> list[Event]:
    """In every step each device is launched in one run, kernel by kernel; then all exchange until the step's end."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        if main:
            drawing.python(main, start, STEP)
        for device, begin, thread, count in runs:
            for k in range(count):
                at = start + begin + 100 * k
                drawing.host("aten::mm", at - 80, 90, thread=thread)
                drawing.kernel(drawing.launch(at, 5, thread=thread), "k", at + 10, 90, Stream(device, 7))
            at = start + begin + 100 * count
            call = drawing.launch(at, 5, thread=thread)
            drawing.collective(call, at + 10, start + end - at - 10, Stream(device, 20))

    return loop(STEP, step)


@pytest.mark.parametrize(("longer", "saved"), [(0, 1_400_000), (14, 0)])
def test_one_thread_in_turn_costs_what_the_others_wait_for_the_last_in_the_exchange(longer: int, saved: int) -> None:
    """Device 1 is launched last and device 0 waits for it; not so where device 0 computes as long anyway."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        for device in range(2):
            for k in range(14):
                at = start + 100 + 1_400 * device + 100 * k
                drawing.kernel(drawing.launch(at, 5), "k", at + 10, 90, Stream(device, 7))
        reduces = [drawing.launch(start + at, 4) for at in (1_506, 2_920)]
        for device, begin in ((0, 1_510 + 100 * longer), (1, 2_930)):
            if device == 0 and longer:
                drawing.kernel(drawing.launch(start + 1_495, 4), "long", start + 1_510, 100 * longer, Stream(0, 7))
            drawing.collective(reduces[device], start + begin, STEP - begin, Stream(device, 20))

    finding = finding_of(loop(STEP, step), "launched_in_turn")
    assert finding.cost_ns_per_step == pytest.approx(1_400_000, rel=0.1)
    assert finding.saving_ns_per_step == pytest.approx(saved, abs=150_000)
    assert ("wait for it where they exchange" in finding.why) is (saved > 0)


@pytest.mark.parametrize("main", ["", "train.py(12): run_replicas"])
def test_threads_that_launch_one_after_another(main: str) -> None:
    """Device 0 is launched from 1,500 µs on, when device 1 has been: that is what it waits for, and device 1 waits for
    it in the collective."""
    diagnosis = diagnosed(by_threads((1, 100, "replica_1", 14), (0, 1_600, "replica_0", 14), main=main))
    finding = next(f for f in diagnosis.findings if f.rule == "launched_in_turn")
    assert finding.device == 0
    assert finding.title == "Threads launch 2 devices one after another"
    apart = diagnosed(by_threads((1, 100, "replica_1", 14), (0, 100, "replica_0", 14), main=main, end=2_500))
    assert "launched_in_turn" not in {f.rule for f in (*apart.findings, *apart.minor)}
    assert finding.cost_ns_per_step == pytest.approx(1_500_000, rel=0.1)


def test_four_threads_in_turn_cost_what_the_last_one_waits() -> None:
    runs = [(device, 100 + 900 * device, f"replica_{device}", 8) for device in range(4)]
    assert found(by_threads(*runs))["launched_in_turn"] == pytest.approx(2_700_000, rel=0.1)


def test_threads_that_launch_at_once_are_no_turns() -> None:
    runs = [(device, 100 + 7 * device, f"replica_{device}", 14) for device in range(2)]
    assert found(by_threads(*runs)) == {}


def test_a_thread_that_waits_for_its_own_batch_does_not_wait_for_its_turn() -> None:
    """The second replica begins when its batch is there, by chance when the first one has been launched."""
    events = by_threads((1, 100, "replica_1", 14), (0, 1_600, "replica_0", 14))
    batches = [
        Event("user_annotation", LOADER, Thread("replica_0"), number * STEP * 1_000, 1_500_000) for number in range(6)
    ]
    assert (found(in_time_order([*events, *batches])).get("launched_in_turn") or 0) <= 100_000


def exchanging(late_us: Sequence[int]) -> list[Event]:
    """Devices compute for 2 ms and then exchange: one comes so much late, the others wait for the last in the exchange,
    which takes 0.5 ms."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        for device, late in enumerate(late_us):
            thread, at = f"launch{device}", start + late
            drawing.kernel(drawing.launch(at, 5, thread=thread), "k", at + 10, 2_000, Stream(device, 7))
            call = drawing.launch(at + 20, 5, thread=thread)
            drawing.collective(call, at + 2_010, max(late_us) - late + 500, Stream(device, 7))

    return loop(STEP, step)


def test_the_device_for_which_others_wait_in_an_exchange_is_named() -> None:
    finding = finding_of(exchanging((0, 0, 1_200, 0)), "exposed_collective")
    assert "1.20 ms of it is waiting for device 2, which comes last 4 of 4 times." in finding.why
    assert finding.fix.startswith("Look first at what device 2 does before it")


@pytest.mark.parametrize("late_us", [(0, 0, 0), (0, 200, 100)])
def test_where_all_are_there_in_time_no_device_is_named(late_us: tuple[int, ...]) -> None:
    """Half of what the exchange takes is the least to tell."""
    finding = finding_of(exchanging(late_us), "exposed_collective")
    assert "comes last" not in finding.why
    assert "Look first" not in finding.fix
