"""The frames of a profile, by the names under which SQL finds them, with a sentence for every column."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict

import polars as pl

from stepscope.report.labels import CATEGORIES
from stepscope.sql import Tables
from stepscope.trace import tables as t
from stepscope.trace import views
from stepscope.trace.builder import TraceBuilder
from stepscope.trace.select import by_time, select
from stepscope.trace.trace import Completeness, Info, Trace
from stepscope.units import NS_PER_MS

if TYPE_CHECKING:
    from stepscope.document.steps import AccountingRow, StepEntry


_STEPS: dict[str, tuple[Any, str]] = {
    "rank": (pl.Int64, "Rank of the process."),
    "index": (pl.Int64, "Position of the step, from 0."),
    "number": (pl.Int64, "Number of the step, as recorded."),
    "start_ns": (pl.Int64, "Start of its marker, from the trace's origin."),
    "dur_ns": (pl.Int64, "Duration: from the end of the step before on all devices, else the host's period."),
    "host_dur_ns": (pl.Int64, "The host's period."),
    "basis": (pl.String, "Whether the duration is the device's or the host's."),
    "inferred": (pl.Boolean, "Whether no marker says so."),
    "complete": (pl.Boolean, "Whether the profile holds all of it."),
    "slow": (pl.Boolean, "Whether it is set apart: much longer than usual for a cause that the others do not have."),
}
_ACCOUNTING: dict[str, tuple[Any, str]] = {
    "rank": (pl.Int64, "Rank of the process."),
    "device": (pl.Int64, "Device index; absent where the host's time is booked."),
    "step": (pl.Int64, "Index of the step; absent before, between and after the steps."),
    "phase": (pl.String, "step, before, gap or after."),
    "start_ns": (pl.Int64, "Start, from the trace's origin."),
    "dur_ns": (pl.Int64, "Duration; the categories sum to it."),
    **{name: (pl.Int64, f"Time in ns: {label.words}.") for name, label in CATEGORIES.items()},
}

_CRITICAL_PATH: dict[str, tuple[Any, str]] = {
    "step": (pl.Int64, "Index of the step whose time it is part of."),
    "start_ns": (pl.Int64, "Start, from the trace's origin; the elements of a step follow each other without a gap."),
    "dur_ns": (pl.Int64, "Duration; those of a step add up to the step's."),
    "category": (pl.String, "What the time goes to (docs/categories.md)."),
    "name": (pl.String, "The op, the wait, or the outermost host op; absent where nothing recorded has a name."),
    "device": (pl.Int64, "Device of the op; absent for the host's time."),
    "slice": (pl.Int64, "Row of the slices; absent for none."),
}

_ON_ONE_RANK = [name for name in CATEGORIES if name not in ("collective_wait", "collective_transfer")]
"""Waiting and moving data are not told apart on one rank: absent where a row does not have them, never 0."""

_VIEWS = {
    "ops": "What ran on devices, with the call that launched it.",
    "host": "What ran on host threads, with the time in which nothing ran inside it.",
    "steps": "A row per step, as the report has them.",
    "accounting": "A row per device and step (and the time around steps), with the time in each category.",
    "critical_path": "What sets the step time: elements that tile each used step.",
}


def steps(document: Stepped) -> pl.DataFrame:
    """One row per step; times in ns."""
    return pl.DataFrame(document["steps"], schema={name: kind for name, (kind, _) in _STEPS.items()})


def accounting(document: Stepped) -> pl.DataFrame:
    """One row per device and step (and the time around steps), one column of ns per category."""
    rows = [{**row, **dict.fromkeys(_ON_ONE_RANK, 0), **row["parts"]} for row in document["accounting"]]
    return pl.DataFrame(rows, schema={name: kind for name, (kind, _) in _ACCOUNTING.items()})


class Stepped(TypedDict):
    """What of a report these tables are made of."""

    steps: list[StepEntry]
    accounting: list[AccountingRow]


def by_name(
    trace: Trace,
    document: Callable[[], Stepped],
    time_ns: tuple[int | None, int | None] | None,
    critical_path: Callable[[], Mapping[str, list[Any]]],
) -> Tables:
    """The declared tables, ``ops``, ``host``, ``steps``, ``accounting`` and ``critical_path``; each is made when it is
    asked for.

    With a range of time they hold what overlaps it, uncut. Raises UsageError where no slice does.
    """
    part = trace if time_ns is None else select(trace, by_time(trace, *time_ns))
    return {
        **{name: partial(views.numbered, part, name) for name in t.TABLES},
        "ops": partial(views.ops, part),
        "host": partial(views.host, part),
        "steps": lambda: _overlapping(steps(document()), time_ns),
        "accounting": lambda: _overlapping(accounting(document()), time_ns),
        "critical_path": lambda: _overlapping(_critical_path(critical_path()), time_ns),
    }


def _critical_path(columns: Mapping[str, list[Any]]) -> pl.DataFrame:
    return pl.DataFrame(columns, schema={name: kind for name, (kind, _) in _CRITICAL_PATH.items()})


def _overlapping(frame: pl.DataFrame, time_ns: tuple[int | None, int | None] | None) -> pl.DataFrame:
    start, end = time_ns or (None, None)
    if start is not None:
        frame = frame.filter(pl.col("start_ns") + pl.col("dur_ns") > start)
    return frame if end is None else frame.filter(pl.col("start_ns") < end)


def largest(region: pl.DataFrame, most: int = 10) -> pl.DataFrame:
    """What ``analysis.region`` found, for eyes: the largest of each device and thread, the rest of them in one row.

    A device's time is told in the words of reports; csv and json hold the keys of docs/categories.md.
    """
    owner = ["device", "process", "thread", "label"]
    booked = pl.col("name").replace({name: label.words for name, label in CATEGORIES.items()})
    region = region.with_columns(name=pl.when(pl.col("device").is_null()).then("name").otherwise(booked))
    place = pl.coalesce(pl.format("device {}", "device"), "label", "thread", "process", pl.lit("a thread"))
    ranked = region.with_columns(where=place, rank=pl.int_range(pl.len()).over(owner))
    many = pl.col("name").is_not_null() & (pl.col("rank") >= most)
    named = pl.when(many).then(pl.lit("others")).otherwise(pl.col("name").fill_null("nothing recorded"))
    kind = pl.when(~many).then(pl.col("kind"))
    grouped = ranked.with_columns(name=named, kind=kind).group_by(
        *owner, "where", pl.when(many).then(None).otherwise(pl.col("rank")).alias("place"), "name", "kind",
        maintain_order=True,
    )  # fmt: skip
    summed = grouped.agg(pl.col("self_ns").sum(), pl.col("count").sum().replace(0, None), pl.col("share").sum())
    return summed.select("where", "name", "kind", "self_ns", "count", pl.col("share").round(4))


def columns() -> pl.DataFrame:
    """Every column that SQL finds: its table, its type and what it holds."""
    empty = TraceBuilder().build(Info(""), Completeness(0, {}))
    rows = [
        (table, column, _type(dtype), _sentence(table, column))
        for table, make in by_name(empty, lambda: {"steps": [], "accounting": []}, None, dict).items()
        for column, dtype in make().schema.items()
    ]
    return pl.DataFrame(rows, schema=["table", "column", "type", "holds"], orient="row")


def listing(listed: pl.DataFrame) -> str:
    """What :func:`columns` found as text: each table with its sentence, and a line per column."""
    about = {name: inspect.getdoc(kind) or "" for name, kind in t.TABLES.items()} | _VIEWS
    width = max(map(len, listed["column"].to_list()))
    lines = []
    for name in listed["table"].unique(maintain_order=True).to_list():
        lines.append(f"{name}: {about[name]}")
        rows = listed.filter(pl.col("table") == name).iter_rows()
        lines += [f"  {column:<{width}}  {kind:<8}  {holds}" for _, column, kind, holds in rows]
    return "\n".join(lines) + "\n"


def _type(dtype: pl.DataType) -> str:
    if dtype.is_integer():
        return "integer"
    return {pl.String: "text", pl.Boolean: "boolean"}.get(type(dtype), "number")


def _sentence(table: str, column: str) -> str:
    if table in t.TABLES and column != "id":
        declared = next(f for f in dataclasses.fields(t.TABLES[table]) if f.name == column)
        return str(declared.metadata["doc"])
    texts = {"ops": views.OPS, "host": views.HOST}.get(table, {"id": views.ID})
    dated = {"steps": _STEPS, "accounting": _ACCOUNTING, "critical_path": _CRITICAL_PATH}.get(table, {})
    return dated[column][1] if column in dated else texts[column]


def in_ms(frame: pl.DataFrame) -> pl.DataFrame:
    """A frame for eyes: its times in ms, rounded to a thousandth, without columns that are empty or 0 throughout.

    Columns named ``*_ns`` are then ``*_ms``; those of the accounting's categories keep their names.
    """
    return frame.select(
        _in_ms(name) if _is_time(name) else pl.col(name)
        for name in frame.columns
        if not (frame[name].is_null().all() or (_is_time(name) and (frame[name] == 0).all()))
    )


def _is_time(name: str) -> bool:
    return name.endswith("_ns") or name in CATEGORIES


def _in_ms(name: str) -> pl.Expr:
    told = f"{name.removesuffix('_ns')}_ms" if name.endswith("_ns") else name
    return (pl.col(name) / NS_PER_MS).round(3).alias(told)
