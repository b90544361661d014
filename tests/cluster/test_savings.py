"""What a fix is said to gain is no more than what those who wait do wait, and not told where that is not known."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stepscope.analysis.categories import Category
from stepscope.analysis.exchange.collectives import KINDS
from stepscope.cluster.findings import diagnose
from stepscope.cluster.job import JobFacts, combine
from stepscope.cluster.rules import DECLARED
from stepscope.diagnosis.finding import Finding
from stepscope.names.collectives import Collective
from tests.cluster.jobs import MS, WORLD, clocks, data_parallel, facts_of, pairs_apart, side_by_side, simulate
from tests.kit.cluster import Op, Program
from tests.kit.events import US
from tests.kit.some import some


def told(facts: JobFacts, rule: str) -> Finding:
    return next(found for found in diagnose(facts).findings if found.rule == rule)


def in_turn(rank: int, step: int) -> list[Op]:
    """Rank 0 is late to one collective of each step, rank 1 to the other."""
    ops = []
    for late in range(2):
        drawn = random.Random(f"{rank}/{step}/{late}")
        ops.append(Op("compute", round((2 * MS if rank == late else MS) * drawn.uniform(0.97, 1.03)), "gemm"))
        ops.append(Op("collective", 100 * US, members=(0, 1)))
    return ops


def test_a_step_without_skew_gains_what_one_rank_waits(tmp_path: Path) -> None:
    facts = facts_of(simulate(2, in_turn, clocks=clocks(1, 2)), tmp_path)
    finding = told(facts, "rank_skew")
    assert finding.cost_ns_per_step == pytest.approx(MS, rel=0.1)
    assert finding.saving_ns_per_step == finding.cost_ns_per_step


@pytest.mark.parametrize(
    "program",
    some(
        [
            side_by_side(late=4, ns=3 * MS),
            side_by_side(late=-1, ns=0, noise=0.3),
            data_parallel(lambda rank, step: {"input": 4 * MS} if rank in (3, 5) else {}),
            data_parallel(noise=0.3, overlaps=True),
            pairs_apart(late=5),
        ],
        2,
    ),
)
def test_no_saving_is_more_than_the_longest_waiting_booked(program: Program, tmp_path: Path) -> None:
    facts = facts_of(simulate(WORLD, program, clocks=clocks(3)), tmp_path)
    most = max(mean[Category.COLLECTIVE_WAIT.code] for mean in facts.means.values())
    for found in diagnose(facts).findings:
        if found.rule in ("straggler", "rank_skew"):
            assert found.saving_ns_per_step is not None
            assert found.saving_ns_per_step <= found.cost_ns_per_step <= most + 1  # type: ignore[operator]


def test_where_the_others_waiting_is_undivided_the_saving_is_not_determined(tmp_path: Path) -> None:
    """Of one pair it is known who waits; the ranks that wait for input are in others."""
    late = (2, 4)

    def program(rank: int, step: int) -> list[Op]:
        return [Op("input", 4 * MS if rank in late else 100 * US), *pairs_apart(late=-1)(rank, step)]

    facts = facts_of(simulate(WORLD, program, clocks=clocks(4)), tmp_path)
    # The two wait 3.9 ms of it, which is more than a step of all ranks takes on average.
    assert told(facts, "input_bound").saving_ns_per_step == facts.told_step_ns
    partials = list(facts.partials)
    for rank in range(2, WORLD):  # a broadcast waits for one alone: who waited cannot be told
        table = partials[rank].collectives
        kind = np.full_like(table.kind, KINDS.index(Collective.BROADCAST))
        partials[rank] = replace(partials[rank], collectives=replace(table, kind=kind))
    facts = combine(partials)
    assert facts.blame is not None
    finding = told(facts, "input_bound")
    assert finding.cost_ns_per_step == pytest.approx(4 * MS, rel=0.1)
    assert (finding.saving_ns_per_step, finding.predicted_step_ns, finding.prediction_basis) == (None, None, None)
    assert finding.not_determined is not None


def test_a_rank_that_tells_little_waters_nothing_down(tmp_path: Path) -> None:
    """One profile ends early: what the others waited is what it was."""
    job = simulate(4, data_parallel(lambda rank, step: {"input": 4 * MS} if rank == 2 else {}, world=4))
    whole = facts_of(job, tmp_path)
    partials = list(whole.partials)
    table = partials[1].collectives
    partials[1] = replace(partials[1], collectives=table.where(table.step < 2))
    cut = combine(partials)
    assert whole.blame is not None
    assert cut.blame is not None
    assert cut.blame.stragglers[0].waited_ns == pytest.approx(whole.blame.stragglers[0].waited_ns, rel=0.02)
    assert cut.blame.stragglers[0].saving_ns == pytest.approx(whole.blame.stragglers[0].saving_ns, rel=0.02)


def test_short_of_a_straggler_the_rank_that_leads_is_named(tmp_path: Path) -> None:
    late = [0.1, 3.0, 1.0, 2.5, 0.3, 2.8, 0.6, 0.1]
    extra = lambda rank, step: {"python": late[step] * MS} if rank == 1 else {}  # noqa: E731
    facts = facts_of(simulate(2, data_parallel(extra, world=2), clocks=clocks(6, 2)), tmp_path)
    assert facts.blame is not None
    assert facts.blame.stragglers == ()
    assert facts.blame.suspect is not None
    assert 0.005 <= facts.blame.p_values[facts.blame.suspect] < 0.05
    finding = told(facts, "rank_skew")
    assert "rank 1" in finding.title
    assert "Record more steps" in finding.why


def test_what_was_sampled_is_said_to_be_the_reason(tmp_path: Path) -> None:
    facts = facts_of(simulate(4, data_parallel(world=4), clocks=clocks(7, 4)), tmp_path)
    sampled = combine([replace(partial, sampled=True) for partial in facts.partials])
    codes = {notice.code for notice in diagnose(sampled).notices}
    assert "collectives_sampled" in codes
    assert "clocks_uncertain" not in codes


def test_what_saves_nothing_that_is_known_on_any_rank_has_no_saving_in_the_job(tmp_path: Path) -> None:
    facts = facts_of(simulate(2, in_turn, clocks=clocks(1, 2)), tmp_path)
    assert told(facts, "exposed_collective").saving_ns_per_step is not None

    def untold(finding: Finding) -> Finding:
        return replace(finding, saving_ns_per_step=None, predicted_step_ns=None, not_determined="why")

    partials = [
        replace(one, findings=tuple(map(untold, one.findings)), minor=tuple(map(untold, one.minor)))
        for one in facts.partials
    ]
    job = diagnose(combine(partials))
    finding = next(one for one in job.findings if one.rule == "exposed_collective")
    assert (finding.saving_ns_per_step, finding.predicted_step_ns, finding.not_determined) == (None, None, "why")
    assert finding.id not in job.plan


def test_what_one_rank_leaves_open_is_told_from_all_in_the_same_place(tmp_path: Path) -> None:
    """Where its time passes is told behind it, and stays."""
    facts = facts_of(simulate(2, in_turn, clocks=clocks(1, 2)), tmp_path)
    behind = " Their time by place: here 100 %."
    ranks = [replace(one, findings=tuple(each.saying(behind) for each in one.findings)) for one in facts.partials]
    own = next(each for each in ranks[0].findings if each.rule == "exposed_collective")
    why = told(combine(ranks), "exposed_collective").why
    assert own.around is not None
    before, after = own.around
    alone = own.why.removeprefix(before).removesuffix(after)
    assert alone.strip()
    assert alone.strip() not in why
    assert re.search(r"On average over ranks .* transfer\. Their time by place: here", why)


def test_the_plan_of_a_job_is_in_the_order_of_work(tmp_path: Path) -> None:
    """A late rank first, then what ranks have each for themselves, then their waiting in turn, whatever each saves."""
    late = diagnose(facts_of(simulate(WORLD, side_by_side(late=4, ns=3 * MS), clocks=clocks(3)), tmp_path / "late"))
    assert late.plan[0].startswith("straggler")
    even = simulate(WORLD, data_parallel(lambda rank, step: {"input": 4 * MS} if rank in (3, 5) else {}))
    plan = [id_.partition(".")[0] for id_ in diagnose(facts_of(even, tmp_path / "even")).plan]
    assert plan == sorted(plan, key=list(DECLARED).index)
    assert plan.index("loop_sync") < plan.index("rank_skew")
