"""The diagnosis of a run while its job goes on."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from stepscope.capture.manifest import ENDING, SCHEMA
from stepscope.capture.results import recordings
from stepscope.cli import early
from stepscope.cli.early import Early
from stepscope.cli.recorded import tell
from tests.capture.jobs import SCRIPTS, environment, run
from tests.captures.environments import framework_python
from tests.support import planted_file

WAIT_S = 60


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early, "EVERY_S", 0.01)


def write(folder: Path, name: str, phase: str, profile: bytes | None) -> None:
    """A process's manifest, and its profile."""
    files = []
    if profile is not None:
        (folder / f"{name}.pt.trace.json").write_bytes(profile)
        files = [{"path": f"{name}.pt.trace.json", "bytes": len(profile)}]
    facts: dict[str, Any] = {"pid": 7, "started_ns": 10, "steps_seen": 20, "phase": phase, "files": files}
    (folder / f"{name}{ENDING}").write_text(json.dumps({"schema": SCHEMA, "failures": [], **facts}))


def told(until: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Standard error once it holds some words."""
    text, end = "", time.monotonic() + WAIT_S
    while until not in text and time.monotonic() < end:
        time.sleep(0.01)
        text += capsys.readouterr().err
    return text


def test_what_is_recorded_is_told_at_once_and_not_worked_out_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Early(tmp_path, 0, stop=False)
    one.start()
    write(tmp_path, "a", "exporting", None)
    write(tmp_path, "a", "done", planted_file("input_bound"))
    text = told("in a browser", capsys)
    assert "stepscope: recorded, and the command goes on. For 61." in text
    assert "waits for input data" in text
    report, page = tmp_path / "a.pt.trace.json.txt", tmp_path / "a.pt.trace.json.html"
    assert str(report) in text
    assert str(page) in text
    assert "1. The device waits for input data" in report.read_text()
    known = one.finish()
    assert known is not None
    assert not one.stopped
    monkeypatch.setattr("stepscope.cli.recorded.diagnosed", lambda _: pytest.fail("it is known"))
    tell(recordings(tmp_path, 0), known)
    assert "1. The device waits for input data" in capsys.readouterr().err


def test_nothing_is_told_before_all_that_records_is_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = planted_file("input_bound")
    one = Early(tmp_path, 0, stop=False)
    one.start()
    write(tmp_path, "a", "done", profile)
    write(tmp_path, "b", "recording", None)
    assert told_nothing(capsys)
    write(tmp_path, "b", "done", profile)
    assert "recorded, and" in told("recorded, and", capsys)
    one.finish()


def told_nothing(capsys: pytest.CaptureFixture[str]) -> bool:
    """Whether nothing is said for as long as looking some times takes."""
    time.sleep(0.3)
    return capsys.readouterr().err == ""


def test_a_profile_that_cannot_be_read_is_left_for_the_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = Early(tmp_path, 0, stop=False)
    one.start()
    write(tmp_path, "a", "done", b"no profile")
    assert told_nothing(capsys)
    assert one.finish() is None


@pytest.mark.parametrize("profile", [None, b"no profile"])
def test_stop_ends_the_job_once_it_is_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, profile: bytes | None
) -> None:
    """Also where the diagnosis fails: the profile is there."""
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    one = Early(tmp_path, 0, stop=True)
    write(tmp_path, "a", "done", profile or planted_file("input_bound"))
    one.start()
    end = time.monotonic() + WAIT_S
    while not sent and time.monotonic() < end:
        time.sleep(0.01)
    one.finish()
    assert sent == [(os.getpid(), signal.SIGTERM)]
    assert one.stopped
    assert ("the command is ended now" in capsys.readouterr().err) is (profile is None)


@pytest.mark.slow
def test_a_real_job_is_stopped(tmp_path: Path) -> None:
    began = time.monotonic()
    words = ("--stop", "--no-stacks", "--python", framework_python("torch"))
    ran = run(tmp_path, *words, SCRIPTS / "torch_endless.py")
    assert ran.status == 0, ran.stderr
    assert time.monotonic() - began < 300
    assert "recorded, and the command is ended now." in ran.stderr
    assert "for a browser: " in ran.stderr
    assert ran.manifest["phase"] == "done"


def test_stop_and_watch_exclude_each_other(tmp_path: Path) -> None:
    ran = run(tmp_path, "--stop", "--watch", "train.py", env=environment())
    assert ran.status == 2
    assert "not with --watch" in ran.stderr
