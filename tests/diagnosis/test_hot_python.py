"""Python functions among the launches that launch nothing: named, and nobody else's saving."""

from __future__ import annotations

import pytest

from stepscope.analysis.limits import HOT_PYTHON_SHARE
from stepscope.diagnosis.finding import Diagnosis, Finding
from tests.diagnosis.loops import CALL, diagnosed, looked, loop
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event

US = 1_000
STEP = 4_000
WALK = "diffusers/pipelines/pipeline_utils.py(1173): _execution_device"
PIECES = 10


def launching(silent_us: int, *frames: str, compiled: bool = True, inside: str = "") -> list[Event]:
    """Ten launches a step behind an op of 100 µs each, with so many µs in nested frames before each op."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.python("sample.py(30): denoise", start, STEP)
        if compiled:
            drawing.host("Torch-Compiled Region: 0/0", start, CALL)
        drawing.kernel(drawing.launch(start, CALL), "first", start + CALL, 20)
        at = start + 30
        for _ in range(PIECES):
            for depth, frame in enumerate(frames if silent_us else ()):
                drawing.python(frame, at + depth, silent_us - 2 * depth)
            if inside:
                drawing.host(inside, at + 10, 5)
            at += silent_us
            drawing.host("aten::mul", at, 100)
            drawing.kernel(drawing.launch(at + 95 - CALL, CALL), "mul", at + 95, 10)
            at += 105
        drawing.kernel(drawing.launch(at, CALL), "tail", at + CALL, start + STEP - at - CALL)

    return loop(STEP, step)


def found(diagnosis: Diagnosis, rule: str) -> Finding | None:
    return next((f for f in (*diagnosis.findings, *diagnosis.minor) if f.rule == rule), None)


def test_a_walk_over_the_modules_is_named_with_its_caller_and_time():
    finding = found(diagnosed(launching(100, WALK, "torch/nn/modules/module.py(2696): named_modules")), "hot_python")
    assert finding is not None
    assert finding.cost_ns_per_step == PIECES * 100 * US
    assert finding.saving_ns_per_step == pytest.approx(PIECES * 100 * US, rel=0.02)
    assert "`_execution_device` (diffusers/pipelines/pipeline_utils.py:1173) 1.00 ms in 10 calls" in finding.why
    assert "from `denoise` (sample.py:30)" in finding.why
    assert "walk over the modules" in finding.fix
    assert "recording stacks slows the host" in finding.why
    assert [(w.file, w.line) for w in finding.where] == [
        ("diffusers/pipelines/pipeline_utils.py", 1173),
        ("sample.py", 30),
    ]


def test_the_line_that_a_function_was_at_is_told_where_its_thread_was_looked_at():
    looks = [(STEP * step + 80, 44, "prepare") for step in range(6)]
    finding = found(looked(launching(100, "train.py(40): prepare"), *looks), "hot_python")
    assert finding is not None
    assert (finding.where[0].line, finding.where[0].function, finding.where[0].defined) == (44, "prepare", False)


SIGNATURE = "inspect.py(3346): signature"
CHUNKED = "transformers/pytorch_utils.py(186): apply_chunking_to_forward"


@pytest.mark.parametrize(
    ("frames", "where"),
    [
        ((SIGNATURE,), ["sample.py", "inspect.py"]),
        (("/usr/lib/python3.11/json/encoder.py(183): encode",), ["sample.py", "/usr/lib/python3.11/json/encoder.py"]),
        (("utils.py(3): check", SIGNATURE), ["utils.py", "sample.py"]),
    ],
)
def test_places_to_look_are_those_that_can_be_changed(frames: tuple[str, ...], where: list[str]):
    finding = found(diagnosed(launching(100, *frames)), "hot_python")
    assert finding is not None
    assert [place.file for place in finding.where] == where
    assert "modules" not in finding.fix
    assert "functools.cache" in finding.fix


def test_a_library_that_calls_the_standard_one_is_a_place():
    """The library's function runs an op too, so it is the standard library's that launches nothing."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.python("sample.py(30): denoise", start, STEP)
        drawing.kernel(drawing.launch(start, CALL), "first", start + CALL, 20)
        at = start + 30
        for _ in range(PIECES):
            drawing.python(CHUNKED, at, 210)
            drawing.python(SIGNATURE, at + 1, 100)
            drawing.host("aten::mul", at + 102, 100)
            drawing.kernel(drawing.launch(at + 195, CALL), "mul", at + 201, 10)
            at += 212
        drawing.kernel(drawing.launch(at, CALL), "tail", at + CALL, start + STEP - at - CALL)

    finding = found(diagnosed(loop(STEP, step)), "hot_python")
    assert finding is not None
    files = [place.file for place in finding.where]
    assert files == ["transformers/pytorch_utils.py", "sample.py", "inspect.py"]


@pytest.mark.parametrize("frames", [(WALK,), ("sample.py(9): log", "json/encoder.py(183): encode")])
def test_what_compiling_saves_does_not_grow_with_it(frames: tuple[str, ...]):
    less, more = diagnosed(launching(80, *frames)), diagnosed(launching(160, *frames))
    for rule in ("running_eagerly", "launch_bound"):
        before, after = found(less, rule), found(more, rule)
        assert before is not None
        assert after is not None
        assert after.cost_ns_per_step == pytest.approx(before.cost_ns_per_step, rel=0.01)
        assert after.saving_ns_per_step == pytest.approx(before.saving_ns_per_step, rel=0.02)
    hot = found(more, "hot_python")
    assert hot is not None
    assert hot.saving_ns_per_step == pytest.approx(PIECES * 160 * US, rel=0.02)


