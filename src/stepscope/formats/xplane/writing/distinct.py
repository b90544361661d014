"""The distinct rows of several columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from stepscope.trace.tables import Rows

_LARGEST_KEY = 1 << 62
_WIDE = 1 << 31


def distinct(columns: Sequence[npt.NDArray[Any]]) -> tuple[Rows, Rows]:
    """Where each distinct combination of values stands first, and every row's combination as a number.

    Absent values (NaN among them) equal each other. The columns are equally long and not empty.
    """
    key, count = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        if column.dtype == np.float64 or int(column.max()) - int(column.min()) >= _WIDE:
            column = np.unique(column, return_inverse=True)[1]
        low = int(column.min())
        span = int(column.max()) - low + 1
        if count * span >= _LARGEST_KEY:
            key = np.unique(key, return_inverse=True)[1]
            count = int(key.max()) + 1
        key, count = key * span + (column.astype(np.int64) - low), count * span
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    return first, inverse
