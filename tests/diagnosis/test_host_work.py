"""Host work that holds up every step: Python, garbage, checkpoints, memory, compilation, graphs, transfers."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.analysis.categories import Category
from stepscope.analysis.workload import Workload
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Diagnosis, Finding
from stepscope.diagnosis.limits import SEEN_ONCE_SHARE
from stepscope.diagnosis.remedies import remedy
from stepscope.diagnosis.rules import slow_steps
from tests.diagnosis.loops import CALL, diagnosed, loop, rules, work
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event
from tests.support import planted_facts

US = 1_000
STEP = 10_000
HELD = 3_000


def held_up(name: str, cat: Any = "python_function", **inner: int) -> list[Event]:
    """The device waits in each step while the main thread is in a range; ``inner`` are frames inside it."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.python("train.py(88): main", start, STEP)
        drawing.host(name, start, HELD, cat)
        at = start
        for frame, dur in inner.items():
            drawing.python(frame, at, dur)
            at += dur
        work(drawing, start + HELD, start + STEP)

    return loop(STEP, step)


def only(diagnosis: Diagnosis) -> Finding:
    (finding,) = diagnosis.findings
    return finding


@pytest.mark.parametrize(
    ("name", "cat", "rule", "title", "fix"),
    [
        ("callbacks.py(31): log", "python_function", "between_steps", "Python code", "every N steps"),
        ("Python GC", "user_annotation", "between_steps", "garbage", "`gc.collect()` of your own"),
        ("torch/serialization.py(944): save", "python_function", "between_steps", "checkpoints", "async_save"),
        ("cudaMalloc", "cuda_runtime", "allocator_bound", "allocated", "expandable_segments"),
        ("_compile.compile_inner (dynamo_timed)", "user_annotation", "recompilation", "compiled", "mark_dynamic"),
    ],
)
def test_each_cause_has_its_size_its_step_time_and_its_remedy(name: str, cat: str, rule: str, title: str, fix: str):
    finding = only(diagnosed(held_up(name, cat)))
    assert (finding.rule, finding.cost_ns_per_step) == (rule, HELD * US)
    assert finding.saving_ns_per_step == pytest.approx(HELD * US, rel=0.01)
    assert title in finding.title
    assert fix in finding.fix
    assert "in every step" in finding.why
    assert "All of it lies before the first launch of a step." in finding.why


def test_the_functions_in_which_the_time_passes_are_named_with_their_share():
    frames = {"metrics.py(12): update": 2_000, "report.py(7): write": 1_000}
    finding = only(diagnosed(held_up("callbacks.py(31): log", **frames)))
    assert "Per step: `update` 1.97 ms (65.6 %), `write` 1.03 ms (34.4 %)." in finding.why
    assert [(place.file, place.line) for place in finding.where] == [("metrics.py", 12), ("report.py", 7)]
    assert {piece.name for piece in finding.evidence} == {"metrics.py(12): update"}


def test_a_gap_inside_the_step_is_told_from_one_before_it():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        work(drawing, start, start + 4_000)
        drawing.python("train.py(61): check", start + 4_000, HELD)
        work(drawing, start + 4_000 + HELD, start + STEP)

    assert "It lies between launches of a step." in only(diagnosed(loop(STEP, step))).why


def test_python_beside_a_busy_device_costs_nothing():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        work(drawing, start, start + STEP)
        drawing.python("callbacks.py(31): log", start + 100, STEP - 500)

    found = diagnosed(loop(STEP, step))
    assert (found.findings, found.minor) == ((), ())


TORCHS = "torch/optim/adam.py(139): _init_group"
BACKWARD = "<built-in method run_backward of torch._C._EngineBase object at 0x7f86>"
TO_LIST = "<built-in method tolist of Tensor object at 0x7f86>"


