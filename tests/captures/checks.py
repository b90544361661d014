"""What the tests of captures ask of a profile, through the public API."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

import stepscope
from stepscope import Profile
from stepscope.trace.tables import TABLES

Document = dict[str, Any]

CLOCKS = 0.01
"""How far two clocks of a machine may drift apart while a job runs: far more than they do."""
GRAIN_NS = 50_000
"""What a profiler may add to a range by opening and closing it outside the job's own measurement."""


@cache
def opened(path: Path) -> Profile:
    """A profile, read once per session."""
    return stepscope.open(path)


def tables_of(profile: Profile) -> dict[str, pl.DataFrame]:
    return {name: profile.trace.table(name) for name in TABLES}


def assert_same_tables(one: Profile, other: Profile, but: Iterable[tuple[str, str]] = ()) -> None:
    """Every table of two profiles holds the same rows; ``but`` are columns (table, column) that may differ."""
    for name, table in tables_of(one).items():
        left_out = [column for where, column in but if where == name]
        pair = [_plain(frame).drop(left_out) for frame in (table, other.trace.table(name))]
        assert pair[0].equals(pair[1]), f"{name} differs"


def _plain(frame: pl.DataFrame) -> pl.DataFrame:
    """Text as text: two readings may number the same strings differently."""
    return frame.with_columns(pl.col(pl.Enum).cast(pl.String)) if frame.width else frame


def assert_every_nanosecond_once(document: Document) -> None:
    """Rows sum to their durations, and the rows of a device tile its time."""
    rows = defaultdict(list)
    for row in document["accounting"]:
        assert sum(row["parts"].values()) == row["dur_ns"], row
        assert min(row["parts"].values(), default=1) > 0
        rows[row["device"]].append(row)
    for of_device in rows.values():
        ends = [row["start_ns"] + row["dur_ns"] for row in of_device]
        assert [row["start_ns"] for row in of_device[1:]] == ends[:-1]
        counted = [row["step"] for row in of_device if row["phase"] == "step"]
        assert counted == [step["index"] for step in document["steps"]]


def parts_by_step(document: Document, device: int | None) -> dict[int, dict[str, int]]:
    """Step number -> category -> ns on a device."""
    numbers = {step["index"]: step["number"] for step in document["steps"]}
    rows = (row for row in document["accounting"] if row["device"] == device and row["phase"] == "step")
    return {numbers[row["step"]]: row["parts"] for row in rows}


def numbered(truth: dict[str, Any]) -> dict[int, Any]:
    """A part of ``truth.json`` whose keys are step numbers, which JSON made text."""
    return {int(number): value for number, value in truth.items()}


def at_least(planted_ns: int) -> float:
    """What a profile must show of a sleep: all of it, but for the drift of clocks."""
    return planted_ns * (1 - CLOCKS)


def at_most(measured_ns: int) -> float:
    """What it may show of a range that the job measured around: nothing beyond, but for clocks and bookkeeping."""
    return measured_ns * (1 + CLOCKS) + GRAIN_NS


def slices_named(profile: Profile, name: str) -> pl.DataFrame:
    slices = profile.trace.table("slices")
    return slices.filter(pl.col("name").cast(pl.String) == name).sort("start_ns")


def marks(profile: Profile) -> pl.DataFrame:
    """The steps' own slices: number, name, start and duration, in time order."""
    slices = profile.trace.table("slices").with_row_index("slice").with_columns(pl.col("slice").cast(pl.Int32))
    return profile.trace.table("step_marks").join(slices, on="slice").sort("start_ns")
