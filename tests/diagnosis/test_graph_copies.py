"""Copies beside graph launches, the way of compiled code to its first launch, and long gaps: told, each by one rule."""

from __future__ import annotations

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Diagnosis, Finding
from stepscope.whatif.limits import LAUNCH_GAP_NS
from tests.diagnosis.loops import CALL, diagnosed, loop, rules
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event
from tests.kit.jobs_of_kinds import of_version
from tests.support import trace_of

US = 1_000
STEP = 4_000


def found(diagnosis: Diagnosis, rule: str) -> Finding | None:
    return next((f for f in (*diagnosis.findings, *diagnosis.minor) if f.rule == rule), None)


# --- graph_copies ------------------------------------------------------------------------------------------


def replaying(copies: int, *, kernels: bool = False, behind: bool = False, between: bool = False) -> list[Event]:
    """A graph a step with so many copies of 2 µs, 20 µs apart, before or behind its launch; or an op between."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        at = start

        def graph(at: int, end: int) -> None:
            call = drawing.launch(at, CALL, "cudaGraphLaunch")
            drawing.kernel(call, "gemm", at + CALL, end - at - CALL)

        if behind:
            graph(at, at + 1_000)
            at += 1_000
        for _ in range(copies):
            drawing.host("aten::copy_", at, 15)
            if kernels:
                name = "at::native::elementwise_kernel<128, 4, at::native::direct_copy_kernel_cuda>"
                drawing.kernel(drawing.launch(at + 8, CALL), name, at + 15, 2)
            else:
                call = drawing.call("cudaMemcpyAsync", at + 8, CALL)
                drawing.copy(call, "DtoD", at + 15, 2, 4_096, "Device")
            at += 20
        if between:
            drawing.kernel(drawing.launch(at, CALL), "gemm", at + CALL, 10)
            at += 20
        if not behind:
            graph(at, start + STEP)
        else:
            drawing.kernel(drawing.launch(at, CALL), "tail", at + CALL, start + STEP - at - CALL)

    return loop(STEP, step)


@pytest.mark.parametrize(("kernels", "behind", "where"), [(False, False, "before"), (True, True, "after")])
def test_copies_into_a_graphs_inputs_and_out_of_its_outputs_are_one_finding(kernels: bool, behind: bool, where: str):
    finding = found(diagnosed(replaying(40, kernels=kernels, behind=behind)), "graph_copies")
    assert finding is not None
    assert "40 copies within the device per step" in finding.why
    assert f"stand right {where} launches of graphs" in finding.why
    assert ("160 KiB" in finding.why) is not kernels
    # Each copy takes 2 µs and the device waits 18 µs for it, 15 for the first one.
    assert finding.cost_ns_per_step == pytest.approx(40 * 20 * US, rel=0.03)
    assert finding.where[0].op == "aten::copy_"
    assert "_foreach_copy_" in finding.fix


def test_they_are_told_once():
    told = diagnosed(replaying(40))
    assert found(told, "repeated_copies") is None


@pytest.mark.parametrize("between", [False, True])
def test_copies_that_other_work_parts_from_the_graph_are_not_the_graphs(between: bool):
    assert (found(diagnosed(replaying(40, between=between)), "graph_copies") is None) is between


# --- compiled_prologue and long_launch ---------------------------------------------------------------------


def slow_to_launch(wait_us: int, name: str, cat: str = "cpu_op", step_us: int = 20_000) -> list[Event]:
    """Each step begins with a stretch of so many µs inside a range before the first launch in it."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.host(name, start, wait_us + 100, cat)  # type: ignore[arg-type]
        for at in range(0, wait_us - 40, 40):
            drawing.host("aten::view", start + 10 + at, 20)
        call = drawing.launch(start + wait_us, CALL)
        drawing.kernel(call, "triton", start + wait_us + CALL, step_us - wait_us - CALL)

    return loop(step_us, step)


@pytest.mark.parametrize("name", ["Torch-Compiled Region: 0/0", "CompiledFunction"])
def test_the_way_of_compiled_code_to_its_first_launch_has_a_name(name: str):
    told = diagnosed(slow_to_launch(15_000, name))
    finding = found(told, "compiled_prologue")
    assert finding is not None
    assert finding.cost_ns_per_step == pytest.approx(15_000 * US, rel=0.01)
    assert finding.saving_ns_per_step == pytest.approx(15_000 * US, rel=0.01)
    assert "Once per step" in finding.why
    assert "TORCH_LOGS=guards" in finding.fix
    assert found(told, "long_launch") is None


