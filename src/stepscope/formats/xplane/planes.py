"""What planes and lines are, from their names (tsl/profiler/utils/xplane_schema.cc and the profilers that write them).

The names of sparse cores' planes and lines are those of kSparseCorePlaneRegex and kSparseCore*LineName there. Hardware
counters of TPUs stand on ``_counters_`` and on lines ``counters_N``, which XProf's trace viewer leaves out
(xplane_to_trace_container.cc) and its utilisation viewer reads: one event per counter, its value in ``counter_value``.

Only the ops of a TPU and the streams of a GPU are measured; every other line of a device is derived from them by
XProf, or drawn above them, and would count the same time twice.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import NamedTuple

from stepscope.formats.xplane.space import COUNTER_LINE
from stepscope.regex import regex


class LineRole(IntEnum):
    """What the events of a line are."""

    HOST = 0
    HOST_OTHER = 1
    """System calls, scheduling of processors: on the host, but nothing a framework did."""
    STREAM = 2
    """Work that occupies a device."""
    STEPS = 3
    MODULES = 4
    DERIVED = 5
    """Groups of a device's work, or work in flight beside it: never busy time."""
    OVERHEAD = 6
    COUNTERS = 7
    OTHER = 8


class PlaneName(NamedTuple):
    """A plane's name in parts."""

    kind: str
    """``host``, ``host_other``, ``gpu``, ``tpu``, ``sparse_core``, ``custom``, ``beside`` or ``other``."""
    ordinal: int | None
    process: str
    """Process id of a subprocess whose profile was merged in, else empty."""
    thread_space: str
    """Planes with an equal one share their lines: the calls that a device's profiler saw belong to the threads."""


_PROCESS = regex(r" \[(\d+)\]$")
_DEVICE = regex(r"/device:(?P<type>[A-Za-z_]+)(?::(?P<rest>.*))?$")
_HOST_THREADS = ("/host:CPU", "/host:CUPTI", "/host:ROCTRACER", "/host:NVTX-CUPTI", "/host:python-tracer")
_BESIDE = ("/device:CUSTOM:Megascale Trace", "/device:CUSTOM:MOSAIC:")
"""Called devices, and none: what the hosts' Megascale does to exchange data between slices of TPUs over the network,
and what happens inside kernels that a GPU's own plane holds."""
_HOST_OTHER = ("Host CPUs", "Syscalls", "/host:tfstreamz", "/host:__ScopeRangeCallStack__")


def plane_name(name: str) -> PlaneName:
    """Read a plane's name.

    >>> plane_name("/device:TPU:3 SparseCore 1").kind, plane_name("/host:CUPTI [77]").thread_space
    ('sparse_core', '/host:CPU [77]')
    """
    match = _PROCESS.search(name)
    process, suffix = (match[1], match[0]) if match else ("", "")
    bare = name.removesuffix(suffix)
    if bare in _HOST_OTHER:
        return PlaneName("host_other", None, process, name)
    if bare.startswith("/host:"):
        return PlaneName("host", None, process, f"/host:CPU{suffix}" if bare in _HOST_THREADS else name)
    if bare.startswith(_BESIDE):
        return PlaneName("beside", None, process, name)
    device = _DEVICE.match(bare)
    if device is None or device["type"] == "CPU":
        return PlaneName("host" if device else "other", None, process, name)
    rest = device["rest"] or ""
    number = re.match(r"\d{1,6}$", rest)
    kind = device["type"].lower()
    if kind in ("gpu", "tpu") and number:
        return PlaneName(kind, int(rest), process, name)
    if kind == "tpu" and "SparseCore" in rest:
        return PlaneName("sparse_core", None, process, name)
    trailing = re.search(r"\d{1,6}$", rest)
    kind = "custom" if kind == "custom" or kind == "tpu" else kind
    return PlaneName(kind, int(trailing[0]) if trailing else None, process, name)


_STREAM = regex(r"Stream #(-?\d{1,18})(?:\(|$)")
_OPS = ("XLA Ops", "Sparse Core Ops")
_ROLES = {
    "Steps": LineRole.STEPS,
    "XLA Modules": LineRole.MODULES,
    "Sparse Core Modules": LineRole.MODULES,
    "CUPTI overhead": LineRole.OVERHEAD,
    COUNTER_LINE: LineRole.COUNTERS,
} | dict.fromkeys(
    (
        "Sparse Core Steps",
        "Async XLA Ops",
        "Framework Ops",
        "Framework Name Scope",
        "TensorFlow Ops",
        "TensorFlow Name Scope",
        "Source code",
        "Source Code",
        "Launch Stats",
        "Host Offload Ops",
        "XLA TraceMe",
        "Tensor Core Sync Flag",
        "Sparse Core Syncs",
    ),
    LineRole.DERIVED,
)


def line_role(plane: PlaneName, name: str, measured: bool) -> LineRole:
    """What a line is; ``measured`` says whether its plane has a line that is called as measured ones are."""
    if name == COUNTER_LINE:
        return LineRole.COUNTERS
    if plane.kind in ("host", "host_other"):
        return LineRole.HOST if plane.kind == "host" else LineRole.HOST_OTHER
    if plane.kind in ("other", "beside"):
        return LineRole.OTHER
    if is_measured(name):
        return LineRole.STREAM
    if name in _ROLES:
        return _ROLES[name]
    # A plug-in may call its queues as it likes; a TPU's lines are known, and MOSAIC draws inside kernels.
    return LineRole.DERIVED if measured or plane.kind in ("tpu", "sparse_core") else LineRole.STREAM


def is_measured(name: str) -> bool:
    """Whether a line of a device has one of the names of measured lines."""
    return name in _OPS or _STREAM.match(name) is not None


def stream_number(name: str, line_id: int) -> int:
    """The stream that a line of a device shows: the number in its name, else the line's id."""
    match = _STREAM.match(name)
    return int(match[1]) if match else line_id
