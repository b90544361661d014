"""What the rest of stepscope relies on: every trace is checked, whether a reader built it or a saved file holds it.

Compiled loops read without bounds checks, so that a saved file from anywhere is safe only once this has passed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from stepscope.errors import TraceInvariantError
from stepscope.trace import tables as t
from stepscope.trace.trace import InferredSteps, Trace

LONGEST_NS = 1 << 61
"""No time is further from the origin, and no slice longer, than this (73 years): sums and differences fit int64."""

_DEEPEST = int(np.iinfo(np.int16).max)
_BLOCK = 1 << 16


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
    fault = _slice_fault(slices) or steps_fault(trace.info.steps)
    if fault:
        yield fault
    if not _sorted_within(ops.device, slices.start_ns[ops.slice]):
        yield "device_ops are not sorted by device and start"
    if len(trace.hlo) not in (0, len(trace.programs)):
        yield f"hlo has {len(trace.hlo)} programs, not {len(trace.programs)}"
    if (trace.memory.time_ns[1:] < trace.memory.time_ns[:-1]).any():
        yield "memory is not in time order"


def steps_fault(steps: InferredSteps | None) -> str:
    """What is wrong with inferred steps, empty for nothing."""
    if steps is None:
        return ""
    start, end, number = steps.start_ns, steps.end_ns, steps.number
    if not len(start) == len(end) == len(number) > 0:
        return "the inferred steps are not told whole"
    if max(map(abs, (*start, *end, *(n or 0 for n in number)))) > LONGEST_NS:
        return "an inferred step lies more than 73 years away"
    if any(a >= b for a, b in pairwise(start)) or any(a > b for a, b in zip(start, end, strict=True)):
        return "the inferred steps are not in order of time"
    return ""


@cache
def _declared(kind: type[Any]) -> list[tuple[str, np.dtype[Any], Mapping[str, Any]]]:
    """The columns of a table: name, type and what else is declared of them."""
    return [(declared.name, t.dtype_of(declared), declared.metadata) for declared in dataclasses.fields(kind)]


def _column_faults(
    name: str, table: t.Table, kind: type[t.Table], sizes: Mapping[str, int], strings: int
) -> Iterator[str]:
    for column, dtype, meta in _declared(kind):  # type: ignore[arg-type]  # a class has a hash
        values = getattr(table, column)
        where = f"{name}.{column}"
        if values.dtype != dtype:
            yield f"{where} has type {values.dtype}"
        if len(values) != sizes[name]:
            yield f"{where} has {len(values)} rows, not {sizes[name]}"
        if len(values) == 0:
            continue
        limit = strings if meta["text"] else sizes[meta["table"]] if meta["table"] else None
        if meta["labels"] is not None:
            limit = len(meta["labels"])
        if limit is not None:
            low = -1 if meta["nullable"] else 0
            if int(values.min()) < low or int(values.max()) >= limit:
                yield f"{where} is out of range"
        elif not meta["nullable"] and t.is_null(values).any():
            yield f"{where} is absent in a row"
        elif meta["least"] is not None and ((values < meta["least"]) & ~t.is_null(values)).any():
            yield f"{where} is less than it can be"


def _sorted_within(group: t.I32, values: t.I64) -> bool:
    """Whether rows are sorted by group, and by value within a group."""
    rises, same = group[1:] > group[:-1], group[1:] == group[:-1]
    return bool((rises | (same & (values[1:] >= values[:-1]))).all())


def _slice_fault(slices: t.Slices) -> str:
    """The first broken promise between slices, empty for none; blocks that fit a processor's cache at a time."""
    for low in range(0, len(slices), _BLOCK):
        high = min(low + _BLOCK, len(slices))
        fault = _order_fault(slices, max(low - 1, 0), high) or _nesting_fault(slices, low, high)
        if fault:
            return fault
    return ""


def _order_fault(slices: t.Slices, low: int, high: int) -> str:
    track, start, dur = slices.track[low:high], slices.start_ns[low:high], slices.dur_ns[low:high]
    if int(dur.min()) < 0:
        return "a slice has a negative duration"
    if max(-int(start.min()), int(start.max()), int(dur.max())) > LONGEST_NS:
        return "a slice lies more than 73 years away"
    if (track[1:] < track[:-1]).any():
        return "slices are not sorted by track"
    earlier = (start[1:] < start[:-1]) | ((start[1:] == start[:-1]) & (dur[1:] > dur[:-1]))
    if (earlier & (track[1:] == track[:-1])).any():
        return "slices are not sorted by start and falling duration"
    return ""


def _nesting_fault(slices: t.Slices, low: int, high: int) -> str:
    parent, depth = slices.parent[low:high], slices.depth[low:high]
    if (parent >= np.arange(low, high, dtype=np.int32)).any():
        return "a parent does not come before its child"
    nested = parent >= 0
    outer = parent[nested]
    if (slices.track[outer] != slices.track[low:high][nested]).any():
        return "a parent lies on another track"
    if depth[~nested].any() or (depth[nested] != np.minimum(slices.depth[outer], _DEEPEST - 1) + 1).any():
        return "a depth does not follow from the parent's"
    return ""
