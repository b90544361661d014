"""What Kineto's files call things: categories of every generation (2021-2026), copy names, and the header."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from stepscope.hardware.amd import called
from stepscope.hardware.figures import Figures
from stepscope.regex import regex
from stepscope.trace.tables import Direction, Kind, MemoryKind
from stepscope.trace.trace import Device, Info

CATEGORIES: dict[str, Kind] = {
    # host
    "cpu_op": Kind.HOST_OP,
    "operator": Kind.HOST_OP,
    "user_annotation": Kind.ANNOTATION,
    "python_function": Kind.PYTHON_FRAME,
    "overhead": Kind.OVERHEAD,
    "trace": Kind.OTHER,
    "cuda_runtime": Kind.RUNTIME_CALL,
    "runtime": Kind.RUNTIME_CALL,
    "cuda_driver": Kind.RUNTIME_CALL,
    "mtia_runtime": Kind.RUNTIME_CALL,
    "xpu_runtime": Kind.RUNTIME_CALL,
    "xpu_driver": Kind.RUNTIME_CALL,
    "privateuse1_runtime": Kind.RUNTIME_CALL,
    "privateuse1_driver": Kind.RUNTIME_CALL,
    "glow_runtime": Kind.RUNTIME_CALL,
    "cuda_profiler_range": Kind.OTHER,
    "xpu_scope_profiler": Kind.OTHER,
    # device
    "kernel": Kind.KERNEL,
    "gpu_memcpy": Kind.COPY,
    "memcpy": Kind.COPY,
    "gpu_memset": Kind.MEMSET,
    "memset": Kind.MEMSET,
    "gpu_user_annotation": Kind.DEVICE_ANNOTATION,
    "cuda_sync": Kind.DEVICE_WAIT,
    "xpu_sync": Kind.DEVICE_WAIT,
    "cuda_event": Kind.DEVICE_WAIT,
    "mtia_ccp_events": Kind.KERNEL,
    "hpu_op": Kind.KERNEL,
    "collective_comm": Kind.COLLECTIVE,
}
"""Lower-case category to kind; a category that is not here is kept as ``other`` and reported."""

DEVICE_KINDS = (Kind.KERNEL, Kind.COLLECTIVE, Kind.COPY, Kind.MEMSET, Kind.DEVICE_WAIT, Kind.DEVICE_ANNOTATION)

_WHOLE = regex(r"-?\d{1,19}")
_WAIT_NAME = regex(r"event_wait|event_record|\bwait\b|\bsync\b", re.IGNORECASE)
_COPY_NAME = regex(r"dma_request|^memcpy", re.IGNORECASE)
_DIRECTION = regex(
    r"(h(?:ost)?|d(?:evice)?|p(?:eer)?|a)\s*_?to_?\s*(h(?:ost)?|d(?:evice)?|p(?:eer)?|a)(?![a-z])", re.IGNORECASE
)
_ENDS = regex(r"\(\s*(\w+)\s*->\s*(\w+)\s*\)")
_MEMORY_KINDS = {
    "pageable": MemoryKind.PAGEABLE,
    "pinned": MemoryKind.PINNED,
    "device": MemoryKind.DEVICE,
    "managed": MemoryKind.MANAGED,
    "on_chip": MemoryKind.ON_CHIP,
}
_DIRECTIONS = {
    "hd": Direction.H2D,
    "dh": Direction.D2H,
    "dd": Direction.D2D,
    "pp": Direction.P2P,
    "hh": Direction.H2H,
    "ha": Direction.H2D,
    "ah": Direction.D2H,
    "da": Direction.D2D,
    "ad": Direction.D2D,
    "aa": Direction.D2D,
}


def device_kind(kind: Kind, category: str, name: str) -> Kind:
    """Refine the kind of a device event by its name, where the category holds more than one thing (MTIA)."""
    if category != "mtia_ccp_events":
        return kind
    if _WAIT_NAME.search(name):
        return Kind.DEVICE_WAIT
    return Kind.COPY if _COPY_NAME.search(name) else kind


def copy_direction(text: str) -> Direction:
    """Which way a copy goes, from ``Memcpy HtoD (Pageable -> Device)``, ``DtoD`` or ``DEVICE_TO_HOST``."""
    match = _DIRECTION.search(text)
    if not match:
        return Direction.UNKNOWN
    return _DIRECTIONS.get(match[1][0].lower() + match[2][0].lower(), Direction.UNKNOWN)


def copy_memory(name: str) -> tuple[MemoryKind, MemoryKind]:
    """The memory at both ends of a copy, from ``(Pageable -> Device)``."""
    match = _ENDS.search(name)
    if not match:
        return MemoryKind.UNKNOWN, MemoryKind.UNKNOWN
    source, target = (_MEMORY_KINDS.get(end.lower(), MemoryKind.UNKNOWN) for end in match.groups())
    return source, target


LINES = "stepscopeLines"
"""What ``stepscope run`` adds: lines of Python code (``capture/torch_lines.py``)."""
OPTIONS = {
    "with_stack": "stacks",
    "record_shapes": "shapes",
    "profile_memory": "memory",
    "with_flops": "flops",
    "with_modules": "modules",
}


def epoch_of(header: Mapping[str, Any], origin_ns: int) -> int | None:
    """The Unix time of the file's own time of the first event."""
    base = whole(header.get("baseTimeNanoseconds"))
    if base is not None:
        return base + origin_ns
    return origin_ns if origin_ns > 10**18 else None  # before baseTimeNanoseconds existed, times were Unix times


