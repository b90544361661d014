"""What was planted in a generated job comes back: who was late and why, what everyone waited, how clocks differ."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from stepscope.analysis.categories import Category
from stepscope.analysis.summary import COLLECTIVES
from stepscope.cluster.bandwidth import traffic
from stepscope.cluster.findings import diagnose
from stepscope.cluster.job import JobFacts
from stepscope.cluster.matching import base_of
from tests.cluster.jobs import (
    MS,
    WORLD,
    Extra,
    check_booked,
    clocks,
    data_parallel,
    facts_of,
    pairs_apart,
    pipeline_stages,
    side_by_side,
    simulate,
    tensor_and_data_parallel,
)
from tests.kit.cluster import START_NS, Clock, Cluster
from tests.kit.kineto_form import ZERO_NS
from tests.kit.some import some

PLANTED: Mapping[str, tuple[Extra, int, str]] = {
    "input": (lambda rank, step: {"input": 4 * MS} if rank == 3 else {}, 3, "input"),
    "python": (lambda rank, step: {"python": 3 * MS} if rank == 2 else {}, 2, "host"),
    "slow_device": (lambda rank, step: {"scale": 1.25} if rank == 5 else {}, 5, "slow_device"),
    "more_work": (lambda rank, step: {"expert": 2.0} if rank == 6 else {}, 6, "uneven_work"),
    "first_rank": (lambda rank, step: {"python": 2 * MS} if rank == 0 else {}, 0, "host"),
}


@pytest.mark.parametrize("overlaps", some([False, True], 1))
@pytest.mark.parametrize("name", some(PLANTED, 2))
def test_the_late_rank_and_its_cause_every_time(name: str, overlaps: bool, tmp_path: Path) -> None:
    extra, late, cause = PLANTED[name]
    job = simulate(WORLD, data_parallel(extra, overlaps=overlaps, seed=len(name)), clocks=clocks(1))
    facts = facts_of(job, tmp_path)
    assert facts.blame is not None
    (one,) = facts.blame.stragglers
    lane = facts.blame.lanes[one.lane]
    assert facts.ranks[lane.partial] == late
    assert facts.cause_of(lane, one.waited_ns).cause == cause
    assert [facts.ranks[facts.blame.lanes[step.lane].partial] for step in facts.blame.steps] == [late] * 8
    check_waits(facts, job)
    check_clocks(facts, job)
    told = [found for found in diagnose(facts).findings if found.rule == "straggler"]
    assert [found.rank for found in told] == [late]
    if cause in ("input", "host"):  # the rank's own finding says the same, and sells the same time
        rules = {"input_bound", "between_steps"}
        assert not rules & {found.rule for found in diagnose(facts).findings if found.rank == late}
        assert cause == "host" or "enumerate(DataLoader)" in told[0].why


def check_waits(facts: JobFacts, job: Cluster) -> None:
    """Every row sums to its duration, and ranks waited what the simulation knows."""
    for partial, parts in zip(facts.partials, facts.parts, strict=True):
        assert np.array_equal(parts.sum(axis=1), partial.rows.dur)
        assert (parts >= 0).all()
    check_booked(facts)
    for group in facts.groups:
        for row, lane in enumerate(group.matched.lanes):
            chosen = np.isin(group.matched.step, facts.used_steps)
            waited = group.wait[row, chosen].sum() / len(facts.used_steps)
            assert waited == pytest.approx(job.waited(lane.partial, facts.used_steps), abs=2_000)


def check_clocks(facts: JobFacts, job: Cluster) -> None:
    """Where the ends coincide, offsets are known to a microsecond, at the beginning and at the end."""
    shift = ZERO_NS["2025"] - base_of(facts.partials)
    reference = job.clocks[facts.ranks[0]]
    for rank, clock in zip(facts.ranks, facts.clocks, strict=True):
        assert clock is not None
        for true in (START_NS, START_NS + 60 * MS):
            shown = np.array([job.clocks[rank].read(true) + shift])
            assert abs(int(clock.to_reference(shown)[0]) - reference.read(true) - shift) <= 1_000
        assert clock.uncertainty_ns <= 100_000


def test_collectives_side_by_side_wait_once(tmp_path: Path) -> None:
    facts = facts_of(simulate(WORLD, side_by_side(late=4, ns=3 * MS), clocks=clocks(2)), tmp_path)
    check_booked(facts)
    assert facts.blame is not None
    (one,) = facts.blame.stragglers
    assert facts.ranks[facts.blame.lanes[one.lane].partial] == 4
    assert one.waited_ns == pytest.approx(3 * MS, rel=0.05)
    assert one.saving_ns == pytest.approx(3 * MS, rel=0.05)
    (both,) = traffic(facts)
    talked = sum(facts.mean_parts.get(category, 0.0) for category in COLLECTIVES)
    assert both.exposed_ns_per_step == pytest.approx(talked, rel=0.001)


@pytest.mark.parametrize("seed", some(range(6), 1))
def test_noise_makes_no_straggler(seed: int, tmp_path: Path) -> None:
    facts = facts_of(simulate(WORLD, data_parallel(noise=0.2, seed=seed), clocks=clocks(seed)), tmp_path)
    assert facts.blame is not None
    assert facts.blame.determined
    assert facts.blame.stragglers == ()
    assert "straggler" not in {found.rule for found in diagnose(facts).findings}


def test_ranks_late_in_turn_are_no_stragglers_but_cost_time(tmp_path: Path) -> None:
    extra = lambda rank, step: {"python": 3 * MS} if rank == step % WORLD else {}  # noqa: E731
    facts = facts_of(simulate(WORLD, data_parallel(extra), clocks=clocks(3)), tmp_path)
    assert facts.blame is not None
    assert facts.blame.stragglers == ()
    assert [facts.ranks[facts.blame.lanes[step.lane].partial] for step in facts.blame.steps] == list(range(8))
    skew = next(found for found in diagnose(facts).findings if found.rule == "rank_skew")
    assert skew.cost_ns_per_step == pytest.approx(3 * MS, rel=0.05)


def test_a_healthy_job_has_no_finding_of_waiting(tmp_path: Path) -> None:
    facts = facts_of(simulate(4, data_parallel(world=4, noise=0.0), clocks=clocks(4, 4)), tmp_path)
    rules = {found.rule for found in diagnose(facts).findings}
    assert not rules & {"straggler", "rank_skew"}
    assert {notice.code for notice in diagnose(facts).notices} == set()


def test_the_chain_of_a_delay_is_followed_across_groups(tmp_path: Path) -> None:
    facts = facts_of(simulate(WORLD, tensor_and_data_parallel(late=5), clocks=clocks(5)), tmp_path)
    assert facts.blame is not None
    (one,) = facts.blame.stragglers
    assert facts.ranks[facts.blame.lanes[one.lane].partial] == 5
    assert one.waited_ns == pytest.approx(2 * MS, rel=0.05)
    assert one.saving_ns == pytest.approx(2 * MS, rel=0.05)
    # Rank 4 waits for 5 in their pair, and so comes late to its own replicas.
    chains = {tuple(facts.ranks[facts.blame.lanes[lane].partial] for lane in step.chain) for step in facts.blame.steps}
    assert (5, 4) in chains
    assert chains <= {(5,), (5, 4)}


def test_pairs_that_nothing_connects_are_each_divided_and_blamed(tmp_path: Path) -> None:
    job = simulate(WORLD, pairs_apart(late=5), clocks=clocks(5))
    facts = facts_of(job, tmp_path)
    check_waits(facts, job)
    assert Category.COLLECTIVE not in facts.mean_parts
    assert facts.clocks[:2] != (None, None)
    assert facts.clocks[2:] == (None,) * 6
    assert facts.blame is not None
    (one,) = facts.blame.stragglers
    lane = facts.blame.lanes[one.lane]
    assert facts.ranks[lane.partial] == 5
    assert one.waited_ns == pytest.approx(2 * MS, rel=0.05)
    assert one.saving_ns == pytest.approx(2 * MS, rel=0.05)
    assert facts.cause_of(lane, one.waited_ns).cause == "host"
    (told,) = [found for found in diagnose(facts).findings if found.rule == "straggler"]
    assert "rank 4 waits" in told.why


def test_one_host_connects_what_no_collective_does(tmp_path: Path) -> None:
    job = simulate(WORLD, pairs_apart(late=5), hosts=lambda rank: f"node{rank // 4}")
    facts = facts_of(job, tmp_path)
    assert [clock is not None for clock in facts.clocks] == [True] * 4 + [False] * 4
    assert "clocks_unknown" in {notice.code for notice in diagnose(facts).notices}


@pytest.mark.parametrize("seed", some(range(2), 1))
def test_one_name_of_many_hosts_is_no_clock(seed: int, tmp_path: Path) -> None:
    apart = {rank: Clock(200_000.0 * (rank - 3)) for rank in range(WORLD)}
    late = lambda rank, step: {"input": 4 * MS} if rank == 3 else {}  # noqa: E731
    job = simulate(WORLD, data_parallel(late, seed=seed), clocks=apart, hosts=lambda rank: "worker")
    facts = facts_of(job, tmp_path)
    check_waits(facts, job)
    check_clocks(facts, job)


def test_bubbles_of_a_pipeline_are_told_and_the_slow_stage_named(tmp_path: Path) -> None:
    job = simulate(4, pipeline_stages(slow=2), clocks=clocks(6, 4))
    facts = facts_of(job, tmp_path)
    assert facts.blame is not None
    assert facts.ranks[facts.blame.lanes[facts.blame.stragglers[0].lane].partial] == 2
    assert facts.cause_of(facts.blame.lanes[facts.blame.stragglers[0].lane], 1.0).cause == "uneven_work"
    for lane in facts.means:
        assert facts.pipeline_wait_ns(lane) == pytest.approx(job.waited(lane.partial, facts.used_steps), abs=2_000)
    waited = np.mean([job.waited(rank, facts.used_steps) for rank in range(4)])
    found = next(one for one in diagnose(facts).findings if one.rule == "pipeline_bubbles")
    assert found.cost_ns_per_step == pytest.approx(waited, abs=2_000)


def test_a_missing_rank_leaves_the_rest_undivided(tmp_path: Path) -> None:
    extra = PLANTED["input"][0]
    job = simulate(WORLD, data_parallel(extra), clocks=clocks(7))
    facts = facts_of(job, tmp_path, [0, 1, 3, 4])
    assert facts.missing == [2, 5, 6, 7]
    assert facts.blame is not None
    assert facts.ranks[facts.blame.lanes[facts.blame.stragglers[0].lane].partial] == 3
    parts = facts.mean_parts
    assert Category.COLLECTIVE_TRANSFER not in parts
    assert parts[Category.COLLECTIVE] > 0
    assert parts[Category.COLLECTIVE_WAIT] == pytest.approx(0.75 * 3.9 * MS, rel=0.1)


def test_two_ranks_that_both_wait_for_a_missing_one_transfer_nothing(tmp_path: Path) -> None:
    job = simulate(WORLD, data_parallel(PLANTED["input"][0]), clocks=clocks(8))
    facts = facts_of(job, tmp_path, [0, 1])
    assert facts.mean_parts.get(Category.COLLECTIVE_TRANSFER, 0) == 0
    assert facts.mean_parts[Category.COLLECTIVE] > 3 * MS


def test_a_single_rank_is_still_analysed(tmp_path: Path) -> None:
    facts = facts_of(simulate(4, data_parallel(world=4)), tmp_path, [2])
    assert facts.ranks == [2]
    assert facts.missing == [0, 1, 3]
    assert facts.mean_step_ns is not None
    assert {notice.code for notice in diagnose(facts).notices} == {"ranks_missing"}
