"""What ends an asynchronous op of XLA: an op of its own in which the device only waits, and for what.

XLA writes a transfer that runs beside other ops as two: the start hands it to a copy engine, the done waits until it is
over (``copy-start``/``copy-done``, ``async-start``/``async-done``, ``send-done``, ``recv-done``). Which memories it is
between stands in the layouts: ``S(5)`` is memory of the host, ``S(1)`` memory on the chip, none is the device's own
(xla/layout.h, xla/service/memory_space_assignment). Collectives' dones count as collectives.
"""

from __future__ import annotations

import re
from enum import Enum
from math import prod
from typing import NamedTuple

from stepscope.names.collectives import half, message_bytes
from stepscope.regex import regex
from stepscope.trace.tables import NULL, Direction, MemoryKind

_LONGEST = 4_096
_COPY_DONE = regex(r"%?(?:copy|async|call|slice|dynamic-slice|dynamic-update-slice)-done(?:[.\d]|$)")
_PEER_DONE = regex(r"%?(?:send|recv|async-collective)-done(?:[.\d]|$)")
_FEED = regex(r"%?(?:infeed|outfeed|host (?:send|recv)(?:-done)?)(?:[.\-]|$)", re.IGNORECASE)
_SPARSE_CORE = regex(r'async_execution_thread="sparsecore"|^sparsecorev0 infeed(?: wait)?$', re.IGNORECASE)
_HOST_TRANSFER = "is_host_transfer=true"
_SHAPE = regex(r"\b([a-z]+\d*[a-z0-9]*)\[([\d,]*)\](?:\{([^{}]*)\})?")
_SPACE = regex(r"S\((\d+)\)")
_MEMORIES = {0: MemoryKind.DEVICE, 1: MemoryKind.ON_CHIP, 5: MemoryKind.PINNED}
_DEVICE, _HOST = frozenset({MemoryKind.DEVICE, MemoryKind.ON_CHIP}), MemoryKind.PINNED


class Awaited(Enum):
    """What a device waits for in an op."""

    MEMORY = 1
    """A copy between two memories."""
    PEER = 2
    """Another device at the other end."""
    CORE = 3
    """A core of its own chip that works for it."""
    FEED = 4
    """The host, to bring or to take data."""
    PYTHON = 5
    """A Python function that the host runs for it."""


class AsyncEnd(NamedTuple):
    """An op that only waits; sizes and memories where its text tells them."""

    awaited: Awaited
    bytes: int = NULL
    source: MemoryKind = MemoryKind.UNKNOWN
    target: MemoryKind = MemoryKind.UNKNOWN

    @property
    def direction(self) -> Direction:
        """Which way it goes."""
        if self.awaited is Awaited.PEER:
            return Direction.P2P
        if self.source is _HOST and self.target in _DEVICE:
            return Direction.H2D
        if self.source in _DEVICE and self.target is _HOST:
            return Direction.D2H
        return Direction.D2D if {self.source, self.target} <= _DEVICE else Direction.UNKNOWN


def async_end(forms: tuple[str, ...], text: str = "") -> AsyncEnd | None:
    """What an op waits for, by its names (opcode, category, own name) and the instruction's text; None for other ops.

    >>> async_end(("copy-done",), "%copy-done = f32[4]{0} copy-done((f32[4]{0}, f32[4]{0:S(5)}, u32[]) %copy-start)")
    AsyncEnd(awaited=<Awaited.MEMORY: 1>, bytes=16, source=<MemoryKind.PINNED: 2>, target=<MemoryKind.DEVICE: 3>)
    >>> async_end(("fusion",)) is None, async_end(("recv-done.3",)).awaited
    (True, <Awaited.PEER: 2>)
    """
    text = text[:_LONGEST]
    if any(_FEED.match(form) for form in forms):
        return AsyncEnd(Awaited.FEED)
    if any(_SPARSE_CORE.search(form) for form in forms):
        return AsyncEnd(Awaited.CORE)
    if any((part := half(form)) is not None and part.done for form in forms):
        return None
    peer = any(_PEER_DONE.match(form) for form in forms)
    if not peer and not any(_COPY_DONE.match(form) for form in forms):
        return None
    if _HOST_TRANSFER in text:
        return AsyncEnd(Awaited.FEED)
    if _SPARSE_CORE.search(text):
        return AsyncEnd(Awaited.CORE)
    return _moved(text, Awaited.PEER if peer else Awaited.MEMORY)


def is_async_end(form: str) -> bool:
    """Whether a category or the name of an op is that of the end of a copy or of an exchange with one other device."""
    return (_COPY_DONE.match(form) or _PEER_DONE.match(form)) is not None


def is_feed(form: str) -> bool:
    """Whether an op waits for the host to bring or take data."""
    return _FEED.match(form) is not None


def _moved(text: str, awaited: Awaited) -> AsyncEnd:
    """What a done's own text tells: its result lies where the copy goes to, what it was given lies at both ends. Of a
    slice that is read or written the smallest array is what moves."""
    arrays = [
        (message_bytes(prod(map(int, dims.split(","))), dtype), _memory(layout))
        for dtype, dims, layout in _SHAPE.findall(text)
        if dims
    ]
    if not arrays:
        return AsyncEnd(awaited)
    sizes = [size for size, _ in arrays if size is not None]
    target = arrays[0][1]
    source = next((memory for _, memory in arrays[1:] if memory is not target), target)
    return AsyncEnd(awaited, min(sizes) if sizes else NULL, source, target)


def _memory(layout: str) -> MemoryKind:
    space = _SPACE.search(layout)
    return _MEMORIES.get(int(space[1]) if space else 0, MemoryKind.UNKNOWN)