def without_device(name: str, **inner: int) -> list[Event]:
    """A host that computes, and in each step runs a frame for 3 ms; ``inner`` are frames inside it."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.python("train.py(88): main", start, STEP)
        drawing.python(name, start, HELD)
        for frame, dur in inner.items():
            drawing.python(frame, start, dur)
        drawing.host("aten::mm", start + HELD, STEP - HELD)

    return loop(STEP, step)


@pytest.mark.parametrize("name", [TORCHS, BACKWARD])
def test_what_the_host_needs_to_give_itself_ops_is_told_with_its_functions(name: str):
    assert rules(diagnosed(without_device(name))) == ["python_overhead"]


@pytest.mark.parametrize("inner", [{}, {TO_LIST: HELD - 400}])
def test_what_the_job_does_inside_of_pytorchs_code_is_the_jobs(inner: dict[str, int]):
    frames = {"hooks.py(3): log_gradient": HELD - 200, **inner}
    assert only(diagnosed(without_device(TORCHS, **frames))).rule == "between_steps"


def test_a_device_that_waits_for_pytorchs_own_python_is_told_so():
    finding = only(diagnosed(held_up(TORCHS)))
    assert (finding.rule, finding.cost_ns_per_step, finding.confidence) == ("between_steps", HELD * US, "low")
    assert "PyTorch's own Python code" in finding.title
    assert "recording of stacks" in finding.why
    assert "fused=True" in finding.fix
    assert rules(diagnosed(held_up(BACKWARD))) == []


@pytest.mark.parametrize("inner", ["named_modules", "__getattr__"])
@pytest.mark.parametrize(
    ("caller", "said"),
    [
        ("mylib/ctx.py(77): _set_context", "`_set_context`"),
        ("diffusers/pipelines/pipeline_utils.py(1000): _execution_device", "`_execution_device`"),
    ],
)
def test_a_walk_over_the_modules_is_no_giving_of_ops(caller: str, said: str, inner: str):
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        for depth, frame in enumerate(("train.py(88): main", caller)):
            drawing.python(frame, start + depth, STEP - 2 * depth)
        drawing.python("torch/nn/modules/module.py(2696): named_modules", start + 2, HELD - 4)
        drawing.python(f"torch/nn/modules/module.py(1900): {inner}", start + 3, HELD - 6)
        work(drawing, start + HELD, start + STEP)

    finding = only(diagnosed(loop(STEP, step)))
    assert "walks over the modules" in finding.title
    assert said in finding.why
    assert "Ask once" in finding.fix
    assert "AdamW" not in finding.fix
    assert "torch.compile" not in finding.fix


def test_time_of_which_the_profile_shows_nothing_has_no_name():
    """A range around the whole step, ops included, does not say that Python ran between them."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.annotation("phase", start, STEP)
        work(drawing, start + HELD, start + STEP)

    assert "between_steps" not in rules(diagnosed(loop(STEP, step)))
    assert not [f for f in diagnose(planted_facts("python_unseen")).findings if f.rule == "between_steps"]


