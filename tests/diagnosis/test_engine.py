"""What the engine makes of what the rules find: order, ids, the plan, several devices, doubts, and the verdict."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.categories import CATEGORIES, Category
from stepscope.analysis.categories import RECORDED as RECORDED_WORK
from stepscope.analysis.facts import Facts
from stepscope.analysis.summary import busy_share, mean_parts
from stepscope.diagnosis import engine
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Diagnosis, Finding
from stepscope.diagnosis.limits import BOTTLENECK_SHARE
from stepscope.diagnosis.ranking import Scale, bounded, ordered, ranked
from stepscope.diagnosis.rules import DECLARED, loop_sync, repeated_copies
from stepscope.trace.tables import Kind
from stepscope.trace.trace import Loss
from tests.diagnosis.loops import (
    CALL,
    copying,
    diagnosed,
    facts_with,
    launching,
    loop,
    rules,
    running,
    synchronising,
    waiting_for_input,
    work,
)
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event, Stream
from tests.kit.xla import HostRange, Job, Op, build
from tests.support import facts_of, facts_of_drawing

US = 1_000
STEP = 10_000
SGEMM = "volta_sgemm_128x128_nn"


def both_ways(h2d_us: int, d2h_us: int, input_us: int = 0, kernel: str = "k") -> list[Event]:
    """Each step waits for input, copies in, computes, copies out."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        if input_us:
            drawing.input_wait(start, input_us)
        at = start + input_us
        copy_in, compute, copy_out = drawing.launch(at, CALL), drawing.launch(at + 10), drawing.launch(at + 20)
        drawing.copy(copy_in, "HtoD", at + CALL, h2d_us)
        drawing.kernel(compute, kernel, at + CALL + h2d_us, start + STEP - at - CALL - h2d_us - d2h_us)
        drawing.copy(copy_out, "DtoH", start + STEP - d2h_us, d2h_us)

    return loop(STEP, step)


# --- order -------------------------------------------------------------------------------------------------


def test_findings_are_ranked_by_what_they_save_and_numbered_within_their_rule():
    found = diagnosed(both_ways(h2d_us=500, d2h_us=900, input_us=700))
    assert [(f.id, f.saving_ns_per_step) for f in found.findings] == [
        ("exposed_copy.1", 900 * US),
        ("input_bound.1", 700 * US),
        ("exposed_copy.2", 500 * US),
    ]
    assert "device to host" in found.findings[0].title
    assert [f.saving_after_ns_per_step for f in found.findings] == [None, 700 * US, 500 * US]
    assert found.plan == ("input_bound.1", "exposed_copy.1", "exposed_copy.2")  # input first, whatever it saves


@pytest.mark.parametrize(("input_us", "first"), [(120, "exposed_copy.1"), (400, "input_bound.1")])
def test_what_gains_next_to_nothing_beside_another_is_worked_on_last(input_us: int, first: str):
    found = diagnosed(both_ways(h2d_us=0, d2h_us=3_000, input_us=input_us))
    assert sorted(found.plan) == ["exposed_copy.1", "input_bound.1"]
    assert found.plan[0] == first


def test_what_says_no_saving_comes_last_and_is_not_in_the_plan():
    header = {"deviceProperties": [{"id": 0, "name": "A card of the future"}]}
    found = diagnosed(both_ways(h2d_us=500, d2h_us=150, kernel=SGEMM), header)
    assert [f.id for f in found.findings] == ["exposed_copy.1", "exposed_copy.2", "tensor_cores_unused.1"]
    assert found.findings[-1].cost_ns_per_step == 9_345 * US
    assert found.plan == ("exposed_copy.1", "exposed_copy.2")


def test_what_costs_too_little_is_minor_and_numbered_all_the_same():
    found = diagnosed(both_ways(h2d_us=500, d2h_us=99))
    assert [f.id for f in found.findings] == ["exposed_copy.1"]
    assert [f.id for f in found.minor] == ["exposed_copy.2"]
    assert found.plan == ("exposed_copy.1",)


# --- told by what a fix gains ------------------------------------------------------------------------------


