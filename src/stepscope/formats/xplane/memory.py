"""Allocations and frees: the instants that allocators write.

Their statistics are those of BFCAllocator::AddTraceMe (xla/tsl/framework/bfc_allocator.cc), which TPUs write too:
``bytes_available`` is the allocator's limit without what is in use and without what running programs reserve for
themselves (``bytes_reserved``, only of TPUs not 0), so that the three make the limit.
"""

from __future__ import annotations

import numpy as np

from stepscope.formats.tf1.tensors import dtype_text
from stepscope.formats.xplane.fate import DEALLOCATION
from stepscope.formats.xplane.grouping import distinct
from stepscope.formats.xplane.view import View
from stepscope.regex import regex
from stepscope.trace import tables as t

_GPU_ALLOCATOR = regex(r"GPU_(\d{1,6})(?:_|$)")
_CPU, _GPU = 0, 1
"""Kinds of device in the numbering of the memory table."""
_DEVICES = 1 << 20
_NO_NAMES = frozenset({"", "(null)", "dummy"})
"""What is written for an op or a region where none is known (PjRt names no op of a compiled program)."""


def memory_events(view: View, rows: t.Rows, time_ns: t.I64, track: t.I32) -> t.Memory:
    """The table of some events."""
    stats = view.space.stats
    frees = np.array([name == DEALLOCATION for name in view.names] + [False])[view.name[rows]]
    size, allocated = stats.sizes("allocation_bytes", rows), stats.sizes("bytes_allocated", rows)
    reserved, available = stats.sizes("bytes_reserved", rows), stats.sizes("bytes_available", rows)
    told = (allocated != t.NULL) & (reserved != t.NULL) & (available != t.NULL)
    names, each = stats.texts("allocator_name", rows)
    places = [_allocator_place(name) for name in names] + [(t.NULL, t.NULL)]
    device_type, device = np.array(places, np.int64)[each].T if rows.size else np.empty((2, 0), np.int64)
    ordinal = stats.sizes("index_on_host", rows)
    unnamed = (each < 0) & (ordinal >= 0) & (ordinal < _DEVICES)
    return t.Memory(
        time_ns=time_ns,
        track=track,
        device_type=device_type,
        device=np.where(unnamed, ordinal, device),
        address=stats.integers("addr", rows),
        bytes=np.where(frees & (size != t.NULL), -size, size),
        allocated=np.where(told, allocated + reserved, allocated),
        # Allocators that do not tell write 0, also where they hold memory.
        reserved=np.where(told | (reserved < allocated), t.NULL, reserved),
        allocator=np.array([view.builder.text(name) for name in names] + [-1], np.int32)[each],
        limit=np.where(told, allocated + reserved + available, t.NULL),
        available=np.where(told, available, t.NULL),
        fragmentation=_shares(stats.floats("fragmentation", rows)),
        op=_texts(view, "tf_op", rows),
        region=_texts(view, "region_type", rows),
        dtype=_dtypes(view, rows),
        shape=_texts(view, "shape", rows),
        offset=view.events.offset[rows],
    )


def _shares(values: t.F64) -> t.F64:
    return np.where((values >= 0) & (values <= 1), values, np.nan)


def _texts(view: View, key: str, rows: t.Rows) -> t.I32:
    names, each = view.space.stats.texts(key, rows)
    codes = [-1 if name in _NO_NAMES else view.builder.text(name) for name in names]
    return np.array([*codes, -1], np.int32)[each]


def _dtypes(view: View, rows: t.Rows) -> t.I32:
    numbers = view.space.stats.sizes("data_type", rows)
    known, each = distinct(numbers)
    named = [None if number == t.NULL else dtype_text(number) for number in known.tolist()]
    return np.array([-1 if name is None else view.builder.text(name) for name in named], np.int32)[each]


def _allocator_place(name: str) -> tuple[int, int]:
    """Kind of device and device of an allocator: ``GPU_0_bfc``, ``gpu_host_bfc``, ``mklcpu``."""
    match = _GPU_ALLOCATOR.match(name)
    if match:
        return _GPU, int(match[1])
    is_host = name.lower().startswith(("cpu", "mklcpu", "gpu_host", "cuda_host"))
    return (_CPU if is_host else t.NULL), t.NULL
