"""The file that a trace was recorded in, for what the tables do not hold: a saved form remembers it."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from stepscope.errors import InputError
from stepscope.formats import readers
from stepscope.formats.find import find
from stepscope.inputs.inflate import reason
from stepscope.inputs.source import Source
from stepscope.trace.tables import NULL
from stepscope.trace.trace import SourceFile, Trace

_PIECE = 1 << 20


def remembering(trace: Trace, source: Source) -> Trace:
    """The trace with the file it was read from on record.

    A saved form names the file it was made of itself. It may come from anywhere, and so may the name: what is opened
    for it is a file of that name beside it whose digest is the one that it holds, and nothing else.
    """
    named = trace.info.source
    if named is None:
        return replace(trace, info=replace(trace.info, source=_state(source)))
    beside = os.path.join(os.path.dirname(source.place), os.path.basename(named.path))
    known = replace(named, path=beside) if named.digest is not None and _is_file(beside) else None
    return replace(trace, info=replace(trace.info, source=known))


def proven(trace: Trace) -> Trace:
    """The trace with the digest of the file it was read from, for a saved form; without a source where that has changed
    or gone, as nothing proves then which it was."""
    named = trace.info.source
    if named is None or named.digest is not None:
        return trace
    source = unchanged(trace)
    known = None if source is None else replace(named, digest=_digest(source))
    return replace(trace, info=replace(trace.info, source=known))


def arguments_of(trace: Trace, offsets: Sequence[int]) -> list[dict[str, Any]]:
    """Everything the recorded file says about the events at some ``slices.offset``; ``{}`` where none is known.

    Raises InputError where the file is gone, is no longer the same, or says no more than the tables hold.
    """
    source = _source_of(trace)
    reader = readers.recognise(source)
    if reader.arguments is None:
        raise InputError(f"{source.path}: says no more about an event than the tables hold; read those")
    known = [offset for offset in offsets if offset != NULL]
    by_offset = dict(zip(known, reader.arguments(source, known), strict=True))
    return [by_offset.get(offset, {}) for offset in offsets]


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
    told = None if source is None else readers.recognise(source).beyond
    return [] if source is None or told is None else told(source, header)


def _source_of(trace: Trace) -> Source:
    recorded = trace.info.source
    if recorded is None:
        raise InputError("the file that this was made of does not lie beside it: open that file, or put it there")
    source = find(recorded.path).sources[0]
    state = _state(source)
    if recorded.digest is not None:
        same = state.bytes == recorded.bytes and _known_digest(source, state) == recorded.digest
    else:
        same = state == recorded
    if not same:
        raise InputError(f"{recorded.path}: has changed since it was read; open it again for what it says now")
    return source


def _is_file(path: str) -> bool:
    """Whether a path leads to a file itself, through no link of that name."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def _state(source: Source) -> SourceFile:
    with source.open() as file:
        return SourceFile(os.path.abspath(source.place), source.size, os.fstat(file.fileno()).st_mtime_ns)


def _digest(source: Source) -> str:
    digest = hashlib.sha256()
    with source.open() as file:
        try:
            while piece := file.read(_PIECE):
                digest.update(piece)
        except OSError as error:
            raise InputError(f"{source.path}: cannot be read: {reason(error)}") from error
    return digest.hexdigest()


def _known_digest(source: Source, state: SourceFile) -> str:
    """The same, read once as long as the file stays as it is."""
    if state not in _digests:
        _digests.clear()
        _digests[state] = _digest(source)
    return _digests[state]


_digests: dict[SourceFile, str] = {}
