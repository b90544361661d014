"""PyTorch jobs that were started with ``KINETO_USE_DAEMON=1``: nothing else of the job need be changed.

PyTorch then asks a daemon on its machine every five seconds, by datagram, whether to record. Here the daemon is this
process, for as long as one capture lasts; the job writes its profile itself, into a folder that is made for it.

Of the messages (``ipc_fabric``) ``req`` carries ``{int32 kinds; int32 n; int64 job; int32 pids[n]}``, the process and
its ancestors, and is answered with a configuration or nothing; ``ctxt`` registers a process with a GPU and is answered
with a count. Seen with PyTorch 2.13.
"""

from __future__ import annotations

import gzip
import os
import shutil
import struct
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from stepscope.capture.place import host
from stepscope.errors import StepscopeError
from stepscope.remote.handed import Handed
from stepscope.remote.ipc_fabric import Datagram, Fabric
from stepscope.remote.processes import Process, checked, has_loaded, looked_at
from stepscope.replacing import replacing

POLL_S = 6.0
"""A process that speaks the protocol is heard from within this time: it asks every 5 s."""
HEARD_WITHIN_S = 13.0
"""A process that has not asked twice by now does not speak it."""
WARM_UP_S = 1
"""The profiler runs this long before it keeps anything (Kineto's own default is 5 s)."""
_REQUEST = struct.Struct("=iiq")
_ACTIVITIES = 2
"""The kind of configuration that starts a recording; a process that records asks for events (1) only."""


@dataclass(frozen=True)
class Request:
    """What to record: a stretch of time or, where ``steps`` is given, optimizer steps."""

    duration_s: float = 2.0
    steps: int | None = None
    stacks: bool = True
    shapes: bool = False
    memory: bool = False
    timeout_s: float = 60.0
    """How long a profile may take to arrive once its recording is over."""


@dataclass
class DaemonProcess:
    """One process that was found."""

    process: Process
    folder: Handed
    """Where its profile will lie; it stays open, also once the process has ended."""
    inside: Path
    """The same as the process sees it."""
    asked: bool = False
    """Whether it was told what to record."""
    busy: bool = False
    """Whether all it said is that it records already."""
    size: int = -1

    @property
    def pid(self) -> int:
        """Its number."""
        return self.process.pid


@dataclass(frozen=True)
class DaemonOutcome:
    """A profile of one process, or why there is none."""

    pid: int
    profile: Path | None = None
    reason: str = ""


@dataclass
class _Capture:
    wanted: Mapping[int, Process]
    request: Request
    starts_ms: int
    jobs: dict[int, DaemonProcess] = field(default_factory=dict)
    heard: set[int] = field(default_factory=set)
    """Wanted processes that have asked, or whose children have."""


def capture(pids: Sequence[int], out: Path, request: Request) -> list[DaemonOutcome]:
    """Record processes, or all PyTorch processes that a launcher started, at the same time; one outcome for each.

    Profiles are named ``<host>.<pid>.<epoch ns>.pt.trace.json.gz``. Raises StepscopeError where nothing can be asked.
    """
    if not sys.platform.startswith("linux"):
        raise StepscopeError("PyTorch speaks to a daemon on Linux only; here use stepscope run")
    wanted = {pid: checked(pid) for pid in pids}
    out.mkdir(parents=True, exist_ok=True)
    starts_ms = int((time.time() + POLL_S + WARM_UP_S + 1) * 1000)
    asked = _Capture(wanted, request, starts_ms)
    with ExitStack() as stack:
        stack.callback(_clean_up, asked)
        try:
            fabric = stack.enter_context(_fabric(tuple(wanted)))
        except OSError as error:
            raise StepscopeError(
                f"no daemon can be started for PyTorch's processes: {error.strerror}; "
                "dynolog or another capture may be running on this machine"
            ) from None
        _find(fabric, asked)
        outcomes = _await(fabric, asked, out)
    return [DaemonOutcome(pid, reason=_silent(pid, asked)) for pid in wanted if pid not in asked.heard] + outcomes


