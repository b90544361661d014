"""An interrupt from the terminal while the ranks of a job are read."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit import example_ranks

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to see whose children are left"),
]
RANKS = 150


def session(leader: int) -> list[int]:
    """The processes of a session that are alive."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _parent, _group, of = path.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(of) == leader and state != "Z":
            found.append(int(path.parent.name))
    return found


def wait_until(holds: Callable[[], bool]) -> None:
    """Come back when something holds, or after a minute."""
    for _ in range(600):
        if holds():
            return
        time.sleep(0.1)


@pytest.mark.parametrize(("options", "processes"), [((), 2), (("--scheduler", "local"), 3)], ids=["pool", "dask"])
def test_an_interrupt_ends_the_command_and_its_workers(
    tmp_path: Path, options: tuple[str, ...], processes: int
) -> None:
    if options:
        pytest.importorskip("distributed")
    if len(os.sched_getaffinity(0)) < 2 and not options:
        pytest.skip("one core: ranks are read by the command itself")
    data = gzip.decompress((example_ranks.FOLDER / "rank0.json.gz").read_bytes()) + b" " * (1 << 17)
    for rank in range(RANKS):
        (tmp_path / f"rank{rank}.json").write_bytes(data)
    command = [sys.executable, "-m", "stepscope", "diagnose", str(tmp_path), "--rank-pattern", r"rank(\d+)", *options]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    ) as process:
        wait_until(lambda: len(session(process.pid)) >= processes or process.poll() is not None)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert (out, err) == ("", "stepscope: interrupted\n")
    wait_until(lambda: not session(process.pid))  # The kernel takes a moment to end what was killed.
    assert not session(process.pid)
