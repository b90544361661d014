"""A host that launches more slowly than the device computes, whatever a launch takes to reach the device: the same
gaps, the same finding, the same saving. Truth is the simulated machine, with and without the launching."""

from __future__ import annotations

import random

import pytest

from stepscope.analysis.categories import Category
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Finding
from tests.diagnosis.loops import diagnosed, facts_with, loop
from tests.kit.builder import TraceDrawing
from tests.kit.drawing import LOADER
from tests.kit.events import US, Event, Stream
from tests.kit.machine import Costs, Machine, Work
from tests.kit.some import some

LAUNCHES = 100
STEPS = 6
_LAUNCHING = (Category.LAUNCH, Category.LAUNCH_LATENCY)


def simulated(
    latency_us: float, kernel_us: float = 2.5, between_us: int = 15, *, graph: bool = False, spread: float = 0.0
) -> list[Event]:
    """Steps of many small kernels, a launch of 5 µs each and so much host time between them; ``graph`` is the same with
    one launch for all. ``spread`` varies what each launch takes to arrive."""
    draw = random.Random(7)
    machine = Machine(Costs(latency_ns=round(latency_us * US)))
    for number in range(STEPS):
        with machine.range("user_annotation", f"ProfilerStep#{number}"):
            works = [Work(f"kernel_{k % 7}", round(kernel_us * US)) for k in range(LAUNCHES)]
            if graph:
                machine.launch(*works, call="cudaGraphLaunch")
                machine.spend(5 * US)
                continue
            for work in works:
                share = 1 + draw.uniform(-spread, spread)
                machine.costs = Costs(latency_ns=round(latency_us * US * share))
                with machine.range("cpu_op", "aten::add"):
                    machine.spend(between_us * US)
                    machine.launch(work)
    return machine.events()


def launch_bound(events: list[Event]) -> Finding | None:
    return next((f for f in diagnosed(events).findings if f.rule == "launch_bound"), None)


@pytest.mark.parametrize("latency_us", some([1, 15, 40, 10, 12, 17, 20, 30], 3))
def test_latency_does_not_decide_what_launching_costs(latency_us: int) -> None:
    facts = facts_with(simulated(latency_us))
    account = facts.accounts[0]
    waits = sum(int(account.parts[facts.used_rows(account), cause.code].sum()) for cause in _LAUNCHING)
    assert facts.per_step(waits) == pytest.approx(LAUNCHES * 17_500, rel=0.01)
    finding = next(f for f in diagnose(facts).findings if f.rule == "launch_bound")
    cured = facts_with(simulated(latency_us, graph=True))
    assert facts.mean_step_ns is not None
    assert cured.mean_step_ns is not None
    truth = facts.mean_step_ns - cured.mean_step_ns
    assert finding.cost_ns_per_step == pytest.approx(LAUNCHES * 17_500, rel=0.01)
    assert finding.saving_ns_per_step == pytest.approx(truth, rel=0.02)


@pytest.mark.parametrize("latency_us", some([20, 5, 40], 1))
def test_launches_that_take_longer_one_time_than_another(latency_us: int) -> None:
    finding = launch_bound(simulated(latency_us, spread=0.4))
    assert finding is not None
    assert finding.cost_ns_per_step == pytest.approx(LAUNCHES * 17_500, rel=0.05)


@pytest.mark.parametrize("latency_us", some([30, 1], 1))
def test_a_device_with_work_enough_waits_for_no_launch(latency_us: int) -> None:
    facts = facts_with(simulated(latency_us, kernel_us=25))
    account = facts.accounts[0]
    rows = facts.used_rows(account)
    assert launch_bound(simulated(latency_us, kernel_us=25)) is None
    assert int(account.parts[rows][:, [cause.code for cause in _LAUNCHING]].sum()) <= 30_000 * len(rows)


def test_what_the_host_did_between_the_launches_is_what_the_device_waited_for() -> None:
    """Each launch takes 30 µs to arrive; before every fourth the loop takes a batch for 20 µs."""
    machine = Machine(Costs(latency_ns=30 * US))
    for number in range(STEPS):
        with machine.range("user_annotation", f"ProfilerStep#{number}"):
            for k in range(100):
                if k % 4 == 0:
                    with machine.range("user_annotation", LOADER):
                        machine.spend(20 * US)
                with machine.range("cpu_op", "aten::add"):
                    machine.spend(10 * US)
                    machine.launch(Work("kernel", 5 * US))
    facts = facts_with(machine.events())
    account = facts.accounts[0]
    rows = facts.used_rows(account)
    waits = facts.per_step(int(account.parts[rows, Category.INPUT.code].sum()))
    assert waits == pytest.approx(25 * 20_000, rel=0.05)
    assert int(account.parts[rows, Category.DEVICE_LATENCY.code].sum()) == 0


def test_the_ops_of_one_graph_are_no_launches_under_way() -> None:
    """Launched at once, they follow each other as the device does it, though soon after their launch."""
    machine = Machine(Costs(latency_ns=5 * US, between_ns=4 * US))
    for number in range(STEPS):
        with machine.range("user_annotation", f"ProfilerStep#{number}"):
            for _ in range(30):
                machine.launch(Work("a", 3 * US), Work("b", 3 * US), call="cudaGraphLaunch")
                machine.spend(60 * US)
    facts = facts_with(machine.events())
    account = facts.accounts[0]
    within = facts.per_step(int(account.parts[facts.used_rows(account), Category.DEVICE_LATENCY.code].sum()))
    assert within == pytest.approx(30 * 4_000, rel=0.05)


def test_a_stream_that_was_told_to_wait_waits_for_that() -> None:
    """Ops of two streams in turn, each told to wait for the other's: no launch is what they wait for."""
    machine = Machine(Costs(latency_ns=3 * US))
    for number in range(STEPS):
        with machine.range("user_annotation", f"ProfilerStep#{number}"):
            for _ in range(20):
                machine.launch(Work("first", 60 * US, stream=Stream(0, 7)))
                machine.wait_event(Stream(0, 8), machine.record_event(Stream(0, 7)))
                machine.launch(Work("second", 60 * US, stream=Stream(0, 8)))
                machine.wait_event(Stream(0, 7), machine.record_event(Stream(0, 8)))
    assert launch_bound(machine.events()) is None


def test_a_kernel_behind_a_copy_waits_for_no_launch_of_its_own() -> None:
    """Launched with the copy before it, it begins as soon after that as the device does it: copies arrive in 5 µs."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.copy(drawing.call("cudaMemcpyAsync", start, 5), "HtoD", start + 5, 50)
        drawing.kernel(drawing.launch(start + 10, 5), "k", start + 65, 935)

    facts = facts_with(loop(1_000, step))
    account = facts.accounts[0]
    assert account.idle is not None
    assert not account.idle.under_way.any()
