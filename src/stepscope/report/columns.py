"""A table of the long report in a terminal: side by side where that fits, else its rows below each other."""

from __future__ import annotations

from dataclasses import replace
from textwrap import wrap

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from stepscope.report.names import shorten, shorten_path, visible
from stepscope.report.section import Column, Section

_LEAST_NAME = 20
"""Cells a name column needs at the least, unless its names are shorter; below, rows are stacked instead."""
_LAYOUTS = ((2, False), (2, True), (1, True))
"""Cells between columns and whether titles are folded: the first that fits is taken."""


def laid_out(section: Section, width: int) -> RenderableType:
    """The rows of a table ``width`` cells wide: names shortened to what the rest leaves them."""
    for gap, folded in _LAYOUTS:
        fitting = _folded(section) if folded else section
        room = _name_room(fitting, width, gap)
        if room >= _needed(section):
            return _table(fitting, room, gap)
    return _stacked(section, width)


def folded(text: str, style: str = "") -> Text:
    """A text that goes on in the next line where a line is full."""
    return Text(visible(text), style=style, overflow="fold")


def _table(section: Section, room: int, gap: int) -> Table:
    table = Table(box=None, padding=(0, gap, 0, 0), header_style="dim", pad_edge=False)
    for column in section.columns:
        table.add_column(
            Text(column.title),
            justify="right" if column.numeric else "left",
            no_wrap=column.numeric,
            overflow="fold",
        )
    for row in section.rows:
        table.add_row(*(_cell(column, value, room) for column, value in zip(section.columns, row, strict=True)))
    return table


def _cell(column: Column, value: str, room: int) -> Text:
    if column.path:
        return Text(shorten_path(value, room))
    return Text(shorten(value, room)) if column.name else folded(value)


def _name_room(section: Section, width: int, gap: int) -> int:
    """Cells for each name column once the others have what they need; all of them where there is none."""
    named = sum(column.name for column in section.columns)
    taken = sum(gap + _widest(section, at) for at, column in enumerate(section.columns) if not column.name)
    if not named:
        return width if taken - gap <= width or all(not column.numeric for column in section.columns) else 0
    return (width - taken + gap) // named - gap


def _widest(section: Section, at: int) -> int:
    lines = section.columns[at].title.splitlines()
    return max(cell_len(text) for text in (*lines, *(row[at] for row in section.rows)))


def _needed(section: Section) -> int:
    """Cells that name columns need: what their longest name takes, or enough of it to be told from others.

    At least one: what does not fit has no room, with or without names.
    """
    names = (_widest(section, at) for at, column in enumerate(section.columns) if column.name)
    return min(_LEAST_NAME, max(names, default=1))


def _folded(section: Section) -> Section:
    """Titles of numbers on several lines, no wider than the numbers or a word."""
    columns = [
        replace(column, title="\n".join(wrap(column.title, _value_width(section, at), break_long_words=False)))
        if column.numeric and column.title
        else column
        for at, column in enumerate(section.columns)
    ]
    return replace(section, columns=tuple(columns))


def _value_width(section: Section, at: int) -> int:
    return max(map(cell_len, (*section.columns[at].title.split(), *(row[at] for row in section.rows))))


def _stacked(section: Section, width: int) -> Group:
    """Where a table would squeeze its names: each row as its names with the figures below."""
    lines: list[RenderableType] = []
    for row in section.rows:
        pairs = list(zip(section.columns, row, strict=True))
        lines += [_cell(column, value, width) for column, value in pairs if column.name]
        figures = ", ".join(f"{column.title} {value}" for column, value in pairs if not column.name)
        lines.append(Padding(folded(figures, "dim"), (0, 0, 0, 3)))
    return Group(*lines)
