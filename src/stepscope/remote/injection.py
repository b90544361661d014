"""Recording a PyTorch process that was not prepared for it: gdb has its interpreter run a file of ours.

gdb stops the process for a second or less and has it call ``mmap`` and ``Py_AddPendingCall``, which take no locks that
it could hold where it stands; the interpreter then runs the file on its main thread, between two of its own
instructions. Nothing is started before the process's user has allowed it (``--inject``). Needs what gdb needs: the
same user, and a kernel that lets one process trace another.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import stepscope.capture
from stepscope.capture.place import host
from stepscope.errors import StepscopeError
from stepscope.remote.handed import Handed
from stepscope.remote.kineto_daemon import DaemonOutcome, Request
from stepscope.remote.processes import Process, checked, has_loaded
from stepscope.replacing import replacing
from stepscope.report.names import visible

GDB_S = 60.0
"""gdb reads the symbols of a process for so long at most."""
_EVERY_S = 0.2
_PAGE = 4096
_ANSWER = "answer.json"
NONSENSE = "what it answered makes no sense"
_LONGEST_ANSWER, _LONGEST_REASON = 1 << 16, 500
_BOOT = """\
import importlib, importlib.util, sys
name, folder = "_stepscope_capture", {folder!r}
if name not in sys.modules:
    spec = importlib.util.spec_from_file_location(name, folder + "/__init__.py", submodule_search_locations=[folder])
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
importlib.import_module(name + ".injected").begin({asked!r}, {answer!r})
"""
_CALL = """\
try: exec(compile(open({boot!r}).read(), {boot!r}, "exec"), {{}})
except BaseException as error: open({answer!r}, "w").write('{{"declined": "its interpreter does not run our code"}}')
"""
_GDB = """\
set confirm off
set pagination off
sharedlibrary libc\\.so
sharedlibrary libpython
set $at = ((void*(*)(void*, unsigned long, int, int, int, long))mmap)(0, {page}, 3, 0x22, -1, 0)
restore {call} binary $at
set $asked = ((int(*)(void*, void*))Py_AddPendingCall)((void*)PyRun_SimpleString, $at)
printf "stepscope asked %d\\n", $asked
detach
quit
"""


def capture(pids: Sequence[int], out: Path, request: Request) -> list[DaemonOutcome]:
    """Record processes one after another; what became of each. Raises StepscopeError where none can be."""
    if not sys.platform.startswith("linux"):
        raise StepscopeError("processes are recorded in this way on Linux only; elsewhere use stepscope run")
    if shutil.which("gdb") is None:
        raise StepscopeError("--inject needs gdb, which is not installed (apt-get install gdb)")
    processes = [checked(pid) for pid in dict.fromkeys(pids)]
    out.mkdir(parents=True, exist_ok=True)
    return [_outcome(process, out, request) for process in processes]


def _outcome(process: Process, out: Path, request: Request) -> DaemonOutcome:
    pid = process.pid
    if not has_loaded(pid, "libtorch"):
        return DaemonOutcome(pid, reason="PyTorch is not loaded in it")
    try:
        handed = Handed(tempfile.gettempdir(), "stepscope-inject-")
    except OSError as error:
        return DaemonOutcome(pid, reason=f"it cannot be asked: {error.strerror}")
    try:
        with tempfile.TemporaryDirectory(prefix="stepscope-gdb-") as own:
            return _asked(process, handed, Path(own), out, request)
    except OSError as error:
        return DaemonOutcome(pid, reason=f"it cannot be asked: {error.strerror}")
    finally:
        handed.remove()


def _asked(process: Process, handed: Handed, own: Path, out: Path, request: Request) -> DaemonOutcome:
    """Ask by gdb. What gdb reads lies where only this user writes: it does what it reads, with this user's rights."""
    folder = Path(tempfile.gettempdir(), handed.name)
    boot, call, commands = folder / "boot.py", own / "call", own / "gdb"
    answer = folder / _ANSWER
    asked = {
        "folder": str(folder), "bound_s": request.duration_s + request.timeout_s, "stacks": request.stacks,
        "duration_s": request.duration_s, "steps": request.steps or 0, "shapes": request.shapes,
        "memory": request.memory,
    }  # fmt: skip
    package = str(Path(stepscope.capture.__file__).parent)
    handed.write(boot.name, _BOOT.format(folder=package, asked=asked, answer=str(answer)).encode())
    handed.give(process.owner)
    call.write_bytes(_CALL.format(boot=str(boot), answer=str(answer)).encode() + b"\0")
    commands.write_text(_GDB.format(page=_PAGE, call=call), encoding="utf-8")
    why = _by_gdb(process, commands)
    if why is not None:
        return DaemonOutcome(process.pid, reason=why)
    return _answered(process, handed, out, request)


def _by_gdb(process: Process, commands: Path) -> str | None:
    """Why the process could not be asked; None where it was."""
    if not process.runs:  # Others were recorded meanwhile: its number may be another's by now.
        return "it ended before it was asked"
    # Reading the symbols of PyTorch's libraries takes half a minute, in which the process would stand still.
    words = ["gdb", "-nx", "-batch", "-iex", "set auto-solib-add off", "-p", str(process.pid), "-x", str(commands)]
    try:
        ran = subprocess.run(
            words, cwd=os.path.abspath(os.sep), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", timeout=GDB_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"gdb has not come to it within {GDB_S:g} s"
    if "stepscope asked 0" in ran.stdout:
        return None
    if "not permitted" in ran.stderr:
        return "the kernel does not let gdb trace it (kernel.yama.ptrace_scope, or a container without SYS_PTRACE)"
    last = (ran.stderr.strip() or ran.stdout.strip() or "gdb said nothing").splitlines()[-1]
    return f"gdb could not ask its interpreter: {last}"


def _answered(process: Process, handed: Handed, out: Path, request: Request) -> DaemonOutcome:
    pid = process.pid
    until = time.monotonic() + request.duration_s + 2 * request.timeout_s
    while _ANSWER not in handed.names():
        if not process.runs:
            return DaemonOutcome(pid, reason="it ended before its profile was written")
        if time.monotonic() > until:
            return DaemonOutcome(pid, reason="its main thread does not answer: it is in one long call")
        time.sleep(_EVERY_S)
    with handed.open(_ANSWER) as file:
        name, declined = _told(file.read(_LONGEST_ANSWER))
    if not name:
        return DaemonOutcome(pid, reason=declined)
    named = out / f"{host()}.{pid}.{time.time_ns()}.pt.trace.json.gz"
    with handed.open(name) as file, replacing(named) as part, part.open("wb") as copy:
        shutil.copyfileobj(file, copy, 1 << 20)
    return DaemonOutcome(pid, named)


def _told(answer: bytes) -> tuple[str, str]:
    """The name of the profile that a process wrote, or why there is none. Another user's may say anything."""
    try:
        told = json.loads(answer)
        if "path" not in told:
            return "", visible(str(told["declined"]))[:_LONGEST_REASON]
        name = Path(told["path"]).name
        if name and b"\0" not in os.fsencode(name):
            return name, ""
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    return "", NONSENSE
