"""Protocol-buffer bytes of XPlane's events, of which there are millions, in compiled loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stepscope.compiled import filling, inlined, kernel
from stepscope.record import record
from stepscope.trace.tables import I64, U8

UNSIGNED, SIGNED, TEXT, DATA, REFERENCE = 3, 4, 5, 6, 7
"""Fields of ``XStat`` that hold its value; a reference is the id of the stat metadata whose name is the text."""

_UNSIGNED_STATS = frozenset({"correlation_id", "memory_size", "profile_start_time", "profile_stop_time"})

_PS = 1000
_LAST_BITS = (1 << 57) - 1
_EVENT, _NAME, _OFFSET, _DURATION, _STAT, _KEY = 0x22, 0x08, 0x10, 0x18, 0x22, 0x08
"""Tags: ``XLine.events``; metadata_id, offset_ps, duration_ps and stats of ``XEvent``; metadata_id of ``XStat``."""


class _StatTable(NamedTuple):
    """The statistics of all columns, one after another: where each column begins, its key and field; its rows and
    values."""

    first: I64
    keys: I64
    fields: I64
    rows: I64
    values: I64


@record
class StatColumn:
    """One statistic of some events of a line."""

    key: int
    """Id of its metadata."""
    field: int
    """Which field of ``XStat`` holds the value."""
    rows: I64
    """Events that have it, rising."""
    values: I64


def number_field(stat: str) -> int:
    """The field for numbers of a statistic: XProf reads some as signed only, others as unsigned only."""
    return UNSIGNED if stat in _UNSIGNED_STATS else SIGNED


def encode_events(names: I64, start_ns: I64, dur_ns: I64, stats: Sequence[StatColumn]) -> U8:
    """The ``events`` fields of a line; ``names`` are ids of event metadata, starts count from the line's."""
    first = np.cumsum([0, *(len(stat.rows) for stat in stats)])
    nothing = np.empty(0, np.int64)
    table = _StatTable(
        first,
        np.array([stat.key for stat in stats], np.int64),
        np.array([stat.field for stat in stats], np.int64),
        np.concatenate([nothing, *(stat.rows for stat in stats)]),
        np.concatenate([nothing, *(stat.values for stat in stats)]),
    )
    sizes = np.empty(len(names), np.int64)
    out = np.empty(_measure(names, start_ns, dur_ns, table, sizes), np.uint8)
    _write(names, start_ns, dur_ns, table, sizes, out)
    return out


@inlined
def _size(value: int) -> int:
    size = 1
    while value < 0 or value > 127:
        value = (value >> 7) & _LAST_BITS
        size += 1
    return size


@inlined
def _put(out: U8, at: int, value: int) -> int:
    while value < 0 or value > 127:
        out[at] = value & 127 | 128
        value = (value >> 7) & _LAST_BITS
        at += 1
    out[at] = value
    return at + 1


@filling
def _measure(names: I64, start: I64, dur: I64, stats: _StatTable, sizes: I64) -> int:
    """The size of every event's message; returns that of all fields together."""
    first, keys, rows, values = stats.first, stats.keys, stats.rows, stats.values
    for event in range(names.size):
        sizes[event] = 3 + _size(names[event]) + _size(start[event] * _PS) + _size(dur[event] * _PS)
    for column in range(keys.size):
        for k in range(first[column], first[column + 1]):
            sizes[rows[k]] += 4 + _size(keys[column]) + _size(values[k])  # a stat is shorter than 128 bytes
    total = 0
    for event in range(names.size):
        total += 1 + _size(sizes[event]) + sizes[event]
    return total


@kernel
def _write(names: I64, start: I64, dur: I64, stats: _StatTable, sizes: I64, out: U8) -> None:
    first, keys, fields, rows, values = stats
    following = first[:-1].copy()
    at = 0
    for event in range(names.size):
        out[at] = _EVENT
        at = _put(out, at + 1, sizes[event])
        out[at] = _NAME
        at = _put(out, at + 1, names[event])
        out[at] = _OFFSET
        at = _put(out, at + 1, start[event] * _PS)
        out[at] = _DURATION
        at = _put(out, at + 1, dur[event] * _PS)
        for column in range(keys.size):
            k = following[column]
            if k < first[column + 1] and rows[k] == event:
                following[column] = k + 1
                out[at] = _STAT
                out[at + 1] = 2 + _size(keys[column]) + _size(values[k])
                out[at + 2] = _KEY
                at = _put(out, at + 3, keys[column])
                out[at] = fields[column] << 3
                at = _put(out, at + 1, values[k])