def describe_run(header: Mapping[str, Any], origin_ns: int, resolution_ns: int) -> Info:
    """What the root keys of the file say of the run. ``origin_ns`` is the file's own time of the first event."""
    distributed = header.get("distributedInfo")
    distributed = distributed if isinstance(distributed, dict) else {}
    groups = distributed.get("pg_config")
    listed = header.get("deviceProperties")
    return Info(
        format="Kineto JSON",
        framework="PyTorch",
        origin_epoch_ns=epoch_of(header, origin_ns),
        resolution_ns=resolution_ns,
        devices=tuple(_device(d) for d in listed if isinstance(d, dict) and whole(d.get("id")) is not None)
        if isinstance(listed, list)
        else (),
        rank=whole(distributed.get("rank")),
        world_size=whole(distributed.get("world_size")),
        process_groups=tuple(g for g in groups if isinstance(g, dict)) if isinstance(groups, list) else (),
        host=header["host_name"] if isinstance(header.get("host_name"), str) else None,
        options={ours: bool(header[theirs]) for theirs, ours in OPTIONS.items() if theirs in header},
        # An empty list of devices is kept: it says that the profiler knew of none.
        header={
            key: value
            for key, value in header.items()
            if key not in ("traceEvents", LINES) and (key != "deviceProperties" or value == [])
        },
    )


_AMD_WAVE = 64
"""Threads that run in step on AMD's accelerators; 32 on every GPU of NVIDIA's."""


def _device(properties: Mapping[str, Any]) -> Device:
    major, minor = whole(properties.get("computeMajor")), whole(properties.get("computeMinor"))
    given = properties.get("name")
    name = given.strip() if isinstance(given, str) and given.strip() else None
    version = None if major is None or minor is None else (major, minor)
    memory, count = whole(properties.get("totalGlobalMem")), whole(properties.get("numSms"))
    if name is None and whole(properties.get("warpSize")) == _AMD_WAVE:
        name = called(Figures(version, count, memory_bytes=memory))
    return Device(
        id=whole(properties.get("id")) or 0,
        name=name,
        memory_bytes=memory,
        multiprocessors=count,
        compute_capability=version,
        # Of stepscope's own files: Kineto writes neither.
        clock_khz=whole(properties.get("clockRate")),
        memory_bandwidth=whole(properties.get("memoryBandwidth")),
    )


def whole(value: Any) -> int | None:
    """A whole number, also written as text or with a point; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return int(value) if _WHOLE.fullmatch(value) else None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, float) and value.is_integer() else None
