"""Protocol-buffer messages as trees that can be changed, and written with lengths that lie."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from random import Random

from tests.kit.wire import varint

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
DEPTH = 12
"""Messages within each other; what lies deeper is taken for bytes."""


@dataclass
class Field:
    """A field; one of wire type BYTES holds bytes or, in ``inner``, further fields."""

    number: int
    wire: int
    value: int = 0
    data: bytes = b""
    inner: list[Field] = field(default_factory=list)
    lie: int = 0
    """Added to the length that is written."""
    padding: int = 0
    """Bytes by which the number is written longer than it need be."""


def parse(data: bytes, depth: int = 0) -> list[Field] | None:
    """The fields of a message; None where it is not well formed."""
    found: list[Field] = []
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        wire = key & 7
        if at < 0 or key < 8 or wire not in (VARINT, FIXED64, BYTES, FIXED32):
            return None
        size, value = {FIXED64: 8, FIXED32: 4}.get(wire, 0), 0
        if wire in (VARINT, BYTES):
            value, at = _varint(data, at)
            size = value if wire == BYTES else 0
        if at < 0 or at + size > len(data):
            return None
        chunk = data[at : at + size]
        inner = (
            parse(chunk, depth + 1) if wire == BYTES and depth < DEPTH and not chunk.isascii() | (size < 2) else None
        )
        if (
            inner is None
            and wire == BYTES
            and depth < DEPTH
            and size >= 2
            and not chunk.decode("latin-1").isprintable()
        ):
            inner = parse(chunk, depth + 1)
        found.append(Field(key >> 3, wire, value, b"" if inner else chunk, inner or []))
        at += size
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(10):
        if at + place >= len(data):
            break
        value |= (data[at + place] & 127) << 7 * place
        if data[at + place] < 128:
            return value, at + place + 1
    return 0, -1


def write(fields: list[Field]) -> bytes:
    """The bytes of a message."""
    out = bytearray()
    for one in fields:
        out += varint(one.number << 3 | one.wire)
        if one.wire == VARINT:
            out += _long(one.value, one.padding)
        elif one.wire == BYTES:
            content = write(one.inner) if one.inner else one.data
            out += _long(max(len(content) + one.lie, 0), one.padding) + content
        else:
            out += one.data
    return bytes(out)


def _long(value: int, padding: int) -> bytes:
    written = varint(value)
    return bytes([*written[:-1], written[-1] | 128, *[128] * (padding - 1), 0]) if padding else written


def change(random: Random, fields: list[Field], others: list[Field]) -> None:
    """Change one field somewhere in a message; may borrow one from another message."""
    holder, at = random.choice(_places(fields))
    one = holder[at]
    match random.randrange(10):
        case 0:
            del holder[at]
        case 1:
            holder[at:at] = [one] * random.choice((1, 2, 20, 300) if _size(one) < 100 else (1, 2))
        case 2:
            there, place = random.choice(_places(others))
            holder[at] = copy.deepcopy(there[place])
        case 3:
            to = random.randrange(len(holder))
            holder[at], holder[to] = holder[to], holder[at]
        case 4:
            holder[at] = Field(
                random.choice((1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 15, 16, 100, 1 << 28)),
                one.wire,
                one.value,
                one.data,
                one.inner,
            )
        case 5:
            wire = random.choice((VARINT, FIXED64, BYTES, FIXED32, 3, 7))
            holder[at] = Field(one.number, wire, one.value, one.data or random.randbytes(8))
        case 6:
            holder[at] = Field(
                one.number,
                one.wire,
                one.value,
                one.data,
                one.inner,
                random.choice((-1, 1, -4, 9, 1 << 20, 1 << 47, 1 << 62)),
            )
        case 7:
            holder[at] = Field(one.number, one.wire, one.value, one.data, one.inner, 0, random.choice((1, 2, 5, 9, 12)))
        case 8 if one.wire == BYTES:
            nested = one
            for _ in range(random.choice((1, 3, 90))):
                nested = Field(one.number, BYTES, inner=[nested])
            holder[at] = nested
        case _:
            holder[at] = _other_value(random, one)


def _other_value(random: Random, one: Field) -> Field:
    """The same field with another value."""
    if one.wire != BYTES:
        near = one.value + random.choice((-1, 1, 1000, -1000, 10**12))
        value = random.choice(
            (0, 1, 2, 3, 1 << 31, 1 << 32, 1 << 53, 1 << 61, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, near, near)
        )
        return Field(
            one.number, one.wire, value, random.choice((random.randbytes(8), bytes(8), b"\xff" * 8))[: len(one.data)]
        )
    texts = (
        b"",
        one.data * 3,
        one.data[:-1],
        b"\xff\xfe",
        b"\0" * 40,
        random.randbytes(20),
        b"-1",
        b"9" * 30,
        b"x" * 70_000,
    )
    return Field(one.number, BYTES, data=random.choice(texts))


def _size(one: Field) -> int:
    return 1 + sum(map(_size, one.inner))


def _places(fields: list[Field]) -> list[tuple[list[Field], int]]:
    found = []
    waiting = [fields]
    while waiting:
        holder = waiting.pop()
        for at, one in enumerate(holder):
            found.append((holder, at))
            if one.inner:
                waiting.append(one.inner)
    return found
