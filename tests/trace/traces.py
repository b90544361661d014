"""Traces for the tests of what is done to traces: small arbitrary ones, one with every table, and comparing two."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from hypothesis import strategies as st

from stepscope.trace import tables as t
from stepscope.trace.builder import TraceBuilder
from stepscope.trace.trace import Completeness, Device, Info, Loss, Trace

TEXTS = st.text(max_size=6)
"""Any characters, zeros among them."""


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """A legal trace with rows in every table, absent values and odd texts among them."""
    strings = draw(st.lists(TEXTS, min_size=1, max_size=6, unique=True))
    builder = TraceBuilder(strings)
    count = draw(st.integers(1, 10))
    tracks = 3
    for kind in (t.TrackKind.HOST_THREAD, t.TrackKind.HOST_THREAD, t.TrackKind.DEVICE_STREAM):
        builder.track(kind, "1", None if kind else strings[0], device=0 if kind else None)
    seed = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = {"tracks": tracks, "slices": count}
    slices = {
        f.name: _column(seed, f, count, len(strings), sizes)
        for f in dataclasses.fields(t.Slices)
        if f.name not in ("depth", "parent")
    }
    builder.slices(**slices | {"dur_ns": seed.integers(0, 30, count), "start_ns": seed.integers(-5, 40, count)})
    for name, kind in t.TABLES.items():
        if name not in sizes:
            rows = int(seed.integers(0, 6))
            columns = {f.name: _column(seed, f, rows, len(strings), sizes) for f in dataclasses.fields(kind)}
            if name == "device_ops":
                columns["device"] = np.zeros(rows, np.int32)
            builder.table(kind(**columns))
    return builder.build(INFO, COMPLETENESS)


def _column(
    seed: np.random.Generator, f: dataclasses.Field[Any], rows: int, strings: int, sizes: dict[str, int]
) -> Any:
    meta, dtype = f.metadata, t.dtype_of(f)
    limit = strings if meta["text"] else sizes[meta["table"]] if meta["table"] else 50
    values = seed.integers(0, len(meta["labels"]) if meta["labels"] else limit, rows).astype(dtype)
    if meta["nullable"]:
        values[seed.random(rows) < 0.3] = np.nan if dtype == np.float64 else t.NULL if dtype == np.int64 else -1
    return values


INFO = Info(
    "test",
    framework="PyTorch 2",
    origin_epoch_ns=1 << 62,
    devices=(Device(0, "GPU", 1 << 36, 108, (8, 0), "gpu", 1_410_000, 1_555 * 10**9), Device(3)),
    rank=2,
    world_size=8,
    process_groups=({"pg_name": "0", "ranks": [0, 1]},),
    host="\ud800 host",
    options={"stacks": True},
    header={"nan": float("inf"), "big": 1 << 100, "list": [None, {"a": 1.5}]},
)
COMPLETENESS = Completeness(12, {"slices": 10}, (Loss("cut", 2, "lost at the \x1b end", 99, 2, 7, True),))


def assert_same(one: Trace, other: Trace) -> None:
    """Every table byte for byte, every text, and all that is known of the run."""
    assert one.info == other.info
    assert one.completeness == other.completeness
    assert one.strings == other.strings
    for name, kind in t.TABLES.items():
        for f in dataclasses.fields(kind):
            left, right = getattr(getattr(one, name), f.name), getattr(getattr(other, name), f.name)
            assert left.dtype == right.dtype
            assert left.tobytes() == right.tobytes(), f"{name}.{f.name}"
