"""Each notice about the profile itself: when it is given, from which limit on, and what it says."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.categories import BUSY, CATEGORIES, Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.limits import CORRELATION_HOLE, FEW_STEPS, FEWEST_CALLS
from stepscope.analysis.summary import busy_share
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Notice
from stepscope.diagnosis.limits import AHEAD_SHARE, HOST_SHARE, PROFILER_SHARE, START_UP_SHARE, WARM_UP_FACTOR
from stepscope.formats.beside.rows import table_of
from stepscope.report import document
from stepscope.report.terminal import render
from stepscope.trace.limits import NAMES_LOST_SHARE
from stepscope.trace.tables import NULL, Begun, Frames, Kind, Looks, TrackKind
from stepscope.trace.trace import Loss
from tests.diagnosis.loops import CALL, STEPS, Step, facts_with, launching, loop, running, work
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event, Stream
from tests.kit.kineto_writer import write_kineto
from tests.kit.xla import HostRange, Job, build
from tests.support import facts_of, facts_of_drawing, trace_of_bytes

US = 1_000
STEP = 1_000
STACKS = {"with_stack": 1}


def notices(facts: Facts) -> dict[str, Notice]:
    found = diagnose(facts).notices
    by_code = {notice.code: notice for notice in found}
    assert len(by_code) == len(found)
    return by_code


def plain(steps: int = STEPS, **header: Any) -> Facts:
    """Short kernels, each done before the next is launched: nothing is special here."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        for at in range(start, start + STEP, 100):
            work(drawing, at, at + 98)

    return facts_with(loop(STEP, step, steps), **header)


def test_an_ordinary_profile_has_none():
    assert notices(plain()) == {}


# --- devices -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("devices", "variables"),
    [
        ({0: "AMD Instinct MI300X"}, "hide them from the program (`HIP_VISIBLE_DEVICES`)"),
        ({0: "NVIDIA H100 80GB HBM3"}, "hide them from the program (`CUDA_VISIBLE_DEVICES`)"),
        ({0: "GPU"}, "hide them from the program (`CUDA_VISIBLE_DEVICES` or `HIP_VISIBLE_DEVICES`)"),
    ],
)
def test_a_device_that_computed_nothing(devices: dict[int, str], variables: str):
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.kernel(drawing.launch(start, CALL), "k", start + CALL, STEP - CALL, Stream(1, 7))
        drawing.copy(drawing.launch(start + 20, CALL), "DtoD", start + 50, 100, stream=Stream(0, 7))

    described = [{"id": device, "name": name} for device, name in devices.items()]
    notice = notices(facts_with(loop(STEP, step), deviceProperties=described))["devices_unused"]
    assert notice.count == 1
    assert notice.text == (
        "1 of 2 devices computed nothing in these steps (number 0): step times, means and findings are of the others. "
        f"Spread the work over them, or create the data on the devices that compute and {variables}."
    )


def test_a_device_that_computed_outside_of_the_steps_is_not_called_unused():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.kernel(drawing.launch(start, CALL), "k", start + CALL, STEP - CALL, Stream(1, 7))
        if number == 1:
            drawing.kernel(drawing.launch(start + 20, CALL), "other", start + 50, 100, Stream(0, 7))

    found = notices(facts_with(loop(STEP, step)))
    assert "devices_unused" not in found
    assert "device 0 ran 1 kernel" in found["devices_outside_steps"].text


# --- steps -------------------------------------------------------------------------------------------------


def test_no_markers_and_no_repetition():
    found = notices(facts_of_drawing("""
        main  |[a] [b] [c]
        gpu0/7|  [a] [b] [c]
    """))  # fmt: skip
    assert "the whole profile is treated as one step" in found["profile_no_steps"].text
    assert "`prof.step()`" in found["profile_no_steps"].text
    assert "profile_steps_inferred" not in found
    assert "profile_few_steps" not in found


def test_steps_inferred_from_the_launches():
    drawing = TraceDrawing()
    for at, name in enumerate("abc" * 6):
        drawing.kernel(drawing.launch(20 * at), name, 20 * at + 8, 10)
    found = notices(facts_of(drawing.events()))
    assert found["profile_steps_inferred"].text == (
        "No step markers: steps are inferred from repetition of the launches."
    )


