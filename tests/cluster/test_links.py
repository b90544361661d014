"""A slow link is told by groups that exchange the same data, and is its ranks' own cause; noise is no slow link."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from stepscope.cluster.findings import diagnose
from stepscope.cluster.links import slow_links
from tests.cluster.jobs import WORLD, clocks, facts_of, simulate
from tests.kit.cluster import Op, Program
from tests.kit.events import US
from tests.kit.some import some


def pairs(seed: int, slow: tuple[int, int] | None = None, times: float = 3.0, noise: float = 0.1) -> Program:
    """Pairs gather a layer's activations, four times; all ranks reduce gradients."""

    def program(rank: int, step: int) -> list[Op]:
        pair = (rank // 2 * 2, rank // 2 * 2 + 1)
        drawn, own = random.Random(f"{seed}/{pair}/{step}"), random.Random(f"{seed}/{rank}/{step}")
        ops = []
        for _ in range(4):
            ops.append(Op("compute", round(300 * US * own.uniform(0.97, 1.03)), "gemm"))
            took = 150 * US * drawn.uniform(1 - noise, 1 + noise) * (times if pair == slow else 1.0)
            ops.append(Op("collective", round(took), members=pair, kind="all_gather"))
        return [*ops, Op("collective", 400 * US, members=tuple(range(WORLD)), elements=1 << 22)]

    return program


@pytest.mark.parametrize("seed", some(range(3), 1))
def test_the_slow_pair_is_named_and_is_why_its_ranks_are_late(seed: int, tmp_path: Path) -> None:
    facts = facts_of(simulate(WORLD, pairs(seed, slow=(4, 5)), clocks=clocks(seed)), tmp_path)
    (one,) = slow_links(facts)
    assert (one.ranks, one.siblings) == ((4, 5), 3)
    assert one.times == pytest.approx(3.0, rel=0.15)
    assert one.excess_ns == pytest.approx(4 * 300 * US, rel=0.15)
    assert one.usual_bandwidth == pytest.approx((4 << 20) / 150e-6, rel=0.15)
    found = diagnose(facts).findings
    (link,) = [each for each in found if each.rule == "slow_link"]
    assert link.title == "Ranks 4, 5 exchange data more slowly than the other groups like theirs"
    assert link.saving_ns_per_step == pytest.approx(4 * 300 * US, rel=0.15)
    assert "rank_skew" not in {each.rule for each in found}
    # Either of the two may come last: the step names it, and the link as its own cause.
    assert facts.blame is not None
    late = [(facts.blame.lanes[one.lane], one) for one in facts.blame.steps]
    assert {facts.ranks[lane.partial] for lane, _ in late} <= {4, 5}
    causes = [facts.cause_of(lane, one.waited_ns, [one.number]).cause for lane, one in late]
    assert causes == ["link"] * len(late)


@pytest.mark.parametrize("seed", some(range(4), 1))
def test_noise_makes_no_slow_link(seed: int, tmp_path: Path) -> None:
    facts = facts_of(simulate(WORLD, pairs(seed, noise=0.4), clocks=clocks(seed)), tmp_path)
    assert slow_links(facts) == []


def test_groups_across_hosts_are_not_held_against_those_within_one(tmp_path: Path) -> None:
    # Ranks 3 and 4 stand on two hosts: their pair would be slower on any machine.
    job = simulate(WORLD, pairs(1, slow=(4, 5)), clocks=clocks(1), hosts=lambda rank: f"node{(rank + 3) // 8}")
    facts = facts_of(job, tmp_path)
    assert slow_links(facts) == []


def test_a_group_with_a_missing_rank_is_not_compared(tmp_path: Path) -> None:
    facts = facts_of(simulate(WORLD, pairs(2, slow=(4, 5)), clocks=clocks(2)), tmp_path, [0, 1, 2, 3, 4, 6, 7])
    assert slow_links(facts) == []
