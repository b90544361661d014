"""The frozen names under which every nanosecond is booked."""

from __future__ import annotations

from enum import StrEnum


class Category(StrEnum):
    """Where time goes. Busy categories come first, in the order in which they win where streams overlap."""

    COMPUTE = "compute"
    COLLECTIVE = "collective"
    COPY_H2D = "copy_h2d"
    COPY_D2H = "copy_d2h"
    COPY_D2D = "copy_d2d"
    COPY_P2P = "copy_p2p"
    MEMSET = "memset"
    COLLECTIVE_WAIT = "collective_wait"
    COLLECTIVE_TRANSFER = "collective_transfer"
    UNRECORDED = "unrecorded"
    HOST_MEMORY = "host_memory"
    MEMORY_SPACE = "memory_space"
    PEER = "peer"
    INPUT = "input"
    SYNC = "sync"
    COMPILE = "compile"
    ALLOCATOR = "allocator"
    COPY_STAGING = "copy_staging"
    LAUNCH = "launch"
    LAUNCH_LATENCY = "launch_latency"
    PYTHON = "python"
    CHECKPOINT_IO = "checkpoint_io"
    GC = "gc"
    PROFILER = "profiler"
    DEPENDENCY = "dependency"
    DEVICE_LATENCY = "device_latency"
    UNKNOWN_HOST = "unknown_host"
    UNKNOWN_DEVICE = "unknown_device"
    GRAPH_BUILD = "graph_build"
    TRANSFER = "transfer"
    INFEED = "infeed"
    HOST_COMPUTE = "host_compute"

    @property
    def code(self) -> int:
        """Its place in the list: what the uint8 columns of the analysis hold."""
        return _CODES[self]


CATEGORIES = tuple(Category)
_CODES = {category: code for code, category in enumerate(CATEGORIES)}

BUSY = CATEGORIES[: Category.UNRECORDED.code + 1]
"""Time in which the device works. A row's remaining categories are idle time by cause."""

RECORDED = CATEGORIES[: Category.MEMSET.code + 1]
"""Busy with ops that one profile holds."""

HOST_CAUSES = (
    Category.PROFILER,
    Category.GC,
    Category.COMPILE,
    Category.CHECKPOINT_IO,
    Category.INPUT,
    Category.INFEED,
    Category.TRANSFER,
    Category.GRAPH_BUILD,
    Category.ALLOCATOR,
    Category.LAUNCH,
    Category.PYTHON,
)
"""What the host may be doing before a launch, in the order in which causes are tried (``sync`` is taken out of
launch and python afterwards, ``unknown_host`` is what remains)."""
