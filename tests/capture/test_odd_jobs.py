"""Jobs that do odd things while they are recorded end as without us: the same output, status and time, nothing left."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.capture.jobs import SCRIPTS, TIMEOUT_S, environment, run
from tests.captures.environments import framework_python
from tests.cli.profiles import write_profile

resource: Any = pytest.importorskip("resource", reason="limits of POSIX")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="limits and users of POSIX")]
SCRIPT = SCRIPTS / "torch_odd.py"
AT = 12
"""The script's step in which it happens."""
KEPT = {"small_files", "out_removed", "other_user", "few_descriptors"}
"""Where no profile need come of it."""
PROCESSOR_S, ELAPSED_S = 12.0, 45.0
"""What recording and the diagnosis after it may take more than the job: 3 s and 10 s, measured beside other work. What
waits for ever or spins takes more."""
T = TypeVar("T")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Have the diagnosis's loops compiled once, which is no job's time."""
    profile = write_profile(tmp_path_factory.mktemp("compiled") / "profile.json")
    subprocess.run([sys.executable, "-m", "stepscope", "diagnose", profile], capture_output=True, check=True)


@pytest.mark.parametrize(
    "odd",
    [
        *("daemonise", "endless_thread", "collects", "recurse", "address_space", "small_files", "few_descriptors"),
        *("out_removed", "other_user", "changes_folder", "exits", "traced", "unhooked"),
    ],
)
@pytest.mark.usefixtures("compiled")
def test_a_job_ends_as_it_does_without_us(odd: str, tmp_path: Path) -> None:
    if odd == "other_user" and os.getuid() != 0:
        pytest.skip("only root becomes another user")
    python, out = framework_python("torch"), tmp_path / "out"
    marked = environment(ODD_JOB=str(tmp_path))
    ours = {**marked, "ODD_OUT": str(out), "PYTHONWARNINGS": "ignore"}
    bare, processor_s, elapsed_s = _measured(lambda: subprocess.run(
        [python, "-W", "ignore", SCRIPT, odd],
        env=marked, cwd=tmp_path, capture_output=True, check=False, timeout=TIMEOUT_S,
    ))  # fmt: skip
    ran, our_processor_s, our_elapsed_s = _measured(lambda: run(out, "--python", python, SCRIPT, odd, env=ours))
    assert (ran.status, ran.stdout) == (bare.returncode, bare.stdout), ran.stderr
    # What the job itself says of an error is the same; nothing of ours is a traceback.
    assert ran.stderr.count("Traceback") == bare.stderr.decode().count("Traceback"), ran.stderr
    assert not _left(str(tmp_path)), ran.stderr
    assert not [path for path in out.rglob("*") if ".part" in path.name], ran.stderr
    # Virtual cores share one: what takes a second may take two beside others.
    assert our_processor_s <= 2 * processor_s + PROCESSOR_S
    assert our_elapsed_s <= 2 * elapsed_s + ELAPSED_S
    if odd not in KEPT:
        (recorded,) = (each for each in ran.manifests if each["files"])
        assert recorded["window"]["first_step"] <= AT, recorded["window"]


def _measured(call: Callable[[], T]) -> tuple[T, float, float]:
    """What a call returns, and the time of processors and of the clock that the processes took which it waited for."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    found = call()
    after, ended = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return found, spent, ended - began


def _left(mark: str) -> list[str]:
    """Processes that still carry the job's mark in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if f"ODD_JOB={mark}".encode() in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_text())
        except OSError:
            continue  # It has gone, or is another user's.
    return found
