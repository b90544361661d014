"""Columns of integers: functions of text asked once per distinct code, rows grouped, values looked up."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from stepscope.trace.tables import I64, Bools, Rows

Text = TypeVar("Text")

_TABLE_PER_ROW, _TABLE_LEAST = 4, 1 << 12
"""Entries of a table of marks: more than this, and sorting the rows is cheaper than filling it."""
_FEW_KEYS = 1 << 14
"""Up to so many distinct keys are found again in the cache."""
_FEW_VALUES = 256
"""Up to so many values a set of Python's is faster."""
_ROWS_PER_TEXT = 1 << 10
"""So many rows are looked through while a function looks at one text."""
_FEW_CODES = 64
"""Up to so many rows are looked up one by one."""
_FEW_PAIRS = 1 << 12
"""Up to so many values times members each is compared with each, at once."""
_BLOCK = 1 << 16
"""Rows that are looked up at once."""
_FEW_MEMBERS = 4
"""Up to so many members a column is compared with each."""
_FEW_BYTES = 24
"""The same of long columns, by the bytes that a row is compared with: kinds are four times as fast as codes."""


def used_codes(codes: npt.NDArray[Any], count: int) -> Rows:
    """The distinct codes below ``count`` in a column, rising; -1 is no code."""
    if codes.flags.writeable:
        return _codes_in(codes, count)
    # The columns of a trace: rules ask by the dozen for what the names of all slices mean.
    key = id(codes)
    kept = _USED.get(key)
    if kept is None or kept[0]() is not codes or kept[1] != count:
        kept = weakref.ref(codes, lambda _: _USED.pop(key, None)), count, _codes_in(codes, count)
        kept[2].setflags(write=False)
        _USED[key] = kept
    return kept[2]


_USED: dict[int, tuple[weakref.ref[npt.NDArray[Any]], int, Rows]] = {}
"""What frozen columns hold, as long as they live."""


def _codes_in(codes: npt.NDArray[Any], count: int) -> Rows:
    # Marking beats sorting: dictionaries are small, columns are not.
    return marked(codes, count + 1)[:count].nonzero()[0]


def distinct(values: npt.NDArray[Any]) -> list[Any]:
    """The distinct values of a column, rising, as Python's own numbers: most often few of few.

    >>> distinct(np.array([3, 1, 3]))
    [1, 3]
    """
    if values.size <= _FEW_VALUES:
        return sorted(set(values.ravel().tolist()))
    once: list[Any] = np.unique(values).tolist()
    return once


