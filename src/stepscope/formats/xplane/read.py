"""Recognising, reading, and everything the file says of some events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stepscope import compiled
from stepscope.errors import InputError
from stepscope.formats import foreign
from stepscope.formats.chrome.scan.damage import TEXTS
from stepscope.formats.xplane.beyond import beyond_tables as beyond
from stepscope.formats.xplane.convert import to_trace
from stepscope.formats.xplane.lookup import all_stats, find
from stepscope.formats.xplane.recognise import recognise
from stepscope.formats.xplane.space import metadata_of, read_space
from stepscope.inputs.source import Source
from stepscope.protobuf.columns import Spans, children, numbers
from stepscope.trace.tables import NULL, U8
from stepscope.trace.trace import Loss, Trace

MOST_LINES = 200_000
"""Planes and lines of a file; hundreds are usual, and each costs more than an event."""
MANY_EVENTS, SMALLEST_EVENT = 20_000_000, 8
"""From this many events on a file must have this many bytes for each; real ones have 14 or more."""


def read(source: Source, progress: Callable[[int, int], None] | None = None) -> Trace:
    """Read an XPlane profile.

    Raises InputError where the content holds no usable event.
    """
    mapped, fault = source.data()
    data = np.asarray(mapped)
    losses = []
    if fault is not None:
        losses.append(Loss(fault.code, 1, TEXTS[fault.code], fault.offset, 0, fault.lost_bytes, damaged=True))
    _refuse_dust(source, data)

    def counted(events: int) -> None:
        if events > MANY_EVENTS and events * SMALLEST_EVENT > len(data):
            held = f"{events:,} events in {len(data):,} bytes"
            raise InputError(f"{source.path}: holds {held}, as no profile does; record the run again")

    space = read_space(data, progress, counted)
    if not compiled.available() or compiled.disabled():
        losses.append(Loss("reader", 1, "numba is not used here; reading without it is many times slower"))
    trace = to_trace(space, losses)
    if not trace.completeness.rows:
        raise foreign.empty(source.path, trace.completeness.losses)
    return trace


def _refuse_dust(source: Source, data: U8) -> None:
    """Stop before a file made to fill the memory does so."""
    planes = children(data, Spans.whole(data), 1, cut=True).spans
    lines = children(data, planes, 3, cut=True)
    if len(planes) + len(lines) > MOST_LINES:
        raise InputError(
            f"{source.path}: has {len(lines):,} lines in {len(planes):,} planes, as no profile does; record it again"
        )


def arguments(source: Source, offsets: Sequence[int]) -> list[dict[str, Any]]:
    """The statistics of the events that begin at some offsets, those of their metadata included.

    An offset at which no event begins gives an empty dictionary.
    """
    data = np.asarray(source.data()[0])
    planes = children(data, Spans.whole(data), 1, cut=True).spans
    lines = children(data, planes, 3, cut=True)
    events = children(data, lines.spans, 4)
    at = np.searchsorted(events.spans.start, offsets)
    known = np.flatnonzero(at < len(events))
    known = known[events.spans.start[at[known]] == np.asarray(offsets)[known]]
    rows = at[known]
    spans, plane = events.spans[rows], lines.parent[events.parent[rows]]
    names, keys = metadata_of(data, planes, 4), metadata_of(data, planes, 5)
    id = numbers(data, spans, 1)[0]
    name = find(names, plane, np.where(id == NULL, 0, id))
    by_place: list[dict[str, Any]] = [{} for _ in offsets]
    own = all_stats(data, spans, 4, plane, keys)
    shared = all_stats(data, names.spans[name], 5, plane, keys) if len(names) else [{}] * len(own)
    for row, stats, more, has_name in zip(known.tolist(), own, shared, (name >= 0).tolist(), strict=True):
        by_place[row] = (more if has_name else {}) | stats
    return by_place


__all__ = ["arguments", "beyond", "read", "recognise"]
