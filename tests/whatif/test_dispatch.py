"""Cures that replace launches take the host's dispatching with them: later cures are not held up by it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.what_if import what_if
from stepscope.whatif.changes import without_dispatch
from tests.kit.loop import run
from tests.kit.plan import Plan
from tests.kit.some import some
from tests.support import trace_of
from tests.whatif.changed import faster, replayed

EAGER = Plan(steps=6, forward=60, backward=60, optimizer=20, dispatch_us=80, kernel_us=60)


def simulated(plan: Plan) -> Facts:
    return analyse(trace_of(run(plan).machine.events()))


@pytest.mark.parametrize("share", some([1.0, 0.5, 0.2], 1))
def test_with_a_graph_the_device_is_the_limit_whatever_it_gains_after(share: float):
    """The same loop whose step is one graph launch, with kernels that take so much of their time."""
    facts = simulated(EAGER)
    change = without_dispatch(facts) | faster(facts, share)
    predicted = facts.mean_step_ns - replayed(facts).saving_ns(change)
    kernels = round(EAGER.kernel_us * share)
    assert predicted == pytest.approx(simulated(replace(EAGER, graph=True, kernel_us=kernels)).mean_step_ns, rel=0.05)


def test_without_one_faster_kernels_gain_nothing_where_the_host_is_the_limit():
    facts = simulated(EAGER)
    assert replayed(facts).saving_ns(faster(facts, 0.5)) < 0.02 * facts.mean_step_ns


def test_by_itself_a_graph_saves_no_more_than_the_waiting_it_ends():
    """Behind a wait dispatching is what the device waits for too, but that is the wait's to save."""
    facts = simulated(replace(EAGER, syncs=("forward", "backward"), work_after=("forward",), work_us=500))
    found = diagnose(facts)
    launch = next(f for f in found.findings if f.rule == "launch_bound")
    assert launch.saving_ns_per_step <= launch.cost_ns_per_step
    alone = what_if(facts, found, [launch.id])
    assert alone.saving_ns == launch.saving_ns_per_step
