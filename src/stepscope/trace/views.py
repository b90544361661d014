"""Tables as people ask for them: with the numbers that other tables refer to, and the joins everybody makes."""

from __future__ import annotations

import dataclasses

import numpy as np
import polars as pl

from stepscope.trace import tables as t
from stepscope.trace.select import extent
from stepscope.trace.self_time import self_time
from stepscope.trace.trace import Trace

NUMBERED = tuple(
    name
    for name in t.TABLES
    if any(f.metadata["table"] == name for kind in t.TABLES.values() for f in dataclasses.fields(kind))
)
"""Tables that other columns refer to: their frames begin with the column ``id``."""

ID = "Number of the row, by which other tables refer to it."

OPS = {
    "id": "The slice.",
    "name": "Name as recorded.",
    "kind": "What the op is.",
    "device": "Device index.",
    "stream": "Stream.",
    "start_ns": "Start, from the trace's origin.",
    "dur_ns": "Duration.",
    "bytes": "Bytes moved or set.",
    "launch": "Slice of the runtime call that launched the op.",
    "launch_name": "Name of that call.",
    "launch_start_ns": "Start of that call.",
    "launch_thread": "Thread of that call, as the profile names it.",
}
"""Columns of :func:`ops`."""

HOST = {
    "id": "The slice.",
    "process": "Process as the profile names it.",
    "thread": "Thread as the profile names it.",
    "label": "Name of the thread for people, where the profile gives one.",
    "name": "Name as recorded.",
    "kind": "What the slice is.",
    "start_ns": "Start, from the trace's origin.",
    "dur_ns": "Duration.",
    "self_ns": "Time in which nothing ran inside it.",
    "depth": "Number of slices that enclose it.",
    "parent": "Innermost slice that encloses it.",
}
"""Columns of :func:`host`."""


def numbered(trace: Trace, name: str) -> pl.DataFrame:
    """A declared table as a frame with plain text, and with its rows' numbers where other tables refer to them."""
    frame = _plain(trace.table(name))
    return frame.with_row_index("id") if name in NUMBERED else frame


def ops(trace: Trace) -> pl.DataFrame:
    """What ran on devices, with the call that launched it (columns: :data:`OPS`)."""
    table = trace.device_ops
    own = _slices(trace, table.slice).select("name", "kind", "start_ns", "dur_ns")
    calls = _slices(trace, table.launch).rename(lambda name: f"launch_{name}")
    threads = _tracks(trace, np.where(table.launch >= 0, trace.slices.track[table.launch], -1))
    columns = table.frame(trace.strings).select("device", "stream", "bytes", "launch")
    frame = pl.concat((own, columns, calls, threads.select(launch_thread="thread")), how="horizontal")
    return _plain(frame.with_columns(_numbers("id", table.slice)).select(*OPS))


def host(trace: Trace) -> pl.DataFrame:
    """What ran on host threads (columns: :data:`HOST`)."""
    slices = trace.slices
    rows = np.flatnonzero(trace.tracks.kind[slices.track] == t.TrackKind.HOST_THREAD)
    own = self_time(slices, *extent(trace))[rows]
    frame = pl.concat((_slices(trace, rows), _tracks(trace, slices.track[rows])), how="horizontal")
    return _plain(frame.with_columns(_numbers("id", rows), pl.Series("self_ns", own)).select(*HOST))


def _slices(trace: Trace, rows: t.Rows | t.I32) -> pl.DataFrame:
    return _gathered(trace, trace.slices, rows)


def _tracks(trace: Trace, rows: t.Rows | t.I32) -> pl.DataFrame:
    return _gathered(trace, trace.tracks, rows).select("process", "thread", "label")


def _gathered(trace: Trace, table: t.Table, rows: t.Rows | t.I32) -> pl.DataFrame:
    """Some rows of a table, all null where the row is -1."""
    if not len(table):
        return table.frame(trace.strings).clear(len(rows))
    kept = type(table)(*(getattr(table, f.name)[rows] for f in dataclasses.fields(table)))
    frame = kept.frame(trace.strings)
    absent = rows < 0
    return frame.with_columns(pl.when(pl.Series(~absent)).then(pl.all())) if absent.any() else frame


def _numbers(name: str, values: t.Rows | t.I32) -> pl.Series:
    return pl.Series(name, values.astype(np.int32))


def _plain(frame: pl.DataFrame) -> pl.DataFrame:
    """Text as text: SQL and most readers of Parquet know no enumerations."""
    return frame.with_columns(pl.col(pl.Enum).cast(pl.String))
