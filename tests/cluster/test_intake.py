"""What is kept of partial results once they are here."""

from __future__ import annotations

import pickle
import random
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest

from stepscope import pipeline
from stepscope.cluster.intake import Intake
from stepscope.cluster.job import combine
from stepscope.cluster.partial import Partial
from stepscope.cluster.ranks import Ranks
from stepscope.inputs.source import Source
from stepscope.jobs import Job
from tests.cluster.jobs import MS, data_parallel, simulate
from tests.kit.some import some

WORLD = 12


@pytest.fixture(scope="module")
def partials(tmp_path_factory: pytest.TempPathFactory) -> list[Partial]:
    extra = lambda rank, step: {"input": 4 * MS} if rank == 1 else {}  # noqa: E731
    job = simulate(WORLD, data_parallel(extra, world=WORLD), steps=6)
    folder = tmp_path_factory.mktemp("job")
    found = []
    for rank in range(WORLD):
        (folder / f"rank{rank}.json").write_bytes(job.bytes_of(rank))
        one = pipeline.reduce_rank(Source(folder / f"rank{rank}.json"))
        assert isinstance(one, Partial)
        found.append(one)
    return found


def taken(partials: list[Partial], order: list[int]) -> list[Partial]:
    intake = Intake()
    return [intake.take(pickle.loads(pickle.dumps(partials[rank], 5)), rank) for rank in order]


def document(partials: list[Partial]) -> dict[str, Any]:
    return Job(Ranks({}), combine(partials)).document()


@pytest.mark.parametrize("seed", some(range(3), 1))
def test_the_report_is_that_of_whole_results_in_whatever_order_they_come(partials: list[Partial], seed: int) -> None:
    order = list(range(WORLD))
    random.Random(seed).shuffle(order)
    assert document(taken(partials, order)) == document(partials)


def test_of_what_several_ranks_say_one_is_told(partials: list[Partial]) -> None:
    found = taken(partials, list(range(WORLD)))
    words = [finding.why for partial in found for finding in (*partial.findings, *partial.minor)]
    assert len(words) > WORLD
    assert sum(map(bool, words)) <= len(words) // 2
    assert sum(bool(notice.text) for partial in found for notice in partial.notices) <= len(partials[0].notices) + 1


def test_no_array_holds_another(partials: list[Partial]) -> None:
    def arrays(value: Any) -> list[np.ndarray[Any, Any]]:
        if isinstance(value, np.ndarray):
            return [value]
        return [one for f in fields(value) for one in arrays(getattr(value, f.name))] if is_dataclass(value) else []

    for partial in (*taken(partials, [3]), *(Intake().take(partials[4], 4),)):
        assert len(arrays(partial)) > 20
        assert all(array.base is None for array in arrays(partial))


def test_ranks_in_a_row_are_named_shortly(partials: list[Partial]) -> None:
    assert {group.ranks for partial in partials for group in partial.collectives.groups} == {range(WORLD)}
