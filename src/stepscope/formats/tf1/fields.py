"""The fields of a ``NodeExecStats`` by name, for what the tables do not hold of it.

tensorflow/core/framework/step_stats.proto, tensor_description.proto, allocation_description.proto, tensor_shape.proto.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stepscope.wire import fields

Names = Mapping[int, tuple[str, Any]]
"""Per field its name and what it is: int, str, or the names of a message; in a list where it may be repeated."""


def _numbers(*names: str) -> dict[int, tuple[str, Any]]:
    return {number: (name, int) for number, name in enumerate(names, 1) if name}


_ALLOCATION: Names = _numbers(
    "requested_bytes", "allocated_bytes", "", "allocation_id", "has_single_reference", "ptr"
) | {3: ("allocator_name", str)}
_SHAPE: Names = {2: ("dim", [{1: ("size", int), 2: ("name", str)}]), 3: ("unknown_rank", int)}
_TENSOR: Names = {1: ("dtype", int), 2: ("shape", _SHAPE), 4: ("allocation_description", _ALLOCATION)}
_MEMORY: Names = _numbers("", "total_bytes", "peak_bytes", "live_bytes", "allocator_bytes_in_use") | {
    1: ("allocator_name", str),
    6: ("allocation_records", [_numbers("alloc_micros", "alloc_bytes")]),
}
_MEMORY_STATS: Names = _numbers(
    "temp_memory_size", "device_temp_memory_size", "persistent_memory_size", "device_persistent_memory_size"
)
NODE: Names = _numbers(
    *("", "all_start_micros", "op_start_rel_micros", "op_end_rel_micros", "all_end_rel_micros", "", "", ""),
    *("scheduled_micros", "thread_id", "", "", "all_start_nanos", "op_start_rel_nanos", "op_end_rel_nanos"),
    *("all_end_rel_nanos", "scheduled_nanos"),
) | {
    1: ("node_name", str),
    6: ("memory", [_MEMORY]),
    7: ("output", [{1: ("slot", int), 3: ("tensor_description", _TENSOR)}]),
    8: ("timeline_label", str),
    11: ("referenced_tensor", [_ALLOCATION]),
    12: ("memory_stats", _MEMORY_STATS),
}


def named(message: bytes, names: Names) -> dict[str, Any]:
    """The fields of a message that ``names`` knows; numbers are signed."""
    values: dict[str, Any] = {}
    for number, value in fields(message):
        name, what = names.get(number, ("", None))
        if what is int and isinstance(value, int):
            values[name] = value - (1 << 64) if value >> 63 else value
        elif isinstance(value, int) or what in (None, int):
            continue
        elif what is str:
            values[name] = value.decode("utf-8", "replace")
        elif isinstance(what, list):
            values.setdefault(name, []).append(named(value, what[0]))
        else:
            values[name] = named(value, what)
    return values