def test_a_stretch_of_python_is_between_steps_alone_and_no_dispatching():
    """Four ms of logging in one piece: longer than what lies between two launches."""

    def step(drawing: TraceDrawing, number: int, start: int, pause: int) -> None:
        drawing.host("Torch-Compiled Region: 0/0", start, CALL)
        drawing.kernel(drawing.launch(start, CALL), "first", start + CALL, 20)
        if pause:
            drawing.python("train.py(9): log", start + 30, pause)
        at = start + 30 + pause
        drawing.host("aten::mul", at, 500)
        drawing.kernel(drawing.launch(at + 500 - CALL, CALL), "mul", at + 500, 2_000)

    quiet = diagnosed(loop(STEP, lambda d, n, s: step(d, n, s, 0)))
    logged = diagnosed(loop(STEP + 4_000, lambda d, n, s: step(d, n, s, 4_000)))
    between, eager, before = (
        found(logged, "between_steps"),
        found(logged, "running_eagerly"),
        found(quiet, "running_eagerly"),
    )
    assert between is not None
    assert between.cost_ns_per_step == pytest.approx(4_000 * US, rel=0.02)
    assert found(logged, "hot_python") is None
    assert before is not None
    assert eager is not None
    assert eager.cost_ns_per_step == pytest.approx(before.cost_ns_per_step, abs=40 * US)


@pytest.mark.parametrize(
    ("frame", "inside"),
    [
        ("torch/nn/modules/module.py(1747): _call_impl", ""),  # PyTorch's own code around ops
        ("torch/autograd/graph.py(824): _engine_run_backward", ""),
        ("model.py(7): forward", "aten::view"),  # an op runs in it
    ],
)
def test_what_gives_ops_is_launching(frame: str, inside: str):
    assert found(diagnosed(launching(100, frame, inside=inside)), "hot_python") is None


def test_modules_walked_by_the_training_loop_itself_count():
    finding = found(diagnosed(launching(100, "torch/nn/modules/module.py(2696): named_modules")), "hot_python")
    assert finding is not None
    assert "from `denoise` (sample.py:30)" in finding.why


def test_from_the_limit_on():
    edge = round(STEP * HOT_PYTHON_SHARE / PIECES)
    assert found(diagnosed(launching(edge, WALK)), "hot_python") is not None
    assert found(diagnosed(launching(edge - 1, WALK)), "hot_python") is None


def test_a_busy_device_waits_for_nobody():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.kernel(drawing.launch(start, CALL), "k", start + CALL, STEP - CALL)
        drawing.python(WALK, start + 100, 900)

    assert found(diagnosed(loop(STEP, step)), "hot_python") is None


def test_backward_on_its_own_thread_is_work_of_whoever_waits_for_it():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.kernel(drawing.launch(start, CALL), "k", start + CALL, 100)
        drawing.python("train.py(40): backward", start + 10, STEP - 20)
        at = start + 200
        for _ in range(PIECES):
            drawing.host("autograd::engine::evaluate_function: MulBackward0", at, 100, thread="autograd")
            call = drawing.launch(at + 90, CALL, thread="autograd")
            drawing.kernel(call, "mul", at + 100, 10)
            at += 200
        drawing.kernel(drawing.launch(at, CALL, thread="autograd"), "tail", at + CALL, start + STEP - at - CALL)

    assert found(diagnosed(loop(STEP, step)), "hot_python") is None


@pytest.mark.parametrize(("caller", "named"), [("core.py(5): bind", False), ("sample.py(40): check", True)])
def test_what_jax_calls_in_c_is_how_it_runs_ops(caller: str, named: bool):
    """``safe_map`` is jaxlib's: that it takes long is no function of the program's to look at."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        at = start
        for _ in range(PIECES):
            drawing.python(caller, at, 210)
            drawing.python("<built-in function safe_map>", at + 1, 100)
            drawing.host("aten::mul", at + 102, 100)
            drawing.kernel(drawing.launch(at + 195, CALL), "mul", at + 201, 10)
            at += 212
        drawing.kernel(drawing.launch(at, CALL), "tail", at + CALL, start + STEP - at - CALL)

    assert (found(diagnosed(loop(STEP, step)), "hot_python") is not None) == named


@pytest.mark.parametrize(
    ("frame", "goes"),
    [
        ("ad.py(358): backward_pass", True),
        ("/env/lib/python3.12/site-packages/jax/_src/api.py(9): grad", True),
        ("numeric.py(12): full", False),
        ("metrics.py(3): report", False),
    ],
)
def test_a_frameworks_own_python_goes_with_ops_that_run_one_by_one(frame: str, goes: bool):
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.python("sample.py(30): denoise", start, STEP)
        drawing.host("Torch-Compiled Region: 0/0", start, CALL)
        drawing.kernel(drawing.launch(start, CALL), "first", start + CALL, 20)
        drawing.host("aten::mul", start + 40, 1_000)
        drawing.kernel(drawing.launch(start + 1_030, CALL), "mul", start + 1_040, 10)
        drawing.python(frame, start + 1_060, 1_500)
        drawing.kernel(drawing.launch(start + 2_570, CALL), "tail", start + 2_580, STEP - 2_580)

    diagnosis = diagnosed(loop(STEP, step))
    python = found(diagnosis, "between_steps")
    assert python is not None
    rules = [id_.partition(".")[0] for id_ in diagnosis.plan]
    assert (rules.index("running_eagerly") < rules.index("between_steps")) == goes
    assert (python.saving_after_ns_per_step == 0) == goes
