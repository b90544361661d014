"""What a table of the long report is made of: its columns, and how values become text in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stepscope.record import record
from stepscope.units import format_count

MOST_ROWS = 20
"""Rows of a table in the long report; the JSON report holds them all."""

ABSENT = "–"
"""In place of a value that was not recorded."""


@record
class Column:
    """A column's title and layout: numbers to the right; names, and paths among them, shortened to fit."""

    title: str
    numeric: bool = False
    name: bool = False
    path: bool = False


@record
class Section:
    """A titled table, with a line of text above it where one helps."""

    title: str
    columns: tuple[Column, ...]
    rows: Sequence[tuple[str, ...]]
    note: str = ""


def number(title: str) -> Column:
    """A column of numbers."""
    return Column(title, numeric=True)


def name(title: str) -> Column:
    """A column of names, shortened to fit."""
    return Column(title, name=True)


def text(value: object) -> str:
    """The value, or a dash where it is absent."""
    return ABSENT if value is None else str(value)


def rate(value: float | None) -> str:
    """A number per step."""
    return ABSENT if value is None else f"{value:.4g}"


def yes(value: bool | None) -> str:
    """yes, no, or a dash."""
    return ABSENT if value is None else "yes" if value else "no"


def cut(rows: Iterable[tuple[str, ...]], total: int) -> tuple[list[tuple[str, ...]], str]:
    """The first rows, and a remark on the ones left out."""
    kept = [row for row, _ in zip(rows, range(MOST_ROWS), strict=False)]
    note = f"the first {MOST_ROWS} of {format_count(total)}; --format json has all" if total > MOST_ROWS else ""
    return kept, note
