"""A table as a polars frame; the only reason to load polars, which most commands do without."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

Declared = tuple[dataclasses.Field[Any], npt.NDArray[Any], npt.NDArray[np.bool_] | None]
"""A column: its declaration, its values, and which are absent, where they may be."""


def framed(columns: Sequence[Declared], strings: Sequence[str]) -> pl.DataFrame:
    """The table as a polars frame: text resolved, labels in lower case, nulls real."""
    return pl.DataFrame([_series(*column, strings) for column in columns])


def _series(
    declared: dataclasses.Field[Any],
    values: npt.NDArray[Any],
    absent: npt.NDArray[np.bool_] | None,
    strings: Sequence[str],
) -> pl.Series:
    name, meta = declared.name, declared.metadata
    if meta["labels"] is not None:
        return _labelled(name, [member.name.lower() for member in meta["labels"]], values.astype(np.int64))
    if meta["text"]:
        # Only the strings this column uses become its dictionary.
        used, dense = np.unique(values, return_inverse=True)
        known = used[used >= 0]
        return _labelled(name, [strings[code] for code in known.tolist()], dense - (used.size - known.size))
    series = pl.Series(name, values)
    if absent is None or not absent.any():
        return series
    return pl.select(pl.when(pl.Series(~absent)).then(series).alias(name)).to_series()


def _labelled(name: str, labels: list[str], codes: npt.NDArray[Any]) -> pl.Series:
    """Codes as an Enum column, null where negative."""
    dictionary = pl.Series(name, labels, dtype=pl.Enum(list(dict.fromkeys(labels))))
    index = pl.Series(np.maximum(codes, 0).astype(np.uint32))
    if (codes < 0).any():
        index = pl.select(pl.when(pl.Series(codes >= 0)).then(index)).to_series()
    return dictionary.gather(index) if labels else pl.Series(name, [None] * len(codes), dtype=dictionary.dtype)