def _fabric(pids: Sequence[int]) -> Fabric:
    folders = {_environment(pid).get(b"KINETO_IPC_SOCKET_DIR", b"") for pid in pids}
    if len(folders) > 1:
        raise StepscopeError("the processes have different KINETO_IPC_SOCKET_DIR, so no one daemon serves them all")
    folder = os.fsdecode(folders.pop())
    if folder and not _is_same(Path(folder), Path(f"/proc/{pids[0]}/root{folder}")):
        raise StepscopeError(f"process {pids[0]} finds another folder at {folder}: run stepscope in its container")
    return Fabric(folder)


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.is_absolute() and one.samefile(other)
    except OSError:
        return False


def _clean_up(asked: _Capture) -> None:
    for job in asked.jobs.values():
        job.folder.remove()


# --- finding processes ------------------------------------------------------------------------------------------------


def _environment(pid: int) -> Mapping[bytes, bytes]:
    """What a process was started with; empty where it cannot be told."""
    try:
        text = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return {}
    return dict(pair.split(b"=", 1) for pair in text.split(b"\0") if b"=" in pair)


def _silent(pid: int, asked: _Capture) -> str:
    environment = _environment(pid)
    if not asked.wanted[pid].runs:
        return "it ended before it was asked"
    if environment and not environment.get(b"KINETO_USE_DAEMON") and not has_loaded(pid, "libtorch"):
        return "PyTorch is not loaded in it: name the job's own process, or what launched it with KINETO_USE_DAEMON=1"
    if environment and not environment.get(b"KINETO_USE_DAEMON"):
        return (
            "it was started without KINETO_USE_DAEMON=1 in its environment, which PyTorch reads when it is imported; "
            "--inject records it all the same, by gdb; or start it with that, or under stepscope run"
        )
    return (
        f"neither it nor a child of it asked within {HEARD_WITHIN_S:g} s: it has not imported PyTorch, its PyTorch has "
        "no Kineto, or it runs in a container with a network of its own"
    )


def _find(fabric: Fabric, asked: _Capture) -> None:
    """Answer for as long as it takes processes to ask."""
    began = time.monotonic()
    while (waited := time.monotonic() - began) < HEARD_WITHIN_S:
        if waited > POLL_S and asked.heard.issuperset(asked.wanted):
            return
        _answer(fabric, asked)


def _answer(fabric: Fabric, asked: _Capture) -> None:
    """Take one message, if one comes, and reply."""
    message = fabric.receive()
    if message is None:
        return
    if message.type == b"ctxt":
        fabric.reply(message, struct.pack("=i", 1))
    elif message.type == b"req" and len(message.body) >= _REQUEST.size:
        fabric.reply(message, _configuration(message, asked).encode())