def test_what_only_prepares_is_prologue_whole():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.host("TorchDynamo Cache Lookup", start, 900)
        drawing.host("Torch-Compiled Region: 0/0", start + 900, 600)
        drawing.host("AOTDispatcher Runtime Wrapper Prologue", start + 910, 300)
        call = drawing.launch(start + 1_495, CALL)
        drawing.kernel(call, "triton", start + 1_500, STEP - 1_500)

    finding = found(diagnosed(loop(STEP, step)), "compiled_prologue")
    assert finding is not None
    assert finding.cost_ns_per_step == pytest.approx(1_495 * US, rel=0.01)


def test_a_long_gap_of_dispatching_is_named_with_what_runs_in_it():
    told = diagnosed(slow_to_launch(3_000, "torchrec::permute_multi_embedding"))
    assert rules(told) == ["long_launch"]
    (finding,) = told.findings
    assert finding.cost_ns_per_step == pytest.approx(3_000 * US, rel=0.01)
    assert finding.where[0].op == "torchrec::permute_multi_embedding"
    assert "torchrec::permute_multi_embedding" in finding.why


def test_the_hand_over_to_another_thread_is_one_too():
    """Autograd's thread begins late: the main thread waits in what asked for the backward pass."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.annotation("backward", start, 4_000)
        drawing.host("aten::ones_like", start, 10)
        for at in range(10, 3_000, 100):
            drawing.host("autograd::engine::evaluate_function: MulBackward0", start + at, 80, thread="autograd")
        drawing.host("MulBackward0", start + 3_010, 100, thread="autograd")
        call = drawing.launch(start + 3_050, CALL, thread="autograd")
        drawing.kernel(call, "mul", start + 3_060, 16_900)

    finding = found(diagnosed(loop(20_000, step)), "long_launch")
    assert finding is not None
    assert finding.cost_ns_per_step == pytest.approx(3_050 * US, rel=0.05)


def views(name: str, count: int, each_us: int, inner: str = "") -> list[Event]:
    """Between two launches of each step so many ops one after another that launch nothing."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        for at in range(start, start + count * each_us, each_us):
            drawing.host(name, at, each_us - 1)
            if inner:
                drawing.host(inner, at + 1, each_us - 3)
        call = drawing.launch(start + count * each_us, CALL)
        drawing.kernel(call, "k", start + count * each_us + CALL, 20_000 - count * each_us - CALL)

    return loop(20_000, step)


@pytest.mark.parametrize(("name", "inner"), [("aten::split", "aten::narrow"), ("aten::empty", "")])
def test_many_small_views_have_advice_of_their_own(name: str, inner: str):
    finding = found(diagnosed(views(name, 200, 20, inner)), "long_launch")
    assert finding is not None
    assert "200 ops per step only describe tensors and compute nothing" in finding.fix
    assert f"most often `{name}`" in finding.fix
    assert "flat.split(sizes)" in finding.fix
    assert "torch.compile" in finding.fix
    assert "cudnn.benchmark" not in finding.fix
    older = diagnose(analyse(of_version(trace_of(views(name, 200, 20, inner)), (1, 13))))
    old = found(older, "long_launch")
    assert old is not None
    assert "torch.compile" not in old.fix


@pytest.mark.parametrize(("name", "count", "each_us"), [("aten::split", 10, 400), ("torchrec::permute", 200, 20)])
def test_few_long_views_and_other_ops_are_not_many_small_views(name: str, count: int, each_us: int):
    finding = found(diagnosed(views(name, count, each_us)), "long_launch")
    assert finding is not None
    assert "only describe" not in finding.fix


def test_short_gaps_are_not_long_ones():
    edge = LAUNCH_GAP_NS // US
    assert found(diagnosed(slow_to_launch(edge - CALL, "op")), "long_launch") is None
    assert found(diagnosed(slow_to_launch(edge + CALL, "op")), "long_launch") is not None
