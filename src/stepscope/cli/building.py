"""Machine code made in the background, so that a first run need not wait for it: see docs/decisions/0019."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from stepscope.capture.options import VARIABLE
from stepscope.cli.streams import say

SWITCH = "STEPSCOPE_BACKGROUND"
"""``0`` keeps commands from leaving a process behind."""
MANAGED = ("CI", "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "KUBERNETES_SERVICE_HOST", VARIABLE)
"""Set where processes are counted, or where a job is being recorded: none is left behind there."""
_LONGEST_S = 900
_NICE = 19
_LOCK = "building"
_SCRIPT = "from stepscope.cli.building import build; build()"


def build_if_missed(path: Path) -> None:
    """Start making what reading a profile did without, where it did; at most one process of a machine does so."""
    from stepscope import compiled

    folder = _folder() if compiled.missed() and path.is_file() and _allowed() else None
    if folder is None or _is_building(folder / _LOCK):
        return
    from stepscope.interpreter import own_environment

    with suppress(OSError):
        # A session of its own, no stream and no folder of the user's: nothing waits for it and it holds nothing.
        subprocess.Popen(
            [sys.executable, "-c", _SCRIPT, str(path.absolute()), str(folder)], env=own_environment() | {SWITCH: "0"},
            cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True, creationflags=_DETACHED,
        )  # fmt: skip
        say("first run: read without compiled loops, which are made in the background now, once for this machine")


_DETACHED = 0x208 if sys.platform == "win32" else 0
"""DETACHED_PROCESS and CREATE_NEW_PROCESS_GROUP."""


def _allowed() -> bool:
    return os.environ.get(SWITCH) != "0" and not any(os.environ.get(name) for name in MANAGED)


def _folder() -> Path | None:
    """The private folder of this user's machine code."""
    from stepscope import kept_code

    return kept_code.cache_folder(Path(kept_code.__file__).parent / "trace")


def _is_building(lock: Path) -> bool:
    with suppress(OSError):
        return time.time() - lock.stat().st_mtime < _LONGEST_S
    return False


def build() -> None:
    """Read and diagnose a profile with every loop compiled; what it says is thrown away."""
    path, lock = sys.argv[1], Path(sys.argv[2], _LOCK)
    if hasattr(signal, "alarm"):
        os.nice(_NICE)
        signal.alarm(_LONGEST_S)
    if not _is_building(lock):
        lock.unlink(missing_ok=True)
    with suppress(FileExistsError):
        lock.open("x").close()
        try:
            _compile(path)
        finally:
            lock.unlink(missing_ok=True)


def _compile(path: str) -> None:
    from stepscope import compiled, pipeline
    from stepscope.errors import StepscopeError

    for work in (compiled.LOOPS, compiled.JSON):
        work.most = work.most_uncompiled = -1
    with suppress(StepscopeError, OSError):  # It may be gone by now, or lead to several.
        pipeline.open_profile(path).document()
