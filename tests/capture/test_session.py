"""The session API with a profiler that is pretended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import stepscope
from stepscope.capture import frameworks
from stepscope.capture.options import Options
from tests.capture.pretended import Pretended


@pytest.fixture(autouse=True)
def profiler(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the profiler was asked."""
    calls: list[Any] = []
    monkeypatch.setattr(frameworks, "make_backend", lambda options, _: made(options, calls))
    return calls


def made(options: Options, calls: list[Any]) -> Pretended:
    """A profiler."""
    return Pretended(options, {}, calls)


def test_a_callback_that_fails_is_told_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def ready(path: str) -> None:
        raise ValueError("mine")

    schedule = stepscope.schedule(wait=0, warmup=0, active=1, repeat=2)
    with stepscope.profile(str(tmp_path), schedule=schedule, on_trace_ready=ready) as session:
        for _ in range(2):
            stepscope.step()
    said = capsys.readouterr().err.splitlines()
    assert said == [
        f"stepscope: on_trace_ready failed (ValueError: mine); the profile is there: {path}" for path in session.files
    ]
    (manifest,) = (json.loads(path.read_text()) for path in tmp_path.glob("*.stepscope.json"))
    assert [failure["when"] for failure in manifest["failures"]] == ["on_trace_ready"] * 2
    assert (len(session.files), manifest["no_profile"]) == (2, None)


@pytest.mark.parametrize(("steps", "ended"), [(1, "1 step"), (3, "3 steps")])
def test_a_loop_that_ends_before_the_window_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], profiler: list[Any], steps: int, ended: str
) -> None:
    with stepscope.profile(str(tmp_path), schedule=stepscope.schedule(wait=3, warmup=1)):
        for _ in range(steps):
            stepscope.step()
    why = f"only {ended} ended (stepscope.step()), and recording begins after 4"
    assert capsys.readouterr().err == f"stepscope: no profile was written because {why}\n"
    assert not any(call[0] == "export" for call in profiler)


def test_a_session_with_a_profile_says_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with stepscope.profile(str(tmp_path)) as session:
        stepscope.step()
    assert (len(session.files), capsys.readouterr().err) == (1, "")


def test_cycles_that_follow_each_other(tmp_path: Path, profiler: list[Any]) -> None:
    schedule = stepscope.schedule(wait=2, warmup=1, active=3, repeat=2)
    with stepscope.profile(str(tmp_path), schedule=schedule, first=100) as session:
        for _ in range(20):
            stepscope.step()
    cycles = [
        [("prepare", first), ("begin", first + 1), ("mark", first + 2), ("mark", first + 3)] for first in (102, 108)
    ]
    asked = [call[:2] for call in profiler if call[0] in ("prepare", "begin", "mark")]
    assert (asked, len(session.files)) == ([*cycles[0], *cycles[1]], 2)


def test_a_profiler_that_fails_within_the_window_ends_the_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        frameworks, "make_backend", lambda options, _: Pretended(options, {"mark": RuntimeError("no")}, [])
    )
    with stepscope.profile(str(tmp_path)) as session:
        for _ in range(3):
            stepscope.step()
    assert session.declined == "recording failed (RuntimeError: no)"
    assert capsys.readouterr().err == f"stepscope: nothing more is recorded: {session.declined}\n"


def test_a_folder_that_takes_no_file_is_said_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "taken").touch()
    with stepscope.profile(str(tmp_path / "taken")):
        stepscope.step()
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("stepscope: a profile could not be written: ")