@pytest.mark.parametrize(("name", "cat"), [("cudaMalloc", "cuda_runtime"), ("XlaCompile", "cpu_op")])
def test_what_comes_in_one_step_only_is_not_said_of_all(name: str, cat: str):
    """Step 3 is the only one of the four used ones, and less than half a step longer: it is not set apart as slow."""
    held = HELD

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        held_now = held if number == 3 else 0
        if held_now:
            drawing.host(name, start, held_now, cat)
        work(drawing, start + held_now, start + STEP)

    found = diagnosed(loop(STEP, step))
    (finding,) = found.findings
    assert (finding.confidence, finding.cost_ns_per_step) == ("low", held * US // 4)
    assert "seen once" in finding.title
    assert "in 1 of 4 steps" in finding.why
    assert "seen once, in one of 6 recorded steps" in finding.why


ONCE = [
    ("callbacks.py(31): log", "python_function", "between_steps"),
    ("Python GC", "user_annotation", "between_steps"),
    ("torch/serialization.py(944): save", "python_function", "between_steps"),
    ("cudaMalloc", "cuda_runtime", "allocator_bound"),
    ("_compile.compile_inner (dynamo_timed)", "user_annotation", "recompilation"),
]


def one_step(name: str, cat: Any, held: int) -> Diagnosis:
    """A profile of one step in which the device waits, between two kernels, while the host is in a range."""
    drawing = TraceDrawing()
    drawing.step(7, 0, STEP)
    work(drawing, 0, 4_000)
    drawing.host(name, 4_000, held - CALL, cat)
    work(drawing, 4_000 + held - CALL, STEP)
    return diagnosed(drawing.events())


@pytest.mark.parametrize(("name", "cat", "rule"), ONCE)
def test_a_stall_of_the_only_step_is_a_finding_that_was_seen_once(name: str, cat: str, rule: str):
    edge = round(STEP * SEEN_ONCE_SHARE)
    finding = only(one_step(name, cat, edge + CALL))
    assert (finding.rule, finding.confidence) == (rule, "low")
    assert finding.saving_ns_per_step == pytest.approx(edge * US, rel=0.02)
    assert finding.title.endswith("(seen once)")
    assert "seen once: this profile has one step" in finding.why
    assert ("warm-up" in finding.why) is (rule != "between_steps")
    assert rules(one_step(name, cat, edge - CALL)) == []


@pytest.mark.parametrize(("name", "cat", "rule"), ONCE)
@pytest.mark.parametrize("where", [0, 1])
def test_what_only_the_first_step_has_is_called_warm_up(name: str, cat: str, rule: str, where: int):
    drawing, at = TraceDrawing(), 0
    for number in range(3):
        held = 2_000 if number == where else 0
        drawing.step(number, at, STEP + held)
        work(drawing, at, at + 4_000)
        if held:
            drawing.host(name, at + 4_000, held, cat)
        work(drawing, at + 4_000 + held, at + STEP + held)
        at += STEP + held
    finding = only(diagnosed(drawing.events()))
    assert (finding.rule, finding.confidence) == (rule, "low")
    assert ("first of 3 recorded steps: what only that one has is warm-up" in finding.why) is (where == 0)
    assert "seen once" in finding.title


def test_without_a_device_it_is_the_main_threads_own_time():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.python("callbacks.py(31): log", start, HELD)
        drawing.host("aten::mm", start + HELD, STEP - HELD)

    finding = only(diagnosed(loop(STEP, step)))
    assert (finding.rule, finding.device, finding.cost_ns_per_step) == ("between_steps", None, HELD * US)
    assert finding.prediction_basis == "first_order"


def test_short_stretches_of_python_between_ops_of_the_host_are_part_of_them():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.python("train.py(3): train", start, STEP)
        for at in range(start, start + STEP, 1_000):
            drawing.host("aten::mm", at + 100, 900)

    assert rules(diagnosed(loop(STEP, step))) == []


def test_the_launch_call_itself_is_no_host_work():
    assert "between_steps" not in rules(diagnosed(loop(STEP, lambda d, n, s: work(d, s + CALL, s + STEP))))


def compiling(*durations_us: int) -> Diagnosis:
    """Per step, so long a compilation while the device has nothing to do; it works for 10 ms."""
    drawing, at = TraceDrawing(), 0
    for number, compile_us in enumerate(durations_us):
        drawing.step(number, at, compile_us + 10_000)
        if compile_us:
            drawing.host("entire_frame_compile (dynamo_timed)", at, compile_us)
        work(drawing, at + compile_us, at + compile_us + 10_000)
        at += compile_us + 10_000
    return diagnosed(drawing.events())


def test_compiling_in_slow_and_in_usual_steps_is_told_of_both():
    found = compiling(0, 3_000, 0, 100_000, 0, 100_000, 0, 0)
    slow, usual = found.findings
    assert (slow.rule, usual.rule) == ("slow_steps", "recompilation")
    assert "2 of 6 take " in slow.title
    assert not slow.provable  # What is tried of slow steps is garbage collected later.
    assert usual.cost_ns_per_step == pytest.approx(3_000_000 / 4, rel=0.01)
    (once,) = compiling(0, 3_000, 0, 0, 0, 0, 0, 0).findings
    assert (once.rule, once.confidence) == ("recompilation", "low")
    assert "seen once" in once.title


@pytest.mark.parametrize("framework", ["JAX", "TensorFlow", "PyTorch/XLA"])
@pytest.mark.parametrize("cause", slow_steps._CURES)
def test_a_slow_step_is_cured_in_the_words_of_its_framework(cause: Category, framework: str):
    assert "PYTORCH" not in remedy(slow_steps._CURES[cause], Workload(framework))


def after_a_wait(python_us: int, frame: str = "callbacks.py(31): log_metrics") -> Diagnosis:
    """Each step: 8 ms of work that the host waits for, Python code, then 120 ops of 80 µs with a launch each."""
    length = 8_000 + CALL + python_us + 9_600

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        work(drawing, start, start + 8_000)
        drawing.host("aten::item", start + CALL, 8_000)
        drawing.sync(start + CALL, 8_000)
        at = start + CALL + 8_000
        if python_us:
            drawing.python(frame, at, python_us)
        for op in range(at + python_us, at + python_us + 9_600, 80):
            drawing.host("aten::add", op, 79)
            drawing.kernel(drawing.launch(op + 70, CALL), "small", op + 77, 2)

    return diagnosed(loop(length, step))


@pytest.mark.parametrize("python_us", [10_000, 3_000])
def test_python_between_a_wait_and_many_launches_is_neither_waiting_nor_launching(python_us: int):
    """The wait destroyed a lead of 8 ms, and the launches behind use that up: no Python is booked to it."""
    found, without = after_a_wait(python_us), after_a_wait(0)
    python = next(finding for finding in found.findings if finding.rule == "between_steps")
    assert python.cost_ns_per_step == pytest.approx(python_us * US, rel=0.01)
    assert python.saving_ns_per_step == pytest.approx(python_us * US, rel=0.01)
    assert [(place.file, place.line) for place in python.where] == [("callbacks.py", 31)]
    waits, had = (next(f for f in each.findings if f.rule == "sync_bound") for each in (found, without))
    assert waits.cost_ns_per_step == pytest.approx(had.cost_ns_per_step, rel=0.01)
    assert waits.saving_ns_per_step == pytest.approx(8_000 * US, rel=0.03)


@pytest.mark.parametrize(("python_us", "told"), [(10_000, True), (300, False)])
def test_python_behind_a_wait_alone_is_told_with_what_each_of_the_two_gains(python_us: int, told: bool):
    """Nothing but the callback follows the wait: without the wait the device works meanwhile, without it nothing waits.
    Either saves the whole, so that the second saves nothing more; it stands all the same where that is much."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        work(drawing, start, start + 8_000)
        drawing.host("aten::item", start + CALL, 8_000)
        drawing.sync(start + CALL, 8_000)
        drawing.python("callbacks.py(31): log_metrics", start + 8_000 + CALL, python_us)

    found = diagnosed(loop(8_000 + python_us + CALL, step))
    savings = {f.rule: f.saving_ns_per_step for f in (*found.findings, *found.minor)}
    hidden = min(python_us, 8_000)
    assert savings["sync_bound"] == pytest.approx(hidden * US, rel=0.05)
    if told:
        assert savings["between_steps"] == pytest.approx(python_us * US, rel=0.01)
        assert rules(found) == ["between_steps", "sync_bound"]
        assert (found.findings[1].saving_after_ns_per_step or 0) < 10 * US
    else:
        assert rules(found) == ["sync_bound"]
