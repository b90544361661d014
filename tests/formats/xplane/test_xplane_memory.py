"""Allocations and frees in XPlane files, with the statistics that BFCAllocator::AddTraceMe and libtpu write."""

from __future__ import annotations

import math

import pytest

from tests.formats.xplane.xplane_files import US, host, read, rows
from tests.kit.xplanes import Ev, space

GPU = {"allocator_name": "GPU_3_bfc", "bytes_reserved": 0, "bytes_allocated": 900, "requested_bytes": 90,
       "allocation_bytes": 256, "addr": 4096}  # fmt: skip


def table(*events: tuple[str, dict[str, object]], columns: tuple[str, ...]) -> list[tuple[object, ...]]:
    instants = [Ev(f"Memory{name}", (1 + at) * US, 0, stats) for at, (name, stats) in enumerate(events)]
    return rows(read(space(host(Ev("a", 0, 9 * US), *instants))), *columns, table="memory")


def test_allocations_and_frees_by_allocator() -> None:
    on_host = {"allocator_name": "gpu_host_bfc", "allocation_bytes": 8, "bytes_allocated": 8, "bytes_reserved": 64}
    columns = ("time_ns", "device_type", "device", "address", "bytes", "allocated", "reserved", "allocator")
    assert table(("Allocation", GPU), ("Deallocation", GPU), ("Allocation", on_host), columns=columns) == [
        (1000, 1, 3, 4096, 256, 900, None, "GPU_3_bfc"), (2000, 1, 3, 4096, -256, 900, None, "GPU_3_bfc"),
        (3000, 0, None, None, 8, 8, 64, "gpu_host_bfc"),
    ]  # fmt: skip


TOLD = ("limit", "available", "fragmentation", "op", "region", "dtype", "shape")


def test_what_an_allocator_tells_of_its_limit_and_of_the_tensor() -> None:
    stats = GPU | {"bytes_available": 100, "fragmentation": 0.25, "tf_op": "dense/MatMul", "region_type": "output",
                   "data_type": 19, "shape": "[4,16]"}  # fmt: skip
    assert table(("Allocation", stats), columns=TOLD) == [
        (1000, 100, 0.25, "dense/MatMul", "output", "DT_HALF", "[4,16]")
    ]


@pytest.mark.parametrize("nothing", ["(null)", "dummy", ""])
def test_names_that_are_none_are_absent(nothing: str) -> None:
    stats = GPU | {"tf_op": nothing, "region_type": nothing, "data_type": 0}
    assert table(("Allocation", stats), columns=TOLD[3:]) == [(None, None, None, None)]
    assert table(("Allocation", GPU), columns=TOLD) == [(None,) * 7]


@pytest.mark.parametrize("share", [-0.1, 1.5, math.inf])
def test_a_share_that_is_none_is_absent(share: float) -> None:
    assert table(("Allocation", GPU | {"fragmentation": share}), columns=("fragmentation",)) == [(None,)]


def test_a_tpu_s_programs_reserve_memory_beside_what_is_allocated() -> None:
    """Chips are told by number; the peak of a program that reserves 20 of 30 is not what is allocated beside it."""
    running = {"index_on_host": 2, "bytes_reserved": 20, "bytes_allocated": 3, "bytes_available": 7, "addr": 1}
    idle = running | {"bytes_reserved": 0, "bytes_available": 27}
    columns = ("device_type", "device", "allocated", "reserved", "limit", "available", "allocator")
    assert table(("Allocation", running), ("Deallocation", idle), columns=columns) == [
        (None, 2, 23, None, 30, 7, None),
        (None, 2, 3, None, 30, 27, None),
    ]


def test_instants_of_that_name_without_any_allocator_are_no_memory() -> None:
    assert table(("Allocation", {"bytes_allocated": 900}), columns=("allocated",)) == []