def test_steps_inferred_from_the_optimizer():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        work(drawing, start, start + STEP - 100)
        drawing.annotation("Optimizer.step#SGD.step", start + STEP - 50, 50)

    events = [e for e in loop(STEP, step) if not e.name.startswith("ProfilerStep")]
    assert "Optimizer.step#SGD.step" in notices(facts_of(events))["profile_steps_inferred"].text


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (1, "Only 1 complete step:"),
        (FEW_STEPS - 1, "Only 2 complete steps:"),
        (FEW_STEPS, None),
        (4, "Only 2 complete steps:"),  # without the first and the last two are left
        (5, None),
    ],
)
def test_few_steps(steps: int, said: str | None):
    found = notices(plain(steps)).get("profile_few_steps")
    assert (found is not None) is (said is not None)
    assert found is None or (said is not None and found.text.startswith(said))


def warm(first_us: int) -> Facts:
    """Steps of 1 ms behind a first one of another length."""
    drawing = TraceDrawing()
    at = 0
    for number, length in enumerate((first_us, *[STEP] * 4)):
        drawing.step(number, at, length)
        drawing.kernel(drawing.launch(at, CALL), "k", at + CALL, 100)
        drawing.kernel(drawing.launch(at + length - 200, CALL), "k", at + length - 100, 100)
        at += length
    return facts_of(drawing.events())


@pytest.mark.parametrize(("first_us", "said"), [(2_000, True), (1_999, False)])
def test_a_slow_first_step_looks_like_warm_up(first_us: int, said: bool):
    assert round(WARM_UP_FACTOR * STEP) == 2_000
    found = notices(warm(first_us)).get("profile_warm_up")
    assert (found is not None) is said
    assert found is None or "The first step took 2.00 ms, the others about 1.00 ms" in found.text


def test_two_steps_cannot_tell_warm_up():
    drawing = TraceDrawing()
    for number, (start, length) in enumerate(((0, 5_000), (5_000, 1_000))):
        drawing.step(number, start, length)
        work(drawing, start, start + length)
    assert "profile_warm_up" not in notices(facts_of(drawing.events()))


def starting(name: str, share: float, *, launches: bool = False) -> Facts:
    """One call in the second step that takes a share of the four used ones."""
    size = round(share * 4 * STEP)

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        work(drawing, start, start + 100)
        if number == 1:
            call = drawing.call(name, start + 150, size)
            if launches:
                drawing.kernel(call, "k", start + 150 + size, 20)
        work(drawing, start + STEP - 10, start + STEP)

    return facts_of(loop(STEP, step))


@pytest.mark.parametrize(("share", "said"), [(START_UP_SHARE, True), (START_UP_SHARE - 0.001, False)])
def test_one_call_that_takes_a_fifth_of_everything_is_start_up(share: float, said: bool):
    found = notices(starting("cudaGetDeviceProperties", share)).get("profile_start_up")
    assert (found is not None) is said
    assert found is None or found.text.startswith("`cudaGetDeviceProperties` alone takes 800 µs")


@pytest.mark.parametrize(
    ("name", "launches"),
    [("cudaMemcpyAsync", True), ("cudaDeviceSynchronize", False)],
    ids=["a call that launches", "a wait"],
)
def test_a_long_call_that_launches_or_waits_is_not(name: str, launches: bool):
    assert "profile_start_up" not in notices(starting(name, 0.21, launches=launches))


def setting_up(name: str, *, before: bool = False) -> Facts:
    """A whole profile that begins with a call of 800 µs in 2 ms, before or after the first kernel."""
    drawing = TraceDrawing()
    if before:
        drawing.kernel(drawing.launch(0), "k", 8, 10)
    drawing.call(name, 20, 800)
    for number, at in enumerate((830, 1_000, 1_300, 2_000)):
        drawing.kernel(drawing.launch(at), f"k{number}", at + 8, 10)
    return facts_of(drawing.events())


@pytest.mark.parametrize(
    ("name", "before", "said"),
    [
        ("cudaFree", False, True),
        ("hipFree", False, True),
        ("cudaFree", True, False),
        ("cudaMalloc", False, False),
    ],
    ids=["cudaFree", "hipFree", "with something to free", "an allocation"],
)
def test_a_free_before_the_device_ever_worked_creates_its_context(name: str, before: bool, said: bool):
    facts = setting_up(name, before=before)
    parts = facts.accounts[0].parts.sum(axis=0)
    assert ("profile_start_up" in notices(facts)) is said
    assert bool(parts[Category.ALLOCATOR.code] == 0) is said


# --- the device side ---------------------------------------------------------------------------------------


