"""Compiled code in pieces, and ops outside of it."""

from __future__ import annotations

import pytest

from stepscope.names.compiled_code import compiled_frame, is_compiled, is_eager_op, resumed_at
from tests.diagnosis.loops import CALL, STEPS, diagnosed, loop, rules
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event

US = 1_000
STEP = 1_000


def pieces(*frames: int, eager: str = "aten::sort", gap_us: int = 100, stacks: bool = False) -> list[Event]:
    """Compiled regions of these frames, each with a kernel of 200 µs, and an eager op between two of them."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        at = start + CALL
        for k, frame in enumerate(frames):
            if k and eager:
                if stacks:
                    drawing.python("train.py(40): torch_dynamo_resume_in_forward_at_52", at, gap_us)
                drawing.host(eager, at, gap_us)
                drawing.kernel(drawing.launch(at + gap_us - CALL, CALL), "sort", at + gap_us, 10)
                at += gap_us + 10
            drawing.host(f"Torch-Compiled Region: {frame}/0", at - CALL, 2 * CALL)
            drawing.kernel(drawing.launch(at - CALL, CALL), "triton", at, 200)
            at += 200
        drawing.kernel(drawing.launch(start + 20, CALL), "tail", at, start + STEP - at - CALL)

    return loop(STEP, step)


def found(events: list[Event], rule: str):
    diagnosis = diagnosed(events)
    return [f for f in (*diagnosis.findings, *diagnosis.minor) if f.rule == rule]


def test_a_graph_in_two_pieces_costs_the_launches_between_them():
    (finding,) = found(pieces(0, 1), "graph_breaks")
    assert finding.cost_ns_per_step == pytest.approx(100 * US, rel=0.06)
    assert (finding.basis, finding.confidence) == ("heuristic", "low")
    assert finding.where[0].op == "aten::sort"
    assert "fullgraph=True" in finding.fix


def test_with_frames_it_is_said_where_the_graph_is_resumed():
    (finding,) = found(pieces(0, 1, stacks=True), "graph_breaks")
    assert "Graphs are resumed in forward (train.py:52)." in finding.why
    assert finding.basis == "measured"


@pytest.mark.parametrize(
    "events",
    [pieces(0, 0), pieces(0), pieces(0, 1, eager=""), pieces(0, 1, eager="Optimizer.step#SGD.step")],
    ids=["layers compiled alike", "one region", "nothing between", "the optimizer between"],
)
def test_these_are_no_graph_breaks(events: list[Event]):
    assert found(events, "graph_breaks") == []


def test_ops_beside_compiled_regions_run_eagerly():
    assert not found(pieces(0), "running_eagerly"), "the tail is launched early: nothing waits for it"
    (finding,) = found(pieces(0, 0, 0), "running_eagerly")
    assert finding.cost_ns_per_step == pytest.approx(200 * US, rel=0.06)
    assert "torch.compile(step)" in finding.fix


def test_a_program_that_serves_is_not_told_of_losses_and_optimizers():
    drawing = TraceDrawing()
    drawing.python("vllm/v1/worker/gpu_model_runner.py(1210): execute_model", 0, STEPS * STEP)
    (finding,) = found([*drawing.events(), *pieces(0, 0, 0)], "running_eagerly")
    assert "enforce_eager" in finding.fix
    assert "optimizer" not in finding.fix


def test_without_any_compiled_region_launch_bound_says_it():
    events = [e for e in pieces(0, 0, 0) if "Compiled" not in e.name]
    assert rules(diagnosed(events)) == ["launch_bound"]


def test_names():
    assert compiled_frame("Torch-Compiled Region: 12/3") == 12
    assert is_compiled("CompiledFunctionBackward")
    assert not is_compiled("aten::mm")
    assert not is_eager_op("EagerLocalExecute: __forward_step_3")
    assert resumed_at("train.py(40): forward") is None
