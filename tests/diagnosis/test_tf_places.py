"""TensorFlow on a GPU: copies and waits are those of ops of the graph, not of the executor that runs them all."""

from __future__ import annotations

from stepscope.analysis.analyse import analyse
from stepscope.diagnosis.engine import diagnose
from tests.formats.xplane.xplane_files import read
from tests.kit.tf_gpu import TfGpuJob


def fetching(receives: tuple[str, ...]) -> TfGpuJob:
    """In every step each of these ops copies a number to the host and waits for it; host work follows."""
    job = TfGpuJob()
    for number in range(6):
        with job.step(number), job.function(), job.executing():
            job.op("dense/MatMul:MatMul", "volta_sgemm_128x64_nn", 2_000)
            for name in receives:
                with job.range(name):
                    job.copy("MemcpyD2H", 3, 4, blocks=True)
                job.op("dense/Add:AddV2", "add", 300, host=400)
    return job


def test_each_op_that_waits_is_named_and_the_common_advice_stands_once() -> None:
    names = tuple(f"cond/_{k}:_HostRecv" for k in range(5))
    facts = analyse(read(fetching(names).data()))
    (finding,) = (one for one in diagnose(facts).findings if one.rule == "sync_bound")
    assert {place.op for place in finding.where} <= set(names)
    assert "ExecutorState" not in finding.title + finding.why + finding.fix
    assert finding.fix.count("no equivalent that needs no wait is known here") == 1
    assert "`cond/_0:_HostRecv`, `cond/_1:_HostRecv`, `cond/_2:_HostRecv` and 2 more: no equivalent" in finding.fix


def test_a_single_op_is_named_as_before() -> None:
    facts = analyse(read(fetching(("n/_3:_HostRecv",)).data()))
    (finding,) = (one for one in diagnose(facts).findings if one.rule == "sync_bound")
    assert finding.fix.startswith("- `n/_3:_HostRecv`: no equivalent that needs no wait is known here.")
    assert {copies.op for copies in facts.copies[0]} == {"n/_3:_HostRecv"}
