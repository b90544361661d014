"""Numbers told of few slices."""

import numpy as np
import pytest

from stepscope.trace.sparse import told


def test_what_is_told_is_looked_up_in_any_order_and_the_last_counts():
    values = told(np.array([7, 2, 7, 4], np.int32), np.array([10, 20, 30, -1], np.int32))
    assert values[np.array([2, 4, 7, 9, -1, 0], np.int32)].tolist() == [20, -1, 30, -1, -1, -1]
    assert values.slices.tolist() == [2, 7, 7]


def test_where_nothing_is_told_nothing_is_known():
    values = told(np.empty(0, np.int32), np.empty(0, np.int32))
    assert values[np.array([0, -1])].tolist() == [-1, -1]
    with pytest.raises(TypeError):
        _ = values == values
