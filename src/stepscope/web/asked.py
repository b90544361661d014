"""What pages are told of a query: its rows, and what there is to ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stepscope.report import frames

if TYPE_CHECKING:
    import polars as pl

MOST_ROWS = 5_000
"""Rows that a page is sent; `stepscope query --format csv` writes all."""
_EXACT = 1 << 53
"""Whole numbers from here on are no longer exact in a page: they are sent as text."""


def answered(frame: pl.DataFrame) -> dict[str, Any]:
    """The rows of a query, as ``static/trace/groups.js`` declares an answer."""
    shown = frame.head(MOST_ROWS)
    return {
        "columns": [{"name": name, "unit": "ns" if name.endswith("_ns") else None} for name in frame.columns],
        "rows": [[_cell(value) for value in row] for row in shown.iter_rows()],
        "total": frame.height,
        "error": None,
    }


def _cell(value: Any) -> str | int | float | None:
    if value is None or isinstance(value, bool):
        return None if value is None else str(value).lower()
    if isinstance(value, int):
        return value if abs(value) < _EXACT else str(value)
    if isinstance(value, float):
        return value if abs(value) < float("inf") else str(value)
    return str(value)


def tables() -> dict[str, list[str]]:
    """The columns of every table that a query finds."""
    by_table: dict[str, list[str]] = {}
    for table, column in frames.columns().select("table", "column").iter_rows():
        by_table.setdefault(table, []).append(column)
    return by_table
