"""Grouping rows and looking values up: what numpy does by sorting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stepscope.trace.codes import _USED, among, distinct, grouped, mapped, united, used_codes, without

INT64 = np.iinfo(np.int64)
VALUES = st.one_of(st.integers(-2, 5), st.integers(INT64.min, INT64.max), st.sampled_from([INT64.min, INT64.max]))


@given(st.lists(st.tuples(VALUES, st.integers(-1, 3), st.booleans(), VALUES), max_size=40))
def test_rows_are_grouped_as_numpy_groups_them(rows):
    columns = [
        np.array([row[at] for row in rows], dtype) for at, dtype in enumerate((np.int64, np.int32, np.bool_, np.int64))
    ]
    first, group = grouped(*columns)
    stacked = np.stack(columns, axis=1).astype(np.int64)
    if rows:
        _, at, dense = np.unique(stacked, axis=0, return_index=True, return_inverse=True)
        assert first.tolist() == at.tolist()
        assert group.tolist() == dense.reshape(-1).tolist()
    else:
        assert not first.size
        assert not group.size


@pytest.mark.parametrize("rows", [30_000, 60_000])
def test_many_distinct_rows_are_grouped_as_numpy_groups_them(rows):
    random = np.random.default_rng(rows)
    columns = random.integers(0, 1 << 62, rows), random.integers(0, 50, rows), random.integers(0, 1 << 40, rows) // 2
    repeated = [np.concatenate((column, column[: rows // 2])) for column in columns]
    _, at, dense = np.unique(np.stack(repeated, axis=1), axis=0, return_index=True, return_inverse=True)
    first, group = grouped(*repeated)
    np.testing.assert_array_equal(first, at)
    np.testing.assert_array_equal(group, dense.reshape(-1))


@given(
    st.lists(VALUES, max_size=30),
    st.lists(VALUES, max_size=6),
    st.sampled_from([np.int64, np.int32, np.uint8, np.uint64, np.float64]),
)
@example([0], [256], np.uint8)
@example([0], [-5], np.uint8)
@example([3], [2**40], np.int32)
def test_values_are_looked_up_as_numpy_looks_them_up(values, members, dtype):
    column = np.array(values, np.int64).astype(dtype)
    assert among(column, members).tolist() == np.isin(column, members).tolist()
    assert among(column, np.array(members, np.int64)).tolist() == np.isin(column, members).tolist()


def test_what_a_frozen_column_holds_is_kept_as_long_as_it_lives() -> None:
    column = np.array([3, 1, -1, 3], np.int32)
    column.setflags(write=False)
    assert used_codes(column, 5).tolist() == [1, 3]
    assert used_codes(column, 5) is used_codes(column, 5)
    assert used_codes(column, 4) is not used_codes(column, 5)
    before = len(_USED)
    del column
    assert len(_USED) == before - 1


@pytest.mark.parametrize("count", [0, 1, 200, 300, 5000])
@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.bool_, np.float64])
def test_distinct_values_rise(count: int, dtype: type):
    values = np.random.default_rng(count).integers(0, 100, count).astype(dtype)
    assert distinct(values) == np.unique(values).tolist()


@pytest.mark.parametrize("rows", [0, 40, 200, 100_000])
@pytest.mark.parametrize(("function", "dtype"), [(len, np.int32), (str.isupper, np.bool_), (str.isspace, np.bool_)])
def test_a_function_is_looked_up_for_each_row_however_many_there_are(rows, function, dtype):
    strings = ["a", "Bc", "BC", "", *("D" * at for at in range(1, 8))]
    codes = np.random.default_rng(rows).integers(-1, len(strings), rows).astype(np.int32)
    for column in (codes, codes[codes != 2]):
        values = mapped(column, strings, function, dtype)
        assert values.dtype == dtype
        assert values.tolist() == [dtype(function(strings[code]) if code >= 0 else 0) for code in column.tolist()]


@given(st.lists(VALUES), st.lists(VALUES))
def test_rows_are_united_and_taken_out_as_numpy_does_it(values: list[int], others: list[int]) -> None:
    one, other = np.array(values, np.int64), np.array(others, np.int64)
    assert united(one).tolist() == np.unique(one).tolist()
    assert united(one, other).tolist() == np.union1d(one, other).tolist()
    assert without(one, other).tolist() == np.setdiff1d(one, other).tolist()