def united(*columns: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The distinct values of some columns together, rising, of many that mostly differ (rows, times).

    ``numpy.unique`` has hashed them since 2.3: 0.5 us for each that is another one, where sorting takes 0.04.

    >>> united(np.array([3, 1]), np.array([3, 2])).tolist()
    [1, 2, 3]
    """
    ordered = np.sort(np.concatenate(columns) if len(columns) > 1 else columns[0], axis=None)
    first = np.ones(ordered.size, np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return np.asarray(ordered[first])


def without(values: npt.NDArray[Any], others: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The distinct values that are none of some others, rising.

    >>> without(np.array([3, 1, 3]), np.array([1])).tolist()
    [3]
    """
    ordered = united(values)
    return np.asarray(ordered[~among(ordered, others)])


def marked(rows: Any, size: int) -> Bools:
    """Which of so many rows are among some."""
    marks = np.zeros(size, np.bool_)
    marks[rows] = True
    return marks


def mapped(
    codes: npt.NDArray[Any], strings: Sequence[Text], function: Callable[[Text], float | bool], dtype: type[Any]
) -> npt.NDArray[Any]:
    """The function of each row's text, 0 where there is none."""
    if codes.size <= _FEW_CODES:
        known = {code: function(strings[code]) if code >= 0 else 0 for code in distinct(codes)}
        return np.array([known[code] for code in codes.tolist()], dtype)
    # Of few texts and many rows all are asked: that takes less time than to find out which ones there are.
    is_short = codes.flags.writeable and len(strings) * _ROWS_PER_TEXT <= codes.size
    used = np.arange(len(strings)) if is_short else used_codes(codes, len(strings))
    values = np.array([function(strings[code]) for code in used.tolist()], dtype)
    said = used[values != 0]
    if said.size <= _FEW_MEMBERS and (dtype is np.bool_ or not said.size):
        return _any_of(codes, said.tolist()).astype(dtype, copy=False)
    table = np.zeros(len(strings) + 1, dtype)
    table[used] = values
    return looked_up(table, codes)


def looked_up(table: npt.NDArray[Any], places: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The values at some places of a table: ``table[places]`` without a copy of all places, which numpy makes of all
    that are no ``intp``."""
    values = np.empty(places.shape, table.dtype)
    for low in range(0, places.size, _BLOCK):
        values[low : low + _BLOCK] = table[places[low : low + _BLOCK]]
    return values


def among(values: npt.NDArray[Any], members: npt.ArrayLike | Iterable[int]) -> Bools:
    """Which values are members: ``numpy.isin`` by a table of marks where that is not too large.

    >>> among(np.array([3, -1, 2**31 - 1], np.int32), [2, 3]).tolist()
    [True, False, False]
    """
    wanted = np.asarray(members)
    if wanted.size <= _FEW_MEMBERS:
        return _any_of(values, wanted.tolist())
    if not values.size:
        return np.zeros(values.shape, np.bool_)
    if values.dtype.kind not in "iu" or wanted.dtype.kind not in "iu" or np.uint64 in (values.dtype, wanted.dtype):
        return np.isin(values, wanted)
    if values.ndim == 1 and values.size * wanted.size <= _FEW_PAIRS:
        compared: Bools = (values[:, None] == wanted.ravel()).any(axis=1)
        return compared
    if wanted.size * values.itemsize <= _FEW_BYTES:
        return _any_of(values, wanted.tolist())
    held = np.iinfo(values.dtype)
    low, high = max(int(wanted.min()) - 1, int(held.min)), min(int(wanted.max()) + 1, int(held.max))
    if low > high:  # No value of this type is among them.
        return np.zeros(values.shape, np.bool_)
    wanted = wanted[(wanted >= low) & (wanted <= high)]
    if high - low > _room(values.size):
        return np.isin(values, wanted)
    marks = np.zeros(high - low + 1, np.bool_)
    marks[wanted.astype(np.int64) - low] = True
    # The first and the last mark are of no member: what lies outside is taken to them.
    marked = np.empty(values.shape, np.bool_)
    given, into = values.reshape(-1), marked.reshape(-1)
    for at in range(0, given.size, _BLOCK):
        within = np.subtract(given[at : at + _BLOCK], low, dtype=np.intp)
        marks.take(within, mode="clip", out=into[at : at + _BLOCK])
    return marked


def _any_of(values: npt.NDArray[Any], members: Sequence[int]) -> Bools:
    """Comparing a column is ten times as fast as looking each value up."""
    if not members:
        return np.zeros(values.shape, np.bool_)
    first, *others = set(members)
    is_any: Bools = np.equal(values, first)
    for member in others:
        is_any |= values == member
    return is_any


def grouped(*columns: npt.NDArray[Any]) -> tuple[Rows, Rows]:
    """The first row of each distinct tuple of values, and per row the number of its tuple.

    Tuples are numbered in rising order, the first column before the second: as ``numpy.unique`` of rows does it, which
    sorts them as bytes.

    >>> first, group = grouped(np.array([2, 1, 2]), np.array([7, 9, 7]))
    >>> first.tolist(), group.tolist()
    ([1, 0], [1, 0, 1])
    """
    rows = columns[0].size
    group, size = np.zeros(rows, np.int64), 1
    for column in columns:
        dense, count = _narrow(column)
        if size * count > _room(rows):  # Counting what there is keeps the product of counts within 64 bits.
            group, size = _numbered(group, size)
        group = group * count + dense if size > 1 else dense
        size *= count
    group, size = _numbered(group, size)
    first = np.empty(size, np.intp)
    first[group[::-1]] = np.arange(rows - 1, -1, -1)
    return first, group.astype(np.intp, copy=False)


def _room(rows: int) -> int:
    return max(_TABLE_PER_ROW * rows, _TABLE_LEAST)


def _narrow(column: npt.NDArray[Any]) -> tuple[I64, int]:
    """Numbers from 0 in the order of the values, and how many there may be."""
    if not column.size:
        return column.astype(np.int64), 1
    if column.dtype.kind in "iu" and column.dtype != np.uint64:
        low, high = int(column.min()), int(column.max())
        if high - low <= _room(column.size):
            return column.astype(np.int64) - low, high - low + 1
    elif column.dtype.kind == "b":
        return column.astype(np.int64), 2
    return _sorted_numbers(column)


def _numbered(keys: I64, size: int) -> tuple[I64, int]:
    """The same numbers without those that none has."""
    if size > _room(keys.size):
        return _sorted_numbers(keys)
    numbers = np.cumsum(marked(keys, size), dtype=np.int64)
    return numbers[keys] - 1, int(numbers[-1])


def _sorted_numbers(keys: npt.NDArray[Any]) -> tuple[I64, int]:
    """The place of each key among the distinct ones."""
    ordered = np.sort(keys, axis=None)
    distinct = ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))]
    if distinct.size <= _FEW_KEYS:
        return np.searchsorted(distinct, keys).astype(np.int64, copy=False), distinct.size
    return np.unique(keys, return_inverse=True)[1].reshape(-1).astype(np.int64, copy=False), distinct.size
