"""Launches that block because the device's queue is full wait for the device: faster kernels make them shorter."""

from __future__ import annotations

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.engine import diagnose
from tests.kit.builder import TraceDrawing
from tests.kit.events import US
from tests.kit.machine import Costs, Machine, Work
from tests.kit.some import some
from tests.support import trace_of
from tests.whatif.changed import faster, replayed

OPS = 400
KINDS = 13


def loop(kernel_us: float, *, depth: int = 256, host_us: int = 15, steps: int = 5) -> Facts:
    """Steps of many ops; the device takes so many launches ahead."""
    machine = Machine(Costs(queue_depth=depth))
    for step in range(steps):
        machine.step = step
        with machine.range("user_annotation", f"ProfilerStep#{step}"):
            for index in range(OPS):
                with machine.range("cpu_op", f"aten::op{index % KINDS}"):
                    machine.spend(host_us * US)
                    machine.launch(Work(f"kernel_{index % KINDS}", round(kernel_us * US)))
    return analyse(trace_of(machine.events()))


@pytest.mark.parametrize("depth", some([100, 256, 1024], 1))
@pytest.mark.parametrize("factor", some([0.5, 0.8, 0.25], 1))
def test_faster_kernels_gain_what_they_gain_without_the_queue_in_the_way(depth: int, factor: float):
    facts = loop(40, depth=depth)
    predicted = facts.mean_step_ns - replayed(facts).saving_ns(faster(facts, factor))
    assert predicted == pytest.approx(loop(40 * factor, depth=depth).mean_step_ns, rel=0.01)


def test_the_depth_of_the_queue_and_what_launches_wait_are_inferred():
    facts = loop(40)
    (queue,) = facts.full_queues
    assert queue.depth == pytest.approx(256, rel=0.05)
    assert (queue.usual_ns == 5 * US).all()
    # What the device takes longer than the host, but for the launches that fill the queue first.
    slower = (5 * OPS - 256) * 41 * US - (5 * OPS - 256) * 20 * US
    assert int(queue.blocked_ns.sum()) == pytest.approx(slower - 256 * 20 * US, rel=0.15)


def test_it_is_told_once_and_is_nobodys_to_fix():
    found = diagnose(loop(40))
    text = next(notice.text for notice in found.notices if notice.code == "launch_queue_full")
    assert "no work of the host" in text
    assert not found.findings


@pytest.mark.parametrize("kernel_us", some([19, 10], 1))
def test_a_host_that_never_fills_the_queue_does_not_wait_for_it(kernel_us: float):
    assert loop(kernel_us).full_queues == []


def test_long_calls_that_find_different_numbers_of_launches_are_the_hosts_own():
    drawing = TraceDrawing()
    at = free = 0
    for index in range(600):
        took = 2_000 if index % 41 == 40 else 5  # the launching thread loses its core now and then
        launched = drawing.launch(at, took)
        begun = max(free, at + took + 3)
        drawing.kernel(launched, f"kernel_{index % 5}", begun, 60)
        at, free = at + took + 10, begun + 61
    assert analyse(trace_of(drawing.events())).full_queues == []