def _configuration(message: Datagram, asked: _Capture) -> str:
    """What the process is to record; empty where nothing, or it knows already."""
    kinds, count, _ = _REQUEST.unpack_from(message.body)
    claimed = message.body[_REQUEST.size : _REQUEST.size + 4 * max(count, 0)]
    family = {message.pid, *(pid for (pid,) in struct.iter_unpack("=i", claimed[: len(claimed) // 4 * 4]))}
    named = [asked.wanted[pid] for pid in family.intersection(asked.wanted)]
    ours = {process.pid for process in named if process.owner == message.uid and process.runs}
    speaker = looked_at(message.pid)
    if not ours or speaker is None:
        return ""
    asked.heard |= ours
    if message.pid not in asked.jobs:
        asked.jobs[message.pid] = _job(speaker, message.uid)
    job = asked.jobs[message.pid]
    if job.process != speaker:
        return ""
    job.busy = not job.asked and not kinds & _ACTIVITIES
    if job.asked or job.busy:
        return ""
    job.asked = True
    return _text(job.inside / "trace.json", asked.request, asked.starts_ms)


def _job(process: Process, uid: int) -> DaemonProcess:
    """With a folder for the profile in the process's own file system; newer PyTorchs write nowhere else."""
    pid = process.pid
    # Kineto's Config.cpp, isAllowedOnDemandTraceFile.
    allowed = os.fsdecode(_environment(pid).get(b"KINETO_ONDEMAND_TRACE_DIR") or b"/tmp")
    try:
        folder = Handed(f"/proc/{pid}/root/{allowed.strip('/')}", "stepscope-kineto-")
        folder.give(uid)
    except OSError as error:
        raise StepscopeError(f"process {pid} can be given no folder in {allowed}: {error.strerror}") from None
    return DaemonProcess(process, folder, Path(allowed) / folder.name)


def _text(path: Path, request: Request, starts_ms: int) -> str:
    """Kineto's configuration (libkineto's Config.cpp, OnDemandConfig)."""
    soon = max(starts_ms, int((time.time() + WARM_UP_S + 1) * 1000))
    when = (
        {"PROFILE_START_TIME": soon, "ACTIVITIES_DURATION_MSECS": int(request.duration_s * 1000)}
        if request.steps is None
        else {
            "PROFILE_START_ITERATION": 0,
            "PROFILE_START_ITERATION_ROUNDUP": 1,
            "ACTIVITIES_ITERATIONS": request.steps,
            "ACTIVITIES_WARMUP_ITERATIONS": 1,
        }
    )
    what = {
        "PROFILE_WITH_STACK": request.stacks,
        "PROFILE_REPORT_INPUT_SHAPES": request.shapes,
        "PROFILE_PROFILE_MEMORY": request.memory,
    }
    lines = {
        "ACTIVITIES_LOG_FILE": path,
        "ACTIVITIES_WARMUP_PERIOD_SECS": WARM_UP_S,
        **when,
        **{key: str(on).lower() for key, on in what.items()},
    }
    return "".join(f"{key}={value}\n" for key, value in lines.items())


# --- profiles ---------------------------------------------------------------------------------------------------------


def _await(fabric: Fabric, asked: _Capture, out: Path) -> list[DaemonOutcome]:
    """Wait for what was asked for, still answering: unanswered processes write errors to their own output."""
    recording_s = asked.request.duration_s if asked.request.steps is None else 0.0
    deadline = max(time.monotonic(), time.monotonic() + asked.starts_ms / 1000 - time.time())
    deadline += recording_s + asked.request.timeout_s
    outcomes: dict[int, DaemonOutcome] = {}
    while set(asked.jobs) - set(outcomes) and time.monotonic() < deadline:
        _answer(fabric, asked)
        for job in asked.jobs.values():
            if job.pid not in outcomes and (ended := _ended(job, out)) is not None:
                outcomes[job.pid] = ended
    late = [job for job in asked.jobs.values() if job.pid not in outcomes]
    return [*outcomes.values(), *(DaemonOutcome(job.pid, reason=_late(job, asked.request)) for job in late)]


def _ended(job: DaemonProcess, out: Path) -> DaemonOutcome | None:
    """The outcome of one process, once it is known."""
    try:
        for name in job.folder.names():
            if name.endswith(".json"):
                with job.folder.open(name) as file:
                    if _is_whole(job, file):
                        return DaemonOutcome(job.pid, _copied(file, job.pid, out))
    except OSError as error:
        return DaemonOutcome(job.pid, reason=f"its profile could not be taken over: {error.strerror}")
    if not job.process.runs:
        return DaemonOutcome(job.pid, reason="it ended before its profile was written")
    return None


def _is_whole(job: DaemonProcess, file: BinaryIO) -> bool:
    """Whether the file has stopped growing and ends as JSON does."""
    size, job.size = job.size, os.fstat(file.fileno()).st_size
    if not size == job.size > 0:
        return False
    file.seek(max(0, size - 64))
    return file.read().rstrip().endswith((b"}", b"]"))


def _copied(file: BinaryIO, pid: int, out: Path) -> Path:
    named = out / f"{host()}.{pid}.{time.time_ns()}.pt.trace.json.gz"
    file.seek(0)
    with replacing(named) as part, gzip.open(part, "wb", compresslevel=3) as packed:
        shutil.copyfileobj(file, packed, 1 << 20)
    return named


def _late(job: DaemonProcess, request: Request) -> str:
    if job.busy:
        return "a profiler is at work in it already; only one can record at a time"
    if request.steps is not None:
        return (
            f"no profile came within {request.timeout_s:g} s: steps are counted where an optimizer steps; "
            "--duration records a stretch of time instead"
        )
    return (
        f"no profile came within {request.timeout_s:g} s of the recording's end: its own standard error says why, "
        "and --timeout waits longer"
    )
