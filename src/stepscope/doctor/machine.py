"""The machine itself: Python, compiled loops, terminal, memory, disk, containers."""

from __future__ import annotations

import json
import re

from stepscope.doctor.case import PROBE_SECONDS, Case, numbers
from stepscope.doctor.outcome import CheckOutcome, not_applicable, ok, problem, warning
from stepscope.units import format_bytes

_OLDEST_PYTHON = (3, 11)
_GIB = 1 << 30
LITTLE_MEMORY = 2 * _GIB
"""Reading takes about a profile's own size, and at least 400 MB."""
LITTLE_DISK, NO_DISK = 1 * _GIB, 100 << 20
"""A profile of a few steps takes 10 MB to 1 GB."""
_UNLIMITED = 1 << 60

COMPILER_PROBE = """
import json, os, stepscope
from pathlib import Path
from stepscope import compiled, kept_code
folder = kept_code.cache_folder(Path(stepscope.__file__).parent / "trace")
numba = compiled.compiler()
print(json.dumps(dict(numba=numba and numba.__version__, folder=folder and str(folder))))
if numba is None:
    import numba
"""
"""Says where machine code is kept; where numba cannot be imported, its own error follows."""


def python(case: Case) -> CheckOutcome:
    """The Python that stepscope runs in has what it needs."""
    host = case.host
    here = f"Python {'.'.join(map(str, host.version))} ({host.python})"
    if host.version < _OLDEST_PYTHON:
        return problem(f"{here} is older than stepscope supports.", "Install stepscope into Python 3.11 or later.")
    for line in host.requirements():
        told = re.match(r"([\w.-]+)\s*(?:>=\s*([\d.]+))?", line)
        if told is None or "extra ==" in line:
            continue
        name, least = told.groups()
        version = host.installed(name)
        if version is None:
            return problem(f"{name} is not installed beside stepscope.", f"`{host.python} -m pip install {name}`")
        if least and numbers(version) < numbers(least):
            return problem(
                f"{name} {version} is older than stepscope needs ({least}).",
                f"`{host.python} -m pip install --upgrade {name}`",
            )
    return ok(f"{here} has every package that stepscope needs.")


def grpc(case: Case) -> CheckOutcome:
    """Servers of running jobs can be asked for profiles."""
    version = case.host.installed("grpcio")
    if version is None:
        return not_applicable(
            "grpcio is not installed beside stepscope: to record a running job from its server, and for start_server, "
            "`pip install grpcio`."
        )
    return ok(f"grpcio {version}: running jobs can be recorded from their servers.")


def compiler(case: Case) -> CheckOutcome:
    """Loops over events can be compiled, and their machine code kept."""
    host = case.host
    if host.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return warning("NUMBA_DISABLE_JIT is set: loops run as Python, some forty times slower.",
                       "`unset NUMBA_DISABLE_JIT`")  # fmt: skip
    ran = host.run([host.python, "-c", COMPILER_PROBE], PROBE_SECONDS)
    try:
        said = json.loads(ran.out.splitlines()[0]) if ran else {}
    except (ValueError, IndexError):
        said = {}
    if not said.get("numba"):
        why = "it gave no answer" if ran is None or ran.status is None else ran.complaint
        return warning(f"numba cannot be used ({why}): profiles are read many times slower.",
                       f"`{host.python} -m pip install --upgrade numba numpy`")  # fmt: skip
    if not said.get("folder"):
        return warning("No folder for machine code is writable: every run compiles for several seconds.",
                       "Set STEPSCOPE_CACHE to a folder of your own that can be written.")  # fmt: skip
    return ok(f"numba {said['numba']}; machine code is kept in {said['folder']}.")


def terminal(case: Case) -> CheckOutcome:
    """Reports can be written as they are."""
    encoding = case.host.encoding
    if encoding.lower().replace("-", "").startswith("utf"):
        return ok(f"Output is {encoding}.")
    return warning(f"Output is {encoding}: bars and symbols are replaced by plain characters.",
                   "Set LANG=C.UTF-8, or PYTHONIOENCODING=utf-8.")  # fmt: skip


def memory(case: Case) -> CheckOutcome:
    """There is memory for a large profile."""
    free = [size for size in (_free_memory(case), _free_in_group(case)) if size is not None]
    if not free:
        return not_applicable("How much memory is free is not told here.")
    least = min(free)
    if least < LITTLE_MEMORY:
        return warning(f"Only {format_bytes(least)} of memory is free; reading takes about the size of the profile.",
                       "Close other programs, or raise the container's limit (`docker run --memory`).")  # fmt: skip
    return ok(f"{format_bytes(least)} of memory is free.")


def _free_memory(case: Case) -> int | None:
    told = re.search(r"MemAvailable:\s*(\d+) kB", case.host.read("/proc/meminfo") or "")
    return int(told[1]) * 1024 if told else None


def _free_in_group(case: Case) -> int | None:
    """What the limit of the control group leaves (version 2, else version 1)."""
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        most, taken = ((case.host.read(path) or "").strip() for path in (limit, used))
        if most.isdigit() and taken.isdigit() and int(most) < _UNLIMITED:
            return max(int(most) - int(taken), 0)
    return None


def disk(case: Case) -> CheckOutcome:
    """There is room for a profile."""
    folder = case.host.temporary
    free = None if folder is None else case.host.free_bytes(folder)
    if folder is None or free is None:
        return problem("No folder for temporary files can be written.", "Set TMPDIR to one that can.")
    if free < LITTLE_DISK:
        say = problem if free < NO_DISK else warning
        return say(f"Only {format_bytes(free)} is free in {folder}; a profile may take more.",
                   "Make room there, or set TMPDIR to a folder on another disk.")  # fmt: skip
    return ok(f"{format_bytes(free)} is free in {folder}.")


def container(case: Case) -> CheckOutcome:
    """Whether this is a container, whose permissions its host decides."""
    if case.container is None:
        return not_applicable("This is no container.")
    return ok(f"This is a container ({case.container}): devices and permissions are those it was started with.")


def wsl(case: Case) -> CheckOutcome:
    """Whether this is Linux under Windows, where device events are often missing."""
    if not case.wsl:
        return not_applicable("This is not Linux under Windows (WSL).")
    return warning(
        "Under WSL profiles often hold the host's side alone, also with every permission given (pytorch/kineto#762).",
        "Look at the first profile with `stepscope doctor PROFILE`; if kernels are missing, record under Linux or "
        "under Windows itself.",
    )


__all__ = ["compiler", "container", "disk", "grpc", "memory", "python", "terminal", "wsl"]
