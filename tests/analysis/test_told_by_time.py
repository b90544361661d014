"""Gaps of a TPU whose launches were not recorded, and what threads do that the main one waits for."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.engine import diagnose
from stepscope.pipeline import open_profile
from stepscope.trace.tables import Kind
from tests.kit.xla import HostRange, Job, Op, build
from tests.kit.xplanes import Ev, Plane, line, space

STEP = 100_000
GAP = 72_000
MS = 1_000_000_000
"""Picoseconds."""


def gapped(*ranges: HostRange, told: bool = False) -> Facts:
    """Steps of 100 ms: the host does some things for 72 ms, then starts a program of 27 ms."""
    host, ops = [], []
    for k in range(6):
        at = k * STEP
        host.append(HostRange("step", at, STEP, Kind.STEP, step=k))
        host += [HostRange(r.name, at + r.start, r.dur, r.kind, thread=r.thread) for r in ranges]
        host.append(HostRange("ExecuteComputation", at + GAP, 500))
        call, run = (len(host) - 1, k) if told else (-1, None)
        ops.append(Op("fusion.1", at + GAP + 600, 27_000, execute=call, run=run))
    return analyse(build(Job(host, ops, framework="PyTorch/XLA")))


def parts(facts: Facts) -> dict[Category, int]:
    account = facts.accounts[0]
    totals = account.parts[facts.used_rows(account)].sum(axis=0)
    return {category: facts.per_step(int(totals[category.code])) for category in Category if totals[category.code]}


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("TransferToServer", Category.TRANSFER),
        ("XLAGraphExecutor::Compile", Category.COMPILE),
        ("StepMarker", Category.GRAPH_BUILD),
        ("load", Category.PYTHON),
    ],
)
def test_what_the_host_did_at_the_time_tells_the_gap(name: str, cause: Category) -> None:
    """The same to a percent as where the launches were recorded."""
    by_time, by_launch = (parts(gapped(HostRange(name, 0, 70_000), told=told)) for told in (False, True))
    assert by_time[cause] == pytest.approx(70_000_000, rel=0.01)
    assert by_time[cause] == pytest.approx(by_launch[cause], rel=0.01)


def test_a_host_that_does_nothing_explains_nothing() -> None:
    found = parts(gapped())
    assert found[Category.UNKNOWN_DEVICE] >= 71_000_000
    assert Category.UNKNOWN_HOST not in found


def test_short_gaps_are_not_told_by_time() -> None:
    """Half a millisecond between programs, in which the host is in a range: the clocks may be as far apart."""
    host = [HostRange("loop", 0, 60_000)]
    ops = [Op("fusion.1", 10_000 * k, 9_500) for k in range(6)]
    found = parts(analyse(build(Job(host, ops, framework="PyTorch/XLA"))))
    assert set(found) == {Category.COMPUTE, Category.UNKNOWN_DEVICE}


def test_a_processor_that_is_a_device_is_not_told_by_time() -> None:
    """Its programs run on the host's own threads."""
    host = [HostRange("load", 0, 65_000)]
    ops = [Op("fusion.1", 70_000 + STEP * k, 25_000) for k in range(6)]
    found = parts(analyse(build(Job(host, ops, framework="JAX", kind="cpu"))))
    assert set(found) == {Category.COMPUTE, Category.UNKNOWN_DEVICE}


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("waits", ["Wait for usage holds", None])
def test_transfers_of_a_helper_are_followed_through_the_wait(told: bool, waits: str | None) -> None:
    """The main thread shows a wait, or nothing; the thread that sends the batch shows what it waits for."""
    helper = HostRange("TransferToServer", 1_000, 68_000, thread="sender")
    main = [HostRange(waits, 500, 69_000, Kind.HOST_OP)] if waits else []
    facts = gapped(helper, *main, told=told)
    assert parts(facts)[Category.TRANSFER] == pytest.approx(68_000_000, rel=0.01)
    finding = next(f for f in diagnose(facts).findings if f.rule == "transfer_bound")
    assert finding.cost_ns_per_step == pytest.approx(68_000_000, rel=0.01)
    assert finding.saving_ns_per_step == pytest.approx(68_000_000, rel=0.01)
    assert "TransferToServer" in finding.evidence[0].name
    assert finding.evidence[0].track == "sender"


def test_transfers_beside_a_main_thread_that_works_are_not_waited_for() -> None:
    """The next batch is sent ahead while the main thread builds the graph: that is what the device waits for."""
    helper = HostRange("TransferToServer", 1_000, 68_000, thread="sender")
    found = parts(gapped(helper, HostRange("StepMarker", 0, 70_000), told=True))
    assert Category.TRANSFER not in found
    assert found[Category.GRAPH_BUILD] == pytest.approx(70_000_000, rel=0.01)


def test_a_tpu_file_without_run_ids_on_the_host(tmp_path: Path) -> None:
    """Numbered runs on the chip, a host whose events carry no ids, two programs in turn: nothing matches them."""
    modules, ops, host = [], [], []
    for k in range(6):
        at = k * 100 * MS
        name = f"SyncTensorsGraph.{80 + k % 2}"
        modules.append(Ev(f"{name}(1{k % 2})", at + 72 * MS, 27 * MS, {"run_id": 40 + 3 * k}))
        ops.append(Ev("fusion.1", at + 72 * MS, 27 * MS, {"hlo_category": "fusion"}))
        host.append(Ev("TransferToServer", at, 70 * MS))
    chip = Plane(
        "/device:TPU:0",
        (line("XLA Modules", *modules, id=2), line("XLA Ops", *ops, id=3)),
        {"device_type_string": "TPU v4"},
    )
    path = tmp_path / "vm.xplane.pb"
    path.write_bytes(space(chip, Plane("/host:CPU", (line("python", *host, id=5),))))
    profile = open_profile(str(path))
    assert "transfer_bound" in {finding.rule for finding in profile.findings}
    notice = next(n for n in profile.notices if n.code == "launches_not_recorded")
    assert "what the host did at that time" in notice.text
