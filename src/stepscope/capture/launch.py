"""Running the user's command as if stepscope were not there: its streams, its signals, its exit status."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from .options import VARIABLE, Options, to_text

STARTUP = Path(__file__).with_name("startup")
"""The folder whose ``sitecustomize`` Python runs as it starts."""
NOT_FOUND, NOT_EXECUTABLE, SIGNALLED = 127, 126, 128
"""What shells report."""
_TOOL_MARKS = ("pipx_metadata.json", "uv-receipt.toml")
"""Files that pipx and uv leave in environments that hold one tool and nothing of the user's."""
_FORWARDED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCONT", "SIGALRM")
_SI_KERNEL = 0x80
"""A signal that the terminal sent, which the job, in the same process group, has got too (Linux, siginfo.h)."""


def command_line(words: Sequence[str], python: str | None) -> list[str]:
    """The command to run: a script or ``-m module`` gets a Python, everything else is a command already."""
    if words[0] == "-m" or words[0].endswith((".py", ".pyc", ".pyz")):
        return [python or default_python(), *words]
    return list(words)


def default_python() -> str:
    """The Python of scripts: this one, unless it belongs to a tool's own environment; then the shell's."""
    if any(os.path.exists(os.path.join(sys.prefix, mark)) for mark in _TOOL_MARKS):
        return shutil.which("python") or shutil.which("python3") or sys.executable
    return sys.executable


def environment_for(options: Options, environment: Mapping[str, str]) -> dict[str, str]:
    """The job's environment: what is to be recorded, and our start-up folder first on Python's path."""
    already = environment.get("PYTHONPATH", "")
    path = os.pathsep.join([str(STARTUP), already] if already else [str(STARTUP)])
    return {**environment, "PYTHONPATH": path, VARIABLE: to_text(options)}


def run(command: list[str], environment: Mapping[str, str], started: Callable[[], object] = lambda: None) -> int:
    """Run a command with our streams; its exit status, 128 + n where signal n ended it. Signals sent to us reach it.

    ``started`` is called once it runs, while signals wait for us: threads made in it get none. Raises OSError where the
    command cannot be started.
    """
    if not hasattr(signal, "sigwaitinfo"):
        return _run_plainly(command, environment, started)
    forwarded = {getattr(signal, name) for name in _FORWARDED}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*forwarded, signal.SIGCHLD})
    try:
        restored = [signal.SIGPIPE, signal.SIGXFSZ]  # Python ignores these; its children must not.
        pid = os.posix_spawnp(command[0], command, environment, setsigmask=before, setsigdef=restored)
        started()
        return _status(_wait(pid, forwarded))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _wait(pid: int, forwarded: set[signal.Signals]) -> int:
    while True:
        got = signal.sigwaitinfo({*forwarded, signal.SIGCHLD})
        if got.si_signo != signal.SIGCHLD and got.si_code != _SI_KERNEL:
            with suppress(ProcessLookupError):
                os.kill(pid, got.si_signo)
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended == pid:
            return status


def _status(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else SIGNALLED - code


def _run_plainly(command: Sequence[str], environment: Mapping[str, str], started: Callable[[], object]) -> int:
    """Without ``sigwaitinfo`` (macOS, Windows): the terminal's own signals reach the job, SIGTERM is passed on."""
    with subprocess.Popen(command, env=environment) as job:
        signal.signal(signal.SIGTERM, lambda *_: job.terminate())
        started()
        while True:
            try:
                code = job.wait()
                return code if code >= 0 else SIGNALLED - code
            except KeyboardInterrupt:
                continue