def test_calls_without_any_device_activity():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.host("aten::mm", start, 500)
        drawing.launch(start + 10)
        drawing.launch(start + 30)

    found = notices(facts_of(loop(STEP, step)))
    assert found["profile_device_missing"].count == 2 * STEPS
    assert "CUPTI" in found["profile_device_missing"].text
    assert "profile_no_device" not in found


def test_no_device_and_no_calls():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.host("aten::mm", start, 500)

    found = notices(facts_of(loop(STEP, step)))
    assert "ProfilerActivity.CUDA" in found["profile_no_device"].text
    assert "profile_device_missing" not in found


def test_a_job_that_could_use_no_device_misses_none():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.host("aten::mm", start, 500)

    facts = facts_of(loop(STEP, step))
    info = replace(facts.trace.info, header={"stepscope": {"accelerators": 0}})
    on_cpu = analyse(replace(facts.trace, info=info))
    assert "profile_no_device" not in notices(on_cpu)
    assert diagnose(on_cpu).verdict.startswith("On the CPU: the ")
    for said in ({}, {"stepscope": {"accelerators": 1}}, {"stepscope": None}, {"stepscope": {"accelerators": None}}):
        assert not replace(info, header=said).on_cpu


def sampled(missing_of_20: int, *, launches: bool) -> Facts:
    """20 kernels a step, of which some have lost their launch, or some launches their kernel."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        for i in range(20):
            lost = 0 < i <= missing_of_20
            at = start + 40 * i
            call = None if lost and launches else drawing.launch(at)
            if launches or not lost:
                drawing.kernel(call, "k", at + 10, 20)

    return facts_of(loop(STEP, step))


@pytest.mark.parametrize("launches", [True, False], ids=["ops without launch", "launches without op"])
@pytest.mark.parametrize(("missing", "said"), [(1, False), (2, True)])
def test_more_than_a_twentieth_without_partner_is_sampled(missing: int, said: bool, launches: bool):
    facts = sampled(missing, launches=launches)
    assert facts.sampling.sampled is said
    assert ("profile_sampled" in notices(facts)) is said


@pytest.mark.parametrize(
    ("calls", "holes", "jump", "said"),
    [
        (121, 7, CORRELATION_HOLE, True),
        (121, 6, CORRELATION_HOLE, False),
        (121, 7, CORRELATION_HOLE - 1, False),
        (FEWEST_CALLS, 50, CORRELATION_HOLE, False),
    ],
    ids=["more than a twentieth", "a twentieth", "as far as Kineto's own", "too few calls to tell"],
)
def test_holes_in_the_numbers_of_calls_are_sampled(calls: int, holes: int, jump: int, said: bool):
    drawing = TraceDrawing()
    drawing.step(1, 0, 3_000)
    for i in range(calls):
        drawing.kernel(drawing.launch(20 * i), "k", 20 * i + 8, 10)
    renumbered = [
        replace(event, correlation=event.correlation + jump * min(event.correlation - 1, holes))
        if event.correlation
        else event
        for event in drawing.events()
    ]
    assert ("profile_sampled" in notices(facts_of(renumbered))) is said


def test_ops_from_before_the_profile_are_counted():
    drawing = TraceDrawing()
    for i in range(3):
        drawing.kernel(None, "before", 10 * i, 10)
    drawing.step(1, 5, 100)
    drawing.kernel(drawing.launch(20), "k", 40, 20)
    found = notices(facts_of(drawing.events()))
    assert found["profile_launched_before"].count == 3


@pytest.mark.parametrize(("ahead_us", "said"), [(round(AHEAD_SHARE * STEP), True), (99, False)])
def test_a_backlog_at_the_end_of_the_steps_means_the_host_runs_ahead(ahead_us: int, said: bool):
    """The last thing a step does is to launch so much work."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        work(drawing, start + ahead_us, start + STEP - 2 * CALL)
        drawing.kernel(drawing.launch(start + STEP - CALL, CALL), "k", start + STEP, ahead_us)

    found = notices(facts_of(loop(STEP, step))).get("host_ran_ahead")
    assert (found is not None) is said
    assert found is None or "100 µs of work was still queued" in found.text