def sized(*sizes: tuple[int, int | None]) -> Diagnosis:
    """A diagnosis in which rules found so many (cost, saving) in µs per step of 10 ms, none of them replayed."""
    found = [
        Finding(rule=repeated_copies.RULE.id, title=f"t{at}", why="", fix="", cost_ns_per_step=cost * US,
                saving_ns_per_step=None if saving is None else saving * US)
        for at, (cost, saving) in enumerate(sizes)
    ]  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "RULES", [SimpleNamespace(find=lambda facts, one=one: [one]) for one in found])
        return diagnose(facts_with(running(("k", 9_995))))


def test_findings_are_told_and_ranked_by_what_their_fix_gains_not_by_what_they_cost():
    found = sized((2, 3_010), (5_000, 99), (99, None), (100, None), (100, 100))
    assert [f.title for f in found.findings] == ["t0", "t4", "t3"]  # without a saving last, by their cost
    assert [f.title for f in found.minor] == ["t1", "t2"]


@pytest.mark.parametrize(("best_us", "told"), [(9_900, True), (9_901, False)])
def test_a_saving_that_is_a_range_is_told_where_its_upper_end_is_enough(best_us: int, told: bool):
    (one,) = sized((500, 500)).findings
    ranged = dataclasses.replace(
        one, saving_ns_per_step=60 * US, predicted_step_ns=9_940 * US, best_step_ns=best_us * US
    )
    worth, minor, _ = ranked([ranged], Scale(DECLARED, 10_000 * US, "not replayed"))
    assert (len(worth), len(minor)) == (int(told), int(not told))


@pytest.mark.parametrize(("saving", "left"), [(4, 6), (12, 0), (-1, 10)])
def test_no_fix_gains_more_than_the_step_takes(saving: int, left: int):
    (one,) = sized((500, 500)).findings
    told = bounded(dataclasses.replace(one, saving_ns_per_step=saving, predicted_step_ns=None), 10)
    assert (told.saving_ns_per_step, told.predicted_step_ns) == (10 - left, left)
    said = dataclasses.replace(one, saving_ns_per_step=12, predicted_step_ns=10)
    assert bounded(said, 10) is said  # of slow steps the usual one is left, whatever they took


def test_a_wait_around_the_steps_ranks_by_what_it_costs():
    """It may be there to time them; what else it gains is that other causes would be hidden, which have their cures."""
    (other,) = sized((500, 500)).findings
    waits = dataclasses.replace(other, rule=loop_sync.RULE.id, cost_ns_per_step=9 * US, saving_ns_per_step=500 * US)
    assert ordered([waits, other], DECLARED) == [other, waits]
    more = dataclasses.replace(waits, cost_ns_per_step=600 * US, saving_ns_per_step=501 * US)
    assert ordered([other, more], DECLARED) == [more, other]


def test_what_gains_nothing_once_those_above_are_fixed_is_minor_and_says_so():
    """The scaler's wait is all that the host waits for: the one who knows its cure speaks, the general one is quiet."""
    drawn = TraceDrawing()
    for number in range(4):
        start = number * STEP
        drawn.step(number, start, STEP)
        drawn.host("aten::view", start, 595)
        drawn.host("aten::_amp_foreach_non_finite_check_and_unscale_", start + 595, CALL)
        drawn.kernel(drawn.launch(start + 595, CALL), "k", start + 600, STEP - 600)
        drawn.host("aten::item", start + 610, STEP - 610)
        drawn.sync(start + 610, STEP - 610)
    found = diagnosed(drawn.events())
    assert [f.rule for f in found.findings] == ["loss_scaling"]
    assert [(f.rule, f.saving_after_ns_per_step) for f in found.minor] == [("sync_bound", 0)]
    assert found.minor[0].saving_ns_per_step == found.findings[0].saving_ns_per_step > 500 * US


