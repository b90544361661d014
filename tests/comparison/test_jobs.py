"""Comparisons of jobs of many ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

import stepscope
from stepscope import cli
from stepscope.comparison.compare import Comparison, compare
from tests.cluster.jobs import MS, WORLD, clocks, data_parallel, simulate

LATE = 3


def _written(folder: Path, late_ns: float, *, seed: int = 0, world: int = WORLD) -> str:
    def extra(rank: int, step: int) -> dict[str, float]:
        return {"input": late_ns} if rank == LATE and late_ns else {}

    job = simulate(world, data_parallel(extra, seed=seed, world=world), clocks=clocks(seed, world))
    return str(job.write(folder))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, str]:
    """A rank late for its input by 2 ms, the same job repaired, and that once more."""
    folder = tmp_path_factory.mktemp("jobs")
    return (
        _written(folder / "late", 2 * MS),
        _written(folder / "repaired", 0),
        _written(folder / "again", 0, seed=1),
    )


@pytest.fixture(scope="module")
def repaired(folders: tuple[str, str, str]) -> Comparison:
    before, after = (stepscope.open(path, workers=1) for path in folders[:2])
    return compare(before.side, after.side)


def test_a_job_is_faster_by_what_its_late_rank_held_up(repaired: Comparison):
    assert repaired.changed is True
    assert repaired.step.ns == pytest.approx(-2 * MS, rel=0.1)


def test_the_waiting_for_the_late_rank_is_gone(repaired: Comparison):
    waits = {part.category: part.difference.ns for part in repaired.parts}
    assert waits["collective_wait"] == pytest.approx(-2 * MS * (WORLD - 1) / WORLD, rel=0.15)
    assert sum(waits.values()) == pytest.approx(repaired.step.ns, rel=0.01)


def test_the_straggler_is_gone(repaired: Comparison):
    assert "gone" in {change.state for change in repaired.findings}


def test_two_runs_of_the_same_job_do_not_differ(folders: tuple[str, str, str]):
    one, two = (stepscope.open(path, workers=1) for path in folders[1:])
    assert compare(one.side, two.side).changed is False


def test_folders_on_the_command_line(folders: tuple[str, str, str], capsys: pytest.CaptureFixture[str]):
    assert cli.main(["compare", *folders[:2], "--fail-if", "collective_wait < -1ms"]) == 4
    out = capsys.readouterr().out
    assert "waiting for a late rank" in out