@pytest.mark.parametrize(("ahead_us", "said"), [(300, True), (0, False)])
def test_of_inferred_steps_the_last_but_one_tells_the_backlog(ahead_us: int, said: bool):
    """The last launch of a profile is always followed by work: alone it says nothing of the host."""
    drawing = TraceDrawing()
    for number in range(6):
        start = STEP * number
        for place, name in enumerate(("gemm", "relu")):
            launch = drawing.launch(start + 10 * place, CALL)
            drawing.kernel(launch, name, start + 20 + 480 * place + ahead_us, 480)
    facts = facts_of(drawing.events())
    assert (facts.markers.inferred, len(facts.markers)) == (True, 6)
    assert ("host_ran_ahead" in notices(facts)) is said


def test_a_device_that_is_done_before_the_step_ends_has_no_backlog():
    """One kernel of 450 µs, and the host waits until it is done."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        work(drawing, start, start + 450)
        drawing.sync(start + 50, 410)

    assert "host_ran_ahead" not in notices(facts_of(loop(STEP, step)))


# --- the capture -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ({"with_stack": 1}, "Recording stacks slows"),
        ({"record_shapes": 1, "profile_memory": 1}, "Recording shapes and memory slows"),
        ({"with_stack": 1, "record_shapes": 1, "profile_memory": 1}, "Recording stacks, shapes and memory slows"),
        ({"with_stack": 0, "with_flops": 1, "with_modules": 1}, None),
    ],
)
def test_what_the_capture_recorded_slows_the_host(header: dict[str, int], words: str | None):
    found = notices(plain(**header)).get("capture_slows_host")
    assert (found is not None) is (words is not None)
    assert found is None or (words is not None and found.text.startswith(words))


def test_frames_in_the_profile_tell_that_stacks_were_recorded():
    drawing = TraceDrawing()
    drawing.step(1, 0, 100)
    drawing.python("train.py(3): main", 0, 100)
    assert "Recording stacks" in notices(facts_with(drawing.events(), with_stack=0))["capture_slows_host"].text


@pytest.mark.parametrize(("own_us", "said"), [(round(PROFILER_SHARE * STEP), True), (19, False)])
def test_the_profilers_own_work(own_us: int, said: bool):
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.call("cudaFuncGetAttributes", start, own_us)
        drawing.overhead(start, own_us)
        work(drawing, start + own_us, start + STEP)

    found = notices(facts_of(loop(STEP, step))).get("profile_overhead")
    assert (found is not None) is said
    assert found is None or "takes 20.0 µs per step (2.0 %)" in found.text


@pytest.mark.parametrize(
    ("framework", "option"),
    [
        ("JAX", "`options.python_tracer_level = 1`"),
        ("TensorFlow", "`stepscope capture` from `tf.profiler.experimental.server.start(9012)`"),
        ("PyTorch/XLA", "`with xp.Trace('name'):`"),
        ("PyTorch", "`with_stack=True`"),
        (None, "named ranges"),
    ],
)
def test_host_time_that_was_not_recorded_names_the_option_that_records_it(framework: str | None, option: str):
    """Of 1,000 µs the host computes 940: what it does in 6 % is not known."""

    def of(computing_us: int, *more: HostRange) -> dict[str, Notice]:
        host = [HostRange("train", 1_000 * k, 1_000, Kind.STEP, step=k) for k in range(6)]
        host += [HostRange("aten::mm", 1_000 * k, computing_us, Kind.HOST_OP) for k in range(6)]
        return notices(analyse(build(Job([*host, *more], [], framework=framework))))

    found = of(940)["profile_host_unrecorded"].text
    assert found.startswith("What the host does in 60.0 µs of each step (6.0 %) was not recorded.")
    assert option in found
    assert "profile_host_unrecorded" not in of(round(1_000 * (1 - HOST_SHARE)) + 1)
    # Where Python was recorded the option has done what it can.
    frame = HostRange("train.py(3): other", 0, 1, Kind.PYTHON_FRAME)
    assert "named ranges" in of(940, frame)["profile_host_unrecorded"].text


@pytest.mark.parametrize(("launch_us", "header", "said"), [(100, {}, True), (99, {}, False), (100, STACKS, False)])
def test_where_the_host_costs_time_and_no_line_is_known_the_option_is_said(
    launch_us: int, header: dict[str, int], said: bool
):
    events = launching(STEP, launch_us)
    if header:
        drawing = TraceDrawing()
        drawing.python("train.py(3): main", 0, STEP)
        events = [*events, *drawing.events()]
    found = notices(facts_of(events)).get("profile_no_lines")
    assert (found is not None) is said
    assert found is None or "`with_stack=True`" in found.text


@pytest.mark.parametrize("stated", [None, 17])
def test_lines_of_calls_that_were_left_out_are_missed(stated: int | None) -> None:
    """A recording of ours, which looks at the thread, and holds the line of each call but where there are too many."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.python("train.py(5): main", start, 90)
        drawing.host("aten::linear", start + 10, 60)

    trace = trace_of_bytes(write_kineto(loop(100, step)))
    track = int(np.flatnonzero(trace.tracks.kind == TrackKind.HOST_THREAD)[0])
    strings, looks = table_of(trace.strings, Looks, [(40_000, track, "/job/train.py", 6, "main", NULL)])
    if stated is not None:
        frame = np.flatnonzero(trace.slices.kind == Kind.PYTHON_FRAME)[:1].astype(np.int32)
        calls = Frames(slice=frame, call_line=np.array([stated]), begun=np.array([Begun.CALLED], np.uint8))
        trace = replace(trace, frames=calls)
    said = notices(analyse(replace(trace, strings=strings, looks=looks)))
    assert ("profile_no_calls" in said) is (stated is None)


