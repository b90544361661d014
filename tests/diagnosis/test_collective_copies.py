"""collective_copies: packing gradients for collectives and unpacking them, apart from the transfer."""

from __future__ import annotations

import doctest

import pytest

from stepscope import pipeline
from stepscope.analysis.analyse import analyse
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Finding
from stepscope.names import staging
from tests.diagnosis.loops import CALL, diagnosed, loop
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event, Stream
from tests.kit.xla import HostRange, Job, Op, build
from tests.support import real_profile

US = 1_000
STEP = 4_700 + CALL


def reducing(pack: str, unpack: str, *, beside: bool = False) -> list[Event]:
    """Each step computes, packs for 400 µs, reduces and unpacks for 300 µs, inside ranges of these names."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.kernel(drawing.launch(start, CALL), "gemm", start + CALL, 3_000)
        drawing.host(pack, start + 20, 2 * CALL)
        packs = drawing.launch(start + 20, CALL)
        reduces = drawing.launch(start + 60, CALL)
        drawing.host(unpack, start + 80, 2 * CALL)
        unpacks = drawing.launch(start + 80, CALL)
        at = start + CALL + 3_000
        drawing.kernel(packs, "CatArrayBatchedCopy", at, 400)
        drawing.kernel(reduces, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + 400, 1_000, Stream(0, 20))
        if beside:
            more = drawing.launch(start + 100, CALL)
            drawing.kernel(more, "gemm", at + 1_400, 300, Stream(0, 9))
        drawing.kernel(unpacks, "vectorized_elementwise_kernel", at + 1_400, 300)

    return loop(STEP, step)


def found(events: list[Event]) -> list[Finding]:
    diagnosis = diagnosed(events)
    return [f for f in (*diagnosis.findings, *diagnosis.minor) if f.rule == "collective_copies"]


@pytest.mark.parametrize("graphs", [False, True])
def test_gradients_that_a_graph_writes_are_not_set_to_none(graphs: bool):
    events = reducing("aten::flatten_dense_tensors", "aten::unflatten_dense_tensors")
    drawing = TraceDrawing(first_correlation=1_000)
    drawing.annotation("Optimizer.step#SGD.step", 3_000, 10)
    if graphs:
        drawing.call("cudaGraphLaunch", 3_100, CALL)
    (finding,) = found([*events, *drawing.events()])
    assert ("zero_grad" in finding.fix) is not graphs
    assert "gradient_as_bucket_view=True" in finding.fix
    assert "With FSDP" in finding.fix


@pytest.mark.parametrize(
    ("pack", "unpack"),
    [
        ("torch.distributed.ddp.reducer::mul_out", "torch.distributed.ddp.reducer::copy_bucket_to_grad"),
        ("aten::flatten_dense_tensors", "aten::unflatten_dense_tensors"),
        ("fsdp::chunk_cat", "fsdp::split_with_sizes_copy"),
        ("FSDP::all_gather_copy_in", "FSDP::all_gather_copy_out (layers.0)"),
        ("MEMCPY_IN_FUSION_BUFFER", "MEMCPY_OUT_FUSION_BUFFER"),
        ("c10d::allgather_", "c10d::allgather_"),
    ],
)
def test_packing_and_unpacking_cost_beside_the_transfer(pack: str, unpack: str) -> None:
    (finding,) = found(reducing(pack, unpack))
    assert finding.cost_ns_per_step == 700 * US
    assert finding.saving_ns_per_step == pytest.approx(700 * US, abs=20 * US)
    assert pack in finding.why
    assert "gradient_as_bucket_view" in finding.fix


def test_a_program_s_own_concatenating_is_work() -> None:
    assert found(reducing("aten::cat", "aten::copy_")) == []


def test_what_runs_beside_other_work_costs_nothing() -> None:
    name = "torch.distributed.ddp.reducer::copy_bucket_to_grad"
    (finding,) = found(reducing("torch.distributed.ddp.reducer::mul_out", name, beside=True))
    assert finding.cost_ns_per_step == 400 * US


def test_xla_s_copies_for_a_collective() -> None:
    host, ops = [], []
    for at in range(6):
        host.append(HostRange("train", at * 1_000, 900, step=at))
        host.append(HostRange("PjitFunction(step)", at * 1_000 + 10, 20))
        call, begin = len(host) - 1, at * 1_000 + 50
        ops += [
            Op("fusion.1", begin, 500, execute=call, run=at, scope="jit(step)/dot_general"),
            Op("transpose_copy_fusion", begin + 500, 150, execute=call, run=at, scope="jit(step)/fwd/all_gather"),
        ]
    diagnosis = diagnose(analyse(build(Job(host, ops))))
    (finding,) = [f for f in (*diagnosis.findings, *diagnosis.minor) if f.rule == "collective_copies"]
    assert finding.cost_ns_per_step == 150 * US
    assert "PartitionSpec" in finding.fix


@pytest.mark.real
def test_buckets_of_a_real_ddp_job() -> None:
    profile = real_profile("kineto/mi300_resnet_checkpointing_rank0_of_8.json.gz")
    assert isinstance(profile, pipeline.Profile)
    (finding,) = [one for one in profile.diagnosis.minor if one.rule == "collective_copies"]
    assert finding.saving_after_ns_per_step == 0  # with the collectives hidden behind the backward, these are too
    assert finding.cost_ns_per_step == pytest.approx(533_000, rel=0.01)
    assert "`torch.distributed.ddp.reducer::copy_bucket_to_grad` 277 µs, `_broadcast_coalesced` 273 µs" in finding.why


def test_doctests() -> None:
    assert doctest.testmod(staging).failed == 0
