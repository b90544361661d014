"""Single protocol-buffer messages in plain Python, without generated code (protobuf.dev/programming-guides/encoding).

Standard library only: what serves captures reads and writes its few messages with this. Millions of messages are the
business of compiled loops (``protobuf.columns``, ``formats.xplane.writing.wire``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types."""

_Buffer = TypeVar("_Buffer", bytes, memoryview)


def varint(value: int) -> bytes:
    """A whole number; negative ones as their 64-bit complement."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, value: int | str | bytes) -> bytes:
    """One field: a number as varint, text and messages with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode("utf-8", "replace") if isinstance(value, str) else value
    return prefix(number, len(data)) + data


def prefix(number: int, size: int) -> bytes:
    """What stands before the bytes of a text or message."""
    return varint(number << 3 | BYTES) + varint(size)


def fields(message: _Buffer) -> Iterator[tuple[int, int | _Buffer]]:
    """The fields of a message: numbers, and as bytes whatever else, up to where it stops making sense.

    Of a memoryview the bytes are views, which copy nothing.

    >>> list(fields(bytes((8, 150, 1))))
    [(1, 150)]
    """
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        wire = key & 7
        value, begin = _varint(message, at) if wire in (VARINT, BYTES) else (0, at)
        at = begin + {VARINT: 0, BYTES: value, FIXED64: 8, FIXED32: 4}.get(wire, len(message))
        if at > len(message) or key < 8:
            return
        yield key >> 3, value if wire == VARINT else message[begin:at]


def _varint(message: _Buffer, at: int) -> tuple[int, int]:
    """A number and where it ends; beyond the message where it is cut."""
    value = 0
    for place, byte in enumerate(message[at : at + 10]):
        value |= (byte & 127) << 7 * place
        if byte < 128:
            return value & (1 << 64) - 1, at + place + 1  # Ten bytes have room for 70 bits, of which 64 count.
    return 0, len(message) + 1
