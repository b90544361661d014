"""Each rule: what it finds, how large, where, with which remedy, and what it must not take for its cause."""

from __future__ import annotations

from typing import Any

import pytest

import stepscope
from stepscope.analysis.limits import FINDING_NS, FINDING_SHARE
from stepscope.analysis.where import Where
from stepscope.diagnosis.chains import together
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Finding, FixPart
from stepscope.diagnosis.limits import LAUNCH_SHARE
from stepscope.diagnosis.rules.launch_bound import LAUNCH_SHARE_RECORDED
from stepscope.whatif.change import Change
from stepscope.whatif.limits import LAUNCH_GAP_NS
from tests.diagnosis.loops import (
    CALL,
    STEPS,
    copying,
    diagnosed,
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
from tests.kit.planted import CASES
from tests.kit.traces import REPOSITORY
from tests.support import facts_of, planted_facts

US = 1_000
STEP = 10_000
"""µs: 1 % of it is 100 µs."""
LONG = round(STEP * FINDING_SHARE)
SHORT_STEP = 1_000
SHORT = FINDING_NS // US
"""µs: the least of a short step that is worth a finding."""


def only(events: list[Event], header: dict[str, Any] | None = None) -> Finding:
    (finding,) = diagnosed(events, header).findings
    return finding


# --- input_bound -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("step_us", "edge"), [(STEP, LONG), (SHORT_STEP, SHORT)])
def test_waiting_for_input_is_a_finding_from_the_limit_on_and_minor_below(step_us: int, edge: int):
    found = diagnosed(waiting_for_input(step_us, edge))
    assert [(f.rule, f.cost_ns_per_step, f.saving_ns_per_step) for f in found.findings] == [
        ("input_bound", edge * US, edge * US)
    ]
    assert not found.minor
    less = diagnosed(waiting_for_input(step_us, edge - 1))
    assert not less.findings
    assert [(f.rule, f.cost_ns_per_step) for f in less.minor] == [("input_bound", (edge - 1) * US)]


def test_without_an_input_range_nothing_waits_for_input():
    assert not diagnosed(launching(STEP, CALL)).findings


def test_input_beside_a_busy_device_costs_nothing():
    """The batch is fetched while the kernels of this step still run."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        work(drawing, start, start + STEP)
        drawing.input_wait(start + 100, STEP - 200)

    found = diagnosed(loop(STEP, step))
    assert (found.findings, found.minor) == ((), ())


def test_all_loaders_are_named_and_the_host_s_time_is_told_from_the_device_s():
    """The device has work for the first 3 of the 12 ms in which the host reads and tokenises."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        work(drawing, start, start + 3_000)
        drawing.python("torchvision/io/video.py(300): read_video", start + 10, 9_000)
        drawing.python("torchvision/io/video.py(90): inner", start + 20, 8_000)
        drawing.python("transformers/tokenization_utils_base.py(2800): __call__", start + 9_010, 2_990)
        work(drawing, start + 12_000, start + 20_000)

    why = only(loop(20_000, step)).why
    assert "11.99 ms of the host's time" in why or "12.0 ms of the host's time" in why
    assert why.startswith("For 9.00 ms of each step (45.0 %) the device waits")
    assert "read_video` 9.00 ms, `transformers/tokenization_utils_base.py(2800): __call__` 2.99 ms" in why


@pytest.mark.parametrize(("frame", "advised"), [("", True), ("train.py(9): fetch", False)])
def test_stacks_are_not_asked_for_where_they_are(frame: str, advised: bool):
    """Nothing was recorded inside the loader, with and without Python code around it."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        if frame:
            drawing.python(frame, start, 2_000)
        drawing.input_wait(start, 2_000)
        work(drawing, start + 2_000, start + STEP)

    fix = only(loop(STEP, step)).fix
    assert ("with_stack" in fix) is advised
    assert "whether taking their batch over" in " ".join(fix.split())


def test_what_waits_and_in_what():
    finding = only(waiting_for_input(STEP, 2_000))
    assert finding.title == "The device waits for input data"
    assert "2.00 ms of each step (20.0 %)" in finding.why
    assert "`enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__`" in finding.why
    assert finding.evidence[0].name.startswith("enumerate(DataLoader)")
    assert [evidence.dur_ns for evidence in finding.evidence] == [2_000 * US] * 4
    assert [evidence.step for evidence in finding.evidence] == [1, 2, 3, 4]


SINGLE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def test_a_loader_without_workers_is_to_get_some():
    stages = {"aten::stack": 300, "aten::div": 900}
    finding = only(waiting_for_input(STEP, 2_000, SINGLE, **stages))
    assert "num_workers=1," in finding.fix
    assert "1 worker where there are as many cores" in finding.fix
    assert "synthetic batch" in finding.fix
    assert "transform 900 µs" in finding.why
    assert "collate 300 µs" in finding.why


WAIT = {"<built-in method poll of select.poll object at 0x7f00>": 1_500}
TAKE = {"torch/multiprocessing/reductions.py(130): rebuild_storage_fd": 1_500}


@pytest.mark.parametrize(
    ("stages", "words"),
    [
        ({}, "does not say"),
        (WAIT, "do not keep up"),
        (WAIT | {"aten::stack": 400}, "do not keep up"),
        (TAKE, "taking the batch over"),
        (TAKE | {"aten::stack": 400}, "taking the batch over"),
        ({"aten::stack": 1_000}, "does not say"),  # as much was not seen
        ({"aten::stack": 1_001}, "taking the batch over"),
    ],
)
def test_workers_that_are_late_and_batches_that_are_heavy_have_different_remedies(stages: dict[str, int], words: str):
    finding = only(waiting_for_input(STEP, 2_000, **stages))
    assert words in finding.fix
    assert ("prefetch_factor" in finding.fix) is (words != "taking the batch over")
    assert ("collate_fn" in finding.fix) is (words != "do not keep up")


def test_another_loader_gets_a_general_remedy():
    finding = only(waiting_for_input(STEP, 2_000, "load_batch"))
    assert "background thread" in finding.fix
    assert "num_workers" not in finding.fix


def test_the_users_function_that_takes_most_of_the_time_comes_first():
    stages = {"dataset.py(18): __getitem__": 1_200, "torch/utils/data/_utils/collate.py(3): collate": 300}
    finding = only(waiting_for_input(STEP, 2_000, SINGLE, **stages))
    assert (finding.where[0].file, finding.where[0].line) == ("dataset.py", 18)


def test_without_a_device_it_is_the_training_thread_that_waits():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.input_wait(start, 2_000)
        drawing.host("aten::mm", start + 2_000, STEP - 2_000)

    finding = only(loop(STEP, step))
    assert (finding.rule, finding.title) == ("input_bound", "The main thread waits for input data")
    assert (finding.device, finding.cost_ns_per_step) == (None, 2_000 * US)


# --- sync_bound --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("step_us", "edge"), [(STEP, LONG), (SHORT_STEP, SHORT)])
def test_a_sync_is_a_finding_from_the_limit_on_and_minor_below(step_us: int, edge: int):
    """The limit is on what the fix gains: a kernel queued behind another starts 1 µs later."""
    found = diagnosed(synchronising(step_us, edge + 1, "aten::item"))
    (finding,) = found.findings
    assert (finding.rule, finding.cost_ns_per_step) == ("sync_bound", (edge + 1) * US)
    assert finding.saving_ns_per_step == edge * US
    less = diagnosed(synchronising(step_us, edge, "aten::item"))
    assert not less.findings
    assert [f.rule for f in less.minor] == ["sync_bound"]


def test_the_op_its_caller_the_line_and_the_cause_are_said():
    finding = only(synchronising(STEP, 2_000, "aten::item", "aten::_local_scalar_dense"))
    assert finding.title == "`aten::item` makes the host wait for the device"
    place = finding.where[0]
    assert (place.file, place.line, place.function, place.op) == ("train.py", 61, "log_loss", "aten::item")
    assert "`aten::item` waits in `cudaStreamSynchronize` once in every step" in finding.why
    assert "the host is blocked 7.99 ms per step" in finding.why
    assert "A value is read from the device into a Python number." in finding.why
    assert "read it every N steps" in finding.fix
    assert {evidence.name for evidence in finding.evidence} == {"cudaStreamSynchronize"}


@pytest.mark.parametrize(
    ("steps", "waits_in", "times", "said"),
    [
        (1, {0}, 1, "once in the step"),
        (1, {0}, 3, "3 times in the step"),
        (6, {2}, 1, "once in 1 of 4 steps"),
        (6, {2, 3}, 2, "4 times in 2 of 4 steps"),
    ],
)
def test_how_often_a_wait_happens_is_said_in_plain_words(steps: int, waits_in: set[int], times: int, said: str):
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        for each in range(times):
            at = start + each * 3_000
            work(drawing, at + 500, at + 2_000)
            if number in waits_in:
                drawing.sync(at + 600, 1_400)
        work(drawing, start + 9_500, start + 10_000)

    found = diagnosed(loop(10_000, step, steps))
    (finding,) = (f for f in (*found.findings, *found.minor) if f.rule == "sync_bound")
    assert finding.why.startswith(f"A call of `cudaStreamSynchronize` outside of any op waits {said}: the host")


def test_the_places_of_a_sync_add_up_to_its_cost():
    finding = only(synchronising(STEP, 2_000, "aten::item"))
    assert finding.cost_ns_per_step == 2_000 * US
    assert "idles 2.00 ms" in finding.why


def test_a_branch_on_a_tensor_is_named_as_such():
    chain = ("aten::is_nonzero", "aten::item", "aten::_local_scalar_dense")
    finding = only(synchronising(STEP, 2_000, *chain))
    assert finding.title.startswith("`aten::is_nonzero`")
    assert "torch.where instead of if" in finding.fix


def test_a_bare_synchronise_call_at_the_end_of_a_step_is_to_be_removed_or_replaced_by_events():
    finding = only(synchronising(STEP, 2_000, call="cudaDeviceSynchronize"))
    assert finding.rule == "loop_sync"
    assert "`cudaDeviceSynchronize`" in finding.title
    assert "device events" in finding.fix
    assert finding.where[0].file == "train.py"


def test_an_op_nobody_knows_that_waits_is_found_by_its_call():
    finding = only(synchronising(STEP, 2_000, "mylib::thing"))
    assert finding.title.startswith("`mylib::thing`")
    assert "no equivalent that needs no wait is known" in finding.fix
    assert all(way in finding.fix for way in ("Move it out of the step", "every N steps", "redesign"))


def test_a_wait_behind_which_the_host_still_leads_is_no_finding():
    """The host waits for the last kernel but one: the device never runs dry for it."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.kernel(drawing.launch(max(start - 100, 0), CALL), "k", start + 10, STEP // 2 - 10)
        drawing.kernel(drawing.launch(start + 10, CALL), "k", start + STEP // 2, STEP // 2 + 10)
        drawing.host("aten::item", start + 20, STEP // 2 - 20)
        drawing.sync(start + 20, STEP // 2 - 20)
        drawing.host("aten::view", start + STEP // 2, 4_000)

    diagnosis = diagnosed(loop(STEP, step))
    assert (diagnosis.findings, diagnosis.minor) == ((), ())


@pytest.mark.parametrize(("alone", "chained"), [((1, 0, 0), True), ((4, 3, 3), False), ((5, 3, 1), False)])
def test_waits_that_hide_behind_each_other_are_said_to_be_fixed_together(alone: tuple[int, ...], chained: bool):
    parts = tuple(
        FixPart(title="", where=Where(), fix="", cost_ns_per_step=1, change=Change(), saving_alone_ns_per_step=ns)
        for ns in alone
    )
    finding = Finding(
        rule="sync_bound", title="", why="Why.", fix="", cost_ns_per_step=10, saving_ns_per_step=10, fix_set=parts
    )
    assert ("Fix them together" in together(finding).why) is chained


def test_waits_in_a_row_are_one_fix_set():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        at = start
        for op in ("aten::nonzero", "aten::_unique2", "aten::masked_select"):
            drawing.host("aten::view", at, 500 - CALL)
            work(drawing, at + 500 - CALL, at + 3_000)
            drawing.host(op, at + 600, 2_400)
            drawing.sync(at + 600, 2_400)
            at += 3_000

    finding = only(loop(9_000, step))
    assert finding.title.endswith("and 2 more make the host wait for the device")
    assert "Fix them together" not in finding.why  # each costs its own gap
    assert {place.op for place in finding.where} == {"aten::nonzero", "aten::_unique2", "aten::masked_select"}
    assert finding.why.count("The output's size depends on the input's values") == 1


@pytest.mark.parametrize(("second_us", "named"), [(25, True), (15, False)])
def test_a_wait_that_costs_next_to_nothing_is_not_named_beside_one_that_does(second_us: int, named: bool):
    """Of 2 ms, 1 % is 20 µs."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.host("aten::view", start, 2_000 - CALL)
        work(drawing, start + 2_000 - CALL, start + 5_000)
        drawing.host("aten::item", start + 2_100, 2_900)
        drawing.sync(start + 2_100, 2_900)
        work(drawing, start + 5_000 + second_us - CALL, start + 8_000)
        drawing.host("aten::nonzero", start + 5_100, 2_900)
        drawing.sync(start + 5_100, 2_900)

    found = diagnosed(loop(8_000, step))
    (finding,) = (f for f in found.findings if f.rule == "sync_bound")
    assert ("and 1 more" in finding.title) is named


@pytest.mark.parametrize(("check_us", "listed"), [(0.8, False), (1.2, True)])
def test_a_check_that_returns_at_once_is_no_part_of_the_fix(check_us: float, listed: bool):
    """XLA asks for holds on a buffer in calls named like waits."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.host("aten::view", start, 2_000 - CALL)
        work(drawing, start + 2_000 - CALL, start + 5_000)
        drawing.host("aten::item", start + 2_100, 2_900)
        drawing.sync(start + 2_100, 2_900)
        drawing.sync(start + 5_000, check_us, "cudaEventSynchronize")

    (finding,) = (f for f in diagnosed(loop(7_000, step)).findings if f.rule == "sync_bound")
    waits = [part.title for part in (*finding.fix_set, *finding.next_waits)]
    assert ("`cudaEventSynchronize`" in waits) is listed
    assert finding.saving_ns_per_step >= 2_000 * US


def test_an_op_and_a_bare_call_get_both_remedies():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        for at, op in ((start, False), (start + 3_000, True)):
            drawing.host("aten::view", at, 500 - CALL)
            work(drawing, at + 500 - CALL, at + 3_000)
            if op:
                drawing.host("aten::item", at + 600, 2_400)
            drawing.sync(at + 600, 2_400, "cudaStreamSynchronize" if op else "cudaDeviceSynchronize")

    finding = only(loop(6_000, step))
    assert "Remove the synchronise call" in finding.fix
    assert "keep the value on the device" in finding.fix


def test_a_wait_between_two_markers_is_found_too():
    """Markers such as vLLM's execute ranges end before what comes between iterations."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.annotation(f"train_step {number}", start, 1_000)
        work(drawing, start + 500, start + STEP)
        drawing.host("aten::item", start + 2_000, STEP - 2_000)
        drawing.sync(start + 2_000, STEP - 2_000)

    drawing = TraceDrawing()
    for number in range(STEPS):
        step(drawing, number, number * STEP)
    assert rules(diagnosed(drawing.events())) == ["sync_bound"]


# --- launch_bound ------------------------------------------------------------------------------------------

RECORDED = {"with_stack": 1}


@pytest.mark.parametrize(
    ("header", "share", "confidence"),
    [({}, LAUNCH_SHARE, "high"), (RECORDED, LAUNCH_SHARE_RECORDED, "medium"), ({"record_shapes": 1}, 0.1, "medium")],
)
def test_waiting_for_launches_is_a_finding_from_a_share_of_the_step(
    header: dict[str, Any], share: float, confidence: str
):
    """What slows the host raises the share and lowers the confidence."""
    edge = round(STEP * share)
    finding = only(launching(STEP, edge), header)
    assert (finding.rule, finding.cost_ns_per_step, finding.confidence) == ("launch_bound", edge * US, confidence)
    assert ("the capture's own" in finding.why) is bool(header)
    below = diagnosed(launching(STEP, edge - 1), header)
    assert (below.findings, below.minor) == ((), ())


def test_recorded_python_frames_count_as_recording_stacks():
    events = launching(SHORT_STEP, 99)
    drawing = TraceDrawing()
    drawing.python("train.py(3): main", 0, STEPS * SHORT_STEP)
    assert rules(diagnosed(events)) == ["launch_bound"]
    assert rules(diagnosed([*drawing.events(), *events])) == []


def test_one_long_call_is_not_many_small_launches():
    limit = LAUNCH_GAP_NS // US
    assert rules(diagnosed(launching(10 * limit, limit))) == ["launch_bound"]
    assert rules(diagnosed(launching(10 * limit, limit + 1))) == ["long_launch"]


def test_advice_on_a_long_call_is_of_the_op_that_takes_the_time():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.host("aten::unflatten_dense_tensors", start, 3_000)
        for i in range(30):
            drawing.host("aten::view", start + 90 * i + 1, 80)
        work(drawing, start + 3_000, start + 10_000)

    assert "runs 30 other ops" in only(loop(10_000, step)).fix
    assert "broadcast_buffers=False" in only(loop(10_000, step), {"distributedInfo": {"rank": 0, "world_size": 4}}).fix
    assert "first" not in only(loop(10_000, step)).fix


def test_a_launch_keeps_its_latency():
    finding = only(launching(SHORT_STEP, 200))
    assert finding.saving_ns_per_step == (200 - CALL) * US


def test_many_short_kernels():
    """Forty kernels of 3 µs, launched 20 µs apart."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        for at in range(start, start + 800, 20):
            drawing.host("aten::add", at, 20)
            work(drawing, at + 10, at + 10 + CALL + 3)

    finding, little = diagnosed(loop(800, step)).findings
    assert (finding.rule, finding.cost_ns_per_step) == ("launch_bound", 40 * 17 * US)
    assert (little.rule, little.saving_ns_per_step) == ("too_little_work", None)
    assert finding.saving_ns_per_step == 40 * (17 - 1) * US
    assert finding.why.startswith(
        "40 times per step the device runs dry before the next launch: half of its ops take under 3.00 µs, and half "
        "of these waits take over 17.0 µs."
    )
    assert "torch.compile" in finding.fix
    assert [evidence.dur_ns for evidence in finding.evidence] == [17 * US] * 5


def test_places_are_functions_annotations_and_modules():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.python("train.py(40): train_step", start, SHORT_STEP)
        drawing.annotation("teacher", start, SHORT_STEP)
        drawing.python("nn.Module: Linear_0", start, SHORT_STEP)
        drawing.python("torch/nn/functional.py(5): linear", start, SHORT_STEP)
        drawing.kernel(drawing.launch(start, 200), "k", start + 200, 800)

    finding = only(loop(SHORT_STEP, step))
    assert [(p.file, p.annotation, p.module) for p in finding.where] == [("train.py", "teacher", "Linear_0")]


@pytest.mark.parametrize("name", ["Optimizer.zero_grad#SGD.zero_grad", "Optimizer.step#SGD.step"])
def test_gradients_that_are_set_to_zero_are_to_be_freed(name: str):
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.annotation(name, start, SHORT_STEP)
        drawing.kernel(drawing.launch(start, 200), "k", start + 200, 800)

    assert ("set_to_none=True" in only(loop(SHORT_STEP, step)).fix) is ("zero_grad" in name)


def test_a_range_without_a_name_is_no_place():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.annotation("", start, SHORT_STEP)
        drawing.kernel(drawing.launch(start, 200), "k", start + 200, 800)

    assert all(only(loop(SHORT_STEP, step)).where)


# --- exposed_copy ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("step_us", "edge"), [(STEP, LONG), (SHORT_STEP, SHORT)])
def test_an_exposed_copy_is_a_finding_from_the_limit_on_and_minor_below(step_us: int, edge: int):
    found = diagnosed(copying(step_us, edge, memory="Pinned"))
    (finding,) = found.findings
    assert (finding.rule, finding.cost_ns_per_step) == ("exposed_copy", edge * US)
    assert finding.saving_ns_per_step == pytest.approx(edge * US, abs=CALL * US)  # the kernel is launched 5 µs later
    less = diagnosed(copying(step_us, edge - 3 * CALL, memory="Pinned"))
    assert not less.findings
    assert [f.rule for f in less.minor] == ["exposed_copy"]


@pytest.mark.parametrize(
    ("direction", "memory", "title", "fix", "pageable"),
    [
        ("HtoD", "Pageable", "Copies from host to device that nothing hides", "pin_memory=True", True),
        ("HtoD", "Pinned", "Copies from host to device that nothing hides", "on a stream of its own", False),
        ("DtoH", "Pageable", "Copies from device to host that nothing hides", "fetch them every N steps", True),
        ("DtoH", "Pinned", "Copies from device to host that nothing hides", "fetch them every N steps", False),
        ("PtoP", "Pinned", "Copies between devices that nothing hides", "one layer on one device", False),
    ],
)
def test_the_remedy_goes_by_direction_and_memory(direction: str, memory: str, title: str, fix: str, pageable: bool):
    (finding,) = (f for f in diagnosed(copying(STEP, 1_000, direction, memory)).findings if f.rule == "exposed_copy")
    assert finding.title == title
    assert fix in finding.fix
    assert ("pageable" in finding.why) is pageable
    assert "1 copy per step, 1.00 MiB: for 1.00 ms per step" in finding.why
    assert (finding.basis, finding.confidence) == ("measured", "high")
    place = finding.where[0]
    assert (place.file, place.line, place.op) == ("train.py", 52, "aten::to")


@pytest.mark.parametrize(("memory", "words"), [("Pageable", "memory is pageable"), ("Pinned", "yet the host waits")])
def test_a_copy_that_the_host_waits_for_is_predicted_without_the_wait(memory: str, words: str):
    """The batch is copied behind the kernel of the step before: what is queued then is waited for too."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.host("aten::copy_", start, 8_100)
        call = drawing.call("cudaMemcpyAsync", start, CALL)
        drawing.copy(call, "HtoD", start + 6_000, 2_000, 1 << 20, memory)
        drawing.sync(start + 10, 8_000)
        drawing.host("aten::view", start + 8_100, 1_900 - CALL)
        drawing.kernel(drawing.launch(start + STEP - CALL, CALL), "k", start + STEP, 6_000)

    (finding,) = (f for f in diagnosed(loop(STEP, step)).findings if f.rule == "exposed_copy")
    assert words in finding.why
    assert "per step in them" in finding.why
    # 6 ms of kernel hide the 2 ms of host work behind the copy once nothing waits: the copy, and that, are gone.
    assert finding.saving_ns_per_step == pytest.approx((STEP - 6_000) * US, rel=0.02)


def test_copies_within_a_device_are_work():
    assert rules(diagnosed(copying(STEP, 1_000, "DtoD"))) == []


def test_a_hidden_copy_costs_nothing():
    found = diagnose(planted_facts("hidden_copy"))
    assert "exposed_copy" not in [f.rule for f in (*found.findings, *found.minor)]


@pytest.mark.parametrize(("every", "found"), [(1, True), (2, True), (3, False)])
def test_a_copy_that_does_not_recur_belongs_to_no_step(every: int, found: bool):
    """Of the four used steps 1-4 two are even; one is a third."""
    diagnosis = diagnosed(copying(STEP, 2_000, memory="Pinned", every=every))
    assert rules(diagnosis) == (["exposed_copy"] if found else [])
    assert not diagnosis.minor


def test_a_copy_without_a_launch_is_a_guess_and_says_so():
    # More ops lack a launch here than an unsampled profile may have, so each copy is beside forty kernels.
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.host("aten::to", start + 100, 1_000)
        drawing.kernel(drawing.launch(start, CALL), "k", start + CALL, 95)
        drawing.copy(None, "HtoD", start + 100, 1_000, memory="Pinned")
        for i in range(40):
            drawing.kernel(drawing.launch(start + 200 + 10 * i, CALL), "k", start + 1_100 + 10 * i, 10)

    (finding,) = (f for f in diagnosed(loop(1_500, step)).findings if f.rule == "exposed_copy")
    assert (finding.basis, finding.confidence) == ("heuristic", "medium")
    assert "nearest in time" in finding.why
    assert finding.where[0].op == "aten::to"


def test_staging_of_pageable_memory_is_part_of_the_copys_cost():
    planted = CASES["copy_staging"]()
    (finding,) = (f for f in diagnose(facts_of(planted.events)).findings if f.rule == "exposed_copy")
    assert finding.cost_ns_per_step == pytest.approx(1_400 * US, rel=0.02)
    assert "waits for the host to stage the data" in finding.why


# --- tensor_cores_unused, low_precision_share --------------------------------------------------------------

SGEMM = "volta_sgemm_128x128_nn"
DGEMM = "volta_dgemm_128x64_nn"
HALF_GEMM = "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_nn"
PLAIN_GEMM = "sgemm_128x128"
"""32 bits, but nothing says on which units."""
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >()"
UNKNOWN = "mystery_kernel"


def device(name: str, major: int | None = None) -> dict[str, Any]:
    return {"deviceProperties": [{"id": 0, "name": name, "computeMajor": major, "computeMinor": 0}]}


A100, V100 = "NVIDIA A100-SXM4-80GB", "Tesla V100-SXM2-16GB"


def test_matrix_work_beside_the_tensor_cores_is_found_and_the_gain_is_the_ratio_of_peaks():
    (finding,) = diagnosed(running((SGEMM, 800), (ADD, 190)), device(A100)).findings
    assert (finding.rule, finding.cost_ns_per_step) == ("tensor_cores_unused", 800 * US)
    assert finding.saving_ns_per_step == round(800 * US * (1 - 19.5 / 312))
    assert (finding.basis, finding.confidence) == ("modelled", "low")
    assert SGEMM in finding.why
    assert "at most" in finding.why or "the most to expect" in finding.why
    assert "bfloat16" in finding.fix
    assert "set_float32_matmul_precision" in finding.fix


def test_before_bfloat16_it_is_float16_with_a_scaler_and_no_tf32():
    finding = only(running((SGEMM, 900)), device(V100))
    assert "float16" in finding.fix
    assert "GradScaler" in finding.fix
    assert "matmul_precision" not in finding.fix
    assert finding.saving_ns_per_step == round(900 * US * (1 - 15.7 / 125))


def test_a_device_without_tensor_cores_is_not_told_to_use_them():
    found = diagnosed(running((SGEMM, 900)), device("Tesla P100-PCIE-16GB", 6))
    assert (found.findings, found.minor) == ((), ())


@pytest.mark.parametrize("header", [device("A card of the future"), {"deviceProperties": []}])
def test_without_known_peaks_the_saving_is_not_determined(header: dict[str, Any]):
    diagnosis = diagnosed(running((SGEMM, 900)), header)
    (finding,) = diagnosis.findings
    assert (finding.cost_ns_per_step, finding.saving_ns_per_step) == (900 * US, None)
    assert finding.prediction_basis is None
    assert finding.not_determined is not None
    assert "peaks" in finding.not_determined
    assert diagnosis.plan == ()


def test_double_precision_is_not_told_to_use_sixteen_bits():
    found = diagnosed(running((DGEMM, 900)), device(A100))
    assert (found.findings, found.minor) == ((), ())


def test_what_may_be_double_precision_is_not_either():
    """A kernel's short name without its template arguments: on FMA units, in some format."""
    found = diagnosed(running(("gemmSN_NN_kernel", 900)), device(A100))
    assert (found.findings, found.minor) == ((), ())


@pytest.mark.parametrize("kernels", [((UNKNOWN, 900),), ((HALF_GEMM, 900),), ((ADD, 900),)])
def test_what_is_not_certain_or_not_matrix_work_is_not_counted(kernels: tuple[tuple[str, int], ...]):
    found = diagnosed(running(*kernels), device(A100))
    assert (found.findings, found.minor) == ((), ())


def test_a_kernel_that_may_use_them_is_not_said_not_to():
    assert "tensor_cores_unused" not in rules(diagnosed(running((PLAIN_GEMM, 900)), device(A100)))


@pytest.mark.parametrize(("half", "found"), [(99, True), (100, False)])
def test_wide_matrix_work_is_found_where_hardly_anything_is_narrow(half: int, found: bool):
    diagnosis = diagnosed(running((HALF_GEMM, half), (PLAIN_GEMM, 1_000 - half)), device(A100))
    assert rules(diagnosis) == (["low_precision_share"] if found else [])
    if found:
        assert diagnosis.findings[0].title == "Matrix work runs in 32 bits"
        assert "Only 9.9 % of kernel time is in 16 bits or fewer" in diagnosis.findings[0].why


@pytest.mark.parametrize(("wide", "found"), [(50, True), (49, False)])
def test_wide_work_is_found_only_where_precision_is_known_of_enough(wide: int, found: bool):
    diagnosis = diagnosed(running((UNKNOWN, 1_000 - wide), (PLAIN_GEMM, wide)), device(A100))
    findings = [f for f in (*diagnosis.findings, *diagnosis.minor) if f.rule == "low_precision_share"]
    assert bool(findings) is found
    assert not found or "Only 0 % of the 5.0 % of kernel time whose precision is known" in findings[0].why


TENSILE_HALF, TENSILE = "Cijk_Alik_Bljk_BBS_BH_MT128", "Cijk_Ailk_Bjlk_SB_MT64x64x16_SE_K1"


@pytest.mark.parametrize(
    ("kernels", "maker", "units", "advised"),
    [
        ([(TENSILE_HALF, 900)], "AMD Instinct MI300X", "matrix cores", False),
        ([(TENSILE, 900)], "AMD Instinct MI300X", "matrix cores", True),
        ([(TENSILE_HALF, 900)], A100, "tensor cores", False),
        ([(SGEMM, 800)], A100, "tensor cores", True),
    ],
)
def test_units_have_their_makers_name_and_what_is_narrow_is_not_to_be_made_so(kernels, maker, units, advised):
    finding = next(f for f in diagnosed(running(*kernels), device(maker)).findings if f.rule == "tensor_cores_unused")
    assert finding.title == f"Matrix work does not use the {units}"
    assert f"could use {units} and do not" in finding.why
    assert ("in 16 bits" in finding.fix) is advised
    assert ("multiples of 8" in finding.fix) is not advised


def test_wide_work_that_is_no_matrix_work_gains_nothing():
    assert rules(diagnosed(running((ADD, 900)), device(A100))) == []


def test_unused_tensor_cores_are_said_once_not_as_low_precision_too():
    assert rules(diagnosed(running((SGEMM, 500), (PLAIN_GEMM, 400)), device(V100))) == ["tensor_cores_unused"]


def test_of_two_devices_only_the_one_that_does_not_use_them_is_found():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        for number, name in enumerate((HALF_GEMM, SGEMM)):
            drawing.kernel(drawing.launch(start + 2 * number, 2), name, start + 5, 995, Stream(number, 7))

    header = {"deviceProperties": [{"id": i, "name": V100} for i in range(2)]}
    found = diagnosed(loop(SHORT_STEP, step), header)
    assert found.findings == ()  # the other device holds the step
    (finding,) = found.minor
    assert (finding.rule, finding.device, finding.cost_ns_per_step) == ("tensor_cores_unused", 1, 995 * US)


def test_a_program_that_is_waited_for_while_it_starts_is_not_to_be_read_less_often():
    """JAX on several CPU devices: the call of the step waits, and no value is read in it."""
    diagnosis = stepscope.open(REPOSITORY / "examples" / "profiles" / "jax_eight_devices.xplane.pb.gz").diagnosis
    finding = next(f for f in diagnosis.findings if f.rule == "sync_bound")
    assert "LaunchOnDevice" in finding.why
    assert "xla_gpu" not in " ".join(f.fix for f in (*diagnosis.findings, *diagnosis.minor))
    assert "jax.lax.scan" in finding.fix
    assert "block_until_ready" not in finding.fix
