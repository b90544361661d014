"""What a written format carries: a profile beside what is read again of its export."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import stepscope
from stepscope.formats.lacks import counted
from stepscope.formats.writers import Writer
from stepscope.pipeline import Profile
from stepscope.trace import tables as t
from stepscope.trace.trace import Trace

FACTS = ("framework", "framework_oldest", "framework_newest", "origin_epoch_ns", "resolution_ns", "devices", "rank",
         "world_size", "process_groups", "host", "options", "steps")  # fmt: skip
"""What is known of the run; its format, header and source are about the file."""


def check(path: Path, writer: Writer, folder: Path) -> None:
    """Write a profile and read it again: whatever differs is declared, and counted where it takes something away."""
    one = stepscope.open(path)
    out = folder / f"export{writer.suffixes[0]}"
    writer.write(one.trace, out)
    other = stepscope.open(out)
    found = set(differences(one.trace, other.trace))
    spelled = {name for lack in writer.lacks if lack.count is None for name in lack.columns}
    lost = {name for lack in writer.lacks if counted(one.trace, [lack]) for name in lack.columns}
    undeclared = {name for name in found if not {name, name.split(".")[0]} & (spelled | lost)}
    assert not undeclared, f"{writer.name} does not declare {sorted(undeclared)}"
    if "slices" not in lost:
        same_times(one, other)


def same_times(one: Profile, other: Profile) -> None:
    """Every part of every row of the accounting, and every step."""
    assert other.accounting.rows() == one.accounting.rows()
    assert other.steps.rows() == one.steps.rows()


def differences(one: Trace, other: Trace) -> Iterator[str]:
    """Tables of which rows differ in number, columns of which values do, and facts of the run."""
    keys = [_slices(trace) for trace in (one, other)]
    for name, kind in t.TABLES.items():
        pair = [getattr(trace, name) for trace in (one, other)]
        if len(pair[0]) != len(pair[1]):
            yield name
            continue
        for declared in dataclasses.fields(kind):
            if declared.name == "offset":
                continue
            values = [
                _values(trace, table, declared, known)
                for trace, table, known in zip((one, other), pair, keys, strict=True)
            ]
            if values[0] != values[1]:
                yield f"{name}.{declared.name}"
    for fact in FACTS:
        if getattr(one.info, fact) != getattr(other.info, fact):
            yield f"info.{fact}"
    if one.completeness.losses != other.completeness.losses:
        yield "losses"


def _slices(trace: Trace) -> list[Any]:
    """Each slice as what it is and where it lies; None behind them for -1."""
    slices, tracks = trace.slices, trace.tracks
    device = tracks.device[slices.track]
    columns = (slices.start_ns, slices.dur_ns, slices.kind, device)
    names = [trace.strings[code] for code in slices.name.tolist()]
    return [*zip(names, *(column.tolist() for column in columns), strict=True), None]


def _values(trace: Trace, table: t.Table, declared: dataclasses.Field[Any], keys: list[Any]) -> Counter[Any]:
    """The values of a column, each with the slice that its row is about."""
    values, meta = getattr(table, declared.name), declared.metadata
    owners = [f for f in dataclasses.fields(table) if f.metadata["table"] == "slices"]
    if isinstance(table, t.Slices):
        owner = keys[:-1]
    else:
        owner = [keys[row] for row in getattr(table, owners[0].name).tolist()] if owners else [()] * len(table)
    if meta["table"] == "slices":
        told = [keys[row] for row in values.tolist()]
    elif meta["table"] == "tracks":
        rows = trace.table("tracks").rows()
        told = [rows[row] for row in values.tolist()]
    elif meta["text"]:
        told = [(*trace.strings, None)[code] for code in values.tolist()]
    else:
        absent = t.is_null(values) if meta["nullable"] else np.zeros(len(values), np.bool_)
        told = [None if no else value for value, no in zip(values.tolist(), absent.tolist(), strict=True)]
    return Counter(zip(owner, told, strict=True))
