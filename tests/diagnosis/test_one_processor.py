"""Devices that one processor plays: their exchanges are waits for its cores, and so no saving is told of them."""

from __future__ import annotations

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Diagnosis
from stepscope.trace.tables import Kind
from tests.kit.xla import HostRange, Job, Op, build

STEPS = range(8)


def reducing(kind: str) -> Diagnosis:
    """Two devices compute for 6 and 2 ms of each step, then reduce; the host has launched all long before."""
    host, ops = [], []
    for step in STEPS:
        at = step * 10_000
        host.append(HostRange("train", step * 200, 190, Kind.STEP, step))
        host.append(HostRange("PjRtExecutable::Execute (jit_step)", step * 200 + 10, 100, Kind.RUNTIME_CALL))
        for device, us in enumerate((6_000, 2_000)):
            made = {"device": device, "execute": len(host) - 1, "run": step}
            ops.append(Op("fusion.1", at + 2_000, us, **made))
            ops.append(Op("all-reduce.1", at + 2_000 + us, 10_000 - us, kind=Kind.COLLECTIVE, **made))
    return diagnose(analyse(build(Job(host, ops, kind=kind))))


@pytest.mark.parametrize(("kind", "told"), [("cpu", False), ("tpu", True)])
def test_what_exchanges_save_is_told_of_accelerators_only(kind: str, told: bool) -> None:
    diagnosis = reducing(kind)
    (finding,) = (f for f in (*diagnosis.findings, *diagnosis.minor) if f.rule == "exposed_collective")
    assert (finding.saving_ns_per_step is not None) is told
    assert ("one processor" in finding.fix) is not told
    assert ("within one machine" in finding.fix) is told
