"""Protocol-buffer messages as columns, without generated code: where sub-messages lie, and their fields.

The wire format (protobuf.dev/programming-guides/encoding) needs no schema to be walked. A set of messages is a
:class:`Spans`; ``children`` finds the sub-messages of one field in all of them at once, ``numbers`` and ``texts``
read one field of all. Damage never raises: a message is read up to where it stops making sense, and
``Children.broken`` says where that was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from stepscope.compiled import filling, inlined, kernel
from stepscope.record import record
from stepscope.trace.tables import I32, I64, NULL, U8
from stepscope.wire import BYTES, FIXED32, FIXED64, VARINT

Value = TypeVar("Value")


@record
class Spans:
    """Where messages lie in a buffer: ``[start, end)`` in bytes. A start of -1 is an absent message."""

    start: I64
    end: I64

    def __len__(self) -> int:
        """The number of messages."""
        return len(self.start)

    def __getitem__(self, rows: Any) -> Spans:
        """The messages of some rows."""
        return Spans(self.start[rows], self.end[rows])

    @classmethod
    def whole(cls, data: U8) -> Spans:
        """One message: the whole buffer."""
        return cls(np.zeros(1, np.int64), np.array([len(data)], np.int64))


@record
class Children:
    """The sub-messages of one field, in order, with the row of the message each lies in."""

    spans: Spans
    parent: I32
    broken: I64
    """Per parent, the offset at which it stopped making sense; -1 for sound ones."""

    def __len__(self) -> int:
        """The number of sub-messages."""
        return len(self.parent)


def children(
    data: U8, parents: Spans, field: int, *, cut: bool = False, counted: Callable[[int], None] | None = None
) -> Children:
    """The sub-messages (or strings) of one field of every parent; ``counted`` is told how many, and may raise, before
    there is room for them.

    With ``cut`` one that reaches beyond its parent's end counts up to there: the file was cut inside it. Without, it
    is left out. Either way the parent counts as broken.
    """
    counts, broken = _count(data, parents.start, parents.end, field, cut)
    first = np.concatenate(([0], np.cumsum(counts)))
    if counted is not None:
        counted(int(first[-1]))
    start, end = np.empty(int(first[-1]), np.int64), np.empty(int(first[-1]), np.int64)
    _find(data, (parents.start, parents.end), field, cut, first, (start, end))
    return Children(Spans(start, end), np.repeat(np.arange(len(parents), dtype=np.int32), counts), broken)


def numbers(data: U8, messages: Spans, *fields: int) -> list[I64]:
    """Number fields of every message as one int64 column each: varints and fixed-width values as their raw 64 bits.

    NULL where a message has no such field; the last one counts where it has several.
    """
    place = np.full(max(fields) + 1, -1, np.int64)
    place[list(fields)] = np.arange(len(fields))
    out = np.full((len(fields), len(messages)), NULL, np.int64)
    _read_numbers(data, messages.start, messages.end, place, out)
    return list(out)


def texts(data: U8, messages: Spans, field: int) -> Spans:
    """Where one string, bytes or message field lies in every message (-1 where absent); the last of several counts."""
    start = np.full(len(messages), -1, np.int64)
    end = np.full(len(messages), -1, np.int64)
    _read_texts(data, messages.start, messages.end, field, start, end)
    return Spans(start, end)


def repeated_numbers(data: U8, messages: Spans, field: int) -> tuple[I64, I64]:
    """All values of a repeated varint field, packed or not, in order, and the row of the message each lies in."""
    counts = _count_repeated(data, messages.start, messages.end, field)
    first = np.concatenate(([0], np.cumsum(counts)))
    values = np.empty(int(first[-1]), np.int64)
    _read_repeated(data, messages.start, messages.end, field, first, values)
    return values, np.repeat(np.arange(len(messages)), counts)


def number_lists(data: U8, messages: Spans, field: int) -> dict[int, list[int]]:
    """The same by the row of the message; of those that have none nothing."""
    values, rows = repeated_numbers(data, messages, field)
    return by_row(rows, values.tolist())


def by_row(rows: I64 | I32, values: list[Value]) -> dict[int, list[Value]]:
    """Values in their order, by the row that each is of."""
    lists: dict[int, list[Value]] = {}
    for row, value in zip(rows.tolist(), values, strict=True):
        lists.setdefault(row, []).append(value)
    return lists


def decode(data: U8, span: Spans) -> list[str | None]:
    """Strings as text; invalid UTF-8 becomes U+FFFD, absent ones None."""
    return [
        None if start < 0 else data[start:end].tobytes().decode("utf-8", "replace")
        for start, end in zip(span.start.tolist(), span.end.tolist(), strict=True)
    ]


@inlined
def read_varint(data: U8, at: int, end: int) -> tuple[Any, int]:
    """The value at ``at`` and where it ends; an end of -1 where it does not end before ``end``."""
    value = np.int64(0)
    if at < end and data[at] < 128:  # Most are of one byte.
        return value + data[at], at + 1
    shift = 0
    while at < end and shift < 70:
        byte = np.int64(data[at])
        at += 1
        value |= (byte & 127) << shift if shift < 63 else (byte & 1) << 63
        if byte < 128:
            return value, at
        shift += 7
    return value, -1


@inlined
def read_tag(data: U8, at: int, end: int) -> tuple[Any, int, Any, int, int]:
    """One field: its number, wire type, value (or size of its bytes), where that begins and where the field ends.

    A field end of -1 says that what stands here is no field; one beyond ``end``, that it was cut.
    """
    key, at = read_varint(data, at, end)
    if at < 0 or key < 8:
        return 0, 0, 0, 0, -1
    field, wire = key >> 3, key & 7
    if wire == VARINT:
        value, after = read_varint(data, at, end)
        return field, wire, value, at, after
    if wire == BYTES:
        size, begin = read_varint(data, at, end)
        if begin < 0 or size < 0 or size > np.int64(1) << 48:
            return field, wire, 0, 0, -1
        return field, wire, size, begin, begin + size
    if wire in (FIXED64, FIXED32):
        width = 8 if wire == FIXED64 else 4
        if at + width > end:
            return field, wire, 0, at, at + width
        value = np.int64(0)  # the same type whatever the wire type: numba unifies them
        for k in range(width):
            value |= np.int64(data[at + k]) << (8 * k)
        return field, wire, value, at, at + width
    return field, wire, 0, 0, -1


@kernel
def _count(data: U8, starts: I64, ends: I64, field: int, cut: bool) -> tuple[I64, I64]:
    counts = np.zeros(starts.size, np.int64)
    broken = np.full(starts.size, -1, np.int64)
    for row in range(starts.size):
        at, end = starts[row], ends[row]
        while 0 <= at < end:
            number, wire, _, _, after = read_tag(data, at, end)
            if after < 0 or after > end:
                broken[row] = at
                if after > end and cut and number == field and wire == BYTES:
                    counts[row] += 1
                break
            counts[row] += number == field and wire == BYTES
            at = after
    return counts, broken


@filling
def _find(data: U8, parents: tuple[I64, I64], field: int, cut: bool, first: I64, out: tuple[I64, I64]) -> None:
    for row in range(parents[0].size):
        at, end, k = parents[0][row], parents[1][row], first[row]
        while 0 <= at < end:
            number, wire, _, begin, after = read_tag(data, at, end)
            if after < 0 or (after > end and not cut):
                break
            if number == field and wire == BYTES:
                out[0][k], out[1][k] = begin, min(after, end)
                k += 1
            at = after


@filling
def _read_numbers(data: U8, starts: I64, ends: I64, place: I64, out: I64) -> None:
    for row in range(starts.size):
        at, end = starts[row], ends[row]
        while 0 <= at < end:
            number, wire, value, _, after = read_tag(data, at, end)
            if after < 0 or after > end:
                break
            if number < place.size and place[number] >= 0 and wire != BYTES:
                out[place[number], row] = value
            at = after


@filling
def _read_texts(data: U8, starts: I64, ends: I64, field: int, out_start: I64, out_end: I64) -> None:
    for row in range(starts.size):
        at, end = starts[row], ends[row]
        while 0 <= at < end:
            number, wire, _, begin, after = read_tag(data, at, end)
            if after < 0 or after > end:
                break
            if number == field and wire == BYTES:
                out_start[row], out_end[row] = begin, after
            at = after


@kernel
def _count_repeated(data: U8, starts: I64, ends: I64, field: int) -> I64:
    counts = np.zeros(starts.size, np.int64)
    for row in range(starts.size):
        at, end = starts[row], ends[row]
        while 0 <= at < end:
            number, wire, _, begin, after = read_tag(data, at, end)
            if after < 0 or after > end:
                break
            if number == field and wire == VARINT:
                counts[row] += 1
            while number == field and wire == BYTES and 0 <= begin < after:
                _, begin = read_varint(data, begin, after)
                counts[row] += begin >= 0
            at = after
    return counts


@filling
def _read_repeated(data: U8, starts: I64, ends: I64, field: int, first: I64, out: I64) -> None:
    for row in range(starts.size):
        at, end, k = starts[row], ends[row], first[row]
        while 0 <= at < end:
            number, wire, value, begin, after = read_tag(data, at, end)
            if after < 0 or after > end:
                break
            if number == field and wire == VARINT:
                out[k] = value
                k += 1
            while number == field and wire == BYTES and 0 <= begin < after:
                value, begin = read_varint(data, begin, after)
                if begin >= 0:
                    out[k] = value
                    k += 1
            at = after
