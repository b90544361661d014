"""The critical path over ranks: as long as the steps, along the rank that is late, and small for each rank."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stepscope.analysis.categories import Category
from stepscope.cluster import limits, path_kept
from stepscope.cluster.job import JobFacts, combine
from stepscope.cluster.path import JobPath, job_path
from stepscope.report.ranks import ranks
from tests.cluster.jobs import (
    MS,
    WORLD,
    Extra,
    clocks,
    data_parallel,
    facts_of,
    pairs_apart,
    simulate,
    tensor_and_data_parallel,
)
from tests.kit.events import US
from tests.kit.some import some

LATE: dict[str, tuple[Extra, int, Category, int]] = {
    "input": (lambda rank, step: {"input": 4 * MS} if rank == 3 else {}, 3, Category.INPUT, 4 * MS),
    "python": (lambda rank, step: {"python": 3 * MS} if rank == 2 else {}, 2, Category.PYTHON, 3 * MS),
    "slow_device": (lambda rank, step: {"scale": 1.25} if rank == 5 else {}, 5, Category.COMPUTE, 6500 * US),
}


def path_of(facts: JobFacts) -> JobPath:
    found = job_path(facts)
    assert isinstance(found, JobPath)
    return found


@pytest.mark.parametrize("overlaps", some([False, True], 1))
@pytest.mark.parametrize("name", some(LATE, 1))
def test_it_is_as_long_as_the_steps_and_goes_along_the_late_rank(name: str, overlaps: bool, tmp_path: Path) -> None:
    extra, late, category, ns = LATE[name]
    facts = facts_of(simulate(WORLD, data_parallel(extra, overlaps=overlaps), clocks=clocks(1)), tmp_path)
    path = path_of(facts)
    assert path.steps == facts.used_steps
    # Ranks begin the first step and end the last one some microseconds apart, and clocks are known to one.
    steps = sum(facts.step_ns.values())
    assert abs(path.total_ns - steps) < 0.001 * steps
    assert (path.ns >= 0).all()
    if name != "slow_device" or overlaps:
        assert path.ns[late, category.code] / len(path.steps) == pytest.approx(ns, rel=0.02)
    others = np.delete(path.ns[:, category.code], late) if name != "slow_device" else np.zeros(1)
    assert others.sum() <= 0.02 * path.ns[late, category.code]
    assert path.ns[late].sum() == path.ns.sum(axis=1).max()
    assert not path.ns[:, Category.COLLECTIVE_WAIT.code].any()
    assert path.undivided == 0
    told = ranks(facts)["critical_path"]
    assert told["ns_per_step"] == sum((told["parts_ns_per_step"] or {}).values())
    assert told["ranks"][0]["rank"] == late
    assert sum(one["ns_per_step"] for one in told["ranks"]) == told["ns_per_step"]
    assert told["longer_ns_per_step"] == round((path.total_ns - steps) / len(path.steps))


def test_alike_ranks_on_one_clock_have_a_path_of_exactly_their_steps(tmp_path: Path) -> None:
    facts = facts_of(simulate(WORLD, data_parallel(noise=0.0)), tmp_path)
    assert path_of(facts).total_ns == sum(facts.step_ns.values())


def test_groups_within_groups_lead_to_the_late_rank(tmp_path: Path) -> None:
    facts = facts_of(simulate(WORLD, tensor_and_data_parallel(6), clocks=clocks(2)), tmp_path)
    path = path_of(facts)
    assert path.ns[6, Category.PYTHON.code] / len(path.steps) == pytest.approx(2 * MS, rel=0.02)
    assert path.ns[6].sum() > 0.5 * path.total_ns


def test_it_says_why_it_is_not_known(tmp_path: Path) -> None:
    facts = facts_of(simulate(2, data_parallel(world=2)), tmp_path)
    alone = combine(facts.partials[:1])
    assert job_path(alone) == "one rank was read"
    untold = [
        replace(one, path_kept=replace(one.path_kept, why_not="no device was recorded")) for one in facts.partials
    ]
    assert job_path(combine(untold)) == "no device was recorded"
    apart = [
        replace(one, collectives=one.collectives.where(np.zeros(len(one.collectives), np.bool_)))
        for one in facts.partials
    ]
    assert job_path(combine(apart)) == "of no collective is it known which rank arrived last"
    job = simulate(WORLD, pairs_apart(4), clocks=clocks(2))
    assert "clocks that cannot be compared" in str(job_path(facts_of(job, tmp_path / "pairs")))
    told = ranks(alone)["critical_path"]
    assert (told["why_not"], told["ns_per_step"], told["ranks"]) == ("one rank was read", None, [])


def test_what_is_kept_of_a_rank_is_small_and_whole_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = simulate(2, data_parallel(world=2))
    whole = facts_of(job, tmp_path)
    kept = whole.partials[0].path_kept
    assert kept.start.size <= 3 * len(whole.partials[0].collectives)
    assert len(pickle.dumps(kept)) < 100 * kept.start.size + 2_000
    monkeypatch.setattr(path_kept, "PATH_PIECES_KEPT", kept.start.size // 2)
    half = facts_of(job, tmp_path)
    some_of = half.partials[0].path_kept
    assert 0 < some_of.start.size <= kept.start.size // 2
    steps = set(some_of.step.tolist())
    assert some_of.start.size == np.isin(kept.step, list(steps)).sum()
    assert len(path_of(half).steps) < len(whole.used_steps)
    assert limits.PATH_PIECES_KEPT * 64 < 1 << 18
