"""The parts on their own: names, matching without step numbers, clocks, significance, bandwidth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stepscope import pipeline
from stepscope.analysis.exchange.links import BUS_FACTORS, bus_factor
from stepscope.cluster.bandwidth import traffic
from stepscope.cluster.chance import p_of_mean
from stepscope.cluster.clocks import estimate
from stepscope.cluster.job import combine
from stepscope.inputs.source import Source
from stepscope.names.collectives import Collective, called, host_collective, message_bytes
from stepscope.trace.tables import NULL
from tests.cluster.jobs import MS, WORLD, clocks, data_parallel, facts_of, simulate

# --- names ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("allreduce", Collective.ALL_REDUCE),
        ("nccl:all_reduce", Collective.ALL_REDUCE),
        ("c10d::allreduce_coalesced_", Collective.ALL_REDUCE),
        ("xccl:all_reduce", Collective.ALL_REDUCE),
        ("all-reduce-start", Collective.ALL_REDUCE),
        ("cross_replica_sum", Collective.ALL_REDUCE),
        ("_allgather_base", Collective.ALL_GATHER),
        ("_c10d_functional::all_gather_into_tensor", Collective.ALL_GATHER),
        ("nccl:_reduce_scatter_base", Collective.REDUCE_SCATTER),
        ("reduce-scatter", Collective.REDUCE_SCATTER),
        ("all_to_allv", Collective.ALL_TO_ALL),
        ("c10d::alltoall_base_", Collective.ALL_TO_ALL),
        ("nccl:send 0->1", Collective.SEND_RECV),
        ("collective-permute", Collective.SEND_RECV),
        ("_broadcast_oop", Collective.BROADCAST),
        ("gloo:barrier", Collective.BARRIER),
        ("wait", None),
        ("record_param_comms", None),
        ("nccl:coalesced", None),
    ],
)
def test_every_name_of_a_collective(name: str, kind: Collective | None) -> None:
    assert called(name) is kind


def test_what_the_host_carries_out_itself() -> None:
    assert host_collective("gloo:all_gather") is Collective.ALL_GATHER
    assert host_collective("mpi:something") is Collective.GENERIC
    assert host_collective("nccl:all_reduce") is None
    assert host_collective("c10d::allreduce_") is None


@pytest.mark.parametrize(
    ("dtype", "size"), [("Float", 40), ("c10::BFloat16", 20), ("Float8_e4m3fn", 10), ("signed char", 10), ("?", None)]
)
def test_bytes_of_a_message(dtype: str, size: int | None) -> None:
    assert message_bytes(10, dtype) == size


# --- matching -------------------------------------------------------------------------------------------------------


def test_ranks_without_step_numbers_are_laid_over_each_other(tmp_path: Path) -> None:
    """Windows begin at different collectives, nothing is numbered, and clocks are apart by more than a step."""
    job = simulate(4, data_parallel(world=4, noise=0.3), clocks=clocks(2, 4))
    facts = facts_of(job, tmp_path)
    partials = []
    for rank, partial in enumerate(facts.partials):
        table = partial.collectives
        kept = np.arange(len(table)) >= 3 * rank
        steps = replace(partial.steps, number=np.full(len(partial.steps.number), NULL))
        partials.append(replace(partial, collectives=table.where(kept), steps=steps, epoch_ns=None))
    (group,) = combine(partials).groups
    columns = [[int(row) + 3 * rank for row in group.matched.at[rank] if row >= 0] for rank in range(4)]
    assert columns == [list(range(3 * rank, 32)) for rank in range(4)]
    places = [np.flatnonzero(group.matched.at[rank] >= 0)[0] for rank in range(4)]
    assert places == [0, 3, 6, 9]


def test_a_step_with_a_collective_too_few_is_not_matched(tmp_path: Path) -> None:
    facts = facts_of(simulate(4, data_parallel(world=4)), tmp_path)
    partials = list(facts.partials)
    table = partials[1].collectives
    partials[1] = replace(partials[1], collectives=table.where(np.arange(len(table)) != 9))
    (group,) = combine(partials).groups
    unmatched = group.matched.step[group.matched.at[1] < 0]
    assert unmatched.tolist() == [2] * 4
    own = group.matched.at[1, group.matched.present.sum(axis=0) == 1]
    assert len(own) == 3
    assert (own >= 0).all()
    assert (group.matched.at[[0, 2, 3]][:, group.matched.present.sum(axis=0) > 1] >= 0).all()


# --- clocks ---------------------------------------------------------------------------------------------------------


def spans(offset: float, drift: float, ends_apart: float, count: int = 40) -> tuple[tuple, tuple, np.ndarray]:  # type: ignore[type-arg]
    drawn = np.random.default_rng(0)
    end = np.cumsum(drawn.uniform(1e6, 5e6, count))
    took = np.full(count, 200_000.0)
    waits = drawn.uniform(0, 2e6, (2, count)) * drawn.integers(0, 2, (2, count))
    waits[0, waits[1] > 0] = 0
    shown = end + drawn.uniform(-ends_apart, ends_apart, count)
    own = shown - offset - drift * shown
    hub = (end - took - waits[0], end)
    other = (own - took - waits[1], own)
    return tuple(x.astype(np.int64) for x in hub), tuple(x.astype(np.int64) for x in other), took.astype(np.int64)


@pytest.mark.parametrize("offset", [0.0, 3.3e6, -7.7e9])
@pytest.mark.parametrize("drift", [0.0, 2e-5, -4e-5])
def test_offset_and_drift_come_back_within_a_microsecond(offset: float, drift: float) -> None:
    hub, other, shortest = spans(offset, drift, 0.0)
    clock = estimate(hub, other, shortest)
    assert np.abs(clock.to_reference(other[1]) - hub[1]).max() <= 1_000
    assert clock.uncertainty_ns <= 21_000


def test_ends_that_scatter_make_a_clock_uncertain() -> None:
    hub, other, shortest = spans(1e6, 0.0, 150_000)
    clock = estimate(hub, other, shortest)
    error = np.abs(clock.offset_ns - 1e6)
    assert error <= clock.uncertainty_ns
    assert clock.uncertainty_ns > 50_000


def test_one_host_has_one_clock_unless_the_bounds_say_otherwise() -> None:
    hub, other, shortest = spans(10_000, 0.0, 0.0)
    assert estimate(hub, other, shortest, same_host=True).offset_ns == 0
    hub, other, shortest = spans(5e6, 0.0, 0.0)
    assert estimate(hub, other, shortest, same_host=True).offset_ns == pytest.approx(5e6, abs=1_000)


def test_ends_that_agree_say_that_one_name_is_two_clocks() -> None:
    hub, other, shortest = spans(150_000, 0.0, 0.0)
    clock = estimate(hub, other, shortest, same_host=True)
    assert clock.offset_ns == pytest.approx(150_000, abs=1_000)
    assert estimate(hub, other, shortest, same_host=True, ends_tell=False).offset_ns == 0
    few = slice(0, 4)  # a few may end apart by chance
    hub, other = tuple(of[few] for of in hub), tuple(of[few] for of in other)
    assert estimate(hub, other, shortest[few], same_host=True).offset_ns == 0


def test_bounds_that_cannot_be_met_are_uncertain_by_as_much() -> None:
    hub, other, shortest = spans(0.0, 0.0, 0.0)
    jumped = tuple(np.where(np.arange(40) < 20, times, times + 9_000_000) for times in other)
    clock = estimate(hub, jumped, shortest)  # type: ignore[arg-type]
    assert clock.uncertainty_ns > 4_000_000


# --- significance ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("t", "freedom", "p"), [(12.706, 1, 0.025), (4.303, 2, 0.025), (2.571, 5, 0.025)])
def test_student_t(t: float, freedom: int, p: float) -> None:
    """Values of which the mean lies so many standard errors above 0, against the printed table."""
    drawn = np.arange(freedom + 1, dtype=np.float64)
    drawn -= drawn.mean()
    values = drawn + t * drawn.std(ddof=1) / np.sqrt(freedom + 1)
    assert p_of_mean(values) == pytest.approx(p, abs=2e-4)


def test_one_stalled_step_of_six_hides_no_straggler() -> None:
    assert p_of_mean(np.array([30.2, 31.7, 32.0, 31.9, 33.0, -52.0])) < 1e-4
    assert p_of_mean(np.array([30.0, -31.0, 32.0, -29.0, 28.0, -52.0])) > 0.2
    assert p_of_mean(np.zeros(6)) == 1.0
    assert p_of_mean(np.full(6, 3.0)) == 0.0


# --- bandwidth ------------------------------------------------------------------------------------------------------


def test_bus_factors_are_those_of_nccl_tests() -> None:
    assert {kind: bus_factor(kind, 4) for kind in BUS_FACTORS} == {
        Collective.ALL_REDUCE: 1.5,
        **dict.fromkeys((Collective.ALL_GATHER, Collective.REDUCE_SCATTER, Collective.ALL_TO_ALL), 0.75),
        **dict.fromkeys((Collective.GATHER, Collective.SCATTER), 0.75),
        **dict.fromkeys((Collective.BROADCAST, Collective.REDUCE, Collective.SEND_RECV), 1.0),
    }
    assert bus_factor(Collective.ALL_REDUCE, None) is None
    assert bus_factor(Collective.GENERIC, 4) is None


def test_bandwidth_leaves_waiting_out(tmp_path: Path) -> None:
    extra = lambda rank, step: {"input": 4 * MS} if rank == 1 else {}  # noqa: E731
    facts = facts_of(simulate(WORLD, data_parallel(extra), clocks=clocks(9)), tmp_path)
    (one,) = traffic(facts)
    assert (one.kind, one.size, one.bytes, one.per_step) == (Collective.ALL_REDUCE, WORLD, 4 << 20, 4.0)
    assert one.transfer_ns == pytest.approx(200_000, rel=0.01)
    assert one.algorithm_bandwidth == pytest.approx((4 << 20) / 200e-6, rel=0.01)
    assert one.bus_bandwidth == pytest.approx(1.75 * (4 << 20) / 200e-6, rel=0.01)
    assert not one.bound
    assert one.link_bandwidth is None  # ranks on different hosts: no link of a device joins them


def test_ranks_of_one_host_are_held_against_their_link(tmp_path: Path) -> None:
    job = simulate(2, data_parallel(world=2), hosts=lambda rank: "node")
    (tmp_path / "job").mkdir()
    for rank in range(2):
        (tmp_path / "job" / f"rank{rank}.json").write_bytes(job.bytes_of(rank))
    found = [pipeline.reduce_rank(Source(path)) for path in sorted((tmp_path / "job").iterdir())]
    (one,) = traffic(combine(found))  # type: ignore[arg-type]
    assert one.bus_bandwidth is not None
    assert one.link_share == one.bus_bandwidth / 300e9
    assert one.link_bandwidth == 300e9  # A100: 600 GB/s in both directions together
    assert one.estimate_ns_per_step == round(4 * (4 << 20) / 300e9 * 1e9)
    assert one.corrected_estimate_ns_per_step == one.estimate_ns_per_step
