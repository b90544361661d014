"""Events and statistics of XPlane messages, decoded in bulk: the loops that run per event.

Field numbers are those of tsl/profiler/protobuf/xplane.proto. Times become whole nanoseconds here, both ends rounded
down, so that events that touch in picoseconds touch in nanoseconds too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from stepscope.compiled import filling, inlined, kernel
from stepscope.protobuf.columns import read_tag
from stepscope.trace.tables import I32, I64, U8, Rows
from stepscope.wire import BYTES

SPAN, POINT, DAMAGED, NEGATIVE, OVERFLOW, COUNTED = range(6)
"""What an event is: a stretch of time, an instant (duration 0), or unusable: its bytes make no sense, it ends before
it starts, its time does not fit, or it has none (``num_occurrences`` counts events that were not kept)."""

DOUBLE, UNSIGNED, SIGNED, TEXT, DATA, REFERENCE = range(2, 8)
"""Field numbers of the value of an ``XStat``."""

_FURTHEST = 1 << 62
_PS = 1000
_HASH_BITS = (1 << 44) - 1
_HASH_STEP = 262_147
"""A prime of 18 bits: a step of the hash stays below 63 bits, so that it is the same without numba."""


class IdTable(NamedTuple):
    """Rows by (plane, id), for the kernels: ``rows`` by id where a plane's ids are dense, else ``ids`` are searched.

    ``first`` and ``base`` say where each plane's part of ``ids`` and ``rows`` begins, and where the last one ends.
    """

    first: I64
    ids: I64
    base: I64
    rows: I32

    @classmethod
    def of(cls, planes: int, plane: I32, ids: I64) -> IdTable:
        """The table of entries sorted by plane and id, each pair once."""
        first = np.searchsorted(plane, np.arange(planes + 1, dtype=plane.dtype)).astype(np.int64)
        parts: list[I32] = [np.empty(0, np.int32)]
        for low, high in zip(first[:-1].tolist(), first[1:].tolist(), strict=True):
            size = int(ids[high - 1]) + 1 if high > low and ids[low] >= 0 else 0
            rows = np.full(size if size <= 4 * (high - low) + 64 else 0, -1, np.int32)
            if rows.size:
                rows[ids[low:high]] = np.arange(low, high)
            parts.append(rows)
        base = np.cumsum([part.size for part in parts]).astype(np.int64)
        return cls(first, ids, base, np.concatenate(parts))


class EventColumns(NamedTuple):
    """What becomes of events: the row of the metadata, start and duration in ns, and what each is."""

    name: I32
    start_ns: I64
    dur_ns: I64
    what: U8


class ReadStats(NamedTuple):
    """Statistics in the order of the file: event, slot, field of the value and value; and how many of each slot."""

    event: I32
    slot: U8
    field: U8
    value: I64
    counts: I64


class Messages(NamedTuple):
    """Messages that have stats: where each lies, and its line; then every line's plane and time in ns."""

    start: I64
    end: I64
    line: I32
    plane_of: I32
    time_of: I64


class WantedStats(NamedTuple):
    """The field of a message that holds stats, and the slot of every stat metadata row (-1: not wanted)."""

    field: int
    slots: I32


