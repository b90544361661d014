"""Idle time inside ranges that the program named is a finding named after them, whatever they are called."""

from __future__ import annotations

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Finding
from stepscope.trace.tables import Kind
from tests.diagnosis.loops import diagnosed, loop, rules, work
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event
from tests.kit.xla import HostRange, Job, Op, build

STEP = 100_000


def job(*ranges: HostRange, device: bool = True, framework: str = "PyTorch/XLA") -> Job:
    """Six steps of 100 ms that begin with some ranges; from 70 ms on a program runs for 25 ms."""
    host, ops = [], []
    for k in range(6):
        at = k * STEP
        host.append(HostRange("step", at, STEP, Kind.STEP, step=k))
        host += [HostRange(r.name, at + r.start, r.dur, r.kind, thread=r.thread) for r in ranges]
        if device:
            host.append(HostRange("ExecuteComputation", at + 70_000, 500))
            ops.append(Op("fusion.1", at + 70_600, 25_000, execute=len(host) - 1, run=k))
        else:
            host.append(HostRange("aten::mm", at + 70_000, 25_000, Kind.HOST_OP))
    return Job(host, ops, framework=framework)


def between(made: Job) -> Finding | None:
    found = diagnose(analyse(build(made))).findings
    return next((f for f in found if f.rule == "between_steps"), None)


@pytest.mark.parametrize("name", ["load", "prepare", "xyz", "phase 1"])
@pytest.mark.parametrize("framework", ["PyTorch/XLA", "JAX", "TensorFlow"])
def test_the_range_names_the_finding(name: str, framework: str) -> None:
    finding = between(job(HostRange(name, 0, 65_000), framework=framework))
    assert finding is not None
    assert finding.title == f"Steps wait in `{name}`"
    assert finding.cost_ns_per_step == 65_000_000
    assert finding.saving_ns_per_step == pytest.approx(65_000_000, rel=0.01)


def test_a_range_that_sends_a_batch_too_is_named_for_the_rest() -> None:
    """Work inside of it has its own cause, and takes nothing from what is left."""
    inside = HostRange("TransferToServer", 62_000, 3_000)
    diagnosis = diagnose(analyse(build(job(HostRange("load", 0, 65_000), inside))))
    costs = {f.title: f.cost_ns_per_step for f in diagnosis.findings}
    assert costs == {"Steps wait in `load`": 62_000_000, "Sending data holds up the device": 3_000_000}


def test_ranges_that_share_the_time_are_listed() -> None:
    parts = [HostRange(name, 20_000 * k, 20_000) for k, name in enumerate(("load", "mix", "check"))]
    finding = between(job(*parts))
    assert finding is not None
    assert finding.title == "Steps wait in ranges that the program named"
    assert all(f"`{name}`" in finding.why for name in ("load", "mix", "check"))


def test_a_host_without_a_device_waits_in_ranges_too() -> None:
    finding = between(job(HostRange("load", 0, 65_000), device=False))
    assert finding is not None
    assert finding.title == "Steps wait in `load`"


def test_a_range_that_the_device_works_through_costs_nothing() -> None:
    """The same range; each step's program runs meanwhile."""
    host, ops = [], []
    for k in range(6):
        at = k * STEP
        host += [HostRange("step", at, STEP, Kind.STEP, step=k), HostRange("ExecuteComputation", at + 100, 500)]
        ops.append(Op("fusion.1", at + 700, STEP - 200, execute=len(host) - 1, run=k))
        host.append(HostRange("load", at + 1_000, 84_000))
    assert diagnose(analyse(build(Job(host, ops, framework="PyTorch/XLA")))).findings == ()


def annotated(ops: int, frames: bool = False) -> list[Event]:
    """Steps of 10 ms of PyTorch with 6.5 ms in a range, with some short ops inside."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.annotation("load", start, 6_500)
        if frames:
            drawing.python("train.py(3): prepare", start + 1, 6_498)
        for k in range(ops):
            drawing.host("aten::stack", start + 3_000 * k, 90)
        work(drawing, start + 6_500, start + 10_000)

    return loop(10_000, step)


def test_short_ops_in_a_range_do_not_hide_it() -> None:
    for ops in (0, 2):
        finding = diagnosed(annotated(ops)).findings[0]
        assert (finding.rule, finding.title) == ("between_steps", "Steps wait in `load`")
        assert finding.cost_ns_per_step is not None
        assert finding.cost_ns_per_step >= 6_000_000


def test_a_range_that_copies_its_batch_is_named_and_one_around_the_step_is_not() -> None:
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.annotation("outer", start, 10_000)
        drawing.annotation("load", start + 10, 6_390)
        drawing.copy(drawing.call("cudaMemcpyAsync", start + 6_300, 50), "HtoD", start + 6_360, 100)
        work(drawing, start + 6_600, start + 10_000)

    assert diagnosed(loop(10_000, step)).findings[0].title == "Steps wait in `load`"

    def whole(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.annotation("outer", start, 10_000)
        work(drawing, start + 6_600, start + 10_000)

    assert "between_steps" not in rules(diagnosed(loop(10_000, whole)))


def test_a_range_in_which_autograd_works_names_nothing() -> None:
    """The main thread's range around the backward pass, which another thread launches."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.annotation("backward", start + 100, 9_000)
        drawing.host("aten::ones_like", start + 110, 20)
        drawing.host("autograd::engine::evaluate_function: MmBackward0", start + 6_500, 200, thread="autograd")
        call = drawing.launch(start + 6_600, thread="autograd")
        drawing.kernel(call, "k", start + 6_605, 3_395)

    assert "between_steps" not in rules(diagnosed(loop(10_000, step)))


def test_recorded_frames_say_more_than_the_range_around_them() -> None:
    diagnosis = diagnosed(annotated(0, frames=True))
    assert rules(diagnosis) == ["between_steps"]
    assert diagnosis.findings[0].title == "Steps wait for Python code that launches nothing"
    assert diagnosis.findings[0].where[0].file == "train.py"


@pytest.mark.parametrize(
    ("ranges", "title"),
    [
        ([("load", 0, 65_000), ("sort", 10_000, 45_000)], "Steps wait in `load`"),  # 45 of 65 ms are not all
        ([("load", 0, 65_000), ("sort", 1_000, 63_000)], "Steps wait in `sort`"),
        ([("load", 0, 40_000), ("check", 40_000, 25_000)], "Steps wait in `load` and other ranges"),
    ],
)
def test_the_finding_is_named_after_a_range_that_holds_all_it_costs(
    ranges: list[tuple[str, int, int]], title: str
) -> None:
    finding = between(job(*(HostRange(*one) for one in ranges)))
    assert finding is not None
    assert finding.title == title
    assert finding.cost_ns_per_step == 65_000_000
