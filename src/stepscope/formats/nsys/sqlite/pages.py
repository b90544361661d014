"""The b-tree pages of an SQLite file: where the rows of a table lie, and chosen columns of all of them at once.

Format: sqlite.org/fileformat2.html, sections 1.5 to 2.1. Damage never raises: a page or row that makes no sense is
counted and left out. Work and memory are bounded by the file's size: no page is visited twice, and the rows of a page
may not add up to more than the page.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from stepscope.compiled import filling, inlined, kernel, outlined
from stepscope.trace.tables import I32, I64, NULL, U8, Bools

UNREADABLE = NULL + 1
"""Stands in an integer column for a value that is no integer."""

_INTERIOR, _LEAF = 5, 13
_MAX_PAYLOAD = np.int64(1) << 40


class Paged(NamedTuple):
    """A file: its bytes, the size of its pages, and how much of each holds cells."""

    data: U8
    page_size: int
    usable: int


@inlined
def _number(data: U8, at: Any, width: int) -> Any:
    """An unsigned big-endian number of up to 7 bytes."""
    value = np.int64(0)
    for k in range(width):
        value = (value << 8) | np.int64(data[at + k])
    return value


@inlined
def _varint(data: U8, at: int, end: int) -> tuple[Any, int]:
    """A varint and where it ends, -1 where it does not end before ``end``."""
    value = np.int64(0)
    for k in range(9):
        if at + k >= end:
            return value, -1
        byte = np.int64(data[at + k])
        if k == 8:
            return (value << 8) | byte, at + 9
        value = (value << 7) | (byte & 127)
        if byte < 128:
            return value, at + k + 1
    return value, -1


@inlined
def _header(page: Any) -> int:
    """Where the b-tree header of a page begins: behind the file's header on the first."""
    return 100 if page == 1 else 0


@kernel
def leaves(file: Paged, root: int) -> tuple[I64, int, int]:
    """The leaf pages below a table's root in row order, how many pages make no sense, and the first of those.

    Pages count from 1; one that lies beyond the file's end, or is pointed to twice, makes no sense.
    """
    data, page_size, usable = file
    pages = data.size // page_size
    seen = np.zeros(pages + 1, np.bool_)
    numbers = np.empty(pages, np.int64)
    stack = np.empty(pages + 1, np.int64)
    count, broken, first_broken, size = 0, 0, -1, 0
    if 1 <= root <= pages:
        stack[0], seen[root], size = root, True, 1
    else:
        broken, first_broken = 1, root
    while size > 0:
        size -= 1
        page = stack[size]
        base = (page - 1) * page_size
        head = base + _header(page)
        kind = data[head]
        cells = _number(data, head + 3, 2)
        if kind == _LEAF:
            numbers[count] = page
            count += 1
            continue
        if kind != _INTERIOR or head - base + 12 + 2 * cells > usable:
            broken += 1
            first_broken = page if first_broken < 0 else first_broken
            continue
        # From the right, so that the leftmost child is on top of the stack.
        for k in range(cells, -1, -1):
            at: Any = np.int64(head + 8 - base) if k == cells else _number(data, head + 12 + 2 * k, 2)
            child = _number(data, base + at, 4) if at + 4 <= usable else np.int64(0)
            if 1 <= child <= pages and not seen[child]:
                seen[child] = True
                stack[size] = child
                size += 1
            else:
                broken += 1
                first_broken = int(child) if first_broken < 0 else first_broken
    return numbers[:count].copy(), broken, first_broken


@filling
def last_leaf(data: U8, page_size: int, root: int) -> int:
    """The last leaf page below a table's root, 0 where damage hides it."""
    page = np.int64(root)
    for _ in range(64):
        if not 1 <= page <= data.size // page_size:
            return 0
        head = (page - 1) * page_size + _header(page)
        if data[head] == _LEAF:
            return int(page)
        if data[head] != _INTERIOR:
            return 0
        page = _number(data, head + 8, 4)
    return 0


@inlined
def _local_size(payload: Any, usable: int) -> Any:
    """How much of a row's payload lies in its page; the rest lies in overflow pages."""
    if payload <= usable - 35:
        return payload
    least = (usable - 12) * 32 // 255 - 23
    size = least + (payload - least) % (usable - 4)
    return size if size <= usable - 35 else np.int64(least)


@inlined
def _cell(data: U8, base: int, at: int, usable: int) -> tuple[Any, Any, int, Any, Any]:
    """A leaf's cell: payload size, row id, where the payload begins, its size in the page, the first overflow page.

    A payload size of -1 says that it makes no sense.
    """
    end = base + usable
    payload, after = _varint(data, base + at, end)
    rowid, begin = _varint(data, after, end) if after >= 0 else (payload, -1)
    nothing = np.int64(0)
    if begin < 0 or payload < 1 or payload > _MAX_PAYLOAD:
        return np.int64(-1), nothing, 0, nothing, nothing
    local = _local_size(payload, usable)
    tail = 4 if local < payload else 0
    if begin + local + tail > end:
        return np.int64(-1), nothing, 0, nothing, nothing
    overflow = _number(data, begin + local, 4) if tail else nothing
    return payload, rowid, begin, local, overflow


@inlined
def _cell_at(data: U8, base: int, head: int, k: int) -> Any:
    return _number(data, base + head + 8 + 2 * k, 2)


