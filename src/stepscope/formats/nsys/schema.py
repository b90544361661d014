"""What the tables of an Nsight Systems export are called, and what their numbers mean.

From NVIDIA's "SQLite Schema Reference" and "SQLite Schema Event Values" (Nsight Systems user guide, schema versions up
to 3.28) and the export documentation of 2019 to 2021. A table exists only where something was recorded, and columns
come and go between versions, so each is asked for by name and absent where it is not there.
"""

from __future__ import annotations

from stepscope.record import record
from stepscope.trace.tables import Direction, Kind, MemoryKind

STRINGS = "StringIds"


@record
class Spec:
    """An event table: its number columns beside start and end, its texts, and the column that names its process."""

    numbers: tuple[str, ...]
    owner: str = "globalTid"
    texts: tuple[str, ...] = ()
    start: str = "start"
    end: str | None = "end"


_WORK = ("deviceId", "streamId", "correlationId", "globalPid", "graphNodeId", "graphId")

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
COPIES = "CUPTI_ACTIVITY_KIND_MEMCPY"
MEMSETS = "CUPTI_ACTIVITY_KIND_MEMSET"
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
SYNCS = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
EVENTS = "CUPTI_ACTIVITY_KIND_CUDA_EVENT"
CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
RANGES = "NVTX_EVENTS"
OS_CALLS = "OSRT_API"
MEMORY = "CUDA_GPU_MEMORY_USAGE_EVENTS"

KERNEL_NAMES = ("demangledName", "shortName", "mangledName")
GRID, BLOCK = ("gridX", "gridY", "gridZ"), ("blockX", "blockY", "blockZ")

DEVICE_WORK: dict[str, Spec] = {
    KERNELS: Spec(
        (*_WORK, *KERNEL_NAMES, *GRID, *BLOCK, "registersPerThread", "staticSharedMemory", "dynamicSharedMemory"),
        "globalPid",
    ),
    COPIES: Spec((*_WORK, "bytes", "copyKind", "srcKind", "dstKind"), "globalPid"),
    MEMSETS: Spec((*_WORK, "bytes", "memKind"), "globalPid"),
    GRAPHS: Spec(_WORK, "globalPid"),
}
"""What occupies a device."""

HOST_RANGES: dict[str, tuple[Spec, Kind]] = {
    "CUDNN_EVENTS": (Spec(("globalTid", "nameId")), Kind.HOST_OP),
    "CUBLAS_EVENTS": (Spec(("globalTid", "nameId")), Kind.HOST_OP),
    "CUPTI_ACTIVITY_KIND_JIT": (Spec(("globalTid", "nameId", "correlationId")), Kind.COMPILE),
    **{
        f"MPI_{kind}_EVENTS": (Spec(("globalTid", "textId")), Kind.ANNOTATION)
        for kind in ("P2P", "COLLECTIVES", "START_WAIT", "OTHER")
    },
    "CUPTI_ACTIVITY_KIND_OVERHEAD": (Spec(("globalTid", "nameId")), Kind.OVERHEAD),
    "PROFILER_OVERHEAD": (Spec(("globalTid", "nameId")), Kind.OVERHEAD),
    # Waits of every thread, the whole time: on the thread's own track they would pass for work.
    OS_CALLS: (Spec(("globalTid", "nameId")), Kind.OTHER),
}
"""Other ranges of host threads, and what they are."""

OWN_TRACKS = {Kind.OVERHEAD: "profiler overhead", Kind.OTHER: "OS runtime"}
"""Host ranges that do not lie on their thread's track, and what their own is called."""

TABLES: dict[str, Spec] = {
    **DEVICE_WORK,
    CALLS: Spec(("globalTid", "correlationId", "nameId")),
    RANGES: Spec(("globalTid", "endGlobalTid", "eventType", "textId", "domainId"), texts=("text",)),
    SYNCS: Spec(
        ("deviceId", "streamId", "correlationId", "globalPid", "syncType", "eventId", "eventSyncId"), "globalPid"
    ),
    EVENTS: Spec(
        ("deviceId", "streamId", "correlationId", "globalPid", "eventId", "eventSyncId"), "globalPid", (), "", None
    ),
    MEMORY: Spec(
        ("globalPid", "deviceId", "address", "bytes", "memKind", "memoryOperationType", "correlationId"),
        "globalPid",
        end=None,
    ),
    **{table: spec for table, (spec, _) in HOST_RANGES.items()},
}
"""Every table that holds events of a process and is read."""

MARK, PUSH_POP, START_END, DOMAIN = 34, 59, 60, 75
NAMING_EVENTS = (33, 39, 75, 76)
"""Categories, threads and domains that NVTX names: metadata."""

SYNC_NAMES = {1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync"}
"""``syncType``, in the words of PyTorch's profiler."""
STREAM_WAIT = 2
NO_STREAM = (-1, 0xFFFFFFFF)
"""CUPTI's value for a wait that concerns no stream (CUPTI_SYNCHRONIZATION_INVALID_VALUE)."""

_H2D, _D2H, _D2D = Direction.H2D, Direction.D2H, Direction.D2D
COPY_KINDS: dict[int, tuple[Direction, str]] = {
    1: (_H2D, "HtoD"), 2: (_D2H, "DtoH"), 3: (_H2D, "HtoA"), 4: (_D2H, "AtoH"), 5: (_D2D, "AtoA"), 6: (_D2D, "AtoD"),
    7: (_D2D, "DtoA"), 8: (_D2D, "DtoD"), 9: (Direction.H2H, "HtoH"), 10: (Direction.P2P, "PtoP"),
    11: (_H2D, "HtoD (unified memory)"), 12: (_D2H, "DtoH (unified memory)"), 13: (_D2D, "DtoD (unified memory)"),
}  # fmt: skip
"""``copyKind``: the direction, and the word in the name of the copy."""

MEMORY_KINDS: dict[int, tuple[MemoryKind, str]] = {
    0: (MemoryKind.PAGEABLE, "Pageable"), 1: (MemoryKind.PINNED, "Pinned"), 2: (MemoryKind.DEVICE, "Device"),
    3: (MemoryKind.DEVICE, "Array"), 4: (MemoryKind.MANAGED, "Managed"), 5: (MemoryKind.DEVICE, "Device Static"),
    6: (MemoryKind.MANAGED, "Managed Static"),
}  # fmt: skip
"""``srcKind``, ``dstKind`` and ``memKind``; 7 is unknown."""

HOST_MEMORY = (0, 1)
"""The kinds of memory that lie on the host."""
FREES = 1
"""``memoryOperationType`` of a deallocation."""

SEVERITIES = {2: "warning", 3: "error"}
"""Of ``DIAGNOSTIC_EVENT``, where the file itself does not name its levels."""
