"""What the pages' JavaScript knows of documents: their types, and the columns of their tables."""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.document.comparison import ComparisonDocument
from stepscope.document.declared import DeclaredField, FieldShape, fields, objects, title
from stepscope.document.kernels import KernelEntry, KernelLaunch
from stepscope.document.report import Report
from stepscope.document.waits import Copy, CriticalElement, LaunchDelayEntry, SyncEntry

TYPES = {int: "number", float: "number", str: "string", bool: "boolean"}
TABLES = (KernelEntry, KernelLaunch, Copy, SyncEntry, LaunchDelayEntry, CriticalElement)
"""Rows that pages show with the declared columns alone."""
MADE = "Made from src/stepscope/document/ by `make docs`; change it there."


def types() -> str:
    """``core/document.d.ts``."""
    declared = dict.fromkeys((Report, *objects(Report), ComparisonDocument, *objects(ComparisonDocument)))
    return "\n".join([f"/** {MADE} */", *(line for one in declared for line in _interface(one))]) + "\n"


def _interface(of: type) -> Iterator[str]:
    yield ""
    yield f"/** {' '.join((of.__doc__ or '').split())} */"
    yield f"export interface {title(of)} {{"
    for one in fields(of):
        yield f"  {one.key}{'' if one.required else '?'}: {_type(one.shape)};"
    yield "}"


def _type(shape: FieldShape) -> str:
    return f"{_plain(shape)} | null" if shape.null else _plain(shape)


def _plain(shape: FieldShape) -> str:
    if shape.of is not None:
        return title(shape.of)
    if shape.words:
        return " | ".join(f"'{word}'" for word in shape.words)
    if shape.inner is not None:
        inner = _type(shape.inner)
        listed = f"({inner})[]" if "|" in inner else f"{inner}[]"
        return listed if shape.holds == "list" else f"Record<string, {inner}>"
    assert shape.plain is not None
    return TYPES[shape.plain]


def columns() -> str:
    """``core/declared.js``."""
    lines = [f"/** Columns of the report's tables, by object. {MADE} */", "", "export const COLUMNS = {"]
    for one in TABLES:
        titled = [each for each in fields(one) if each.field.column is not None]
        lines += [f"  {title(one)}: [", *(f"    {_column(each)}," for each in titled), "  ],"]
    return "\n".join([*lines, "};"]) + "\n"


def _column(one: DeclaredField) -> str:
    shape = one.shape
    kind = title(shape.of) if shape.of else shape.kind.name if shape.kind else shape.holds
    return f"{{ key: '{one.key}', title: '{one.field.column}', kind: '{kind}' }}"
