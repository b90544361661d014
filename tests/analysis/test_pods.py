"""Devices of a host beside each other: chips, their sparse cores, counters, exchanges over the network (ms)."""

from __future__ import annotations

import pytest

from stepscope.analysis import summary
from stepscope.analysis.analyse import analyse
from stepscope.analysis.facts import Facts
from stepscope.analysis.pods import CounterUse, NetworkUse, counters, ended_last, network
from stepscope.diagnosis.engine import diagnose
from stepscope.report.document import make
from stepscope.report.sections import sections
from stepscope.trace.tables import Kind
from tests.formats.xplane.xplane_files import read
from tests.kit.xplanes import Ev, Plane, line, space

MS = 1_000_000_000
STEP, STEPS = 10, 6


def chip(number: int, works: int, *lines: object) -> Plane:
    """A TPU of which each step computes for some time, and whose module lasts as long."""
    modules = [Ev("jit_step(1)", step * STEP * MS, works * MS) for step in range(STEPS)]
    ops = [Ev("fusion.1", step * STEP * MS, works * MS) for step in range(STEPS)]
    return Plane(f"/device:TPU:{number}", (line("XLA Modules", *modules, id=2), line("XLA Ops", *ops, id=3), *lines))  # type: ignore[arg-type]


def core(number: int, runs: int, works: int) -> Plane:
    """A sparse core that runs several times in each step."""
    times = [(step * STEP + run) * MS for step in range(STEPS) for run in range(runs)]
    modules = [Ev("sc(2)", at, works * MS // runs) for at in times]
    ops = [Ev("gather.1", at, works * MS // runs) for at in times]
    lines = line("Sparse Core Modules", *modules, id=4), line("Sparse Core Ops", *ops, id=5)
    return Plane(f"/device:TPU:{number} SparseCore 0", lines)


def megascale(*numbers: int) -> Plane:
    """Exchanges of some devices, as XProf's loader of them expects: what is done, and the exchange itself."""
    key = "device_{0}_gid_all-reduce.2_7$1^i{1}"
    sends = [
        Ev("NetworkSend END", (step * STEP + 4) * MS, 3 * MS,
           {"graph_key": key.format(number, step), "action_duration_ns": 3_000_000})
        for number in numbers for step in range(STEPS)
    ]  # fmt: skip
    whole = [
        Ev(f"device_{number}_gid_all-reduce.2_7", (step * STEP + 3) * MS, 5 * MS, {"input_size": 4096})
        for number in numbers for step in range(STEPS)
    ]  # fmt: skip
    return Plane("/device:CUSTOM:Megascale Trace", (line("actions", *sends, id=1), line("graphs", *whole, id=2)))


def facts_of(*planes: Plane) -> Facts:
    return analyse(read(space(*planes)))


def test_exchanges_over_the_network_are_no_device():
    with_network, without = facts_of(chip(0, 8), megascale(7, 8)), facts_of(chip(0, 8))
    assert [device.id for device in with_network.trace.info.devices] == [0]
    assert summary.total_parts(with_network) == summary.total_parts(without)
    assert network(with_network) == [
        NetworkUse("all-reduce.2_7", 12, 60_000_000, 5_000_000, 5_000_000),
        NetworkUse("NetworkSend END", 12, 36_000_000, 3_000_000, 3_000_000),
    ]
    assert network(without) == []


def test_an_action_takes_as_long_as_it_says():
    """Actions in progress together share a line, where each lasts from the end of the one before it."""

    def send(ended: int, shown: int, took: int | None) -> Ev:
        return Ev("NetworkSend END", (ended - shown) * MS, shown * MS, {"graph_key": "device_7_gid_a$1^i0"} | (
            {} if took is None else {"action_duration_ns": took * 1_000_000}))  # fmt: skip

    begun = Ev("NetworkSend START", 0, 0, {"graph_key": "device_7_gid_a$1^i0", "action_index": 0})
    actions = line("actions", begun, send(20, 2, 20), send(21, 1, 15), send(21, 0, 4), send(30, 3, None), id=1)
    facts = facts_of(chip(0, 8), Plane("/device:CUSTOM:Megascale Trace", (actions,)))
    assert network(facts) == [NetworkUse("NetworkSend END", 4, 42_000_000, 9_500_000, 20_000_000)]


def test_what_happens_inside_kernels_of_a_gpu_is_no_device():
    stream = line("Stream #1(Kernel)", *[Ev("gemm", step * STEP * MS, 8 * MS) for step in range(STEPS)], id=1)
    inside = Plane("/device:CUSTOM:MOSAIC:0", (line("SM 0", Ev("wgmma", 0, MS), id=1),))
    assert [d.id for d in facts_of(Plane("/device:GPU:0", (stream,)), inside).trace.info.devices] == [0]


def test_another_custom_device_is_one():
    queue = line("queue", *[Ev("matmul", step * STEP * MS, 8 * MS) for step in range(STEPS)])
    assert len(facts_of(Plane("/device:CUSTOM:NPU:0", (queue,))).activities) == 1


def test_a_sparse_core_is_beside_its_chip():
    with_core, without = facts_of(chip(0, 8), core(0, 2, 2)), facts_of(chip(0, 8))
    assert with_core.beside == with_core.unused == {1}
    assert [device.name for device in with_core.trace.info.devices] == [None, "TPU:0 SparseCore 0"]
    assert summary.total_parts(with_core) == summary.total_parts(without)
    assert with_core.step_ns.tolist() == without.step_ns.tolist()
    assert summary.duty_cycle_share(with_core) == summary.duty_cycle_share(without) == pytest.approx(0.8)
    assert not [n for n in diagnose(with_core).notices if n.code == "devices_unused"]
    assert not [n for n in diagnose(with_core).findings if n.rule == "device_overloaded"]
    (own,) = [account for account in with_core.accounts if account.rows.device == 1]
    assert summary.account_parts(with_core, own)["compute"] == 4 * 2_000_000


def test_a_sparse_core_alone_has_steps():
    facts = facts_of(core(0, 1, 2))
    assert (facts.beside, facts.unused) == (frozenset(), frozenset())
    assert len(facts.markers) == STEPS


def test_the_device_that_ends_last():
    facts = facts_of(chip(0, 8), chip(1, 9), chip(2, 8))
    assert ended_last(facts) == {0: 0, 1: 4, 2: 0}
    assert ended_last(facts_of(chip(0, 8), chip(1, 8))) == {0: 0, 1: 0}
    assert ended_last(facts_of(chip(0, 8))) == {}


def counts(name: str, *values: float, line_name: str = "_counters_") -> object:
    """A value in each step."""
    return line(line_name, *[Ev(name, (step * STEP + 1) * MS, 0, {"counter_value": value})
                             for step, value in enumerate(values)], id=9)  # fmt: skip


@pytest.mark.parametrize("name", ["_counters_", "counters_0"])
def test_what_devices_count(name):
    facts = facts_of(chip(0, 8, counts("power", 1, 200, 210, 220, 230, 9, line_name=name)), chip(1, 8))
    assert counters(facts) == [CounterUse(0, "power", 4, 200.0, 215.0, 230.0)]
    assert set(facts.trace.slices.kind[facts.trace.device_ops.slice].tolist()) == {Kind.KERNEL}


def test_the_report_has_them():
    facts = facts_of(chip(0, 8, counts("power", *range(STEPS))), chip(1, 9), core(0, 1, 2), megascale(7))
    document = make(facts, diagnose(facts), [])
    tables = {section.title: section.rows for section in sections(document)}
    assert [(row[0], row[3]) for row in tables["Devices beside each other"]] == [
        ("0", "0 of 4"), ("1", "4 of 4"), ("2", "–"),
    ]  # fmt: skip
    assert tables["Counters of the devices"] == [("power", "0", "4", "1", "2.5", "4")]
    assert [row[0] for row in tables["Exchanges between slices over the network (Megascale)"]] == [
        "all-reduce.2_7", "NetworkSend END",
    ]  # fmt: skip
