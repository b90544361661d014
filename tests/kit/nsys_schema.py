"""The tables of Nsight Systems exports, as three generations of the tool declare them.

After NVIDIA's published schema references: ``2021`` has no nulls (what is absent is 0), texts of ranges in their own
column and no table of CUDA events; ``2024`` (schema 3.16) has nulls, registered texts and graph nodes; ``2026``
(schema 3.28) links waits to the records they wait for and numbers graphs.
"""

from __future__ import annotations

from typing import Literal

Generation = Literal["2021", "2024", "2026"]

VERSIONS: dict[Generation, str] = {"2021": "2.4.5", "2024": "3.16.1", "2026": "3.28.1"}

_TIMES = "start INTEGER NOT NULL, -- Event start timestamp (ns).\n end INTEGER NOT NULL, -- Event end timestamp (ns).\n"
_PLACE = "deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, "
_STREAM = "streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, "
_KERNEL = """
    demangledName INTEGER NOT NULL, -- REFERENCES StringIds(id) -- Kernel function name w/ templates
    shortName INTEGER NOT NULL, {mangled} launchType INTEGER, cacheConfig INTEGER,
    registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL,
    blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL,
    dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL,
    gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER"""
_CALL = _TIMES + "eventClass INTEGER NOT NULL, globalTid INTEGER, "
_NAMED = "nameId INTEGER NOT NULL"

