"""Tables of the long report from the declaration of their rows: titles, layout and the text of every value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, NamedTuple

from stepscope.document.declared import DeclaredField, FieldShape, fields
from stepscope.document.findings import WhereEntry
from stepscope.record import record
from stepscope.report import labels, phrases
from stepscope.report.section import ABSENT, Column, Section, cut, rate, yes
from stepscope.units import format_bytes, format_count, format_ns, format_rate, format_share

Row = Mapping[str, Any]
Text = Callable[[Any], str]

_TEXT: dict[str, Text] = {
    "ns": format_ns,
    "bytes": format_bytes,
    "count": format_count,
    "share": format_share,
    "percent": lambda value: f"{value:.0f} %",
    "rate": rate,
    "flops_per_s": lambda value: format_rate(value, "FLOP/s") if value else ABSENT,
    "bytes_per_s": lambda value: format_rate(value, "B/s") if value else ABSENT,
    "flag": yes,
    "category": lambda value: labels.CATEGORIES[value].words,
}
_WORDS = {"", "text", "name", "path", "flag", "category"}


@record
class Look:
    """Where a table departs from its declaration: which ``view`` of the rows it is, by key the text of ``cells`` that
    their own value alone does not tell and other ``titles`` (None: no column), and by title the ``keys`` of maps."""

    view: str = ""
    cells: Mapping[str, Text] = field(default_factory=dict)
    titles: Mapping[str, str | None] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)


_NOTHING = Look()


class _Shown(NamedTuple):
    column: Column
    text: Text


def table(
    title: str, of: type, rows: Sequence[Row], note: str = "", look: Look = _NOTHING, total: int | None = None
) -> Section:
    """Rows of a declared object as a table: a column for each field with a title, in their order.

    ``total`` is how many rows there are where ``rows`` are the first of them.
    """
    shown = list(_columns(of, look))
    kept, left_out = cut((tuple(one.text(row) for one in shown) for row in rows), len(rows) if total is None else total)
    return Section(title, tuple(one.column for one in shown), kept, "; ".join(filter(None, (note, left_out))))


def inserted(section: Section, at: int, column: Column, texts: Sequence[str]) -> Section:
    """With a column more, of what is not in the rows themselves."""
    rows = [(*row[:at], text, *row[at:]) for row, text in zip(section.rows, texts, strict=False)]
    return replace(section, columns=(*section.columns[:at], column, *section.columns[at:]), rows=rows)


def _columns(of: type, look: Look) -> Iterator[_Shown]:
    for one in fields(of):
        title = look.titles.get(one.key, one.field.column)
        if title is None or (one.field.view and look.view not in one.field.view.split()):
            continue
        if title == "" and one.shape.of is not None:
            yield from (_inside(one, inner) for inner in _columns(one.shape.of, look))
        elif title == "" and one.shape.holds == "map" and one.shape.inner is not None:
            value = one._replace(shape=one.shape.inner)
            for title, key in look.keys.items():
                yield _inside(one, _Shown(_column(title, value.shape), _text(value._replace(key=key))))
        else:
            yield _Shown(_column(title, one.shape), look.cells.get(one.key) or _text(one))


def _inside(one: DeclaredField, shown: _Shown) -> _Shown:
    return _Shown(shown.column, lambda row: ABSENT if row.get(one.key) is None else shown.text(row[one.key]))


def _column(title: str, shape: FieldShape) -> Column:
    held = shape.inner if shape.holds == "list" and shape.inner else shape
    kind = held.kind.name if held.kind else ""
    path = held.of is WhereEntry or kind == "path"
    numeric = kind not in _WORDS and shape.holds == "value"
    return Column(title, numeric=numeric, name=path or kind == "name", path=path)


def _text(one: DeclaredField) -> Text:
    if one.shape.of is WhereEntry:
        return lambda row: phrases.locator(row[one.key]) or ABSENT
    shown = _TEXT.get(one.shape.kind.name if one.shape.kind else "", str)

    def text(row: Row) -> str:
        value = row.get(one.key)
        return one.field.null if value is None else shown(value)

    return text
