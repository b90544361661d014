"""Processes that a person names by number: whether one may be asked, and is still the one that was named.

Numbers are used again. What a process cannot change is when it began, so that is compared right before something is
done to it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from stepscope.errors import StepscopeError

_BEGAN = 19
_STATE = 0
"""Fields of ``/proc/PID/stat`` behind the name (proc(5))."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process as it was when it was looked at."""

    pid: int
    owner: int
    began: int
    """In the kernel's clock ticks since it was started."""

    @property
    def runs(self) -> bool:
        """Whether it has not ended, taken notice of by its parent or not, and its number is not another's."""
        fields = _fields(self.pid)
        return fields is not None and _alive(fields) and int(fields[_BEGAN]) == self.began


def checked(pid: int) -> Process:
    """The process. Raises StepscopeError where none may be asked: it has ended, is a thread, another user's or us."""
    if pid == os.getpid():
        raise StepscopeError(f"process {pid} is stepscope itself: name the job's")
    fields, seen = _fields(pid), looked_at(pid)
    if fields is None or seen is None:
        raise StepscopeError(f"process {pid} does not run on this machine")
    if not _alive(fields):
        raise StepscopeError(f"process {pid} has ended already, and its parent has not taken notice of it")
    if (leader := _leader(pid)) not in (None, pid):
        raise StepscopeError(f"{pid} is a thread of process {leader}: name that")
    if os.geteuid() not in (0, seen.owner):
        raise StepscopeError(f"process {pid} belongs to another user ({seen.owner}): run stepscope as that user")
    return seen


def looked_at(pid: int) -> Process | None:
    """The process that has this number now; None for none."""
    fields = _fields(pid)
    try:
        return None if fields is None else Process(pid, os.stat(f"/proc/{pid}").st_uid, int(fields[_BEGAN]))
    except OSError:
        return None


def _fields(pid: int) -> list[bytes] | None:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None


def _alive(fields: list[bytes]) -> bool:
    return fields[_STATE] not in (b"Z", b"X", b"x")


def _leader(pid: int) -> int | None:
    """The process that a thread is of; None where that cannot be told."""
    try:
        lines = Path(f"/proc/{pid}/status").read_bytes().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith(b"Tgid:")), None)


def has_loaded(pid: int, library: str) -> bool:
    """Whether a process has mapped a file of this name, where it may be looked at."""
    try:
        return library in Path(f"/proc/{pid}/maps").read_text(errors="replace")
    except OSError:
        return False