def test_a_profile_of_nothing_but_functions_says_so():
    host = [HostRange("run.py(1): main", 0, 100, Kind.PYTHON_FRAME), HostRange("load", 10, 30, Kind.ANNOTATION)]
    found = notices(analyse(build(Job(host, [], framework=None))))
    assert "nothing of what they compute" in found["profile_functions_only"].text
    assert "profile_no_device" not in found
    op = HostRange("aten::mm", 50, 10, Kind.HOST_OP)
    assert "profile_functions_only" not in notices(analyse(build(Job([*host, op], [], framework=None))))


# --- many ranks --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("world", "kernel", "said"),
    [
        (8, "k", True),
        (1, "k", False),
        (None, "k", False),
        (8, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", False),
    ],
)
def test_a_rank_of_many_without_collectives(world: int | None, kernel: str, said: bool):
    header = {} if world is None else {"distributedInfo": {"rank": 0, "world_size": world}}
    found = notices(facts_with(running((kernel, 900)), **header)).get("profile_no_collectives")
    assert (found is not None) is said
    assert found is None or "8 ranks" in found.text


# --- losses ------------------------------------------------------------------------------------------------


def broken(*more: dict[str, Any], cut: int = 0) -> Facts:
    """An ordinary profile with more raw events, some bytes short."""
    text = json.loads(write_kineto(plain_events()))
    text["traceEvents"] += more
    data = json.dumps(text).encode()
    return analyse(trace_of_bytes(data[: len(data) - cut]))


def plain_events() -> list[Event]:
    return running(("k", STEP - CALL))


def test_events_that_became_no_row_are_said_with_their_number():
    good = {"ph": "X", "cat": "cpu_op", "name": "x", "pid": 4242, "tid": 4242}
    found = notices(broken(good | {"ts": 1.5e15, "dur": -1}, good | {"ts": 1.5e15}))
    assert found["profile_time_out_of_range"].count == 2
    assert found["profile_time_out_of_range"].text.startswith("Events with a zero or impossible start time")


def test_unknown_categories_are_named():
    base = json.loads(write_kineto(plain_events()))["traceEvents"][0]
    found = notices(broken(base | {"cat": "quantum_op"}, base | {"cat": "quantum_op"}))
    assert found["profile_category_unknown"].count == 2
    assert "'quantum_op'" in found["profile_category_unknown"].text


def test_two_unknown_categories_are_two_notices():
    base = json.loads(write_kineto(plain_events()))["traceEvents"][0]
    facts = broken(base | {"cat": "quantum_op"}, base | {"cat": "other_op"})
    texts = [n.text for n in diagnose(facts).notices if n.code == "profile_category_unknown"]
    assert [any(name in text for text in texts) for name in ("quantum_op", "other_op")] == [True, True]


def test_damage_is_said_with_the_place():
    found = notices(broken(cut=40))
    (code,) = (code for code in found if code.startswith("damaged_"))
    assert "first at byte " in found[code].text


def test_an_open_arrow_is_no_notice():
    arrow = {"ph": "s", "id": 7, "cat": "fwdbwd", "name": "fwdbwd", "pid": 4242, "tid": 4242, "ts": 1}
    facts = broken(arrow)
    assert "flow_open" in {loss.code for loss in facts.trace.completeness.losses}
    assert "profile_flow_open" not in notices(facts)


def cut(events: list[Event], share: float) -> Facts:
    """A profile of which some share of the events lost their names with the end of the file."""
    trace = trace_of_bytes(write_kineto(events))
    loss = Loss("names_lost", round(share * trace.completeness.events), "events without name", damaged=True)
    return analyse(replace(trace, completeness=replace(trace.completeness, losses=(loss,))))