@pytest.mark.parametrize(("step_us", "told"), [(40, False), (240, False), (300, True)])
def test_a_profile_of_microseconds_is_too_little_to_judge(step_us: int, told: bool):
    """Four used steps in which the device waits half of the time: below a millisecond all together nothing is said."""
    found = diagnosed(launching(step_us, step_us // 2))
    assert bool(found.findings) is told
    assert [f.rule for f in (*found.findings, *found.minor)][:1] == ["launch_bound"]
    assert ("profile_too_short" in {notice.code for notice in found.notices}) is not told


def test_nothing_to_say_is_a_good_answer():
    found = diagnosed(running(("k", STEP)))
    assert (found.findings, found.minor, found.plan, found.bottleneck) == ((), (), (), "device")


# --- several devices ---------------------------------------------------------------------------------------


def two_devices(first_us: int, second_us: int) -> Diagnosis:
    """Device 0 and 1 wait for input so long in each step: the host launches on one after the other."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.input_wait(start, max(first_us, second_us))
        for device, wait in enumerate((first_us, second_us)):
            if wait:
                call = drawing.launch(start + max(first_us, second_us), CALL)
            else:
                call = drawing.launch(max(start - 50, 0), CALL)
            begin = start + max(wait and max(first_us, second_us) + CALL, 0)
            drawing.kernel(call, "k", begin, start + STEP - begin, Stream(device, 7))

    return diagnosed(loop(STEP, step))


def test_a_cause_of_both_devices_is_one_finding():
    (finding,) = two_devices(2_000, 2_000).findings
    assert (finding.id, finding.device) == ("input_bound.1", 0)
    assert (finding.cost_ns_per_step, finding.saving_ns_per_step) == (2_000 * US, 2_000 * US)
    assert finding.why.endswith("2 of 2 devices have it; the figures are those of device 0.")


EXECUTE = "PjRtComputationClient::ExecuteComputation"


def input_beside_idle(gap_us: int) -> Job:
    """Device 0 waits 2 ms per step for a batch; device 1 has all its work queued and pauses in the middle of it."""
    host: list[HostRange] = []
    ops: list[Op] = []
    for k in range(6):
        at = STEP * k
        host.append(HostRange("train", at, STEP, Kind.STEP, step=k))
        host.append(HostRange(EXECUTE, at + 10, 20, Kind.RUNTIME_CALL))
        ops.append(Op("a.1", at + 40, 4_000 - 40, device=1, execute=len(host) - 1, run=k))
        ops.append(Op("b.1", at + 4_000 + gap_us, STEP - 4_000 - gap_us, device=1, execute=len(host) - 1, run=k))
        host.append(HostRange("load_batch", at + 50, 2_000, Kind.ANNOTATION))
        host.append(HostRange(EXECUTE, at + 2_060, 20, Kind.RUNTIME_CALL))
        ops.append(Op("a.1", at + 2_090, STEP - 2_090, execute=len(host) - 1, run=100 + k))
    return Job(host, ops)


@pytest.mark.parametrize(("gap_us", "replays"), [(2_000, True), (2_000, False), (20, False)])
def test_a_device_that_idles_in_nobody_knows_what_may_wait_for_another(
    gap_us: int, replays: bool, monkeypatch: pytest.MonkeyPatch
):
    if not replays:
        monkeypatch.setattr(engine, "predictor", lambda facts: "nothing was replayed")
    found = diagnose(analyse(build(input_beside_idle(gap_us))))
    (finding,) = (one for one in (*found.findings, *found.minor) if one.rule == "input_bound")
    assert finding.cost_ns_per_step == pytest.approx(2_000 * US, rel=0.05)
    unknown = gap_us == 2_000 and not replays
    assert (finding.saving_ns_per_step is None) is unknown
    assert ("whether it waits for this one is not known" in (finding.not_determined or "")) is unknown


def test_a_device_that_lacks_the_cause_holds_the_step():
    found = two_devices(2_000, 0)
    assert found.findings == ()
    (finding,) = found.minor
    assert (finding.device, finding.cost_ns_per_step, finding.saving_ns_per_step) == (0, 2_000 * US, 0)
    assert "devices have it" not in finding.why


def test_the_device_where_it_costs_most_speaks_and_the_one_with_least_limits_the_saving():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.input_wait(start, 1_000)
        drawing.kernel(drawing.launch(start + 1_000, CALL), "k", start + 1_000 + CALL, STEP - 1_000 - CALL)
        drawing.input_wait(start + 1_000 + CALL, 2_000)
        at = start + 3_000 + CALL
        drawing.kernel(drawing.launch(at, CALL), "k", at + CALL, STEP - 3_000 - 2 * CALL, Stream(1, 7))

    (finding,) = diagnosed(loop(STEP, step)).findings
    assert (finding.device, finding.cost_ns_per_step, finding.saving_ns_per_step) == (1, 3_000 * US, 1_004 * US)


def with_an_unused_device(step_us: int = STEP, input_us: int = 2_000) -> Facts:
    """Device 1 waits for input and computes; device 0 copies at the end of every other step, so that its windows are
    twice as long as a step."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.input_wait(start, input_us)
        at = start + input_us
        drawing.kernel(drawing.launch(at, CALL), "k", at + CALL, step_us - input_us - CALL, Stream(1, 7))
        if number % 2:
            drawing.copy(drawing.launch(at + 20, CALL), "DtoD", start + step_us - 100, 100, stream=Stream(0, 7))

    return facts_of(loop(step_us, step))


def test_a_device_that_computes_nothing_holds_no_step():
    facts = with_an_unused_device()
    assert facts.unused == {0}
    assert facts.step_ns[list(facts.used)].tolist() == [STEP * US] * 4
    parts = mean_parts(facts)
    assert sum(parts.values()) == facts.mean_step_ns == STEP * US
    assert parts[Category.INPUT] == 2_000 * US
    assert busy_share(facts, collectives=True) == pytest.approx((STEP - 2_000 - CALL) / STEP)
    (finding,) = diagnose(facts).findings
    assert (finding.device, finding.saving_ns_per_step) == (1, 2_000 * US)
    assert "devices have it" not in finding.why


def test_the_time_of_a_device_that_computes_nothing_is_booked_all_the_same():
    facts = with_an_unused_device()
    account = facts.accounts[0]
    assert account.rows.device == 0
    assert (account.parts.sum(axis=1) == account.duration_ns).all()
    assert account.parts[:, Category.COPY_D2D.code].sum() == 300 * US


def test_where_no_device_computes_all_hold_the_step():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        for device in range(2):
            drawing.copy(drawing.launch(start, CALL), "HtoD", start + CALL, 900 - CALL, stream=Stream(device, 7))

    facts = facts_of(loop(1_000, step))
    assert facts.unused == frozenset()
    assert facts.mean_step_ns == 1_000 * US


def test_different_causes_on_two_devices_are_two_findings():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.host("aten::add", start, 800)
        drawing.kernel(drawing.launch(start + 800 - CALL, CALL), "k", start + 800, STEP - 800)
        drawing.copy(drawing.launch(max(start - 20, 0), CALL), "HtoD", start + 10, 990, stream=Stream(1, 7))
        drawing.kernel(drawing.launch(start + 810, CALL), "k", start + 1_000, STEP - 1_000, Stream(1, 7))

    found = diagnosed(loop(STEP, step))
    assert {f.rule: f.device for f in (*found.findings, *found.minor)} == {"launch_bound": 0, "exposed_copy": 1}


# --- doubts ------------------------------------------------------------------------------------------------


def test_a_sampled_profile_has_no_costs_per_step():
    """In each step one of four kernels has lost its launch."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.input_wait(start, 2_000)
        work(drawing, start + 2_000, start + 4_000)
        for i in range(1, 4):
            call = None if i == 2 else drawing.launch(start + 2_000 + 10 * i, CALL)
            drawing.kernel(call, "k", start + 2_000 + 2_000 * i, 2_000)

    found = diagnosed(loop(STEP, step))
    (finding,) = found.findings
    assert (finding.rule, finding.cost_ns_per_step, finding.saving_ns_per_step) == ("input_bound", None, None)
    assert (finding.prediction_basis, finding.confidence) == (None, "low")
    assert finding.not_determined is not None
    assert "record whole steps" in finding.not_determined
    assert (found.plan, found.minor) == ((), ())


def test_a_profile_that_is_one_window_lowers_the_confidence():
    facts = facts_of_drawing("""
        1 char = 1 ms
        main  |[a][I            ][b]
        gpu0/7|  [a]                [b    ]
        I = input
    """)
    finding = next(f for f in diagnose(facts).findings if f.rule == "input_bound")
    assert (facts.markers.source, finding.rule, finding.confidence) == ("whole profile", "input_bound", "medium")


RECORDED = {"with_stack": 1, "record_shapes": 1}


@pytest.mark.parametrize(
    ("events", "rule"),
    [
        (waiting_for_input(STEP, 2_000), "input_bound"),
        (synchronising(STEP, 2_000, "aten::item"), "sync_bound"),
        (launching(1_000, 150), "launch_bound"),
    ],
    ids=["input", "sync", "launch"],
)
def test_where_the_capture_slows_the_host_what_is_the_hosts_is_less_certain(events: list[Event], rule: str):
    (finding,) = diagnosed(events, RECORDED).findings
    assert (finding.rule, finding.confidence) == (rule, "medium")
    assert finding.why.endswith("recording stacks and shapes slows the host.")


def test_the_devices_own_time_is_as_certain_as_before():
    drawn = [event for event in copying(STEP, 1_000, memory="Pinned") if event.cat != "python_function"]
    plain, recorded = (diagnosed(drawn, header).findings[0] for header in ({}, RECORDED))
    assert plain == recorded
    assert recorded.confidence == "high"


# --- the verdict -------------------------------------------------------------------------------------------


def with_parts(facts: Facts, share: float, category: Category, rest: Category) -> Facts:
    """The same facts, the time of all rows split over two categories."""
    return with_shares(facts, {category: share}, rest)


def with_shares(facts: Facts, shares: dict[Category, float], rest: Category) -> Facts:
    """The same facts, the time of all rows split over some categories and what is left."""
    (account,) = facts.accounts
    parts = account.parts * 0
    for category, share in shares.items():
        parts[:, category.code] = (account.duration_ns * share).round()
    parts[:, rest.code] += account.duration_ns - parts.sum(axis=1)
    return dataclasses.replace(facts, accounts=[dataclasses.replace(account, parts=parts)])


GROUPS = {
    Category.INPUT: ("input", "waits for input data"),
    Category.INFEED: ("input", "waits for input data"),
    Category.SYNC: ("sync", "waits for a host that was itself held up"),
    Category.LAUNCH: ("launch", "waits for the host to launch"),
    Category.LAUNCH_LATENCY: ("launch", "waits for the host to launch"),
    Category.COPY_H2D: ("copy", "does nothing but copy"),
    Category.COPY_D2H: ("copy", "does nothing but copy"),
    Category.COPY_P2P: ("copy", "does nothing but copy"),
    Category.COPY_STAGING: ("copy", "waits for copies, mostly while the host stages their data"),
    Category.COLLECTIVE: ("communication", "communicates with other devices"),
    Category.COLLECTIVE_WAIT: ("communication", "communicates with other devices"),
    Category.COLLECTIVE_TRANSFER: ("communication", "communicates with other devices"),
    Category.HOST_MEMORY: ("host_memory", "waits for data on its way to or from the host's memory"),
    Category.MEMORY_SPACE: ("memory_space", "waits for copies between its own memories"),
    Category.PEER: ("peer", "waits for another device or core"),
    Category.PYTHON: ("python", "waits for Python code"),
    Category.COMPILE: ("compile", "waits for compilation"),
    Category.GRAPH_BUILD: ("graph_build", "build the graph"),
    Category.TRANSFER: ("transfer", "send it data"),
    Category.ALLOCATOR: ("allocator", "waits for memory to be allocated"),
    Category.CHECKPOINT_IO: ("checkpoint_io", "waits for checkpoints"),
    Category.GC: ("gc", "garbage collector"),
    Category.PROFILER: ("profiler", "waits for the profiler itself"),
    Category.UNRECORDED: ("unrecorded", "works on what this profile does not hold"),
    Category.UNKNOWN_HOST: ("unknown", "reasons the profile does not record"),
    Category.UNKNOWN_DEVICE: ("unknown", "reasons the profile does not record"),
    Category.DEPENDENCY: ("dependency", "waits for what other streams do"),
    Category.DEVICE_LATENCY: ("device_latency", "takes its time to begin ops that were queued"),
}
WORK = {Category.COMPUTE, Category.MEMSET, Category.COPY_D2D}


@pytest.fixture(scope="module")
def plain() -> Facts:
    return facts_with(running(("k", 9_995)))


@pytest.mark.parametrize("category", [c for c in CATEGORIES if c in GROUPS])
def test_what_takes_a_tenth_of_the_step_bounds_it(plain: Facts, category: Category):
    name, words = GROUPS[category]
    found = diagnose(with_parts(plain, BOTTLENECK_SHARE, category, Category.COMPUTE))
    assert found.bottleneck == name
    assert found.verdict.startswith("For 10.0 % of each step (1.00 ms of 10.0 ms) the device ")
    assert words in found.verdict
    assert found.verdict.endswith("it computes 90.0 %.")
    below = diagnose(with_parts(plain, BOTTLENECK_SHARE - 0.001, category, Category.COMPUTE))
    assert below.bottleneck == "device"
    assert below.verdict.startswith("The device sets the pace: it computes 90.1 % of each step")


def test_small_causes_that_are_much_together_are_named(plain: Facts):
    found = diagnose(with_shares(plain, {Category.PYTHON: 0.09, Category.SYNC: 0.08}, Category.COMPUTE))
    assert found.bottleneck == "device"
    assert found.verdict == (
        "The device computes 83.0 % of each step; for 9.0 % it waits for Python code that launches nothing, for 8.0 % "
        "it waits for a host that was itself held up waiting for the device."
    )


@pytest.mark.parametrize("category", [Category.MEMSET, Category.COPY_D2D])
def test_moving_within_its_memory_is_no_computing(plain: Facts, category: Category):
    much = diagnose(with_parts(plain, BOTTLENECK_SHARE, category, Category.COMPUTE)).verdict
    assert "it computes 90.0 % and copies or clears its own memory 10.0 % of each step" in much
    little = diagnose(with_parts(plain, BOTTLENECK_SHARE - 0.001, category, Category.COMPUTE)).verdict
    assert "it computes 90.1 % of each step" in little


def test_every_category_of_a_device_is_work_or_bounds_a_step():
    device_only = set(CATEGORIES) - {Category.HOST_COMPUTE}
    assert device_only - WORK - set(GROUPS) <= {Category.TRANSFER}


@pytest.mark.parametrize("category", sorted(WORK & set(RECORDED_WORK)))
def test_work_is_never_what_holds_the_step_up(plain: Facts, category: Category):
    assert diagnose(with_parts(plain, 1.0, category, Category.COMPUTE)).bottleneck == "device"


def test_one_window_is_spoken_of_as_the_profile():
    facts = facts_of_drawing("""
        1 char = 1 ms
        main  |[a][I            ][b]
        gpu0/7|  [a]                [b    ]
        I = input
    """)
    assert " of the profile (" in diagnose(facts).verdict


def host_loop() -> Facts:
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.host("aten::mm", start, STEP)

    return facts_of(loop(STEP, step))


@pytest.mark.parametrize(
    ("category", "bottleneck", "words"),
    [
        (Category.INPUT, "input", "waits for input data 10.0 %"),
        (Category.PYTHON, "python", "runs Python code outside any op 10.0 %"),
        (Category.COLLECTIVE, "communication", "waits for other ranks, with nothing to compute 10.0 %"),
        (Category.UNKNOWN_HOST, "unknown", "does what the profile does not record 10.0 %"),
        (Category.GC, "gc", "collects garbage 10.0 %"),
    ],
)
def test_without_a_device_the_training_thread_is_spoken_of(category: Category, bottleneck: str, words: str):
    facts = host_loop()
    found = diagnose(with_parts(facts, BOTTLENECK_SHARE, category, Category.HOST_COMPUTE))
    assert found.bottleneck == bottleneck
    said = f"No device was recorded; the main thread computes 90.0 % of each step and {words}."
    assert found.verdict == said
    most = diagnose(with_parts(facts, 0.6, category, Category.HOST_COMPUTE)).verdict  # What takes most comes first.
    first = words.removesuffix(" 10.0 %")
    assert most.startswith(f"No device was recorded; the main thread {first}")
    assert most.endswith(" 60.0 % of each step and computes 40.0 %.")


def test_a_host_that_computes_is_the_pace():
    found = diagnose(host_loop())
    assert (found.bottleneck, found.findings) == ("host", ())
    assert found.verdict == "No device was recorded; the host computes 100 % of each step."


def test_where_there_is_no_time_at_all_nothing_is_said():
    drawing = TraceDrawing()
    drawing.overhead(0, 100)
    found = diagnose(facts_of(drawing.events()))
    assert found.bottleneck == "unknown"
    assert found.verdict == "Nothing in this profile says how long a step takes."
    assert rules(found) == []


def test_a_file_whose_names_were_cut_off_has_no_verdict(plain: Facts):
    events = plain.trace.completeness.events
    loss = Loss("names_lost", events // 2, "events whose name lay behind the cut", damaged=True)
    cut = dataclasses.replace(plain.trace, completeness=dataclasses.replace(plain.trace.completeness, losses=(loss,)))
    found = diagnose(analyse(cut))
    assert found.bottleneck == "unknown"
    assert "not determined" in found.verdict


def test_of_functions_alone_nothing_of_computing_is_said():
    host = [HostRange("run.py(1): main", 0, 100, Kind.PYTHON_FRAME)]
    told = diagnose(analyse(build(Job(host, [], framework=None)))).verdict
    assert told.endswith("the main thread runs Python code outside any op 100 % of the profile and what it computes is "
                         "not recorded.")  # fmt: skip


def test_what_few_steps_lose_is_not_said_of_each_step():
    """Two of four used steps wait for input twice as long as the others compute."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        wait = 6_000 if number in (1, 2) else 0
        if wait:
            drawing.input_wait(start, wait)
        drawing.kernel(drawing.launch(start + wait, CALL), "k", start + wait + CALL, STEP - wait - CALL)

    assert diagnosed(loop(STEP, step)).verdict.startswith(
        "For 30.0 % of the steps' time (3.00 ms of 10.0 ms), most of it in 2 of 4 steps, the device waits for input"
    )


def test_a_device_used_in_few_steps_holds_none():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.kernel(drawing.launch(start, CALL), "k", start + CALL, STEP - CALL)
        if number == 3:
            drawing.kernel(drawing.launch(start + 10, CALL), "k", start + 20, 3, Stream(1, 7))

    facts = facts_of(loop(STEP, step))
    assert facts.unused == {1}
    assert (facts.slow, facts.mean_step_ns) == ((), STEP * US)


def test_named_ranges_of_any_program_are_not_called_python():
    host = [HostRange("work", 0, 100, Kind.ANNOTATION)]
    job = build(Job(host, [], framework=None))
    generic = dataclasses.replace(job, info=dataclasses.replace(job.info, format="Chrome trace JSON"))
    told = diagnose(analyse(generic)).verdict
    assert "in named ranges" in told
    assert "Python" not in told


def test_a_slow_step_on_the_host_names_the_code_that_took_longer():
    drawing = TraceDrawing()
    for number in range(8):
        start = number * STEP + (number > 4) * 3 * STEP
        length = 4 * STEP if number == 4 else STEP
        drawing.step(number, start, length)
        drawing.host("aten::mm", start + length - 9_000, 9_000)
        if number == 4:
            drawing.python("train.py(7): save_figures", start + 10, 3 * STEP)
    (finding,) = (f for f in diagnose(facts_of(drawing.events())).findings if f.rule == "slow_steps")
    assert [(place.file, place.function) for place in finding.where] == [("train.py", "save_figures")]
