"""The arguments of single events, read again from the file when somebody asks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from stepscope.formats.chrome.scan import decode
from stepscope.formats.chrome.scan.mend import mend_arguments
from stepscope.formats.chrome.scan.plain import Incomplete, Malformed, Member, read_object
from stepscope.formats.chrome.scan.window import EVENT_LIMIT
from stepscope.inputs.source import Source, fill, pread_into

_FIRST_LOOK = 4096
_BLOCK = 1 << 20


def read_arguments(source: Source, offsets: Sequence[int]) -> list[dict[str, Any]]:
    """The ``args`` of the events at ``offsets`` (as in ``RawEvents.offset``), in that order; ``{}`` for none.

    A plain file is read at the offsets; a gzip file is decompressed once more from its start, up to the last offset.
    Raises :class:`~stepscope.errors.InputError` where the file cannot be read any more.
    """
    wanted = sorted({int(offset) for offset in offsets})
    read = _from_plain if source.container == "plain" else _from_stream
    by_offset = dict(read(source, wanted))
    return [by_offset.get(int(offset), {}) for offset in offsets]


def parse_arguments(text: bytes) -> dict[str, Any]:
    """The ``args`` of the event that begins a text, damage repaired; ``{}`` for none."""
    return _arguments(text, last=True) or {}


def _from_plain(source: Source, offsets: list[int]) -> Iterator[tuple[int, dict[str, Any]]]:
    with source.open() as file:
        for offset in offsets:
            size = _FIRST_LOOK
            while True:
                buffer = bytearray(size)
                got = pread_into(file, memoryview(buffer), offset, source.path)
                arguments = _arguments(memoryview(buffer)[:got], last=got < size or size >= EVENT_LIMIT)
                if arguments is not None:
                    break
                size *= 8
            yield offset, arguments


def _from_stream(source: Source, offsets: list[int]) -> Iterator[tuple[int, dict[str, Any]]]:
    with source.stream() as stream:
        held, base, ended = bytearray(), 0, False
        for offset in offsets:
            while True:
                skipped = min(offset - base, len(held))
                del held[:skipped]
                base += skipped
                if base == offset and held:
                    arguments = _arguments(held, last=ended or len(held) >= EVENT_LIMIT)
                    if arguments is not None:
                        yield offset, arguments
                        break
                if ended:
                    break
                block = bytearray(max(_BLOCK, len(held)))
                got = fill(stream, memoryview(block))
                ended = got < len(block)
                held += memoryview(block)[:got]


def _arguments(data: Any, last: bool) -> dict[str, Any] | None:
    """The args of the event that begins ``data``; None where more of it must be seen."""
    args: list[Member] = []
    try:
        if data[:1] == b"{":
            read_object(data, 0, len(data), args)
    except Incomplete:
        if not last:
            return None
        args = mend_arguments(bytes(data))
    except Malformed:
        args = mend_arguments(bytes(data))
    return _decoded(args)


def _decoded(args: Iterable[Member]) -> dict[str, Any]:
    return {key.decode(errors="replace"): decode.value(token) for key, token in args}