@kernel
def measure(file: Paged, pages: I64) -> tuple[I64, int]:
    """Rows of each leaf page (at most those that add up to the page), and the bytes of all payloads that overflow."""
    data, page_size, usable = file
    rows = np.zeros(pages.size, np.int64)
    spilled = 0
    for p in range(pages.size):
        page = pages[p]
        base, head = (page - 1) * page_size, _header(page)
        cells = _number(data, base + head + 3, 2)
        room = usable - head - 8
        for k in range(cells):
            if head + 8 + 2 * (k + 1) > usable:
                break
            payload, _, _, local, _ = _cell(data, base, _cell_at(data, base, head, k), usable)
            room -= 2 + max(local, 0)
            if room < 0:
                break
            rows[p] += 1
            spilled += payload if payload > local else 0
    return rows, spilled


@outlined
def _follow(file: Paged, page: Any, spill: U8, at: Any, end: Any) -> bool:
    """Copy the rest of a payload from its overflow pages to ``spill[at:end]``; whether all of it was there."""
    data, page_size, usable = file
    pages = data.size // page_size
    while at < end:
        if not 1 <= page <= pages:
            return False
        base = (page - 1) * page_size
        size = min(end - at, usable - 4)
        for k in range(size):
            spill[at + k] = data[base + 4 + k]
        at += size
        page = _number(data, base, 4)
    return True


@filling
def locate(file: Paged, pages: I64, rows: I64, spill: U8, out: I64) -> tuple[int, int]:
    """Where the record of every row lies; the number of rows found, and the offset of the first broken one (or -1).

    ``out`` has a row each for begin, end, row id and the row's offset. Payloads that overflow their page are put
    together in ``spill``, whose bytes count from the end of the file on (see :func:`byte_at`).
    """
    data, page_size, usable = file
    row, first_broken, used = 0, -1, np.int64(0)
    for p in range(pages.size):
        base, head = (pages[p] - 1) * page_size, _header(pages[p])
        for k in range(rows[p]):
            at = _cell_at(data, base, head, k)
            payload, rowid, begin, local, overflow = _cell(data, base, at, usable)
            good = payload >= 0
            where = np.int64(begin)
            if good and payload > local:
                where = data.size + used
                good = used + payload <= spill.size
                if good:
                    for b in range(local):
                        spill[used + b] = data[begin + b]
                    good = _follow(file, overflow, spill, used + local, used + payload)
                    used += payload if good else 0
            if good:
                out[0, row], out[1, row], out[2, row], out[3, row] = where, where + payload, rowid, base + at
                row += 1
            elif first_broken < 0:
                first_broken = int(base + at)
    return row, first_broken


@inlined
def byte_at(data: U8, spill: U8, at: Any) -> Any:
    """One byte of the file or, beyond its end, of what was put together."""
    return np.int64(data[at]) if at < data.size else np.int64(spill[at - data.size])


@inlined
def _integer(data: U8, serial: Any, at: Any) -> Any:
    """The value of a serial type (section 2.1): absent for NULL, UNREADABLE for what is no integer."""
    if serial == 0:
        return np.int64(NULL)
    if serial == 8 or serial == 9:
        return serial - 8
    if serial > 6:
        return np.int64(UNREADABLE)
    # Two's complement, the highest byte first.
    value = np.int64(np.int8(data[at]))
    for k in range(1, _size_of(serial)):
        value = (value << 8) | np.int64(data[at + k])
    return value


@inlined
def _size_of(serial: Any) -> Any:
    """Bytes of a value of a serial type."""
    if serial >= 12:
        return (serial - 12) >> 1
    if serial == 6 or serial == 7:
        return np.int64(8)
    if serial == 5:
        return np.int64(6)
    return serial if serial < 5 else np.int64(0)


class Cells(NamedTuple):
    """The wanted values of records: numbers, where texts begin and their sizes; and which records make sense."""

    numbers: I64
    starts: I64
    sizes: I64
    good: Bools


@filling
def decode(
    buffer: U8,
    shift: int,
    records: tuple[I64, I64, I64],
    place: tuple[I32, I32, int],
    out: Cells,
) -> None:
    """Decode the wanted columns of those records (begin, end, row id) that lie in a buffer, which begins at ``shift``.

    ``place`` says per column of the table which row of ``numbers`` and which of ``starts`` and ``sizes`` takes it (-1:
    none), and which of ``numbers`` takes the row id where NULL is stored. Texts are given by where they lie, as the
    records are.
    """
    begins, ends, rowids = records
    numbers, starts, sizes, good = out
    for row in range(begins.size):
        begin, end = begins[row] - shift, ends[row] - shift
        if begin < 0 or end > buffer.size:
            continue
        header, at = _varint(buffer, begin, end)
        value = begin + header
        names_end = value
        good[row] = at >= 0 and header >= 1 and value <= end
        column = 0
        while good[row] and column < place[0].size:
            serial, at = _varint(buffer, at, names_end)
            size = _size_of(serial)
            if at < 0 or serial < 0 or value + size > end:
                good[row] = False
                break
            if place[0][column] >= 0:
                numbers[place[0][column], row] = _integer(buffer, serial, value)
            if place[1][column] >= 0 and serial >= 13 and serial & 1:
                starts[place[1][column], row] = value + shift
                sizes[place[1][column], row] = size
            value += size
            column += 1
        if place[2] >= 0 and numbers[place[2], row] == NULL:
            numbers[place[2], row] = rowids[row]
