"""A folder of Parquet files, one per table, for polars, pandas, DuckDB, Spark: text resolved, nulls real."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import polars as pl

from stepscope.errors import OutputError
from stepscope.regex import regex
from stepscope.replacing import replacing
from stepscope.trace import tables as t
from stepscope.trace.trace import Trace
from stepscope.trace.views import numbered

INFO = "info.json"


def write(trace: Trace, path: Path) -> None:
    """Write ``<table>.parquet`` for every table with rows, and what is known of the run in ``info.json``.

    The columns are those of ``docs/tables.md``; ``id`` in tables that others refer to is the number they use. An
    existing folder is replaced if it holds nothing else.

    Raises OutputError where it holds something else, OSError where the disk does.
    """
    _must_be_ours(path)
    with replacing(path) as part:
        part.mkdir()
        for name in t.TABLES:
            if len(getattr(trace, name)):
                _write(numbered(trace, name), part / f"{name}.parquet")
        known = {"info": trace.info, "completeness": trace.completeness}
        (part / INFO).write_text(json.dumps(msgspec.to_builtins(known), indent=1) + "\n", encoding="utf-8")
        _remove(path)


def _write(frame: pl.DataFrame, path: Path) -> None:
    try:
        frame.write_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        match = _SYSTEMS.search(str(error))  # polars tells the number of the system's error in words
        if match is None:
            raise
        number = int(match[1])
        raise OSError(number, os.strerror(number), str(path)) from error


_SYSTEMS = regex(r"\(os error (\d{1,4})\)")


def _must_be_ours(path: Path) -> None:
    if path.is_dir():
        others = sorted(entry.name for entry in path.iterdir() if not _is_ours(entry))
        if others:
            raise OutputError(f"{path} holds something else ({others[0]}): choose a folder of its own")


def _remove(path: Path) -> None:
    if path.is_dir():
        for entry in path.iterdir():
            entry.unlink()
        path.rmdir()
    else:
        path.unlink(missing_ok=True)


def _is_ours(entry: Path) -> bool:
    return entry.is_file() and (entry.name == INFO or (entry.suffix == ".parquet" and entry.stem in t.TABLES))
