"""``docs/report-schema.md``: the keys of the JSON report, from their declaration."""

from __future__ import annotations

from collections.abc import Iterator

from generator.markdown import section, table
from stepscope.document.declared import DeclaredField, FieldShape, fields, objects
from stepscope.document.kinds import CATEGORY
from stepscope.document.report import Report
from stepscope.document.steps import AccountingRow, StepEntry, SummaryEntry
from stepscope.report.schema import snake

INTRO = """\
# The JSON report

{description}

What everybody reads is told key by key; of the rows of [analyses](#analyses) and their like the keys and types. What
each of those means is in the file that *More* leads to, and in the JSON Schema that
`stepscope.report.schema.load()` returns. A ? marks what may be absent, [] a list; `ns-at` is since the trace's origin;
names that end in `_ns`, `_bytes` or `_share` say their type. How to use the report:
[in Python and CI](guides/in-python-and-ci.md). Made from `src/stepscope/document/` by `make docs`.
"""

UNITS = {"ns from the trace's origin": "ns-at", "share of one": "share"}
"""As types; others are called as they are."""
TOLD = ("report", "profile", "findings")
"""The files whose keys are told one by one."""


def page() -> str:
    """The root, then every object in the order in which it is first referred to: those told one by one first."""
    named = [one for one in objects(Report) if one is not Report]
    first = [one for one in named if home(one) in TOLD or one in (StepEntry, AccountingRow, SummaryEntry)]
    parts = [section("The document", keys(Report))]
    parts += [section(f"`{snake(one)}`", one.__doc__ or "", keys(one)) for one in first]
    parts += [brief(one) for one in named if one not in first]
    description = " ".join((Report.__doc__ or "").split())
    return "\n".join([INTRO.format(description=description), *parts])


def home(of: type) -> str:
    """The file that declares an object."""
    return of.__module__.rpartition(".")[2]


def keys(of: type) -> str:
    """A row per key of an object."""
    return table(("key", "type", "what it holds"), rows(of))


def rows(of: type) -> Iterator[tuple[str, str, str]]:
    """The keys of an object, with what they mean."""
    for one in fields(of):
        yield f"`{one.key}`", words(one.shape) + ("" if one.required else " ?"), meaning(one)


def brief(of: type) -> str:
    """An object and its keys, in a paragraph."""
    short = "; ".join(_named(one) for one in fields(of))
    told = (of.__doc__ or "").strip()
    return section(f"`{snake(of)}`", f"{told} [More](../src/stepscope/document/{home(of)}.py).", f"{short}.")


def _named(one: DeclaredField) -> str:
    """A key with its type, where its name does not end with it."""
    unit, optional = one.key.rpartition("_")[2], "" if one.required else "?"
    if one.shape.kind is not None and unit == UNITS.get(one.shape.kind.unit or "", one.shape.kind.unit):
        return f"`{one.key}`{optional}{'/null' if one.shape.null else ''}"
    return f"`{one.key}`{optional} {words(one.shape)}"


def meaning(one: DeclaredField) -> str:
    """What a key means; its values, where they are few enough to list."""
    values = one.shape.words
    listed = f" One of: {', '.join(f'`{value}`' for value in values)}." if 1 < len(values) <= 8 else ""
    return one.field.meaning + listed


def words(shape: FieldShape) -> str:
    """A type in words, with its unit."""
    return f"{_plain(shape)}/null" if shape.null else _plain(shape)


def _plain(shape: FieldShape) -> str:
    if shape.of is not None:
        return f"[{snake(shape.of)}](#{snake(shape.of)})"
    if shape.words:
        return f"`{shape.words[0]}`" if len(shape.words) == 1 else "text"
    if shape.holds == "list" and shape.inner is not None:
        return f"({words(shape.inner)})[]" if shape.inner.null else f"{words(shape.inner)}[]"
    if shape.inner is not None:
        return f"{'category' if shape.kind == CATEGORY else 'text'} to {words(shape.inner)}"
    assert shape.plain is not None
    assert shape.kind is not None
    name = {int: "integer", float: "number", str: "text", bool: "boolean"}[shape.plain]
    return UNITS.get(shape.kind.unit or "", shape.kind.unit) or name
