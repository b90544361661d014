"""Processes named by number: what none may be asked of, and numbers that are another's by the time of asking."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from stepscope import cli
from stepscope.errors import StepscopeError
from stepscope.remote import injection, kineto_daemon, processes
from stepscope.remote.ipc_fabric import Datagram
from stepscope.remote.processes import checked

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are asked on Linux only")

NOBODY = 65534


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as job:
        yield job


def until(holds: Callable[[], bool]) -> None:
    for _ in range(500):
        if holds():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come to be")


def state(pid: int) -> bytes:
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]


def test_a_process_is_the_same_until_it_ends(child: subprocess.Popen[bytes]):
    found = checked(child.pid)
    assert found == checked(child.pid)
    assert found.owner == os.geteuid()
    assert found.runs
    child.kill()
    until(lambda: state(child.pid) == b"Z")
    assert not found.runs


def test_one_that_nobody_waited_for_has_ended(child: subprocess.Popen[bytes]):
    child.kill()
    until(lambda: state(child.pid) == b"Z")
    with pytest.raises(StepscopeError, match=f"process {child.pid} has ended already"):
        checked(child.pid)


def test_a_thread_is_no_process():
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        with pytest.raises(StepscopeError, match=f"is a thread of process {os.getpid()}: name that"):
            checked(thread.native_id or 0)
    finally:
        over.set()
        thread.join()


def test_stepscope_does_not_record_itself():
    with pytest.raises(StepscopeError, match="is stepscope itself"):
        checked(os.getpid())


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user, whom only root can be")
def test_another_users_process_is_refused_by_who_is_not_root(child: subprocess.Popen[bytes]):
    code = (
        "import os, sys; from stepscope.remote.processes import checked; from stepscope.errors import StepscopeError\n"
        f"os.setuid({NOBODY})\n"
        "try: checked(int(sys.argv[1]))\n"
        "except StepscopeError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(child.pid)], capture_output=True, text=True, check=True)
    assert done.stdout == f"process {child.pid} belongs to another user (0): run stepscope as that user\n"


@pytest.mark.parametrize("word", ["0", "-5", "2147483648", "9" * 5000, "١", "4711,", ""])
def test_what_is_no_number_of_a_process_is_wrong_usage(word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["capture", "-o", str(tmp_path), "--pid", word]) == 2
    assert "give numbers of processes" in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


@pytest.fixture
def reused(child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> processes.Process:
    """A process whose number is another's as soon as it was checked."""
    before = checked(child.pid)
    read = processes._fields

    def later(pid: int) -> list[bytes] | None:
        fields = read(pid)
        if pid == child.pid and fields is not None:
            fields[processes._BEGAN] = str(before.began + 1).encode()
        return fields

    monkeypatch.setattr(processes, "_fields", later)
    return before


def test_gdb_is_not_sent_to_a_process_that_has_got_the_number(
    reused: processes.Process, monkeypatch: pytest.MonkeyPatch
):
    def never(*_: object, **__: object) -> None:
        raise AssertionError("gdb was started")

    monkeypatch.setattr(subprocess, "run", never)
    assert injection._by_gdb(reused, Path("gdb")) == "it ended before it was asked"


def test_a_process_that_has_got_the_number_is_told_nothing(reused: processes.Process):
    asked = kineto_daemon._Capture({reused.pid: reused}, kineto_daemon.Request(), 0)
    message = Datagram(b"req", struct.pack("=iiqi", 3, 1, 77, reused.pid), reused.pid, reused.owner, b"")
    assert kineto_daemon._configuration(message, asked) == ""
    assert not asked.jobs
    assert kineto_daemon._silent(reused.pid, asked) == "it ended before it was asked"


def test_the_one_that_was_named_is_told(child: subprocess.Popen[bytes]):
    found = checked(child.pid)
    asked = kineto_daemon._Capture({found.pid: found}, kineto_daemon.Request(), 0)
    message = Datagram(b"req", struct.pack("=iiqi", 3, 1, 77, found.pid), found.pid, found.owner, b"")
    try:
        assert "ACTIVITIES_LOG_FILE" in kineto_daemon._configuration(message, asked)
        job = asked.jobs[found.pid]
        job.process = replace(found, began=found.began - 1)
        ended = kineto_daemon._ended(job, Path())
        assert ended is not None
        assert ended.reason == "it ended before its profile was written"
    finally:
        kineto_daemon._clean_up(asked)


def test_a_process_without_pytorch_is_not_told_to_be_started_again(child: subprocess.Popen[bytes]):
    asked = kineto_daemon._Capture({child.pid: checked(child.pid)}, kineto_daemon.Request(), 0)
    assert kineto_daemon._silent(child.pid, asked).startswith("PyTorch is not loaded in it")
