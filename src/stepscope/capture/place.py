"""Where this process is among those of its job, and file names that no other process takes."""

from __future__ import annotations

import os
import re
import socket
import sys
import time
from collections.abc import Mapping

_RANKS = (("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
          ("PMI_RANK", "PMI_SIZE"))  # fmt: skip
"""Variables of torchrun, Slurm, Open MPI, MPICH."""


_LOCAL_RANKS = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")


def is_first_of_host(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether no launcher says that this process is another than the first of its job on this machine."""
    return all(environment.get(name, "0") == "0" for name in _LOCAL_RANKS)


def is_launcher() -> bool:
    """Whether this process starts ranks (torchrun does, which imports PyTorch for it) and is none."""
    return "torch.distributed.launcher.api" in sys.modules and rank_and_world()[0] is None


def rank_and_world(environment: Mapping[str, str] = os.environ) -> tuple[int | None, int | None]:
    """This process's rank and their number, from the frameworks where they know, else from the launcher's variables."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank()), int(distributed.get_world_size())
    for rank, world in _RANKS:
        if environment.get(rank, "").isdecimal():
            size = environment.get(world, "")
            return int(environment[rank]), int(size) if size.isdecimal() else None
    return None, None


def host() -> str:
    """The machine's name, fit for a file name."""
    return re.sub(r"[^\w-]+", "-", socket.gethostname().split(".")[0])[:64] or "host"


def file_stem() -> str:
    """``host.rank0.4711.<epoch ns>``: exclusive to this process and instant."""
    rank, _ = rank_and_world()
    parts = [host(), *([] if rank is None else [f"rank{rank}"]), str(os.getpid()), str(time.time_ns())]
    return ".".join(parts)


def resident_bytes() -> int | None:
    """Memory this process holds now; None where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