_OLD = {
    "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
    "ThreadNames": "nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER",
    "TARGET_INFO_GPU": "name TEXT, id INTEGER NOT NULL, totalMemory INTEGER, smCount INTEGER, computeMajor INTEGER, "
    "computeMinor INTEGER",
    "TARGET_INFO_SYSTEM_ENV": "globalVid INTEGER, devStateName TEXT NOT NULL, name TEXT NOT NULL, "
    "nameEnum INTEGER NOT NULL, value TEXT NOT NULL",
    "CUPTI_ACTIVITY_KIND_KERNEL": _TIMES + _PLACE + _STREAM + _KERNEL.format(mangled=""),
    "CUPTI_ACTIVITY_KIND_MEMCPY": _TIMES + _PLACE + _STREAM + "bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, "
    "srcKind INTEGER, dstKind INTEGER",
    "CUPTI_ACTIVITY_KIND_MEMSET": _TIMES + _PLACE + _STREAM + "value INTEGER NOT NULL, bytes INTEGER NOT NULL",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": _TIMES + _PLACE + _STREAM + "syncType INTEGER NOT NULL, "
    "eventId INTEGER NOT NULL",
    "CUPTI_ACTIVITY_KIND_RUNTIME": _CALL + "correlationId INTEGER, nameId INTEGER NOT NULL, "
    "returnValue INTEGER NOT NULL",
    "NVTX_EVENTS": "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, "
    "category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, "
    "domainId INTEGER",
    "OSRT_API": _CALL + "nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL",
    "PROFILER_OVERHEAD": _TIMES + "globalTid INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL",
    "COMPOSITE_EVENTS": "id INTEGER NOT NULL PRIMARY KEY, start INTEGER NOT NULL, cpu INTEGER, globalTid INTEGER, "
    "cpuCycles INTEGER NOT NULL",
    "DIAGNOSTIC_EVENT": "timestamp INTEGER NOT NULL, timestampType INTEGER NOT NULL, source INTEGER NOT NULL, "
    "severity INTEGER NOT NULL, text TEXT NOT NULL, globalPid INTEGER",
    "MPI_RANKS": "globalTid INTEGER NOT NULL, rank INTEGER NOT NULL",
}
_MIDDLE = _OLD | {
    "META_DATA_EXPORT": "name TEXT NOT NULL, value TEXT",
    "META_DATA_CAPTURE": "name TEXT NOT NULL, value TEXT",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs INTEGER, utcTime TEXT, localTime TEXT",
    "TARGET_INFO_CUDA_DEVICE": "gpuId INTEGER, cudaId INTEGER NOT NULL, pid INTEGER NOT NULL, uuid TEXT, "
    "numMultiprocessors INTEGER",
    "TARGET_INFO_GPU": _OLD["TARGET_INFO_GPU"] + ", cuDevice INTEGER",
    "PROCESSES": "globalPid INTEGER, pid INTEGER, name TEXT",
    "ENUM_DIAGNOSTIC_SEVERITY_LEVEL": "id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT",
    "CUPTI_ACTIVITY_KIND_KERNEL": _TIMES + _PLACE + "greenContextId INTEGER, " + _STREAM
    + _KERNEL.format(mangled="mangledName INTEGER,") + ", graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER",
    "CUPTI_ACTIVITY_KIND_MEMCPY": _OLD["CUPTI_ACTIVITY_KIND_MEMCPY"] + ", srcDeviceId INTEGER, graphNodeId INTEGER",
    "CUPTI_ACTIVITY_KIND_MEMSET": _OLD["CUPTI_ACTIVITY_KIND_MEMSET"] + ", graphNodeId INTEGER, memKind INTEGER",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": _TIMES + _PLACE + _STREAM + "graphId INTEGER NOT NULL, "
    "graphExecId INTEGER NOT NULL",
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": _PLACE + _STREAM + "eventId INTEGER NOT NULL",
    "CUDA_GPU_MEMORY_USAGE_EVENTS": "start INTEGER NOT NULL, globalPid INTEGER NOT NULL, deviceId INTEGER NOT NULL, "
    "contextId INTEGER NOT NULL, address INTEGER NOT NULL, pc INTEGER NOT NULL, bytes INTEGER NOT NULL, "
    "memKind INTEGER NOT NULL, memoryOperationType INTEGER NOT NULL, name TEXT, correlationId INTEGER",
    "CUBLAS_EVENTS": _CALL + _NAMED,
    "CUDNN_EVENTS": _CALL + _NAMED,
    "MPI_COLLECTIVES_EVENTS": "start INTEGER NOT NULL, end INTEGER, globalTid INTEGER, textId INTEGER, size INTEGER",
    "GPU_METRICS": "rawTimestamp INTEGER NOT NULL, timestamp INTEGER NOT NULL, typeId INTEGER NOT NULL, "
    "metricId INTEGER NOT NULL, value INTEGER NOT NULL",
}  # fmt: skip
_NEW = _MIDDLE | {
    "CUPTI_ACTIVITY_KIND_KERNEL": _MIDDLE["CUPTI_ACTIVITY_KIND_KERNEL"] + ", graphId INTEGER, "
    "tensorSizeMinusOneElements TEXT",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": _OLD["CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"] + ", eventSyncId INTEGER",
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": "timestamp INTEGER, " + _MIDDLE["CUPTI_ACTIVITY_KIND_CUDA_EVENT"]
    + ", eventSyncId INTEGER",
    "CUPTI_ACTIVITY_KIND_OVERHEAD": _CALL + "correlationId INTEGER, nameId INTEGER, overheadType INTEGER NOT NULL",
    "CUPTI_ACTIVITY_KIND_JIT": _CALL + "correlationId INTEGER, nameId INTEGER",
    "NVTX_EVENTS": _OLD["NVTX_EVENTS"] + ", jsonText TEXT, eventId INTEGER NOT NULL PRIMARY KEY",
}  # fmt: skip

TABLES: dict[Generation, dict[str, str]] = {"2021": _OLD, "2024": _MIDDLE, "2026": _NEW}
"""Per generation the columns of every table it may hold; a table exists only where it has rows."""


def columns_of(declaration: str) -> list[str]:
    """The names of the columns of a declaration."""
    lines = [line.split("--")[0] for line in declaration.splitlines()]
    return [part.split()[0] for part in " ".join(lines).split(",") if part.strip()]