def without_marks(step: Step) -> list[Event]:
    return [event for event in loop(STEP, step) if not event.name.startswith("ProfilerStep")]


@pytest.mark.parametrize("share", [NAMES_LOST_SHARE + 0.05, NAMES_LOST_SHARE - 0.05])
def test_where_most_names_were_lost_no_cause_is_booked(share: float):
    """Neither for the host alone nor for a device that waits for it."""

    def alone(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.python("train.py(3): main", start, STEP)
        drawing.host("aten::mm", start, 300)

    def waiting(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.python("train.py(3): main", start, STEP)
        work(drawing, start + 400, start + STEP)
        drawing.sync(start + 450, STEP - 450)

    for step in (alone, waiting):
        parts = cut(loop(STEP, step), share).accounts[0].parts.sum(axis=0)
        told = {c for c in CATEGORIES if parts[c.code] and c not in BUSY}
        blind = {Category.UNKNOWN_HOST} | ({Category.LAUNCH} if step is waiting else set())  # its call is no guess
        assert (told == blind) is (share > NAMES_LOST_SHARE)


def test_where_names_were_lost_no_step_markers_are_advised():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.python("train.py(3): main", start, STEP)

    found = notices(cut(without_marks(step), 0.9))
    assert set(found) == {"damaged_names_lost", "profile_no_steps", "profile_device_missing"}
    assert "prof.step" not in found["profile_no_steps"].text
    assert "cut" in found["profile_device_missing"].text
    assert "prof.step" not in notices(cut(without_marks(step), 0.01))["profile_no_steps"].text


def missing(facts: Facts, *losses: Loss) -> Facts:
    """The same with losses of its file."""
    trace = facts.trace
    return analyse(replace(trace, completeness=replace(trace.completeness, losses=losses)))


def waits_alone(drawing: TraceDrawing, number: int, start: int) -> None:
    drawing.input_wait(start, STEP - 100)
    drawing.host("aten::mm", start + STEP - 100, 100)


def copies_alone(drawing: TraceDrawing, number: int, start: int) -> None:
    drawing.copy(drawing.launch(start, CALL), "HtoD", start + CALL, STEP // 2)


@pytest.mark.parametrize("step", [waits_alone, copies_alone])
@pytest.mark.parametrize("code", ["truncated", "gzip_corrupt", "xplane_damaged", "step_stats_damaged"])
def test_what_a_cut_may_have_taken_is_no_cause(step: Step, code: str):
    whole = facts_of(loop(STEP, step))
    assert diagnose(whole).findings
    found = diagnose(missing(whole, Loss(code, 1, "the file is cut off", damaged=True)))
    assert (found.bottleneck, found.findings, found.minor) == ("unknown", (), ())
    assert found.verdict == (
        "What bounds the step is not determined: part of the file is missing; device activity may have been in it."
    )
    assert found.whatif.reason in ("part of the file is missing", "no complete step was recorded")
    told = {notice.code: notice.text for notice in found.notices}
    assert "PyTorch" not in told.get("profile_device_missing", "")
    assert ("profile_device_missing" in told) is (step is waits_alone)


def test_a_cut_behind_recorded_kernels_takes_no_cause_away():
    loss = Loss("truncated", 1, "the file is cut off", damaged=True)
    assert diagnose(missing(plain(), loss)).bottleneck == diagnose(plain()).bottleneck != "unknown"
    mended = Loss("bytes_skipped", 1, "bytes were skipped", damaged=True)
    assert diagnose(missing(facts_of(loop(STEP, waits_alone)), mended)).findings


def test_of_a_device_in_part_lost_no_share_is_shown():
    facts = facts_of(loop(STEP, copies_alone))
    cut = missing(facts, Loss("truncated", 1, "the file is cut off", damaged=True))
    assert busy_share(facts, collectives=True) is not None
    assert busy_share(cut, collectives=True) is None
    text = render(document.make(cut, diagnose(cut), [document.InputFile("cut", None, None)]))
    assert "█" not in text
    assert "copying" not in text


def test_losses_come_first():
    base = json.loads(write_kineto(plain_events()))["traceEvents"][0]
    codes = [notice.code for notice in diagnose(broken(base | {"dur": -1, "cat": "x"})).notices]
    assert codes[0] == "profile_duration_negative"
