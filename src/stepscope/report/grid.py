"""A frame as text: a table that fits the terminal, CSV, or JSON.

Text of a profile is untrusted: in a table, and in CSV for a terminal, what a terminal would act on is escaped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl
from rich.cells import cell_len, set_cell_size

from stepscope.report.names import shorten, visible

_GAP = "  "
_NARROWEST = 16
"""Cells that a text is cut down to before the rows are written one value to a line."""
_BATCH = 50_000


def table(frame: pl.DataFrame, width: int) -> str:
    """The frame as a table ``width`` cells wide: numbers to the right, long texts shortened, absent values as null.

    Where even short texts do not fit, each row is written as a list of its values.
    """
    columns = [[_cell(value) for value in frame[name]] for name in frame.columns]
    titles = [visible(name) for name in frame.columns]
    right = [kind.is_numeric() for kind in frame.dtypes]
    natural = [max(map(cell_len, (title, *cells))) for title, cells in zip(titles, columns, strict=True)]
    widths = _fitting(natural, right, [cell_len(title) for title in titles], width - len(_GAP) * (len(titles) - 1))
    if widths is None:
        return _listed(titles, columns, width)
    lines = [titles, *zip(*columns, strict=True)]
    return "".join(f"{_line(line, widths, right)}\n" for line in lines)


def csv(frame: pl.DataFrame, *, escaped: bool = False) -> Iterator[str]:
    """The frame as CSV, exact; ``escaped`` for a terminal."""
    for at, part in enumerate(frame.iter_slices(_BATCH) if frame.height else [frame]):
        text = part.write_csv(include_header=at == 0)
        yield "".join(f"{visible(line)}\n" for line in text.splitlines()) if escaped else text


def jsons(frame: pl.DataFrame) -> Iterator[str]:
    """The frame as a JSON list with an object per row, each on a line of its own, in ASCII; NaN is null."""
    finite = frame.with_columns(pl.when(pl.selectors.float().is_finite()).then(pl.selectors.float()))
    before = "[\n"
    for part in finite.iter_slices(_BATCH):
        for row in part.iter_rows(named=True):
            yield before + json.dumps(row, default=str)
            before = ",\n"
    yield "[]\n" if before == "[\n" else "\n]\n"


def _cell(value: Any) -> str:
    if value is None:
        return "null"
    return f"{value:.6g}" if isinstance(value, float) else visible(str(value))


def _fitting(natural: Sequence[int], right: Sequence[bool], titles: Sequence[int], room: int) -> list[int] | None:
    """Widths that fit: texts share what the numbers leave, short ones first; None where that is too little."""
    widths = list(natural)
    texts = sorted((i for i in range(len(widths)) if not right[i]), key=lambda i: natural[i])
    left = room - sum(width for i, width in enumerate(widths) if right[i])
    for at, i in enumerate(texts):
        share = left // (len(texts) - at)
        if natural[i] > share:
            if share < max(_NARROWEST, titles[i]):
                return None
            widths[i] = share
        left -= widths[i]
    return widths if left >= 0 else None


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    shown = []
    for cell, width, is_number in zip(cells, widths, right, strict=True):
        text = shorten(cell, width)
        shown.append(" " * (width - cell_len(text)) + text if is_number else set_cell_size(text, width))
    return _GAP.join(shown).rstrip()


def _listed(titles: Sequence[str], columns: Sequence[Sequence[str]], width: int) -> str:
    name_width = max(map(cell_len, titles))
    room = max(width - name_width - len(_GAP), _NARROWEST)
    rows = (
        "".join(
            f"{set_cell_size(title, name_width)}{_GAP}{shorten(cell, room)}\n"
            for title, cell in zip(titles, row, strict=True)
        )
        for row in zip(*columns, strict=True)
    )
    return "\n".join(rows)
