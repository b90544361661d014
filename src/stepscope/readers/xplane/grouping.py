"""Rows by the value of a column: for loops over lines and planes, of which a hostile file may have very many."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from stepscope.trace.tables import Rows


def grouped(column: npt.NDArray[Any]) -> list[tuple[int, Rows]]:
    """Every distinct value, rising, and the positions at which it stands, rising."""
    order = np.argsort(column, kind="stable")
    ordered = column[order]
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if column.size else order
    return list(zip(ordered[first].tolist(), np.split(order, first[1:]), strict=False))


def dense(*columns: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """A number per row, from 0 without gaps, equal where all columns are; rising with the columns."""
    group = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        _, part = np.unique(column, return_inverse=True)
        _, group = np.unique(group * (int(part.max(initial=0)) + 1) + part, return_inverse=True)
    return group
