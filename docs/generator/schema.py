"""``docs/report-schema.md``: the keys of the JSON report, from their declaration."""

from __future__ import annotations

from collections.abc import Iterator

from generator.markdown import section, table
from stepscope.document.declared import Declared, Shape, fields, objects
from stepscope.document.kinds import CATEGORY
from stepscope.document.report import Report
from stepscope.report.schema import snake

Row = tuple[str, str, str, str]

INTRO = """\
# The JSON report

Made from `src/stepscope/document/` by `make docs`; change it there. `stepscope.report.schema.load()` is the same as a
JSON Schema. How to use the report: [in Python and CI](guides/in-python-and-ci.md).

{description}

Keys are in every report, but for those that may be absent. What has a title in the last column is a column of that
title where reports show such rows as a table.
"""


def page() -> str:
    """The root, then every object in the order in which it is first referred to."""
    parts = [section("The document", listing(Report))]
    for one in objects(Report):
        parts.append(section(f"`{snake(one)}`", one.__doc__ or "", listing(one)))
    return "\n".join([INTRO.format(description=Report.__doc__), *parts])


def listing(of: type) -> str:
    """A row per key."""
    return table(("key", "type", "what it holds", "in tables"), rows(of))


def rows(of: type) -> Iterator[Row]:
    """The keys of an object."""
    for one in fields(of):
        absent = "" if one.required else ", may be absent"
        yield f"`{one.key}`", words(one.shape) + absent, meaning(one), one.field.column or ""


def meaning(one: Declared) -> str:
    """What a key means; its values, where they are few enough to list."""
    values = one.shape.words
    listed = f" One of: {', '.join(f'`{value}`' for value in values)}." if 1 < len(values) <= 8 else ""
    return one.field.meaning + listed


def words(shape: Shape) -> str:
    """A type in words, with its unit."""
    return f"{_plain(shape)} or null" if shape.null else _plain(shape)


def _plain(shape: Shape) -> str:
    if shape.of is not None:
        return f"[{snake(shape.of)}](#{snake(shape.of)})"
    if shape.words:
        return f"`{shape.words[0]}`" if len(shape.words) == 1 else "text"
    if shape.holds == "list" and shape.inner is not None:
        return f"list of {words(shape.inner)}"
    if shape.inner is not None:
        return f"{'category' if shape.kind == CATEGORY else 'text'} to {words(shape.inner)}"
    assert shape.plain is not None
    assert shape.kind is not None
    name = {int: "integer", float: "number", str: "text", bool: "boolean"}[shape.plain]
    return f"{name}, {shape.kind.unit}" if shape.kind.unit else name
