"""The folders of runs: numbered, shared by the launchers of one job, and found again."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from stepscope.capture.manifest import ENDING, SCHEMA
from stepscope.cli import main, run_folders
from stepscope.cli.run_folders import DEFAULT_OUT, TOGETHER_S, discard_empty, last_runs, new_run, runs
from stepscope.errors import UsageError
from stepscope.formats.find import find
from tests.support import planted_file


def recorded(folder: Path, name: str = "a") -> Path:
    """A run folder with a profile and its manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    profile = folder / f"{name}.pt.trace.json"
    profile.write_bytes(planted_file("input_bound"))
    files = [{"path": profile.name}]
    (folder / f"{name}{ENDING}").write_text(json.dumps({"schema": SCHEMA, "files": files, "steps_seen": 9}))
    return profile


def test_runs_are_numbered(tmp_path: Path) -> None:
    made = [new_run(tmp_path, {}) for _ in range(11)]
    assert made == runs(tmp_path) == [tmp_path / f"run-{number}" for number in range(1, 12)]
    discard_empty(made[-1])
    recorded(made[0])
    discard_empty(made[0])
    assert new_run(tmp_path, {}) == made[-1]
    assert made[0].exists()


def test_launchers_of_one_slurm_step_share_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "MASTER_ADDR": "n1"}
    found = []
    for node in ("n1", "n2", "n3"):
        monkeypatch.setattr(run_folders, "host", lambda node=node: node)
        found.append(new_run(tmp_path, step))
    assert set(found) == {tmp_path / "run-1"}
    assert new_run(tmp_path, {**step, "SLURM_STEP_ID": "1"}) == tmp_path / "run-2"


@pytest.mark.parametrize("job", [{"MASTER_ADDR": "n1", "MASTER_PORT": "29500"}, {"TORCHELASTIC_RUN_ID": "mine"}])
def test_the_same_address_is_another_run_once_a_launcher_comes_again(tmp_path: Path, job: dict[str, str]) -> None:
    first = [new_run(tmp_path, {**job, "NODE_RANK": rank}) for rank in "01"]
    again = [new_run(tmp_path, {**job, "NODE_RANK": rank}) for rank in "10"]
    assert (first, again) == ([tmp_path / "run-1"] * 2, [tmp_path / "run-2"] * 2)


def test_a_launcher_that_comes_late_to_an_address_is_another_run(tmp_path: Path) -> None:
    job = {"MASTER_ADDR": "n1"}
    new_run(tmp_path, {**job, "NODE_RANK": "0"})
    (note,) = tmp_path.glob(".jobs/n1.1")
    os.utime(note, (0, note.stat().st_mtime - TOGETHER_S - 1))
    assert new_run(tmp_path, {**job, "NODE_RANK": "1"}) == tmp_path / "run-2"


def _plant(note: Path, text: str) -> None:
    note.unlink()
    note.write_text(text)


@pytest.mark.parametrize(
    "text", ["..", "../elsewhere", "/etc", ".", "", "run-1/../..", "run-x", "run-1\n", "a\0b", "\xe9"]
)
def test_a_note_names_a_run_or_nothing(tmp_path: Path, text: str) -> None:
    job, out = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0"}, tmp_path / "out"
    new_run(out, {**job, "NODE_RANK": "0"})
    (note,) = out.glob(".jobs/7-0.1")
    _plant(note, text)
    assert new_run(out, {**job, "NODE_RANK": "1"}) == out / "run-2"
    assert sorted(os.listdir(tmp_path)) == ["out"]


@pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "folder"])
def test_a_note_is_a_plain_file(tmp_path: Path, kind: str) -> None:
    job, out = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0"}, tmp_path / "out"
    new_run(out, {**job, "NODE_RANK": "0"})
    (note,) = out.glob(".jobs/7-0.1")
    note.unlink()
    (tmp_path / "text").write_text("run-1")
    match kind:
        case "link":
            note.symlink_to(tmp_path / "text")
        case "dangling":
            note.symlink_to(tmp_path / "none")
        case "pipe":
            os.mkfifo(note)
        case _:
            note.mkdir()
    assert new_run(out, {**job, "NODE_RANK": "1"}) == out / "run-2"


def test_a_run_that_a_note_names_is_a_folder_of_the_same_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, out = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0"}, tmp_path / "out"
    new_run(out, {**job, "NODE_RANK": "0"}).rmdir()
    (tmp_path / "elsewhere").mkdir()
    (out / "run-1").symlink_to(tmp_path / "elsewhere")
    assert new_run(out, {**job, "NODE_RANK": "1"}) == out / "run-2"
    told = os.fstat

    def of_another(descriptor: int) -> os.stat_result:
        found = told(descriptor)
        return os.stat_result((*found[:4], found.st_uid + 1, *found[5:10]))

    monkeypatch.setattr(run_folders.os, "fstat", of_another)
    monkeypatch.setattr(run_folders, "_ATTEMPTS", 10)
    assert new_run(out, {**job, "NODE_RANK": "2"}) not in (out / "run-1", out / "run-2")


def test_the_last_runs_with_profiles_are_found(tmp_path: Path) -> None:
    for number in (1, 2, 9, 10):
        recorded(tmp_path / f"run-{number}")
    new_run(tmp_path, {})
    assert last_runs(1, tmp_path) == [str(tmp_path / "run-10")]
    assert last_runs(2, tmp_path) == [str(tmp_path / "run-9"), str(tmp_path / "run-10")]
    with pytest.raises(UsageError, match=r"holds no two runs with a profile \(0 found\): stepscope run"):
        last_runs(2, tmp_path / "none")


def test_a_run_that_left_only_its_own_profilers_trace_is_that_trace(tmp_path: Path) -> None:
    profile = recorded(tmp_path / "run-1")
    own = profile.rename(tmp_path / "own.json")
    told = {"schema": SCHEMA, "files": [], "own_traces": [str(own)]}
    (tmp_path / "run-1" / f"a{ENDING}").write_text(json.dumps(told))
    assert last_runs(1, tmp_path) == [str(own)]


def test_of_a_folder_of_runs_the_newest_is_read(tmp_path: Path) -> None:
    for number in (9, 10):
        os.utime(recorded(tmp_path / f"run-{number}"), (1_000, 1_000))
    found = find(str(tmp_path))
    assert [source.path for source in found.sources] == [tmp_path / "run-10" / "a.pt.trace.json"]
    assert "the newest of 2 runs" in found.notes[0]
    for one in tmp_path.glob(f"*/*{ENDING}"):
        one.unlink()
    assert len(find(str(tmp_path)).sources) == 2  # Folders that are somebody else's.


def test_commands_take_the_last_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["diagnose"]) == 2
    assert capsys.readouterr().err.startswith(f"stepscope: {DEFAULT_OUT} holds no run with a profile")
    for name in ("first", "second"):
        recorded(new_run(tmp_path / DEFAULT_OUT, {}), name)
    assert main(["diagnose"]) == 0
    assert "second.pt.trace.json" in capsys.readouterr().out
    assert main(["compare"]) == 0
    said = capsys.readouterr().out
    assert "run-1" in said
    assert "run-2" in said
    assert main(["compare", "one"]) == 2
