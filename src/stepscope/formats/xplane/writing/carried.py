"""A profile that was recorded as XPlane, written as XPlane: the recorded bytes, without the events that were cut out.

The tables hold what the analyses need, not what XProf shows beside it: programs, costs, statistics of every kind. So
the file itself is carried, message by message, and only the events of its lines are chosen among. Damaged messages end
where they stop making sense.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import msgspec
import numpy as np

from stepscope.formats import recorded
from stepscope.formats.readers import HEAD_BYTES
from stepscope.formats.restated import OwnPart, space_of
from stepscope.formats.xplane.recognise import recognise
from stepscope.formats.xplane.space import metadata_of
from stepscope.formats.xplane.stats import PART, RUN
from stepscope.formats.xplane.writing.plane import Plane
from stepscope.inputs.source import Source
from stepscope.protobuf.columns import Children, Spans, children, decode, texts
from stepscope.trace.codes import united
from stepscope.trace.select import cuts_of
from stepscope.trace.tables import I64, NULL, U8
from stepscope.trace.trace import Trace
from stepscope.wire import prefix

_PLANES, _LINES, _STAT_NAMES, _EVENTS = 1, 3, 5, 4
"""Fields of ``XSpace``, of ``XPlane`` twice, and of ``XLine``."""
_OFFSETS = ("slices", "memory", "counters", "instants")
"""Tables that say where the event of each row stands in the file."""

Piece = bytes | memoryview


def recorded_file(trace: Trace) -> Source | None:
    """The file a trace was recorded in, if its events can be carried: it is XPlane and still what it was.

    A part of a file that stepscope laid out is laid out anew: what stands there only for XProf is made of the whole.
    """
    if trace.info.format != "XPlane":
        return None
    source = recorded.unchanged(trace)
    if source is None or not recognise(source.head(HEAD_BYTES)) or (cuts_of(trace) and _is_own(source)):
        return None
    return source


def _is_own(source: Source) -> bool:
    data = np.asarray(source.data()[0])
    planes = children(data, Spans.whole(data), _PLANES, cut=True).spans
    return RUN in decode(data, texts(data, metadata_of(data, planes, _STAT_NAMES).spans, 2))


def from_beside(trace: Trace) -> int:
    """Rows of what stands in another file than the one that is carried."""
    return sum(int((getattr(trace, table).offset == NULL).sum()) for table in _OFFSETS)


def pieces(trace: Trace, source: Source) -> Iterator[Piece]:
    """The bytes of the new file."""
    data = np.asarray(source.data()[0])
    cuts = cuts_of(trace)
    kept = _kept_events(trace) if cuts else None
    yield from _message(data, 0, len(data), _PLANES, lambda start, end: _plane(data, start, end, kept))
    if cuts:
        yield from _part(trace)


def _kept_events(trace: Trace) -> I64:
    """Where the events that are rows begin."""
    offsets = np.concatenate([getattr(trace, table).offset for table in _OFFSETS])
    return united(offsets[offsets != NULL])


def _plane(data: U8, start: int, end: int, kept: I64 | None) -> Iterator[Piece]:
    return _message(data, start, end, _LINES, lambda begin, stop: _line(data, begin, stop, kept))


def _message(
    data: U8, start: int, end: int, number: int, rewritten: Callable[[int, int], Iterator[Piece]]
) -> Iterator[Piece]:
    """The sound part of a message, with the sub-messages of one field rewritten."""
    parts = children(data, Spans(np.array([start]), np.array([end])), number, cut=True)
    heads = _heads(data, parts).tolist()
    for head, begin, stop in zip(heads, parts.spans.start.tolist(), parts.spans.end.tolist(), strict=True):
        yield data[start:head].data
        body = list(rewritten(begin, stop))
        yield prefix(number, sum(map(len, body)))
        yield from body
        start = stop
    broken = int(parts.broken[0])
    yield data[start : end if broken < 0 else max(start, broken)].data


def _line(data: U8, start: int, end: int, kept: I64 | None) -> Iterator[Piece]:
    """The sound part of a line, without the events that are not kept."""
    events = children(data, Spans(np.array([start]), np.array([end])), _EVENTS)
    broken = int(events.broken[0])
    end = end if broken < 0 else broken
    gone = np.zeros(len(events), np.bool_) if kept is None else ~np.isin(events.spans.start, kept)
    if not gone.any():
        yield data[start:end].data
        return
    edges = np.zeros(end - start + 1, np.int8)
    np.add.at(edges, _heads(data, events)[gone] - start, 1)
    np.add.at(edges, events.spans.end[gone] - start, -1)
    yield data[start:end][np.cumsum(edges[:-1], dtype=np.int8) == 0].data


def _heads(data: U8, parts: Children) -> I64:
    """Where the fields of some sub-messages begin: before what says their size stands one byte, the tag.

    Of a size only the last byte is below 128, and so is the tag.
    """
    head = parts.spans.start - 2
    while (longer := data[head] > 127).any():
        head = head - longer
    return head


def _part(trace: Trace) -> Iterator[Piece]:
    """A plane that says what the file is a part of."""
    run, first = space_of(trace), int(trace.slices.start_ns.min())
    run.programs, run.steps = [], run.steps_from(first)
    part = OwnPart(run, [(loss.count, loss.text) for loss in cuts_of(trace)])
    plane = Plane("stepscope")
    # Not msgspec's own JSON: profiles hold lone surrogates.
    plane.describe({PART: json.dumps(msgspec.to_builtins(part))})
    yield from plane.parts()
