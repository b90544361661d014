"""The file that a trace was recorded in, for what the tables do not hold: a saved form remembers it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from stepscope.errors import InputError
from stepscope.readers import registry
from stepscope.readers.find import find
from stepscope.readers.source import Source
from stepscope.trace.tables import NULL
from stepscope.trace.trace import SourceFile, Trace


def remembering(trace: Trace, source: Source) -> Trace:
    """The trace with the file it was read from on record, unless it says itself which one it was recorded in."""
    if trace.info.source is not None:
        return trace
    return replace(trace, info=replace(trace.info, source=_state(source)))


def arguments_of(trace: Trace, offsets: Sequence[int]) -> list[dict[str, Any]]:
    """Everything the recorded file says about the events at some ``slices.offset``; ``{}`` where none is known.

    Raises InputError where the file is gone, is no longer the same, or says no more than the tables hold.
    """
    source = _source_of(trace)
    reader = registry.recognise(source)
    if reader.arguments is None:
        raise InputError(f"{source.path}: says no more about an event than the tables hold; read those")
    known = [offset for offset in offsets if offset != NULL]
    found = dict(zip(known, reader.arguments(source, known), strict=True))
    return [found.get(offset, {}) for offset in offsets]


def unchanged(trace: Trace) -> Source | None:
    """The file a trace was recorded in, if it is still there and the same."""
    try:
        return _source_of(trace)
    except InputError:
        return None


def beyond(trace: Trace, header: bool) -> list[tuple[int, str]]:
    """How much the recorded file holds of what no table (and with ``header`` not the header) does, in words; nothing
    where the file is gone."""
    source = unchanged(trace)
    told = None if source is None else registry.recognise(source).beyond
    return [] if source is None or told is None else told(source, header)


def _source_of(trace: Trace) -> Source:
    recorded = trace.info.source
    if recorded is None:
        raise InputError("this trace does not say which file it was recorded in; open that file")
    source = find(recorded.path).sources[0]
    if _state(source) != recorded:
        raise InputError(f"{recorded.path}: has changed since it was read; open it again for what it says now")
    return source


def _state(source: Source) -> SourceFile:
    with source.open() as file:
        return SourceFile(os.path.abspath(source.path), source.size, os.fstat(file.fileno()).st_mtime_ns)
