"""Steps that nothing marks, on several devices of one process: windows as with marks, and no execution cut in two."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.facts import Facts
from stepscope.trace.tables import I32, Flows, Kind
from stepscope.trace.trace import Trace
from tests.kit.xla import US, HostRange, Job, Op, build
from tests.support import unmarked

DEVICES = 8


def sharded(*, steps: int = 6, run_ids: bool = True, ahead: bool = False, shuffled_ops: bool = False) -> Trace:
    """A program on eight devices per step, launched on a thread of each device in another order every time.

    ``ahead``: the host starts step k + 1 before step k was launched everywhere.
    """
    random = np.random.default_rng(3)
    host: list[HostRange] = []
    ops: list[Op] = []
    for k in range(steps):
        at = 1000 * k
        host.append(HostRange("train", at, 900, kind=Kind.STEP, step=100 + k))
        begun = at - 950 if ahead and k else at + 20
        host.append(HostRange("PjitFunction(step)", begun, 200, kind=Kind.HOST_OP))
        for turn, device in enumerate(random.permutation(DEVICES).tolist()):
            launch = at + 40 + 10 * turn
            name = f"[{device}] CommonPjRtLoadedExecutable::Execute (jit_step)"
            execute = len(host)
            host.append(HostRange(name, launch, 5, kind=Kind.RUNTIME_CALL, thread=f"worker {device}"))
            order = random.permutation(3) if shuffled_ops else np.arange(3)
            for place, op in enumerate(order.tolist()):
                start = launch + 10 + 100 * place
                ops.append(Op(f"dot.{op}", start, 90 + device, device, execute, run=k if run_ids else None))
    return build(Job(host, ops, kind="cpu"))


def handed_over(trace: Trace) -> Trace:
    """With the arrows from the call of the main thread to those of the workers."""
    names = np.array([trace.name_of(row) for row in range(len(trace.slices))])
    given = np.flatnonzero(np.char.startswith(names, "PjitFunction"))
    taken = np.flatnonzero(np.char.startswith(names, "["))
    taken = taken[np.argsort(trace.slices.start_ns[taken])].astype(np.int32)
    givers = np.repeat(given[np.argsort(trace.slices.start_ns[given])], DEVICES).astype(np.int32)
    return dataclasses.replace(trace, flows=Flows(np.full(taken.size, 2, np.uint8), givers, taken))


def windows(facts: Facts) -> list[list[int]]:
    """Where the windows of every device end (the first begins with the marker)."""
    return [
        [int(account.rows.bounds[row + 1]) for row in account.step_rows(tuple(range(len(facts.markers))))]
        for _, account in facts.devices
    ]


def steps_of_executions(facts: Facts) -> dict[int, set[int]]:
    """Run id -> the steps its launches are booked to, over all devices."""
    compiled, found = facts.trace.xla_ops, {}
    run_of = dict(zip(compiled.slice.tolist(), compiled.run.tolist(), strict=True))
    for activity in facts.activities:
        step: I32 = np.searchsorted(facts.markers.start, activity.launch, "right") - 1
        for op, at in zip(activity.slice.tolist(), step.tolist(), strict=True):
            found.setdefault(run_of[op], set()).add(at)
    return found


@pytest.mark.parametrize("shuffled_ops", [False, True])
@pytest.mark.parametrize("ahead", [False, True])
def test_inferred_windows_are_those_of_the_markers(ahead: bool, shuffled_ops: bool):
    trace = sharded(ahead=ahead, shuffled_ops=shuffled_ops)
    marked, found = analyse(trace), analyse(unmarked(trace))
    assert (found.markers.source, found.markers.inferred) == ("repetition of the launches", True)
    assert len(found.markers) == len(marked.markers) == 6
    assert windows(found) == windows(marked)
    assert steps_of_executions(found) == {run: {run} for run in range(6)}


def test_without_run_ids_the_range_that_started_a_program_tells_its_launches():
    trace = handed_over(sharded(run_ids=False))
    found = analyse(unmarked(trace))
    assert windows(found) == windows(analyse(trace))
    assert found.markers.start.tolist() == [(1000 * k + 20) * US for k in range(6)]


def test_the_last_step_ends_with_the_last_launch_on_any_device():
    found = analyse(unmarked(sharded()))
    assert found.markers.end[-1] == (5000 + 40 + 10 * 7 + 5) * US
    assert {account.rows.phases[-1] for account in found.accounts} == {"step"}


def test_a_program_that_ran_twice_is_no_repetition():
    assert analyse(unmarked(sharded(steps=2, shuffled_ops=True))).markers.source == "whole profile"


def test_a_boundary_that_would_cut_an_execution_is_none():
    """Every device is launched a step later than the one before: no instant parts one step from the next on all."""
    host = [HostRange("main", 0, 12_000)]
    ops = []
    for k in range(8):
        for device in range(2):
            launch = 1000 * (k + device) + 100
            host.append(HostRange("[0] PjRtCpuExecutable::Execute", launch, 5, Kind.RUNTIME_CALL, thread=f"w{device}"))
            ops += [Op(f"dot.{op}", launch + 10 + 100 * op, 50, device, len(host) - 1, run=k) for op in range(3)]
    assert analyse(build(Job(host, ops, kind="cpu"))).markers.source == "whole profile"
