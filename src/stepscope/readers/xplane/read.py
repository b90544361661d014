"""Recognising, reading, and everything the file says of some events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stepscope.readers import foreign
from stepscope.readers.protobuf import Spans, children, numbers
from stepscope.readers.scan.damage import TEXTS
from stepscope.readers.source import Source
from stepscope.readers.xplane.convert import to_trace
from stepscope.readers.xplane.lookup import all_stats, find
from stepscope.readers.xplane.space import metadata_of, read_space
from stepscope.trace.tables import NULL
from stepscope.trace.trace import Loss, Trace


def read(source: Source, progress: Callable[[int, int], None] | None = None) -> Trace:
    """Read an XPlane profile.

    Raises InputError where the content holds no usable event.
    """
    data, fault = source.data()
    losses = []
    if fault is not None:
        losses.append(Loss(fault.code, 1, TEXTS[fault.code], fault.offset, 0, fault.lost_bytes, damaged=True))
    trace = to_trace(read_space(np.asarray(data), progress), losses)
    if not trace.completeness.rows:
        raise foreign.empty(source.path, trace.completeness.losses)
    return trace


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
    found: list[dict[str, Any]] = [{} for _ in offsets]
    own = all_stats(data, spans, 4, plane, keys)
    shared = all_stats(data, names.spans[name], 5, plane, keys) if len(names) else [{}] * len(own)
    for row, stats, more, has_name in zip(known.tolist(), own, shared, (name >= 0).tolist(), strict=True):
        found[row] = (more if has_name else {}) | stats
    return found
