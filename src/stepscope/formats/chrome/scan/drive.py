"""How a file reaches the roads: front to back as a stream, or in chunks by several threads."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from stepscope.errors import InputError
from stepscope.formats.chrome.scan.damage import Tally
from stepscope.formats.chrome.scan.header import EVENT_START, TAIL_LIMIT
from stepscope.formats.chrome.scan.roads import Road, Stop
from stepscope.formats.chrome.scan.rows import RowsPart
from stepscope.formats.chrome.scan.window import PADDING, TextWindow, empty_buffer, window_of
from stepscope.inputs.inflate import Stream
from stepscope.inputs.source import Source, fill, pread_into

CHUNK = 8 << 20
"""Bytes that a thread reads at a time."""
MARGIN = 1 << 18
"""Bytes read beyond a chunk, for the event that reaches over its end."""
SLACK = 1 << 20
"""Room in front of a block, for the event that reaches into it."""
HEAD_BLOCK = 1 << 18
_NOWHERE = 1 << 62
_MIN_EVENT_BYTES, _MANY_EVENTS = 16, 20_000_000

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class Listing:
    """The events of a file, still in parts, and where their list ended."""

    parts: deque[RowsPart]
    tally: Tally
    end: int
    """Offset behind the list's closing bracket."""
    tail: bytes
    """What follows, at most ``TAIL_LIMIT`` bytes."""
    total_bytes: int


class Feed:
    """A stream read block by block into one growing text, for finding where the events begin."""

    def __init__(self, stream: Stream) -> None:
        self.data = bytearray()
        self.ended = False
        self._stream = stream

    def more(self) -> bool:
        """Append a block; False at the end of the stream."""
        block = bytearray(HEAD_BLOCK)
        got = 0 if self.ended else fill(self._stream, memoryview(block))
        self.ended = got < len(block)
        self.data += memoryview(block)[:got]
        return got > 0


def read_stream(
    source: Source, feed: Feed, stream: Stream, start: int, road: Road, progress: Callable[[], None]
) -> Listing:
    """Read events front to back; what ``feed`` holds from ``start`` on comes first.

    One thread decompresses while this one parses.
    """
    window = window_of(memoryview(feed.data)[start:], start, feed.ended)
    feed.data = bytearray()
    at, comma_due, stop = road.advance(window, 0, _NOWHERE, False)
    with closing(_blocks(stream)) as blocks:
        ahead = iter(()) if window.last else blocks
        while stop is not Stop.DONE and (block := next(ahead, None)) is not None:
            _refuse_dust(source, road.parts, window.base + at)
            window = block.joined(window, at)
            at, comma_due, stop = road.advance(window, 0, _NOWHERE, comma_due)
            progress()
        end = window.base + at
        tail, total = _rest(window, at, ahead)
    parts, tally = road.take()
    return Listing(deque(parts), tally, end, tail, total)


@dataclass(slots=True)
class _Block:
    """Freshly read text behind a gap of ``SLACK`` bytes, into which the rest of the window before is copied."""

    buffer: npt.NDArray[np.uint8]
    size: int
    last: bool

    def joined(self, before: TextWindow, at: int) -> TextWindow:
        """The window of what ``before`` holds from ``at`` on, and this block."""
        rest = before.end - at
        buffer, gap = self.buffer, SLACK
        if rest > SLACK:
            buffer, gap = empty_buffer(rest + self.size), rest
            buffer[rest : rest + self.size] = self.buffer[SLACK : SLACK + self.size]
        buffer[gap - rest : gap] = before.buffer[at : before.end]
        return TextWindow(buffer[gap - rest :], before.base + at, rest + self.size, self.last)


def _blocks(stream: Stream) -> Generator[_Block]:
    """The rest of a stream, read ahead by one thread into three buffers in turn."""

    def read(buffer: npt.NDArray[np.uint8]) -> _Block:
        size = fill(stream, buffer.data[SLACK : SLACK + CHUNK])
        return _Block(buffer, size, size < CHUNK)

    with ThreadPoolExecutor(1) as pool:
        ahead = deque(pool.submit(read, empty_buffer(SLACK + CHUNK)) for _ in range(3))
        done: _Block | None = None
        while True:
            block = ahead.popleft().result()
            yield block
            if block.last:
                return
            # By now the consumer has copied what it keeps of the block before.
            if done is not None:
                ahead.append(pool.submit(read, done.buffer))
            done = block


def _rest(window: TextWindow, at: int, blocks: Iterator[_Block]) -> tuple[bytes, int]:
    """What follows the list, and the size of the whole text."""
    tail = bytearray(window.view[at : window.end])
    total = window.base + window.end
    for block in blocks:
        total += block.size
        if len(tail) < TAIL_LIMIT:
            tail += block.buffer.data[SLACK : SLACK + block.size]
    return bytes(tail), total


