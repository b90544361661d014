"""ops_on_host: what computes on the host while the device waits, and what only looks like it."""

from __future__ import annotations

import pytest

from stepscope.analysis.categories import Category
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.evidence import booked
from stepscope.diagnosis.remedies import ON_DEVICE
from tests.diagnosis.loops import Step, diagnosed, facts_with, loop, work
from tests.kit.builder import TraceDrawing

US = 1_000
STEP, OP = 20_000, 6_000


def with_op(name: str = "aten::sort", op_us: int = OP, every: int = 1, inside: str = "") -> Step:
    """The device works for 10 ms, then waits for an op of the host, then works on."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        work(drawing, start, start + 10_000)
        if number % every == 0:
            drawing.host(name, start + 10_000, op_us)
            if inside == "launch":
                drawing.kernel(drawing.launch(start + 10_010, 5), "k", start + 10_000 + op_us, 50)
            elif inside == "input":
                drawing.input_wait(start + 10_000, op_us)
        work(drawing, start + 10_000 + op_us, start + STEP)

    return step


def test_an_op_of_the_host_costs_what_the_device_waits_for_it():
    (finding,) = diagnosed(loop(STEP, with_op())).findings
    assert finding.rule == "ops_on_host"
    assert "aten::sort" in finding.title
    assert finding.cost_ns_per_step == pytest.approx(OP * US, rel=0.01)
    assert finding.saving_ns_per_step == pytest.approx(OP * US, rel=0.01)
    assert finding.prediction_basis == "replay"
    assert finding.where[0].op == "aten::sort"
    assert finding.confidence == "medium"


def test_two_ops_are_one_finding_that_names_the_longer_first():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        work(drawing, start, start + 10_000)
        drawing.host("aten::cumsum", start + 10_000, 1_000)
        drawing.host("aten::sort", start + 11_000, 3_000)
        work(drawing, start + 14_000, start + STEP)

    (finding,) = diagnosed(loop(STEP, step)).findings
    assert finding.title.endswith("`aten::sort` and 1 more")
    assert finding.cost_ns_per_step == pytest.approx(4_000 * US, rel=0.01)


@pytest.mark.parametrize(
    "step",
    [
        with_op(inside="launch"),  # the op runs on the device
        with_op("aten::view"),  # computes nothing
        with_op("c10d::barrier"),  # waits for other ranks
        with_op("TorchDynamo Cache Lookup"),  # no op of a library
        with_op(op_us=95),  # no longer than dispatching takes
        with_op(every=3),  # not in most steps
        with_op(inside="input"),  # the loader's own work
    ],
)
def test_these_are_no_ops_that_compute_on_the_host(step: Step):
    found = diagnosed(loop(STEP, step))
    assert "ops_on_host" not in [finding.rule for finding in (*found.findings, *found.minor)]


def composed(outer: str, inner: str, count: int, *, each_us: int = 2, between_us: int = 1, then_us: int = 0) -> Step:
    """Between two kernels one op of so many inner ones, a little time between them, and its own time behind them."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        op_us = count * (each_us + between_us) + then_us
        work(drawing, start, start + 10_000)
        drawing.host(outer, start + 10_000, op_us)
        for k in range(count):
            drawing.host(inner, start + 10_000 + k * (each_us + between_us), each_us)
        work(drawing, start + 10_000 + op_us, start + STEP)

    return step


@pytest.mark.parametrize(
    "step",
    [
        composed("aten::unflatten_dense_tensors", "aten::narrow", 159),
        composed("torch::my_views", "aten::view", 159),  # whatever its name
        composed("aten::rearrange", "aten::empty", 200),  # allocates, no more
        composed("autograd::engine::evaluate_function: SplitBackward0", "aten::as_strided", 80, each_us=5),
    ],
)
def test_ops_that_make_views_compute_nothing(step: Step):
    facts = facts_with(loop(STEP, step))
    found = diagnose(facts)
    assert "ops_on_host" not in [finding.rule for finding in (*found.findings, *found.minor)]
    assert booked(facts, facts.accounts[0], Category.LAUNCH) >= 400 * US  # dispatching them it is


@pytest.mark.parametrize(
    ("step", "cost_us"),
    [
        (composed("aten::sort", "aten::empty", 3, then_us=OP), OP + 9),  # computes behind its allocations
        (composed("aten::my_loss", "aten::mul", 1_000), 3_000),  # of many small ops that compute
    ],
)
def test_an_op_that_holds_others_may_compute_too(step: Step, cost_us: int):
    (finding,) = [found for found in diagnosed(loop(STEP, step)).findings if found.rule == "ops_on_host"]
    assert finding.cost_ns_per_step == pytest.approx(cost_us * US, rel=0.01)


def test_an_op_beside_a_busy_device_costs_nothing():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        work(drawing, start, start + STEP)
        drawing.host("aten::sort", start + 1_000, OP)

    found = diagnosed(loop(STEP, step))
    assert "ops_on_host" not in [finding.rule for finding in (*found.findings, *found.minor)]


def test_an_op_that_computes_on_the_host_is_no_launching():
    """500 µs of it, under the limit of what one long call is: none of that is booked to launches too."""
    found = diagnosed(loop(STEP, with_op(op_us=500)))
    assert [finding.rule for finding in (*found.findings, *found.minor)] == ["ops_on_host"]
    assert found.findings[0].cost_ns_per_step == pytest.approx(500 * US, rel=0.01)


def test_with_tensorflow_it_is_said_how_to_see_and_set_the_placement():
    for word in ("set_log_device_placement(True)", "OneDeviceStrategy", "tf.unique", "tf.concat", "vectorized_map"):
        assert word in ON_DEVICE["TensorFlow"]
