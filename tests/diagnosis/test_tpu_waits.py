"""What a TPU waits for, planted in profiles with the structure of real ones: it must come back within 1 %."""

from __future__ import annotations

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.summary import busy_share, mean_parts
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Finding
from stepscope.trace.tables import Direction, MemoryKind
from tests.formats.xplane.xplane_files import read
from tests.kit import tpu
from tests.kit.tpu import Chip, profile

MS = 1_000_000


def facts_of_chips(*chips: Chip, step_us: float, free_bytes: int | None = None) -> Facts:
    return analyse(read(profile(*chips, step_us=step_us, free_bytes=free_bytes)))


def finding(facts: Facts, rule: str) -> Finding:
    return next(one for one in diagnose(facts).findings if one.rule == rule)


OFFLOADING = [
    (tpu.FETCH, 0.01),
    (tpu.FETCHED, 2_000),
    (tpu.COMPUTE, 500),
    (tpu.STORE, 0.01),
    (tpu.STORED, 2_499.98),
]
"""A step of 5 ms: 64 MiB in, half a millisecond of work, 64 MiB out again."""


@pytest.mark.parametrize(
    ("text", "category"),
    [
        (tpu.FETCHED, Category.HOST_MEMORY),
        (tpu.STORED, Category.HOST_MEMORY),
        (tpu.NEAR, Category.MEMORY_SPACE),
        (tpu.SENT, Category.PEER),
        (tpu.RECEIVED, Category.PEER),
        (tpu.SPARSE, Category.PEER),
        (tpu.INFEED, Category.INFEED),
        (tpu.OUTFEED, Category.INFEED),
        (tpu.HOST_RECEIVED, Category.INFEED),
        (tpu.REDUCED, Category.COLLECTIVE),
    ],
)
def test_a_wait_is_booked_to_what_it_is_for(text: str, category: Category) -> None:
    facts = facts_of_chips(Chip([(tpu.COMPUTE, 200), (text, 600), (tpu.COMPUTE, 200)]), step_us=1_000)
    parts = mean_parts(facts)
    assert parts[category] == pytest.approx(600_000, rel=0.01)
    assert parts[Category.COMPUTE] == pytest.approx(400_000, rel=0.01)
    busy = 1.0 if category is Category.COLLECTIVE else 0.4
    assert busy_share(facts, collectives=True) == pytest.approx(busy, abs=0.01)


def test_what_transfers_move_and_between_which_memories() -> None:
    trace = read(profile(Chip(OFFLOADING), step_us=5_000))
    ops = trace.device_ops
    by_name = {trace.name_of(int(row)): at for at, row in enumerate(ops.slice)}
    fetched, stored = by_name["copy-done"], by_name["copy-done.1"]
    assert [int(ops.bytes[at]) for at in (fetched, stored)] == [tpu.MIB << 20] * 2
    assert [Direction(ops.direction[at]) for at in (fetched, stored)] == [Direction.H2D, Direction.D2H]
    assert (ops.source_memory[fetched], ops.target_memory[fetched]) == (MemoryKind.PINNED, MemoryKind.DEVICE)
    assert (ops.source_memory[stored], ops.target_memory[stored]) == (MemoryKind.DEVICE, MemoryKind.PINNED)


def test_offloading_is_told_with_bytes_rates_and_what_would_be_saved() -> None:
    facts = facts_of_chips(Chip(OFFLOADING), step_us=5_000)
    found, step = finding(facts, "host_offload"), facts.mean_step_ns
    assert step == pytest.approx(5 * MS, rel=0.01)
    assert found.cost_ns_per_step == pytest.approx(4.5 * MS, rel=0.01)
    assert found.saving_ns_per_step == pytest.approx(4.5 * MS, rel=0.01)
    # 64 MiB in 2.0 and 2.5 ms.
    assert "64.0 MiB per step go at 33.6 GB/s from host memory to the device" in found.why
    assert "64.0 MiB per step go at 26.8 GB/s from the device to host memory" in found.why
    assert "host memory S(5) → device memory" in found.why
    assert "takes 64.0 MiB; what is free there is not recorded" in found.why
    # No program is in this profile: the sizes of the arrays stand for their shapes.
    assert [(place.op, place.ns_per_step) for place in found.where] == [
        ("copy-done.1 64.0 MiB", pytest.approx(2.5 * MS, rel=0.01)),
        ("copy-done 64.0 MiB", pytest.approx(2 * MS, rel=0.01)),
    ]  # fmt: skip
    assert diagnose(facts).bottleneck == "host_memory"


def test_a_device_that_waits_for_nothing_of_the_host_s_has_no_such_finding() -> None:
    facts = facts_of_chips(Chip([(tpu.COMPUTE, 900), (tpu.NEAR, 99)]), step_us=1_000)
    assert "host_offload" not in [one.rule for one in diagnose(facts).findings]


def test_the_last_core_at_a_barrier_is_named() -> None:
    """Device 1 has 400 µs of work of its own before the barrier; device 0 waits for it."""
    early = Chip([(tpu.BARRIER, 420), (tpu.COMPUTE, 580)], number=0)
    late = Chip([(tpu.COMPUTE, 400), (tpu.BARRIER, 20), (tpu.COMPUTE, 580)], number=1)
    facts = facts_of_chips(early, late, step_us=1_000)
    found = finding(facts, "late_core")
    assert "for device 1" in found.title
    assert found.cost_ns_per_step == pytest.approx(400_000, rel=0.01)
    for account, waited in zip(facts.accounts, (420_000, 20_000), strict=True):
        parts = account.parts[facts.used_rows(account)]
        assert parts[:, Category.PEER.code].mean() == pytest.approx(waited, rel=0.01)


def test_cores_that_come_together_wait_for_none() -> None:
    chips = [Chip([(tpu.BARRIER, 420), (tpu.COMPUTE, 580)], number=number) for number in range(2)]
    facts = facts_of_chips(*chips, step_us=1_000)
    assert "late_core" not in [one.rule for one in diagnose(facts).findings]
