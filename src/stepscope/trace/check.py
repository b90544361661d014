"""What the rest of stepscope relies on: every trace is checked, whether a reader built it or a saved file holds it.

Compiled loops read without bounds checks, so that a saved file from anywhere is safe only once this has passed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from stepscope.compiled import kernel
from stepscope.errors import TraceInvariantError
from stepscope.trace import tables as t
from stepscope.trace.trace import Trace

LONGEST_NS = 1 << 61
"""No time is further from the origin, and no slice longer, than this (73 years): sums and differences fit int64."""

_SLICE_FAULTS = (
    "",
    "a slice has a negative duration",
    "slices are not sorted by track",
    "slices are not sorted by start and falling duration",
    "a parent does not come before its child",
    "a parent lies on another track",
    "a depth does not follow from the parent's",
    "a slice lies more than 73 years away",
)


def check(trace: Trace) -> None:
    """Verify a trace that a reader made.

    Raises TraceInvariantError naming the first broken promise.
    """
    complaint = fault_of(trace)
    if complaint:
        raise TraceInvariantError(f"internal error: {complaint}; please report this profile")


def fault_of(trace: Trace) -> str:
    """The first broken promise of a trace, empty where it keeps them all."""
    return next(_faults(trace), "")


def _faults(trace: Trace) -> Iterator[str]:
    sizes: Mapping[str, int] = {name: len(getattr(trace, name)) for name in t.TABLES}
    for name, kind in t.TABLES.items():
        yield from _column_faults(name, getattr(trace, name), kind, sizes, len(trace.strings))
    slices, ops = trace.slices, trace.device_ops
    fault = _slice_fault(slices.track, slices.start_ns, slices.dur_ns, slices.depth, slices.parent, LONGEST_NS)
    if fault:
        yield _SLICE_FAULTS[fault]
    if not _sorted_within(ops.device, slices.start_ns[ops.slice]):
        yield "device_ops are not sorted by device and start"
    if (trace.memory.time_ns[1:] < trace.memory.time_ns[:-1]).any():
        yield "memory is not in time order"


def _column_faults(
    name: str, table: t.Table, kind: type[t.Table], sizes: Mapping[str, int], strings: int
) -> Iterator[str]:
    for declared in dataclasses.fields(kind):
        values, meta = getattr(table, declared.name), declared.metadata
        where = f"{name}.{declared.name}"
        if values.dtype != t.dtype_of(declared):
            yield f"{where} has type {values.dtype}"
        if len(values) != sizes[name]:
            yield f"{where} has {len(values)} rows, not {sizes[name]}"
        limit = strings if meta["text"] else sizes[meta["table"]] if meta["table"] else None
        if meta["labels"] is not None:
            limit = len(meta["labels"])
        if len(values) == 0:
            continue
        if limit is not None:
            low = -1 if meta["nullable"] else 0
            if int(values.min()) < low or int(values.max()) >= limit:
                yield f"{where} is out of range"
        elif not meta["nullable"] and t.is_null(values).any():
            yield f"{where} is absent in a row"


def _sorted_within(group: t.I32, values: t.I64) -> bool:
    """Whether rows are sorted by group, and by value within a group."""
    rises, same = group[1:] > group[:-1], group[1:] == group[:-1]
    return bool((rises | (same & (values[1:] >= values[:-1]))).all())


@kernel
def _slice_fault(track: t.I32, start: t.I64, dur: t.I64, depth: t.I16, parent: t.I32, longest: int) -> int:
    """The number of the first broken promise between slices, 0 for none; columns are equally long."""
    for i in range(track.size):
        if dur[i] < 0:
            return 1
        if start[i] < -longest or start[i] > longest or dur[i] > longest:
            return 7
        if i > 0:
            if track[i] < track[i - 1]:
                return 2
            if track[i] == track[i - 1] and (
                start[i] < start[i - 1] or (start[i] == start[i - 1] and dur[i] > dur[i - 1])
            ):
                return 3
        outer = parent[i]
        if outer < 0:
            if depth[i] != 0:
                return 6
            continue
        if outer >= i:
            return 4
        if track[outer] != track[i]:
            return 5
        if depth[i] != min(depth[outer] + 1, 32767):
            return 6
    return 0
