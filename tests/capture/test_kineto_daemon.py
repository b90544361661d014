"""PyTorch's daemon protocol: with a peer that speaks it, and with the real PyTorch."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from stepscope import cli, pipeline
from stepscope.errors import StepscopeError
from stepscope.remote import ipc_fabric, kineto_daemon
from tests.capture.jobs import SCRIPTS, environment
from tests.captures.environments import framework_python

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="PyTorch has no daemon elsewhere")

Started = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def sockets() -> Iterator[str]:
    """A folder for a daemon's socket, whose name must be short: pytest's own folders are too deep."""
    with tempfile.TemporaryDirectory(prefix="kineto") as folder:
        yield folder


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch, sockets: str) -> Iterator[Started]:
    """Starts processes that find our daemon in a folder of their own, and end with the test."""
    monkeypatch.setattr(kineto_daemon, "POLL_S", 0.5)
    monkeypatch.setattr(kineto_daemon, "HEARD_WITHIN_S", 1.5)
    with ExitStack() as stack:

        def started(*words: object, ready: bool = True, **more: str) -> subprocess.Popen[bytes]:
            env = environment(**{"KINETO_IPC_SOCKET_DIR": sockets, **more})
            job = stack.enter_context(subprocess.Popen([*map(str, words)], env=env, stdout=subprocess.PIPE))
            stack.callback(job.kill)
            if ready:
                assert job.stdout is not None
                assert job.stdout.readline() == b"ready\n"
            return job

        yield started


@pytest.fixture
def peer(start: Started) -> Callable[[str], int]:
    """Starts a peer of a kind; its process."""
    return lambda kind: start(sys.executable, SCRIPTS / "kineto_peer.py", kind, KINETO_USE_DAEMON="1").pid


def capture(out: Path, *words: object) -> int:
    return cli.main(["capture", "-o", str(out), "--timeout", "1.5", "--duration", "10ms", *map(str, words)])


def configuration(out: Path) -> dict[str, str]:
    """What the peer was told."""
    (path,) = out.glob("*.pt.trace.json.gz")
    told: dict[str, str] = json.loads(gzip.decompress(path.read_bytes()))["configuration"]
    return told


def left_behind() -> set[Path]:
    return set(Path("/tmp").glob("stepscope-kineto-*"))


@pytest.mark.parametrize("kind", ["profile", "registers", "launches"])
def test_a_profile_arrives(
    peer: Callable[[str], int], tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    before = left_behind()
    assert capture(tmp_path, "--pid", peer(kind)) == 0
    said = capsys.readouterr()
    (profile,) = tmp_path.iterdir()
    assert str(profile) in said.err
    assert profile.name in said.out
    told = configuration(tmp_path)
    assert (told["ACTIVITIES_DURATION_MSECS"], told["PROFILE_WITH_STACK"]) == ("10", "true")
    assert left_behind() == before


def test_processes_begin_together(peer: Callable[[str], int], tmp_path: Path) -> None:
    outcomes = kineto_daemon.capture([peer("profile"), peer("profile")], tmp_path, kineto_daemon.Request(0.01))
    paths = [outcome.profile for outcome in outcomes if outcome.profile]
    told = [json.loads(gzip.decompress(path.read_bytes()))["configuration"] for path in paths]
    assert len({one["PROFILE_START_TIME"] for one in told}) == 1
    assert len(told) == 2


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("empty", "its profile says nothing: "),
        ("damaged", "its profile says nothing: "),
        ("dies", "no profile: it ended before its profile was written"),
        ("busy", "no profile: a profiler is at work in it already"),
    ],
)
def test_what_is_no_profile_is_said_in_one_sentence(
    peer: Callable[[str], int], tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, sentence: str
) -> None:
    pid, before = peer(kind), left_behind()
    assert capture(tmp_path, "--pid", pid) == 1
    assert left_behind() == before
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"stepscope: process {pid}: {sentence}")


@pytest.mark.parametrize(
    ("set_", "loaded", "sentence"),
    [
        ("", True, "was started without KINETO_USE_DAEMON=1"),
        ("", False, "PyTorch is not loaded in it"),
        ("1", False, "asked within"),
    ],
)
def test_a_process_that_does_not_ask(
    start: Started,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    set_: str,
    loaded: bool,
    sentence: str,
) -> None:
    monkeypatch.setattr(kineto_daemon, "has_loaded", lambda pid, library: loaded)
    job = start(sys.executable, "-c", "import time; time.sleep(60)", ready=False, KINETO_USE_DAEMON=set_)
    assert capture(tmp_path, "--pid", job.pid) == 1
    assert sentence in capsys.readouterr().err


def test_another_daemon_is_left_alone(
    start: Started, sockets: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = start(sys.executable, "-c", "print('ready', flush=True); import time; time.sleep(60)")
    with ipc_fabric.Fabric(sockets):
        assert capture(tmp_path, "--pid", job.pid) == 1
        assert Path(sockets, "dynolog").is_socket()
    assert "dynolog or another capture may be running on this machine" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (["--pid", "2147483647"], 1, "process 2147483647 does not run on this machine"),
        (["--pid", "1,two"], 2, "--pid 1,two: give numbers of processes"),
        (["--pid", "1", "--steps", "5"], 2, "--duration and --steps say the same in two ways"),
    ],
)
def test_what_cannot_be_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], status: int, sentence: str
) -> None:
    assert capture(tmp_path, *words) == status
    assert sentence in capsys.readouterr().err


def test_other_users_processes_are_refused(
    peer: Callable[[str], int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = peer("profile")
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(f"/proc/{pid}").st_uid + 1)
    with pytest.raises(StepscopeError, match="belongs to another user"):
        kineto_daemon.capture([pid], tmp_path, kineto_daemon.Request())


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--duration", "300ms"], ["--steps", "5"]])
def test_the_real_pytorch_is_recorded(
    start: Started, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.undo()  # It asks every five seconds.
    abstract = {"KINETO_IPC_SOCKET_DIR": ""} if "--steps" in words else {}
    job = start(framework_python("torch"), SCRIPTS / "torch_endless.py", KINETO_USE_DAEMON="1", **abstract)
    assert cli.main(["capture", "-o", str(tmp_path), "--pid", str(job.pid), *words]) == 0
    (profile,) = tmp_path.iterdir()
    opened = pipeline.open_profile(profile)
    assert opened.steps.height >= 5
    assert opened.trace.info.framework == "PyTorch"
    assert job.poll() is None
