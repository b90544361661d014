"""Python code behind a wait for the device is Python's: told with its whole time, and with what removing it saves."""

from __future__ import annotations

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Diagnosis, Finding
from tests.kit.events import US, Stream
from tests.kit.machine import Machine, Work
from tests.support import trace_of

COPY = Work("copy", 2 * US, "gpu_memcpy", "copy_d2h", Stream(), {"direction": "DtoH", "memory": "Pinned", "bytes": 4})
STALL_US = 10_000


def loop(stalls: tuple[int, ...], *, steps: int = 5, bare: bool = False) -> Facts:
    """Steps that end by waiting for the device; behind the wait of some of them Python code runs for 10 ms."""
    machine = Machine()
    for step in range(steps):
        machine.step = step
        with machine.range("user_annotation", f"ProfilerStep#{step}"):
            for index in range(40):
                with machine.range("cpu_op", "aten::mm"):
                    machine.spend(5 * US)
                    machine.launch(Work(f"gemm_{index % 4}", 200 * US))
            wait(machine, bare=bare)
            if step in stalls:
                with machine.range("python_function", "callbacks.py(31): log_metrics"):
                    machine.spend(STALL_US * US)
    return analyse(trace_of(machine.events()))


def wait(machine: Machine, *, bare: bool) -> None:
    if bare:
        machine.synchronize("hipDeviceSynchronize")
        return
    with machine.range("cpu_op", "aten::item"), machine.range("cpu_op", "aten::_local_scalar_dense"):
        machine.launch(COPY, call="cudaMemcpyAsync")
        machine.synchronize(stream=COPY.stream)


def the(found: Diagnosis, *rules: str) -> Finding:
    return next(f for f in (*found.findings, *found.minor) if f.rule in rules)


@pytest.mark.parametrize("bare", [False, True])
def test_a_stall_behind_a_wait_in_each_step_costs_what_it_takes(bare: bool):
    facts = loop((0, 1, 2, 3, 4), bare=bare)
    found = diagnose(facts)
    finding = the(found, "between_steps")
    assert finding.cost_ns_per_step == pytest.approx(STALL_US * US, rel=0.02)
    assert finding.saving_ns_per_step == pytest.approx(STALL_US * US, rel=0.05)
    assert finding.where[0].line == 31
    assert found.bottleneck == "python"


@pytest.mark.parametrize("bare", [False, True])
def test_the_wait_is_told_what_it_would_save_all_the_same(bare: bool):
    finding = the(diagnose(loop((0, 1, 2, 3, 4), bare=bare)), "sync_bound", "loop_sync")
    assert finding.saving_ns_per_step == pytest.approx(40 * 201 * US, rel=0.05)


def test_one_stall_among_many_steps_uses_up_no_other_steps_waits():
    facts = loop((2,))
    (slow,) = facts.slow
    assert (slow.cause, slow.excess_ns) == (Category.PYTHON, pytest.approx(STALL_US * US, rel=0.02))
