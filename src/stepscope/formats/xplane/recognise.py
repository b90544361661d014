"""Whether bytes are the beginning of an XSpace: by the shape of its messages, for the format has no magic number."""

from __future__ import annotations

from typing import Literal, NamedTuple

_NUMBER, _BYTES = 0, 2
_PLANE = {1: _NUMBER, 2: _BYTES, 3: _BYTES, 4: _BYTES, 5: _BYTES, 6: _BYTES}
_LINE = {1: _NUMBER, 2: _BYTES, 3: _NUMBER, 4: _BYTES, 9: _NUMBER, 10: _NUMBER, 11: _BYTES}
_MAP_ENTRY = {1: _NUMBER, 2: _BYTES}
_MESSAGES = (2, 3, 4)
"""Errors, warnings and host names of an XSpace."""

Verdict = Literal["yes", "no", "perhaps"]


class _Field(NamedTuple):
    number: int
    wire: int
    start: int
    end: int
    """Beyond the end of the bytes where these are only the beginning."""


def recognise(head: bytes) -> bool:
    """Whether a file begins like an XSpace: a plane with a name or a line, and nothing that planes do not have.

    The messages of TensorFlow's ``RunMetadata`` and ``StepStats`` begin with a text or message where a plane has its
    number.
    """
    at = 0
    while at < len(head) and (field := _field(head, at)):
        if field.wire != _BYTES or field.number not in (1, *_MESSAGES):
            return False
        if field.number == 1 and (verdict := _plane(head, field)) != "perhaps":
            return verdict == "yes"
        at = field.end
    return False


def _plane(head: bytes, plane: _Field) -> Verdict:
    verdict: Verdict = "perhaps"
    for field in _fields(head, plane):
        if field is None or _PLANE.get(field.number) != field.wire:
            return "no"
        inner = {3: _LINE, 4: _MAP_ENTRY, 5: _MAP_ENTRY}.get(field.number)
        if inner and any(part is None or inner.get(part.number) != part.wire for part in _fields(head, field)):
            return "no"
        if field.number == 2 and field.end > field.start:
            text = head[field.start : min(field.end, len(head))].decode("utf-8", "replace")
            if not text.isprintable():
                return "no"
            verdict = "yes"
        if field.number == 3:
            verdict = "yes"
    return verdict


def _fields(head: bytes, message: _Field) -> list[_Field | None]:
    """The fields of a message as far as the bytes go; None last where they make no sense."""
    fields: list[_Field | None] = []
    at, end = message.start, min(message.end, len(head))
    while at < end:
        field = _field(head, at)
        if field is None or field.end > message.end:
            # A field cut by the end of the bytes says nothing.
            return fields if message.end > len(head) else [*fields, None]
        fields.append(field)
        at = field.end
    return fields


def _field(head: bytes, at: int) -> _Field | None:
    key, at = _varint(head, at)
    if at < 0 or key < 8:
        return None
    number, wire = key >> 3, key & 7
    if wire == _NUMBER:
        _, end = _varint(head, at)
        return _Field(number, wire, at, end) if end >= 0 else None
    if wire == _BYTES:
        size, start = _varint(head, at)
        return _Field(number, wire, start, start + size) if start >= 0 and size < 1 << 48 else None
    return _Field(number, wire, at, at + (8 if wire == 1 else 4)) if wire in (1, 5) else None


def _varint(head: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(head) and shift < 70:
        value |= (head[at] & 127) << shift
        at += 1
        if head[at - 1] < 128:
            return value, at
        shift += 7
    return value, -1
