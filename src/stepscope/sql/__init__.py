"""SQL over tables that are given as functions, so that only those a query names are made.

A query can read the given tables and nothing else: ``parsed`` takes it apart and allows what is on a list, and
``engine`` runs it in a process of its own that can open no file and no connection, within bounds of memory and time.
Whoever takes SQL from anywhere asks here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from stepscope.errors import UsageError
from stepscope.sql.engine import Bounds, run
from stepscope.sql.limits import QUERY_BYTES, QUERY_S

if TYPE_CHECKING:
    import polars as pl

Tables = Mapping[str, Callable[[], "pl.DataFrame"]]

_BOUNDS = Bounds(seconds=QUERY_S, memory=QUERY_BYTES)


def query(sql: str, tables: Tables, bounds: Bounds = _BOUNDS) -> pl.DataFrame:
    """The rows a SELECT yields; table names are found in upper or lower case.

    Raises UsageError with one sentence where the query is wrong, is more than a SELECT of the given tables, or takes
    more than its bounds.
    """
    from stepscope.sql.parsed import parse  # The parser is loaded for queries only.

    parsed = parse(sql, tables)
    frames = {name: make() for name, make in tables.items() if name in parsed.tables}
    if parsed.columns is not None:
        frames = {name: _narrowed(frame, parsed.columns) for name, frame in frames.items()}
    try:
        return run(sql, frames, bounds)
    except ValueError as error:
        raise UsageError(f"the query failed: {error}") from error


def _narrowed(frame: pl.DataFrame, names: frozenset[str]) -> pl.DataFrame:
    """The columns a query names, and one at least: it may ask for no more than how many rows there are."""
    return frame.select([name for name in frame.columns if name in names] or frame.columns[:1])
