"""Protocol-buffer messages without a schema, for tests: a writer, and a plain reader that shares nothing with ours."""

from __future__ import annotations

import struct
from collections.abc import Iterator

Value = int | float | str | bytes


def message(*fields: tuple[int, Value]) -> bytes:
    """Fields in order: integers as varints, floats as doubles, text and bytes with their length."""
    return b"".join(_field(number, value) for number, value in fields)


def packed(*values: int) -> bytes:
    """A repeated number as proto3 writes it."""
    return b"".join(map(varint, values))


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that begins at a byte, and where it ends."""
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def _field(number: int, value: Value) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def fields(data: bytes) -> Iterator[tuple[int, int | float | bytes]]:
    """Every field of a message; an assertion fails where it is not well formed."""
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        assert key >> 3
        if key & 7 == 0:
            value, at = read_varint(data, at)
            yield key >> 3, value
            continue
        assert key & 7 in (1, 2), f"wire type {key & 7}"
        size, at = (8, at) if key & 7 == 1 else read_varint(data, at)
        assert at + size <= len(data)
        chunk = data[at : at + size]
        at += size
        yield key >> 3, struct.unpack("<d", chunk)[0] if key & 7 == 1 else chunk
