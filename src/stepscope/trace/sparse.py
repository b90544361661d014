"""Columns of all slices of which few have a value."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from stepscope.record import record
from stepscope.trace.tables import I32, Bools, Rows

Value = TypeVar("Value", bound=np.generic)


@record
class PerSlice(Generic[Value]):
    """A value for every slice, asked for as of an array; columns of one kind share ``at``."""

    at: I32
    """Per slice its place in ``values``, rising; -1 for none."""
    values: npt.NDArray[Value]
    """Those of the slices that have one, and at the end that of all others."""

    def __eq__(self, other: object) -> bool:
        raise TypeError("compare the values of slices: no column is compared as a whole")

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, slices: npt.NDArray[Any] | int) -> npt.NDArray[Value]:
        """The values of slices; of -1 that of the last slice, as of an array."""
        return np.asarray(self.values[self.at[slices]])

    @property
    def slices(self) -> Rows:
        """Those that have a value, each with that at its place."""
        return np.flatnonzero(self.at >= 0)


def places(has: Bools) -> I32:
    """What columns of the slices that have a value share."""
    at = np.cumsum(has, dtype=np.int32)
    at -= 1
    at[~has] = -1
    return at


@record
class ValuesOfFew:
    """Numbers told of some slices, looked up for few: no column of all is kept."""

    slices: I32
    """Rising."""
    values: I32

    def __eq__(self, other: object) -> bool:
        raise TypeError("compare the values of slices: no column is compared as a whole")

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, slices: npt.NDArray[Any]) -> I32:
        """The values of slices, -1 where none is told; of one that is told twice the last."""
        if not self.slices.size or not slices.size:
            return np.full(slices.size, -1, np.int32)
        at = np.maximum(np.searchsorted(self.slices, slices.astype(np.int32, copy=False), "right") - 1, 0)
        return np.where(self.slices[at] == slices, self.values[at], np.int32(-1))


def told(slices: I32, values: I32) -> ValuesOfFew:
    """Values of some slices; of none where the value is -1."""
    known = values >= 0
    if not known.all():
        slices, values = slices[known], values[known]
    if (slices[1:] < slices[:-1]).any():
        order = np.argsort(slices, kind="stable")
        slices, values = slices[order], values[order]
    return ValuesOfFew(slices, values)
