"""Memory that TensorFlow's allocator writes down: room, phases by scope, tensors, pieces."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.blocks import Held
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.limits import FRAGMENTED_SHARE, MEMORY_FULL_SHARE
from stepscope.report import memory as report
from stepscope.report.memory_sections import memory as sections
from tests.formats.xplane.xplane_files import US, read
from tests.kit.xplanes import Ev, Plane, Unsigned, line, space

GIB = 1 << 30
MIB = 1 << 20
STEPS = 6
BEFORE = 100 * MIB
"""Parameters, from before the profile."""

OPS: tuple[tuple[str, str, int, int], ...] = (
    # Node, region, allocated and freed at which microsecond of the step; each block is of as many MiB as its place.
    ("model/dense/MatMul", "output", 100, 700),
    ("model/dense/MatMul", "temp", 110, 120),
    ("mean_squared_error/weighted_loss/Sum", "output", 200, 650),
    ("gradient_tape/model/dense/MatMul/MatMul_1", "output", 300, 800),
    ("Adam/Adam/update/ResourceApplyAdam", "output", 810, 820),
    ("__inference_step_12", "output", 400, 900),
)


def stats(name: str, node: str, region: str, size: int, address: int, in_use: int, limit: int | None) -> dict[str, Any]:
    told = {"allocator_name": name, "bytes_reserved": 0, "bytes_allocated": Unsigned(in_use), "addr": address,
            "allocation_bytes": Unsigned(size), "tf_op": node, "region_type": region, "data_type": 19,
            "shape": f"[{size // MIB},1024,512]"}  # fmt: skip
    return told | ({} if limit is None else {"bytes_available": Unsigned(limit - in_use)})


def profile(limit: int | None = GIB, size: int = GIB, before: int = BEFORE, name: str = "GPU_0_bfc",
            pieces: float = 0.125) -> Facts:  # fmt: skip
    marks, calls, kernels, events = [], [], [], []
    in_use = before
    for step in range(STEPS):
        at = step * 1_000
        number = Unsigned(step + 1)
        marks.append(Ev("train", at * US, 990 * US, {"_r": 1, "step_num": step}))
        calls.append(Ev("EagerExecute", (at + 1) * US, 950 * US))
        calls.append(Ev("cuLaunchKernel", (at + 10) * US, 5 * US, {"correlation_id": number}))
        kernels.append(Ev("volta_h884gemm", (at + 20) * US, 960 * US, {"correlation_id": number}))
        changes = [(begun, node, region, place, 1) for place, (node, region, begun, _) in enumerate(OPS, 1)]
        changes += [(ended, node, region, place, -1) for place, (node, region, _, ended) in enumerate(OPS, 1)]
        for time, node, region, place, sign in sorted(changes):
            in_use += sign * place * MIB
            told = stats(name, node, region, place * MIB, 4096 * place, in_use, limit) | {"fragmentation": pieces}
            called = "MemoryAllocation" if sign > 0 else "MemoryDeallocation"
            if sign < 0:  # Written of a free is the op that frees, where there is one.
                told |= {"tf_op": "", "region_type": "", "data_type": 0, "shape": ""}
            events.append(Ev(called, (at + time) * US, 0, told))
    gpu = {"device_vendor": "Nvidia", "compute_cap_major": 7, "compute_cap_minor": 0, "memory_size": Unsigned(size)}
    host = Plane("/host:CPU", (line("python", *marks, *calls, *events, id=5),))
    return analyse(read(space(Plane("/device:GPU:0", (line("Stream #13(Kernel)", *kernels, id=13),), gpu), host)))


def notices(facts: Facts) -> dict[str, str]:
    return {notice.code: notice.text for notice in diagnose(facts).notices if notice.code.startswith("memory")}


def test_blocks_are_for_what_the_scope_of_the_op_says() -> None:
    (use,) = profile().memory
    assert use.peak.allocated == BEFORE + (1 + 3 + 4 + 6) * MIB
    assert {held: size // MIB for held, size in use.peak.held.items() if size} == {
        Held.BEFORE: 100,
        Held.ACTIVATION: 4,
        Held.GRADIENT: 4,
        Held.UNKNOWN: 6,
    }
    assert use.pool.blocks is not None
    assert sorted(
        {
            (place, str(tuple(Held)[held]))
            for place, held in zip((use.pool.blocks.bytes // MIB).tolist(), use.pool.blocks.held.tolist(), strict=True)
        }
    ) == [(1, "activation"), (2, "temporary"), (3, "activation"), (4, "gradient"), (5, "temporary"), (6, "unknown")]


def test_the_peak_lists_ops_types_and_shapes() -> None:
    facts = profile()
    places = facts.memory[0].peak.places
    assert [(p.where.op, p.tensor.dtype, p.tensor.shape, p.tensor.region) for p in places] == [
        ("__inference_step_12", "DT_HALF", "[6,1024,512]", "output"),
        ("gradient_tape/model/dense/MatMul/MatMul_1", "DT_HALF", "[4,1024,512]", "output"),
        ("mean_squared_error/weighted_loss/Sum", "DT_HALF", "[3,1024,512]", "output"),
        ("model/dense/MatMul", "DT_HALF", "[1,1024,512]", "output"),
    ]
    table = sections(report.memory(facts), {})[2]
    assert [column.title for column in table.columns][5:7] == ["type", "shape"]
    assert table.rows[0][5:7] == ("DT_HALF", "[6,1024,512]")


def test_the_pieces_that_free_memory_is_in_are_told() -> None:
    facts = profile()
    assert facts.memory[0].peak.fragmentation == 0.125
    (uses, *_) = sections(report.memory(facts), {})
    at = [column.title for column in uses.columns].index("free in pieces")
    assert uses.rows[0][at] == "12.5 %"


@pytest.mark.parametrize(("used", "told"), [(15.0, True), (MEMORY_FULL_SHARE * 16, True), (14.0, False)])
@pytest.mark.parametrize("limit", [16 * GIB, None])
def test_memory_that_is_nearly_full_is_told(used: float, told: bool, limit: int | None) -> None:
    """By the allocator's limit, or, where it does not write what is left, by the device's memory."""
    peak = 14 * MIB
    found = notices(profile(limit, 16 * GIB, round(used * GIB) - peak + 1))
    assert ("memory_full" in found) is told
    if used == 15.0:
        assert "15.0 GiB of the 16.0 GiB" in found["memory_full"]
        assert ("the allocator on device 0 may give out" in found["memory_full"]) is (limit is not None)


def test_the_allocators_limit_counts_where_it_is_below_the_devices_memory() -> None:
    found = notices(profile(8 * GIB, 16 * GIB, round(7.9 * GIB)))
    assert "of the 8.00 GiB that the allocator on device 0 may give out" in found["memory_full"]
    assert "memory_full" not in notices(profile(16 * GIB, 16 * GIB, round(7.9 * GIB)))


@pytest.mark.parametrize(
    ("pieces", "used", "told"), [(FRAGMENTED_SHARE, 15.0, True), (FRAGMENTED_SHARE - 0.01, 15.0, False),
                                 (FRAGMENTED_SHARE, 8.0, False)],
)  # fmt: skip
def test_little_that_is_left_in_pieces_is_told(pieces: float, used: float, told: bool) -> None:
    found = notices(profile(16 * GIB, 16 * GIB, round(used * GIB), pieces=pieces))
    assert ("memory_fragmentation" in found) is told
    assert not told or "TF_GPU_ALLOCATOR=cuda_malloc_async" in found["memory_fragmentation"]
    assert not told or "25.0 % of what the allocator has free" in found["memory_fragmentation"]


def test_the_hosts_memory_is_nobodys_batch() -> None:
    assert "memory_full" not in notices(profile(GIB, 16 * GIB, round(0.99 * GIB) - 14 * MIB, name="gpu_host_bfc"))
