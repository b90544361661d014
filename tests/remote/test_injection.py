"""Processes that were not prepared for it, recorded by way of gdb."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import polars as pl
import pytest

import stepscope
from stepscope import cli
from stepscope.remote import injection
from stepscope.remote.processes import checked
from tests.capture.jobs import environment
from tests.captures.environments import framework_python

SCRIPT = Path(__file__).parent / "scripts" / "torch_at_work.py"
TIMEOUT_S = 120


def _why_not() -> str:
    """Why gdb cannot call a function of another process here; nothing where it can."""
    if shutil.which("gdb") is None or os.name != "posix":
        return "gdb is not installed"
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        asked = ["gdb", "-p", str(other.pid), "-batch", "-nx", "-ex", "call (int)getpid()"]
        said = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
        other.kill()
    return "" if f"= {other.pid}" in said.stdout else f"gdb: {(said.stderr.strip().splitlines() or ['?'])[-1]}"


@pytest.fixture(scope="session")
def gdb() -> None:
    """A gdb that can call functions of other processes: not every kernel and processor lets this version."""
    if why := _why_not():
        pytest.skip(why)


with_gdb = pytest.mark.usefixtures("gdb")

Started = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Started]:
    """Starts a job that works for so many seconds."""
    with ExitStack() as stack:

        def started(kind: str, seconds: float, python: object = None) -> subprocess.Popen[str]:
            words = [str(python or framework_python("torch")), str(SCRIPT), kind, str(seconds)]
            job = stack.enter_context(
                subprocess.Popen(words, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            )
            stack.callback(job.kill)
            assert job.stdout is not None
            assert job.stdout.readline() == "ready\n"
            return job

        yield started


def capture(out: Path, pid: int, *words: str) -> int:
    return cli.main(["capture", "--pid", str(pid), "--inject", "-o", str(out), *words])


@with_gdb
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["train", "infer", "other"])
def test_a_job_that_knows_nothing_of_it_is_recorded(tmp_path: Path, start: Started, kind: str) -> None:
    job = start(kind, 30)
    assert capture(tmp_path, job.pid, "--duration", "500ms") == 0
    (path,) = tmp_path.glob("*.pt.trace.json.gz")
    names = stepscope.open(path).trace.table("slices")["name"].cast(pl.String)
    assert (names == ("aten::mm" if kind == "other" else "aten::addmm")).sum() > 10
    assert (names.str.starts_with("ProfilerStep#").sum() > 2) == (kind != "other")
    out, errors = job.communicate(timeout=TIMEOUT_S)
    assert (job.returncode, out) == (0, "end\n")
    assert "stepscope" not in errors
    assert "Traceback" not in errors


@with_gdb
@pytest.mark.slow
def test_a_job_that_ends_meanwhile_ends_well(tmp_path: Path, start: Started, capfd: pytest.CaptureFixture[str]) -> None:
    job = start("train", 12)
    time.sleep(2)
    capture(tmp_path, job.pid, "--duration", "30s")
    out, _ = job.communicate(timeout=TIMEOUT_S)
    assert (job.returncode, out) == (0, "end\n")


def test_processes_that_cannot_be_recorded_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: "gdb")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        assert capture(tmp_path, other.pid) == 1
        assert f"process {other.pid}: no profile: PyTorch is not loaded in it" in capsys.readouterr().err
    assert capture(tmp_path, other.pid) == 1
    assert f"process {other.pid} does not run on this machine" in capsys.readouterr().err
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert capture(tmp_path, os.getppid()) == 1
    assert "belongs to another user" in capsys.readouterr().err
    monkeypatch.undo()
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert capture(tmp_path, os.getpid()) == 1
    assert "--inject needs gdb, which is not installed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("stdout", "stderr", "why"),
    [
        ("stepscope asked 0\n", "warning: x", None),
        ("", "ptrace: Operation not permitted.", "the kernel does not let gdb trace it"),
        ("", 'No symbol "Py_AddPendingCall" in current context.', "gdb could not ask its interpreter: No symbol"),
    ],
)
def test_what_gdb_says_is_understood(
    monkeypatch: pytest.MonkeyPatch, stdout: str, stderr: str, why: str | None
) -> None:
    ran = subprocess.CompletedProcess(["gdb"], 0, stdout, stderr)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: ran)
    said = injection._by_gdb(checked(os.getppid()), Path("gdb"))
    assert said == why if why is None else str(said).startswith(why)
