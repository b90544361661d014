"""Rows by the value of columns: for files with millions of rows, and for hostile ones with as many lines and planes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from stepscope.compiled import inlined, kernel
from stepscope.trace.tables import I32, I64, Rows

_WORD = (1 << 62) - 1
_MULTIPLIERS = tuple(int.from_bytes(os.urandom(7), "little") | 1 for _ in range(2))
"""Of the hash, drawn anew in every process so that no file can be made to collide; no result depends on them."""
_FIRST_BITS = 10


def grouped(column: npt.NDArray[Any]) -> list[tuple[int, Rows]]:
    """Every distinct value, rising, and the positions at which it stands, rising."""
    order = np.argsort(column, kind="stable")
    ordered = column[order]
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if column.size else order
    return list(zip(ordered[first].tolist(), np.split(order, first[1:]), strict=False))


def dense(*columns: npt.NDArray[Any]) -> tuple[Rows, Rows]:
    """A number per row, from 0 without gaps, equal where all columns are and rising with them; each one's first row."""
    group = columns[0].astype(np.int64, copy=False)
    for column in columns[1:] or (group,):
        group, first = _numbered(group, column)
    order = np.lexsort([column[first] for column in reversed(columns)])
    if (order[1:] > order[:-1]).all():
        return group, first
    rank = np.empty(order.size, np.intp)
    rank[order] = np.arange(order.size)
    return rank[group], first[order]


def distinct(column: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Rows]:
    """The distinct values, rising, and which of them each row has."""
    group, first = dense(column)
    return column[first], group


def match(wanted: Sequence[I64 | I32], known: Sequence[I64 | I32]) -> Rows:
    """The first of the known rows that equals each wanted one in all (one or two) columns, -1 where none does."""
    count = known[0].size
    if not count:
        return np.full(wanted[0].size, -1, np.intp)
    both: list[Any] = [np.concatenate(columns) for columns in zip(known, wanted, strict=True)]
    group, first = _numbered(both[0], both[-1])
    at = first[group[count:]]
    return np.where(at < count, at, -1)


def _numbered(a: I64, b: I64 | I32) -> tuple[Rows, Rows]:
    """A number per pair of values, in the order in which they first come, and the row at which they do."""
    group, first = np.empty(a.size, np.intp), np.empty(a.size, np.intp)
    return group, first[: _number(a, b, _MULTIPLIERS, group, first)].copy()


@inlined
def _slot(a: Any, b: Any, multipliers: tuple[int, ...], bits: int) -> Any:
    # Masked, so that it is the same in plain Python, whose integers have no end.
    return ((int(a) * multipliers[0] + int(b) * multipliers[1]) & _WORD) >> (62 - bits)


@kernel
def _number(a: I64, b: I64 | I32, multipliers: tuple[int, ...], group: Rows, first: Rows) -> int:
    bits, count = _FIRST_BITS, 0
    table = np.full(1 << bits, -1, np.int32)
    for row in range(a.size):
        if row and a[row] == a[row - 1] and b[row] == b[row - 1]:
            group[row] = group[row - 1]
            continue
        at = _slot(a[row], b[row], multipliers, bits)
        while table[at] >= 0 and (a[first[table[at]]] != a[row] or b[first[table[at]]] != b[row]):
            at = (at + 1) & (table.size - 1)
        if table[at] < 0:
            table[at], first[count] = count, row
            count += 1
        group[row] = table[at]
        if 2 * count > table.size:
            bits += 1
            table = np.full(1 << bits, -1, np.int32)
            for known in range(count):
                at = _slot(a[first[known]], b[first[known]], multipliers, bits)
                while table[at] >= 0:
                    at = (at + 1) & (table.size - 1)
                table[at] = known
    return count
