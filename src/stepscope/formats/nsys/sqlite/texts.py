"""Texts of a column by where they lie, and which of them are the same."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stepscope.compiled import inlined, kernel
from stepscope.formats.nsys.sqlite.pages import byte_at
from stepscope.record import record
from stepscope.trace.tables import I32, I64, U8, Bools, Rows

# A multiplier of the Fibonacci-hashing family: it spreads bits, nothing else depends on it.
_SPREAD = -0x61C8864680B583EB


class TextPlaces(NamedTuple):
    """What compiled loops are given of a column's texts."""

    data: U8
    spill: U8
    start: I64
    size: I64


@record
class ColumnTexts:
    """A text per row: where it begins (-1: none) and its bytes.

    It lies in ``data`` or, beyond that, in ``spill`` (what overflowed its page, put together again).
    """

    data: U8
    spill: U8
    start: I64
    size: I64
    encoding: str = "utf-8"

    @property
    def places(self) -> TextPlaces:
        """Where the texts lie."""
        return TextPlaces(self.data, self.spill, self.start, self.size)

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.start)

    def __getitem__(self, rows: Rows | Bools | slice) -> ColumnTexts:
        """The texts of some rows."""
        return ColumnTexts(self.data, self.spill, self.start[rows], self.size[rows], self.encoding)

    def spread(self, rows: Rows, places: Rows, count: int) -> ColumnTexts:
        """Some of the texts at some places of a column of ``count`` rows, absent elsewhere."""
        start, size = np.full(count, -1, np.int64), np.zeros(count, np.int64)
        start[places], size[places] = self.start[rows], self.size[rows]
        return ColumnTexts(self.data, self.spill, start, size, self.encoding)

    def or_else(self, other: ColumnTexts) -> ColumnTexts:
        """These texts where they are there and not empty, else the other column's: one of a single ``spill``."""
        own = (self.start >= 0) & (self.size > 0)
        spill = np.concatenate((self.spill, other.spill))
        moved = np.where(other.start >= len(self.data), other.start + len(self.spill), other.start)
        start = np.where(own, self.start, np.where(moved >= 0, moved, self.start))
        return ColumnTexts(self.data, spill, start, np.where(own | (moved < 0), self.size, other.size), self.encoding)

    def distinct(self) -> tuple[I32, list[str]]:
        """Which text each row has (-1: none), numbered by first occurrence, and the texts themselves."""
        code, first = _distinct(self.places, int.from_bytes(np.random.bytes(7)))
        return code, self[first].decoded()

    def decoded(self) -> list[str]:
        """The texts; invalid bytes become U+FFFD, absent ones are empty."""
        return [
            self._bytes(start, size).decode(self.encoding, "replace") if start >= 0 else ""
            for start, size in zip(self.start.tolist(), self.size.tolist(), strict=True)
        ]

    def _bytes(self, start: int, size: int) -> bytes:
        inside = start - len(self.data)
        part = self.data[start : start + size] if inside < 0 else self.spill[inside : inside + size]
        return part.tobytes()


@inlined
def _same(data: U8, spill: U8, first: int, second: int, size: int) -> bool:
    k = 0
    while k < size and byte_at(data, spill, first + k) == byte_at(data, spill, second + k):
        k += 1
    return k == size


@kernel
def _distinct(texts: TextPlaces, seed: int) -> tuple[I32, I64]:
    data, spill, start, size = texts
    mask = 1024
    while mask < 4 * start.size and mask < 1 << 30:
        mask *= 2
    mask -= 1
    # One slot per text: the number of the text + 1, beside its hash.
    slots = np.zeros(mask + 1, np.int32)
    hashes = np.empty(mask + 1, np.int64)
    first = np.empty(start.size, np.int64)
    code = np.full(start.size, -1, np.int32)
    count = 0
    for row in range(start.size):
        if start[row] < 0:
            continue
        value = np.int64(seed) ^ size[row]
        for k in range(size[row]):
            value = (value ^ byte_at(data, spill, start[row] + k)) * _SPREAD
            value ^= (value >> 29) & 0x7FFFFFFFF
        slot = value & mask
        while slots[slot] > 0:
            other = first[slots[slot] - 1]
            if (
                hashes[slot] == value
                and size[other] == size[row]
                and _same(data, spill, start[other], start[row], size[row])
            ):
                break
            slot = (slot + 1) & mask
        if slots[slot] == 0:
            first[count] = row
            count += 1
            slots[slot] = count
            hashes[slot] = value
        code[row] = slots[slot] - 1
    return code, first[:count].copy()
