"""The folders of runs: ``run-1``, ``run-2`` … in the folder that ``stepscope run --out`` names.

Several launchers of one job (one per machine, on a disk that all see) write into one: the first of them makes it, the
others find it by what the job is called by Slurm, Open MPI, torchrun or ``MASTER_ADDR``.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from stepscope.capture.place import host
from stepscope.capture.results import recordings
from stepscope.errors import UsageError
from stepscope.regex import regex

DEFAULT_OUT = "stepscope-run"
"""Where runs lie unless ``--out`` says otherwise."""
TOGETHER_S = 600.0
"""Launchers of one job that is named by an address alone start within this time: the next job has the same address."""
_NAME = regex(r"run-([0-9]{1,9})")
_JOBS = ".jobs"
_NOTE_BYTES = 32
_ATTEMPTS = 1_000
"""Runs that are looked at before one is made that nobody shares."""
_PLAIN_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""Through no link, and without waiting for a pipe's other end."""
_EXACT = (("SLURM_JOB_ID", "SLURM_STEP_ID"), ("PMIX_NAMESPACE",), ("OMPI_MCA_ess_base_jobid",))
"""Variables that tell one start of a job from every other."""
_LIKELY = (("TORCHELASTIC_RUN_ID",), ("MASTER_ADDR", "MASTER_PORT"), ("MASTER_ADDR",))
"""Variables that the next start of the job may have again."""
_PLACES = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "NODE_RANK", "GROUP_RANK")
"""What tells launchers on one machine from each other."""


def runs(out: Path) -> list[Path]:
    """Run folders, oldest first."""
    numbers = {int(match[1]): each for each in _folders(out) if (match := _NAME.fullmatch(each.name))}
    return [numbers[number] for number in sorted(numbers)]


def last_runs(count: int, out: Path | None = None) -> list[str]:
    """The last runs that left a profile, oldest first: their folders, or the trace of the job's own profiler where that
    is all there is. Raises UsageError where there are fewer."""
    out = Path(DEFAULT_OUT) if out is None else out
    newest: list[str] = []
    for folder in reversed(runs(out)):
        told = recordings(folder, 0)
        own = [path for each in told for path in each.own_traces]
        if any(each.profiles for each in told) or own:
            newest.append(str(folder if any(each.profiles for each in told) else own[-1]))
        if len(newest) == count:
            return newest[::-1]
    wanted, there = ("no run", "") if count == 1 else ("no two runs", f" ({len(newest)} found)")
    raise UsageError(
        f"{out} holds {wanted} with a profile{there}: stepscope run train.py records one, or name the profile"
        f"{'s' * (count > 1)}"
    )


def new_run(out: Path, environment: Mapping[str, str] = os.environ) -> Path:
    """A new folder in ``out``, or that of the job whose other launchers have made one. Raises OSError."""
    job = _job(environment)
    if job is None:
        return _made(out)
    name, exact = job
    jobs = out / _JOBS
    jobs.mkdir(parents=True, exist_ok=True)
    who = "-".join([host(), *(environment[each] for each in _PLACES if each in environment)])
    for attempt in range(1, _ATTEMPTS):
        note, mark = jobs / f"{name}.{attempt}", jobs / f"{name}.{attempt}.{_safe(who)}"
        _agree(note, out)
        old = not exact and time.time() - note.lstat().st_mtime > TOGETHER_S
        if not old and _is_first(mark):
            folder = _told(note, mark, out)
            if folder is not None:
                return folder
    return _made(out)


def discard_empty(folder: Path) -> None:
    """Remove a run folder in which nothing was left."""
    with suppress(OSError):
        folder.rmdir()


def _folders(out: Path) -> list[Path]:
    try:
        return [each for each in out.iterdir() if each.is_dir()]
    except OSError:
        return []


def _made(out: Path) -> Path:
    out.mkdir(parents=True, exist_ok=True)
    last = runs(out)
    number = int(last[-1].name.removeprefix("run-")) + 1 if last else 1
    while True:
        with suppress(FileExistsError):
            (out / f"run-{number}").mkdir()
            return out / f"run-{number}"
        number += 1


def _job(environment: Mapping[str, str]) -> tuple[str, bool] | None:
    """What the job is called, where it may have several launchers, and whether no other start of it is called so."""
    for variables, exact in (*((each, True) for each in _EXACT), *((each, False) for each in _LIKELY)):
        values = [environment.get(each, "") for each in variables]
        if all(values) and values != ["none"]:
            return _safe("-".join(values)), exact
    return None


def _safe(text: str) -> str:
    return re.sub(r"[^\w-]+", "-", text)[:100]


def _agree(note: Path, out: Path) -> None:
    """Leave a note of the job's run folder where there is none: the first to come makes both."""
    if os.path.lexists(note):
        return
    mine = _made(out)
    part = note.with_name(f"{note.name}.{host()}.{os.getpid()}.part")
    try:
        with part.open("x", encoding="utf-8") as file:  # Writes through no link that somebody laid there.
            file.write(mine.name)
        os.link(part, note)  # Fails where it is there, also on a network's disk.
    except FileExistsError:
        mine.rmdir()
    finally:
        part.unlink(missing_ok=True)


def _told(note: Path, mark: Path, out: Path) -> Path | None:
    """The run folder that a note names; None where others than the user wrote it or made what is called so.

    On a disk that all see, what this user makes may belong to somebody else: whoever the mark belongs to.
    """
    owner = mark.lstat().st_uid
    with suppress(OSError), open(os.open(note, _PLAIN_READ), "rb") as file:
        status, name = os.fstat(file.fileno()), file.read(_NOTE_BYTES).decode("ascii", "replace")
        if not stat.S_ISREG(status.st_mode) or status.st_uid != owner or not _NAME.fullmatch(name):
            return None
        folder = out / name
        with suppress(FileExistsError):
            folder.mkdir()
        made = folder.lstat()
        return folder if stat.S_ISDIR(made.st_mode) and made.st_uid == owner else None
    return None


def _is_first(mark: Path) -> bool:
    """Whether this launcher has not taken part in that run yet."""
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