def read_chunks(
    source: Source, start: int, roads: Callable[[], Road], threads: int, progress: Callable[[int], None]
) -> Listing:
    """Read a plain file in chunks, each from the first event start in it to the first behind it.

    A chunk counts only if the one before ended exactly where it began; otherwise it is read again from there.
    """
    count = -(-(source.size - start) // CHUNK)
    with source.open() as file:
        reader = _ChunkReader(source, file, start, roads)
        parts: deque[RowsPart] = deque()
        tally = Tally()
        at, comma_due, done = start, False, False
        with ThreadPoolExecutor(threads) as pool:
            for index, chunk in enumerate(pool.map(reader.read, range(count))):
                limit = start + (index + 1) * CHUNK
                if done or at >= limit:
                    continue
                if chunk is None or chunk.begin != at or comma_due:
                    chunk = reader.read_from(at, limit, comma_due)
                parts.extend(chunk.parts)
                tally.add(chunk.tally)
                _refuse_dust(source, parts, chunk.end)
                at, comma_due, done = chunk.end, chunk.comma_due, chunk.done
                reader.finished = done
                progress(at)
        tail = bytearray(max(min(source.size - at, TAIL_LIMIT), 0))
        got = pread_into(file, memoryview(tail), at, source.path)
    return Listing(parts, tally, at, bytes(tail[:got]), source.size)


@dataclass(slots=True)
class _Chunk:
    """The events that begin in a chunk: from ``begin`` to ``end``, where the next one begins."""

    begin: int
    end: int
    comma_due: bool
    done: bool
    parts: list[RowsPart]
    tally: Tally


class _ChunkReader:
    """Reads chunks; every thread has a road and a buffer of its own."""

    def __init__(self, source: Source, file: BinaryIO, start: int, roads: Callable[[], Road]) -> None:
        self.finished = False
        self._source, self._file, self._start, self._roads = source, file, start, roads
        self._local = threading.local()

    def read(self, index: int) -> _Chunk | None:
        """The chunk of that number; None where no event start is seen in it or the list has ended before."""
        if self.finished:
            return None
        low = self._start + index * CHUNK
        window = self._window(low, CHUNK + MARGIN)
        at = 0
        if index:
            begun = EVENT_START.search(window.view, 0, min(window.end, 1 << 20))
            if begun is None:
                return None
            at = begun.start()
        return self._read(window, at, low + CHUNK, comma_due=False)

    def read_from(self, at: int, limit: int, comma_due: bool) -> _Chunk:
        """The events from ``at`` to the first that begins at ``limit`` or later."""
        return self._read(self._window(at, max(limit - at, 0) + MARGIN), 0, limit, comma_due)

    def _read(self, window: TextWindow, at: int, limit: int, comma_due: bool) -> _Chunk:
        road = self._road()
        begin = window.base + at
        while True:
            at, comma_due, stop = road.advance(window, at, limit - window.base, comma_due)
            if stop is not Stop.NEED_MORE:
                break
            window = self._window(window.base + at, 2 * (window.end - at) + MARGIN)
            at = 0
        return _Chunk(begin, window.base + at, comma_due, stop is Stop.DONE, *road.take())

    def _road(self) -> Road:
        if not hasattr(self._local, "road"):
            self._local.road = self._roads()
        return self._local.road  # type: ignore[no-any-return]

    def _window(self, base: int, size: int) -> TextWindow:
        size = min(size, self._source.size - base)
        buffer = getattr(self._local, "buffer", None)
        if buffer is None or len(buffer) < size + PADDING:
            buffer = empty_buffer(size if size > CHUNK else min(CHUNK + MARGIN, self._source.size))
            self._local.buffer = buffer
        got = pread_into(self._file, buffer.data[:size], base, self._source.path)
        # A file that shrank meanwhile ends where it ends now.
        return TextWindow(buffer, base, got, got < size or base + got >= self._source.size)


def thread_count() -> int:
    """Threads worth starting: the processors this process may use, at most eight."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, 8)


def _refuse_dust(source: Source, parts: deque[RowsPart] | list[RowsPart], size: int) -> None:
    """Stop reading a file made to fill the memory: millions of events of a few bytes each."""
    events = sum(len(part.rows) for part in parts)
    if events > _MANY_EVENTS and events * _MIN_EVENT_BYTES > size:
        raise InputError(
            f"{source.path}: holds {events:,} events in {size:,} bytes, as no profile does; record the run again"
        )
