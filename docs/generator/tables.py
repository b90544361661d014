"""``docs/tables.md``: the declared tables of a trace."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

from stepscope.trace.tables import TABLES, Table, dtype_of

INTRO = """\
# The tables of a trace

Made from the declarations in `src/stepscope/trace/tables.py` by `make docs`; change them there.

`profile.table("slices")` gives a table as a polars frame, and `stepscope query` reads the same. Tables that others
refer to begin with the column `id`, the number of the row. Times are integer nanoseconds from the trace's origin and
sizes are bytes. A column that may be absent is null where the profile did not record the value: never 0.
"""


def page() -> str:
    """The declared tables, a section each."""
    return "\n".join([INTRO, *(table_section(name, table) for name, table in TABLES.items())])


def table_section(name: str, table: type[Table]) -> str:
    """One table: its sentence and a row per column."""
    rows = "\n".join(column_row(declared) for declared in dataclasses.fields(table))
    return (
        f"## `{name}`\n\n{inspect.getdoc(table)}\n\n"
        f"| column | type | unit | may be absent | what it holds |\n|---|---|---|---|---|\n{rows}\n"
    )


def column_row(declared: dataclasses.Field[Any]) -> str:
    """One column."""
    meta = declared.metadata
    nullable = "yes" if meta["nullable"] else ""
    return f"| `{declared.name}` | {column_type(declared)} | {meta['unit']} | {nullable} | {meaning(declared)} |"


def column_type(declared: dataclasses.Field[Any]) -> str:
    """The type a reader of the frame sees."""
    if declared.metadata["text"]:
        return "text"
    if declared.metadata["labels"]:
        return "label"
    if declared.metadata["table"]:
        return f"row of `{declared.metadata['table']}`"
    return dtype_of(declared).name


def meaning(declared: dataclasses.Field[Any]) -> str:
    """The declared sentence, with the values a label can take."""
    labels = declared.metadata["labels"]
    sentence = str(declared.metadata["doc"]).replace("|", "\\|")
    return f"{sentence} One of: {', '.join(label.name.lower() for label in labels)}." if labels else sentence
