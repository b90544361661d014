"""How a table is declared: columns of numpy, each with a sentence, and how its absent values become real nulls."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import field
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from stepscope.record import record

if TYPE_CHECKING:
    import polars as pl

NULL = int(np.iinfo(np.int64).min)
"""The absent value of every int64 column."""

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
I16 = npt.NDArray[np.int16]
U8 = npt.NDArray[np.uint8]
F64 = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]
"""Row numbers of a table."""


def column(  # noqa: PLR0913  What a column may declare.
    doc: str,
    *,
    unit: str = "",
    nullable: bool = False,
    labels: type[IntEnum] | None = None,
    text: bool = False,
    table: str = "",
    least: int | None = None,
) -> Any:
    """Declare a column: a sentence, its unit, and whether the value may be absent.

    ``labels`` names the enumeration of a small-integer column, ``text`` marks a dictionary code into
    ``Trace.strings``, ``table`` names the table whose row ids the column holds, and ``least`` is the smallest value
    that can be (of an int64 column that may be absent): what is less counts as absent (``trace/plausible.py``).
    """
    return field(metadata={
        "doc": doc, "unit": unit, "nullable": nullable, "labels": labels, "text": text, "table": table, "least": least,
    })  # fmt: skip


@record
class Table:
    """Equally long, read-only columns."""

    def __len__(self) -> int:
        """The number of rows."""
        return len(getattr(self, next(iter(self.__dataclass_fields__))))

    @classmethod
    def empty(cls) -> Any:
        """A table of no rows."""
        return cls(*(np.empty(0, dtype_of(f)) for f in dataclasses.fields(cls)))

    def frame(self, strings: Sequence[str]) -> pl.DataFrame:
        """The table as a polars frame: text resolved, labels in lower case, nulls real."""
        from stepscope.trace.framed import framed

        columns = []
        for declared in dataclasses.fields(self):
            values = getattr(self, declared.name)
            columns.append((declared, values, is_null(values) if declared.metadata["nullable"] else None))
        return framed(columns, strings)


def dtype_of(declared: dataclasses.Field[Any]) -> np.dtype[Any]:
    """The numpy type of a declared column."""
    return np.dtype(_DTYPES[str(declared.type)])


_DTYPES = {"I64": np.int64, "I32": np.int32, "I16": np.int16, "U8": np.uint8, "F64": np.float64}


def is_null(values: npt.NDArray[Any]) -> Bools:
    """Which values of a column are absent."""
    if values.dtype == np.float64:
        return np.asarray(np.isnan(values), np.bool_)
    absent = NULL if values.dtype == np.int64 else -1
    return np.asarray(values == absent, np.bool_)
