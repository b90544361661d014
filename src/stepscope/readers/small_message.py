"""Single protocol-buffer messages in plain Python: for the few that are not worth a compiled loop (``protobuf``)."""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.readers.protobuf import BYTES, FIXED32, FIXED64, VARINT


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message: numbers, and as bytes whatever else, up to where it stops making sense.

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


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A number and where it ends; beyond the message where it is cut."""
    value = 0
    for place, byte in enumerate(message[at : at + 10]):
        value |= (byte & 127) << 7 * place
        if byte < 128:
            return value, at + place + 1
    return 0, len(message) + 1
