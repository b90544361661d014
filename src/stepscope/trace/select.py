"""A part of a trace as a trace of its own: chosen slices and what belongs to them."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from stepscope.errors import UsageError
from stepscope.record import record
from stepscope.trace import tables as t
from stepscope.trace.check import check
from stepscope.trace.codes import among, used_codes
from stepscope.trace.forest import nest
from stepscope.trace.trace import Loss, Trace
from stepscope.units import format_ns

_ALWAYS_KEPT = (t.Kind.STEP, t.Kind.ANNOTATION, t.Kind.DEVICE_ANNOTATION)


CUT = "sliced"
"""Code of the record that slices were cut out."""


@record
class TracePart:
    """What of a trace to keep."""

    keep: t.Bools
    """Per slice."""
    words: str
    """What it is, for people: ``steps 10 to 12``."""
    window: tuple[int, int] | None = None
    """Which memory events, counters and instants to keep, in ns from the trace's origin; None for all."""


def by_time(trace: Trace, start_ns: int | None, end_ns: int | None) -> TracePart:
    """Whatever overlaps ``[start_ns, end_ns)``, uncut; a launch keeps its device ops and a device op its launch.

    None is the profile's own start or end.
    """
    start, end = bounds(trace, start_ns, end_ns)
    words = f"the time from {format_ns(start)} to {format_ns(end)}"
    end += end_ns is None  # so that a last event of no length is kept
    return TracePart(with_partners(trace, overlapping(trace, start, end)), words, (start, end))


def by_duration(trace: Trace, min_dur_ns: int) -> TracePart:
    """Slices at least so long, steps and annotations of any length, and the launches of device ops so long."""
    slices, launches = trace.slices, trace.launches
    keep = (slices.dur_ns >= min_dur_ns) | among(slices.kind, _ALWAYS_KEPT)
    keep[launches.call[keep[launches.op]]] = True
    return TracePart(keep, f"slices of {format_ns(min_dur_ns)} and longer")


def overlapping(trace: Trace, start_ns: int, end_ns: int | t.I64) -> t.Bools:
    """Which slices share an instant with ``[start_ns, end_ns)`` (an end for all, or one per slice).

    A slice of no length does where it lies inside.
    """
    start = trace.slices.start_ns
    inside: t.Bools = (start < end_ns) & ((start >= start_ns) | (start + trace.slices.dur_ns > start_ns))
    return inside


def with_partners(trace: Trace, keep: t.Bools) -> t.Bools:
    """The slices, the calls that launched those among them, and the ops which those launched."""
    call, op = trace.launches.call, trace.launches.op
    keep = keep.copy()
    keep[call[keep[op]]] = True
    keep[op[keep[call]]] = True
    return keep


def select(trace: Trace, *parts: TracePart) -> Trace:
    """What all the parts keep, as a valid trace: ids are renumbered and parents found anew among the kept slices.

    A row that belongs to a slice goes where its slice goes; an absent launch is null. Tracks and devices stay. That
    slices were cut out is on record in ``completeness``, and is no loss. Raises UsageError where no slice is kept.
    """
    keep = np.logical_and.reduce([part.keep for part in parts])
    if not keep.any():
        start, end = extent(trace)
        lasts = f"{format_ns(start)} to {format_ns(end)}"
        raise UsageError(f"this profile holds nothing of {_words(parts)}: it lasts from {lasts}")
    windows = [part.window for part in parts if part.window is not None]
    window = (max(start for start, _ in windows), min(end for _, end in windows)) if windows else None
    new_id = _renumbering(keep)
    tables = {name: _kept_rows(getattr(trace, name), keep, window, new_id) for name in t.TABLES}
    slices: t.Slices = tables["slices"]
    placed, is_step = (slices.track, slices.start_ns, slices.dur_ns), slices.kind == t.Kind.STEP
    parent, depth = nest(*placed, is_step, max(trace.info.resolution_ns, 1))
    tables["slices"] = dataclasses.replace(slices, parent=parent, depth=depth)
    used = _used_texts(tables, len(trace.strings))
    made: dict[str, Any] = {name: _frozen(table, _renumbering(used)) for name, table in tables.items()}
    cut = int(keep.size - keep.sum())
    loss = Loss(CUT, cut, f"slices were cut out of this profile, which keeps only {_words(parts)}")
    part = Trace(
        info=trace.info,
        completeness=dataclasses.replace(trace.completeness, losses=(*trace.completeness.losses, loss)),
        strings=tuple(text for text, is_used in zip(trace.strings, used.tolist(), strict=True) if is_used),
        hlo=trace.hlo,
        **made,
    )
    check(part)
    return part


def cuts_of(trace: Trace) -> list[Loss]:
    """What was cut out of what was recorded."""
    return [loss for loss in trace.completeness.losses if loss.code == CUT]


def _renumbering(keep: t.Bools) -> t.I32:
    """The new number of each row or text, -1 where it is not kept; -1 stays -1."""
    numbers = np.where(keep, np.cumsum(keep) - 1, -1)
    return np.append(numbers, -1).astype(np.int32)


def _kept_rows(table: t.Table, keep: t.Bools, window: tuple[int, int] | None, new_id: t.I32) -> Any:
    """The rows whose slices are all kept, or whose time lies in the window, with the slices' new ids."""
    rows = keep.copy() if isinstance(table, t.Slices) else np.ones(len(table), np.bool_)
    for f in dataclasses.fields(table):
        values = getattr(table, f.name)
        if f.metadata["table"] == "slices" and not f.metadata["nullable"]:
            rows &= keep[values]
        elif f.name == "time_ns" and window is not None:
            rows &= (values >= window[0]) & (values < window[1])
    columns = {f.name: getattr(table, f.name)[rows] for f in dataclasses.fields(table)}
    for f in dataclasses.fields(table):
        if f.metadata["table"] == "slices":
            columns[f.name] = new_id[columns[f.name]]
    return type(table)(**columns)


def _used_texts(tables: dict[str, Any], count: int) -> t.Bools:
    used = np.zeros(count, np.bool_)
    for table in tables.values():
        for f in dataclasses.fields(table):
            if f.metadata["text"]:
                used[used_codes(getattr(table, f.name), count)] = True
    return used


def _frozen(table: t.Table, new_code: t.I32) -> t.Table:
    """The table with the texts' new codes, read-only."""
    columns = {
        f.name: new_code[values] if f.metadata["text"] else values
        for f in dataclasses.fields(table)
        for values in (getattr(table, f.name),)
    }
    for values in columns.values():
        values.setflags(write=False)
    return type(table)(**columns)


def extent(trace: Trace) -> tuple[int, int]:
    """When the first slice starts and the last one ends, in ns from the trace's origin; ``(0, 0)`` without slices."""
    start = trace.slices.start_ns
    return (int(start.min()), int((start + trace.slices.dur_ns).max())) if start.size else (0, 0)


def bounds(trace: Trace, start_ns: int | None, end_ns: int | None) -> tuple[int, int]:
    """A stretch of time, with the profile's own start and end for None."""
    first, last = extent(trace)
    return first if start_ns is None else start_ns, last if end_ns is None else end_ns


def _words(parts: tuple[TracePart, ...]) -> str:
    return " and ".join(part.words for part in parts)
