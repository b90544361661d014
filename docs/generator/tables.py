"""``docs/tables.md``: the declared tables of a trace."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

from generator.markdown import section, table
from stepscope.trace.tables import TABLES, Table, dtype_of

INTRO = """\
# The tables of a trace

`profile.table("slices")` gives a table as a polars frame, and `stepscope query` reads the same. Tables that others
refer to begin with the column `id`, the row's number, and `→ slices` is such a number. Times (`_ns`) are integer
nanoseconds from the trace's origin, `?` marks a column that is null where the profile did not record the value (never
0), and a column without a type is an integer. Texts are as recorded. Made from `src/stepscope/trace/tables.py` by
`make docs`.
"""

FEW = ("programs", "nodes", "tensors", "iterators", "metrics", "placements")
"""Tables that few profiles have rows for: their columns are left to the command that lists them."""


def page() -> str:
    """The declared tables, a section each."""
    few = ((f"`{name}`", str(inspect.getdoc(TABLES[name]))) for name in FEW)
    return "\n".join(
        [
            INTRO,
            *(table_section(name, of) for name, of in TABLES.items() if name not in FEW),
            section(
                "Of few profiles",
                "`stepscope query PROFILE --tables` tells their columns.",
                table(("table", "holds"), few),
            ),
        ]
    )


def table_section(name: str, of: type[Table]) -> str:
    """One table: its sentence and a row per column."""
    rows = "\n".join(column_row(declared) for declared in dataclasses.fields(of))
    return f"## `{name}`\n\n{inspect.getdoc(of)}\n\n| column | type | holds |\n|---|---|---|\n{rows}\n"


def column_row(declared: dataclasses.Field[Any]) -> str:
    """One column."""
    kind = f"{column_type(declared)} {'?' if declared.metadata['nullable'] else ''}".strip()
    return f"| `{declared.name}` | {kind} | {meaning(declared)} |"


def column_type(declared: dataclasses.Field[Any]) -> str:
    """The type a reader of the frame sees."""
    if declared.metadata["text"]:
        return "text"
    if declared.metadata["labels"]:
        return "label"
    if declared.metadata["table"]:
        return f"→ `{declared.metadata['table']}`"
    unit = declared.metadata["unit"]
    name = dtype_of(declared).name
    return unit if unit and not declared.name.endswith(f"_{unit}") else "" if name.startswith("int") else name


def meaning(declared: dataclasses.Field[Any]) -> str:
    """The declared sentence, with the values a label can take."""
    labels = declared.metadata["labels"]
    sentence = str(declared.metadata["doc"]).replace("|", "\\|")
    if sentence.lower().removeprefix("the ") == f"{declared.name}.":
        sentence = ""
    return f"{sentence} {', '.join(label.name.lower() for label in labels)}." if labels else sentence
