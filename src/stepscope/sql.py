"""SQL over tables that are given as functions, so that only those a query names are made.

A query can read the given tables and nothing else: polars would also read files (``read_csv('…')``) and change its
tables, which is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import polars as pl

from stepscope.errors import UsageError

Tables = Mapping[str, Callable[[], pl.DataFrame]]

_QUOTED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`""")
_READS = re.compile(r"""\b(?:read|scan)_\w+["`]?\s*\(""", re.IGNORECASE)


def query(sql: str, tables: Tables) -> pl.DataFrame:
    """The rows a SELECT yields; table names are found in upper or lower case.

    Raises UsageError with one sentence where the query is wrong, or is more than a SELECT of the given tables.
    """
    _must_only_select(sql)
    words = {word.lower() for word in re.findall(r"\w+", sql)}
    frames = {name: make() for name, make in tables.items() if name in words}
    try:
        return pl.SQLContext(frames).execute(sql, eager=True)
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        reason = str(error).strip().split("\n", 1)[0].rstrip(".")
        if "relation" in reason and "not found" in reason:
            reason += f"; the tables are {', '.join(tables)}"
        raise UsageError(f"the query failed: {reason}") from error


def _must_only_select(sql: str) -> None:
    """Refuse whatever could reach beyond the tables.

    What polars takes for quoted must be what this takes for quoted, hence no comments, escapes and dollar quotes.
    """
    first = re.match(r"\s*(\w*)", sql)
    if first is None or first[1].lower() not in ("select", "with"):
        raise UsageError("a query begins with SELECT (or WITH)")
    bare = _QUOTED.sub(" ", sql)
    for mark in ("--", "/*", "#", "$", "\\", "'", '"', "`"):
        if mark in bare:
            raise UsageError(f"a query cannot hold {mark} outside of quotes")
    if re.search(r"""\\['"`]""", sql):
        raise UsageError("a query cannot hold a backslash before a quote; a quote within a text is written twice")
    if _READS.search(_QUOTED.sub(lambda found: " " if found[0][0] == "'" else found[0], sql)):
        raise UsageError("a query reads the tables of the profile, not files")
