"""Comparisons of jobs of many ranks."""

from __future__ import annotations

import json
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


def test_a_rank_is_not_held_against_its_job(folders: tuple[str, str, str], capsys: pytest.CaptureFixture[str]):
    whole = folders[0]
    one = sorted(Path(whole).iterdir())[LATE]
    assert cli.main(["compare", str(one), whole, "--fail-if", "step_time > +50%"]) == 4
    out = capsys.readouterr().out
    assert f"the first profile is rank {LATE} alone of {WORLD}" in out.replace("\n  ", " ")
    assert "Time per step" not in out
    assert "Findings" not in out


def test_the_same_rank_of_two_jobs(folders: tuple[str, str, str], capsys: pytest.CaptureFixture[str]):
    assert cli.main(["compare", *folders[:2], "--rank", str(LATE), "--format", "json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["changed"] is True
    assert made["kernels"] is not None
    assert {part["category"] for part in made["parts"] if part["told"]} >= {"input"}
    assert cli.main(["compare", *folders[:2], "--rank", "99"]) == 2


def test_a_rank_alone_against_that_rank_of_a_job(folders: tuple[str, str, str], capsys: pytest.CaptureFixture[str]):
    one = sorted(Path(folders[1]).iterdir())[LATE]
    assert cli.main(["compare", str(one), folders[2], "--rank", str(LATE), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["changed"] is False


def test_ranks_told_by_a_pattern(folders: tuple[str, str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    copies = []
    for name, folder in zip(("one", "two"), folders[:2], strict=True):
        (tmp_path / name).mkdir()
        for rank, path in enumerate(sorted(Path(folder).iterdir())):
            (tmp_path / name / f"part{rank}{''.join(path.suffixes)}").write_bytes(path.read_bytes())
        copies.append(str(tmp_path / name))
    assert cli.main(["compare", *copies, "--rank-pattern", r"part(\d+)", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["changed"] is True


def test_a_scheduler_is_for_jobs(folders: tuple[str, str, str], capsys: pytest.CaptureFixture[str]):
    one = str(sorted(Path(folders[0]).iterdir())[0])
    assert cli.main(["compare", one, one, "--scheduler", "local"]) == 2
    assert "--scheduler reads the ranks of a job" in capsys.readouterr().err


def test_a_rank_that_cannot_be_read_is_said(folders: tuple[str, str, str], tmp_path: Path):
    for path in Path(folders[0]).iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    bad = sorted(tmp_path.iterdir())[1]
    bad.write_bytes(bad.read_bytes()[:3000])
    damaged = stepscope.open(tmp_path, workers=1).side.damaged
    assert damaged is not None
    assert damaged.startswith("is damaged: ")
    assert "1" in damaged
