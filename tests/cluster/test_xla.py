"""Collectives of XLA: two halves are one, sizes come from shapes, and groups are the device's own."""

from __future__ import annotations

import doctest
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from stepscope import pipeline
from stepscope.analysis.analyse import analyse
from stepscope.analysis.exchange.collectives import KINDS, Collectives
from stepscope.cluster.bandwidth import traffic
from stepscope.cluster.job import combine
from stepscope.cluster.partial import Partial
from stepscope.hlo.instructions import read_hlo
from stepscope.names import collectives, replicas
from stepscope.names.collectives import Collective, message_bytes
from tests.formats.xplane.xplane_files import US, host, read
from tests.kit.wire import message, packed
from tests.kit.xplanes import Ev, Plane, space

EIGHT = Path(__file__).parents[2] / "examples/profiles/jax_eight_devices.xplane.pb.gz"
F32, BF16 = 11, 16


def shape(kind: int, *dims: int) -> bytes:
    return message((2, kind), (3, packed(*dims)))


def hlo() -> bytes:
    """An all-reduce of a tuple in two halves, two gathers whose halves are numbered differently, over pairs."""
    pairs = (49, message((1, packed(0, 1)))), (49, message((1, packed(2, 3))))
    ops = [
        message((1, "p"), (2, "parameter"), (3, shape(F32, 256, 4)), (35, 1)),
        message((1, "q"), (2, "parameter"), (3, shape(F32, 6)), (35, 2)),
        message((1, "b"), (2, "parameter"), (3, shape(BF16, 8)), (35, 3)),
        message((1, "all-reduce-start.1"), (2, "all-reduce-start"), (35, 4), (36, packed(1, 2)), *pairs),
        message((1, "all-reduce-done.1"), (2, "all-reduce-done"), (35, 5), (36, packed(4)), *pairs),
        message((1, "all-gather-start"), (2, "all-gather-start"), (35, 6), (36, packed(3)), *pairs),
        message((1, "all-gather-done.2"), (2, "all-gather-done"), (35, 7), (36, packed(6)), *pairs),
        message((1, "reduce-scatter"), (2, "reduce-scatter"), (35, 8), (36, packed(1, 3)), *pairs),
    ]
    entry = message((1, "main"), *((2, op) for op in ops), (5, 1))
    return message((1, message((1, "jit_f"), (3, entry), (5, 9))))


def recorded(*ops: tuple[str, int, int]) -> Collectives:
    """Ops of four devices (name, start and duration in µs), as a profile has them."""
    metadata = Plane("/host:metadata", shared={"jit_f(9)": {"Hlo Proto": hlo()}}, extra_names=("jit_f(9)",))
    stats: dict[str, int | str] = {"hlo_module": "jit_f", "program_id": 9}
    events = [
        Ev(name, start * US, dur * US, stats | {"hlo_op": name, "device_ordinal": device})
        for device in range(4)
        for name, start, dur in ops
    ]
    return analyse(read(space(metadata, host(*events)))).collectives


def told(found: Collectives, device: int = 0) -> list[tuple[Collective, int, int, int]]:
    mine = found.where(found.device == device)
    columns = (mine.kind, mine.start - found.start.min(), mine.end - mine.start, mine.bytes)
    return [
        (KINDS[kind], start // 1_000, dur // 1_000, size)
        for kind, start, dur, size in zip(*(c.tolist() for c in columns), strict=True)
    ]


def test_two_halves_are_one_collective_of_the_size_its_operands_have() -> None:
    found = recorded(
        ("all-reduce-start.1", 0, 5), ("all-gather-start", 10, 5), ("all-reduce-done.1", 40, 10),
        ("all-gather-done.2", 60, 10), ("all-reduce-start.1", 100, 5), ("all-reduce-done.1", 120, 10),
    )  # fmt: skip
    assert told(found) == [
        (Collective.ALL_REDUCE, 0, 50, 4 * (1024 + 6)),
        (Collective.ALL_GATHER, 10, 60, 2 * 8),
        (Collective.ALL_REDUCE, 100, 30, 4 * (1024 + 6)),
    ]


def test_a_half_alone_stays() -> None:
    found = recorded(("all-reduce-done.1", 0, 10), ("all-reduce-start.1", 40, 5))
    assert [(start, dur) for _, start, dur, _ in told(found)] == [(0, 10), (40, 5)]


def test_the_size_of_operands_of_several_types_is_not_told() -> None:
    assert told(recorded(("reduce-scatter", 0, 5)))[0][3] < 0


def test_sizes_no_machine_holds_are_damage() -> None:
    ops = [
        message((1, "p"), (2, "parameter"), (3, shape(F32, 1 << 40, 1 << 40)), (35, 1)),
        message((1, "ar"), (2, "all-reduce"), (35, 2), (36, packed(1))),
    ]
    entry = message((1, "main"), *((2, op) for op in ops))
    data = np.frombuffer(message((1, message((1, "jit_f"), (3, entry)))), np.uint8)
    assert read_hlo(data, 0, len(data)).ops["ar"].takes == ()
    assert message_bytes(1 << 62, "Double") is None
    assert message_bytes(-5, "Double") is None


def test_pairs_of_devices_are_groups_of_their_own() -> None:
    found = recorded(("all-reduce-start.1", 0, 5), ("all-reduce-done.1", 40, 10))
    names = {int(device): found.groups[group] for device, group in zip(found.device, found.group, strict=True)}
    assert names[0] == names[1] != names[2] == names[3]
    assert {group.size for group in found.groups} == {2}


def test_eight_devices_of_a_real_run() -> None:
    profile = pipeline.open_profile(EIGHT)
    partial = pipeline.reduce_rank(profile.source)
    assert isinstance(partial, Partial)
    facts = combine([partial])
    (one,) = traffic(facts)
    # The gradient of a 512 x 256 matrix in float32; a process's devices share its clock.
    assert (one.kind, one.bytes, one.size, one.bound) == (Collective.ALL_REDUCE, 512 * 256 * 4, 8, False)
    assert one.per_step == 1
    assert one.wait_ns is not None
    assert one.bytes is not None
    assert one.bus_bandwidth == pytest.approx(one.bytes / (one.transfer_ns / 1e9) * 2 * 7 / 8)


@pytest.mark.parametrize("module", [replicas, collectives])
def test_doctests(module: ModuleType) -> None:
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("[4,2]<=[2,4]T(1,0)", ((0, 4), (1, 5), (2, 6), (3, 7))),
        ("mesh['x'=2,'y'=2], device_ids=(3,2,1,0) {'y'}", ((3, 2), (1, 0))),
        ("mesh['x'=2,'y'=2], device_ids=([2,2]T(1,0)) {'x'}", ((0, 1), (2, 3))),
        ("mesh['x'=8] {'x':(2)4}", None),
        ("mesh['x'=99999999,'y'=99999999] {'x'}", None),
        ("[3,2]<=[4]", None),
        ("[2,2]<=[4]T(5)", None),
        ("{{}}", None),
        ("", None),
    ],
)
def test_replica_groups(text: str, groups: replicas.Groups | None) -> None:
    assert replicas.replica_groups(text) == groups