@inlined
def find_row(table: IdTable, plane: Any, wanted: Any) -> Any:
    """The row of an id in a plane's part of an :class:`IdTable`, -1 where it has none."""
    base, end = table.base[plane], table.base[plane + 1]
    if end > base:
        return np.int64(table.rows[base + wanted]) if 0 <= wanted < end - base else np.int64(-1)
    low, last = table.first[plane], table.first[plane + 1]
    high = last
    while low < high:
        middle = (low + high) >> 1
        if table.ids[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < last and table.ids[low] == wanted else np.int64(-1)


@inlined
def read_stat(data: U8, at: int, end: int) -> tuple[Any, Any, Any]:
    """Metadata id, value field and value of one ``XStat``; a text's value is where its field stands. Field 0: none."""
    key, field_of_value, value = np.int64(0), np.int64(0), np.int64(0)
    while at < end:
        field, wire, number, _, after = read_tag(data, at, end)
        if after < 0 or after > end:
            break
        if wire == BYTES:
            if field in (TEXT, DATA):
                field_of_value, value = field, np.int64(at)
        elif field == 1:
            key = number
        elif 2 <= field <= 7:
            field_of_value, value = field, number
        at = after
    return key, field_of_value, value


@inlined
def fate_of(begun: Any, offset: Any, duration: Any, is_count: Any) -> int:
    """What a sound event is, from its times."""
    if is_count:
        return COUNTED
    if duration < 0:
        return NEGATIVE
    if not (-_FURTHEST < offset < _FURTHEST and duration < _FURTHEST and -_FURTHEST < begun < _FURTHEST):
        return OVERFLOW
    return POINT if duration == 0 else SPAN


@filling
def decode(
    data: U8, of: Messages, tables: tuple[IdTable, IdTable], wanted: WantedStats, out: EventColumns, stats: ReadStats
) -> int:
    """Decode events into ``out`` and some of their stats into ``stats``, where a reference is a stat metadata row; how
    many stats there are. Of other messages than events (planes, event metadata) the stats alone mean anything.

    ``tables`` are the event and stat metadata.
    """
    count = 0
    names, keys = tables
    field_of_stats, slots = wanted
    for row in range(of.line.size):
        at, end = of.start[row], of.end[row]
        plane, begun = np.int64(of.plane_of[of.line[row]]), of.time_of[of.line[row]]
        name, offset, duration, occurrences = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
        is_placed = False
        what = SPAN
        while 0 <= at < end:
            field, wire, number, begin, after = read_tag(data, at, end)
            if after < 0 or after > end:
                what = DAMAGED
                break
            if wire == BYTES:
                if field == field_of_stats:
                    key, form, value = read_stat(data, begin, after)
                    known = find_row(keys, plane, key)
                    if known >= 0 and form > 0 and slots[known] >= 0:
                        stats.event[count] = row
                        stats.slot[count] = slots[known]
                        stats.field[count] = form
                        stats.value[count] = find_row(keys, plane, value) if form == REFERENCE else value
                        stats.counts[slots[known]] += 1
                        count += 1
            elif field == 1:
                name = number
            elif field == 2:
                offset, is_placed = number, True
            elif field == 3:
                duration = number
            elif field == 5:
                occurrences = number
            at = after
        if what == SPAN:
            what = fate_of(begun, offset, duration, occurrences > 0 and not is_placed)
        out.name[row] = find_row(names, plane, name)
        out.start_ns[row] = begun + offset // _PS if what <= POINT else 0
        out.dur_ns[row] = (offset + duration) // _PS - offset // _PS if what <= POINT else 0
        out.what[row] = what
    return count


@kernel
def sort_stats(stats: ReadStats, used: int, first_row: int, out: tuple[I32, U8, I64]) -> None:
    """Sort what ``decode`` gave by slot; ``first_row`` is added to the rows."""
    filled = np.zeros(stats.counts.size, np.int64)
    for slot in range(1, filled.size):
        filled[slot] = filled[slot - 1] + stats.counts[slot - 1]
    for k in range(used):
        at = filled[stats.slot[k]]
        out[0][at], out[1][at], out[2][at] = stats.event[k] + first_row, stats.field[k], stats.value[k]
        filled[stats.slot[k]] = at + 1


@filling
def values_of(rows: Rows, column: tuple[I32, U8, I64], fields: tuple[int, int], out: I64) -> int:
    """Set ``out`` where a row (in any order) is in a column and its value in one of a range of fields.

    Returns how many of the rows are in the column with another field.
    """
    of, field, value = column
    others, at = 0, 0
    for k in range(rows.size):
        row = rows[k]
        low = high = at
        if at < of.size and of[at] < row:
            # Mostly it is the next one or near: the distance doubles until it is passed.
            step = 1
            while at + step < of.size and of[at + step] < row:
                low, step = at + step, 2 * step
            high = min(at + step, of.size)
        elif at > 0 and of[at - 1] >= row:
            low = 0
        while low < high:
            middle = (low + high) >> 1
            if of[middle] < row:
                low = middle + 1
            else:
                high = middle
        at = low
        if at < of.size and of[at] == row:
            if fields[0] <= field[at] <= fields[1]:
                out[k] = value[at]
            else:
                others += 1
    return others


@kernel
def text_spans(data: U8, places: I64) -> tuple[I64, I64, I64]:
    """Where the texts lie whose fields stand at some places, and a hash of each."""
    start, end, hashes = np.empty_like(places), np.empty_like(places), np.empty_like(places)
    for row in range(places.size):
        _, _, _, start[row], end[row] = read_tag(data, places[row], data.size)
        value = end[row] - start[row]
        for at in range(start[row], end[row]):
            value = ((value ^ np.int64(data[at])) * _HASH_STEP) & _HASH_BITS
            value ^= value >> 21
        hashes[row] = value
    return start, end, hashes


@kernel
def differ(data: U8, starts: I64, ends: I64, first: I64) -> Any:
    """Which texts are not the same bytes as the text in row ``first`` of each."""
    unlike = np.zeros(starts.size, np.bool_)
    for row in range(starts.size):
        other, size = first[row], ends[row] - starts[row]
        unlike[row] = ends[other] - starts[other] != size
        for k in range(0 if unlike[row] else size):
            if data[starts[row] + k] != data[starts[other] + k]:
                unlike[row] = True
                break
    return unlike
