"""What of the machine this process may use, for who reckons with more processes."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

_RANKS_HERE = ("LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")
"""Variables of torchrun, Slurm, Open MPI, MPICH."""
_QUOTA = "/sys/fs/cgroup/cpu.max"


def machine(environment: Mapping[str, str] = os.environ) -> dict[str, int | None]:
    """Cores that this process may use, of how many, and how many processes of the job share the machine."""
    named = (environment.get(name, "") for name in _RANKS_HERE)
    ranks = next((int(count) for count in named if count.isdecimal()), None)
    return {"cores": usable_cores(), "machine_cores": os.cpu_count(), "ranks_here": ranks}


def usable_cores() -> int | None:
    """By the process's affinity and its container's quota; None where the system does not say."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    quota = _quota()
    return allowed if allowed is None or quota is None else max(1, min(allowed, int(quota)))


def _quota() -> float | None:
    """Cores' worth of time that the container gets."""
    try:
        with open(_QUOTA, encoding="ascii") as file:
            most, period = file.read().split()
        return int(most) / int(period)
    except (OSError, ValueError):  # "max" is no number.
        return None


def children() -> int | None:
    """Processes that this one has made with ``multiprocessing``, as loaders do; None where it is not in use."""
    running = getattr(sys.modules.get("multiprocessing.process"), "_children", None)
    return None if running is None else len(running)
