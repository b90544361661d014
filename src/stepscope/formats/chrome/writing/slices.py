"""Slices as complete events."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from stepscope.formats.chrome.kineto_kinds import kind_of
from stepscope.formats.chrome.kineto_schema import CATEGORIES
from stepscope.formats.chrome.own import KIND
from stepscope.formats.chrome.writing.members import Members
from stepscope.formats.chrome.writing.places import Places
from stepscope.formats.chrome.writing.text import arguments, joined, microseconds, quoted
from stepscope.trace import tables as t
from stepscope.trace.trace import Trace

AT_ONCE = 1 << 18
"""Slices whose text is in memory at a time."""

_CATEGORY = {
    t.Kind.STEP: "user_annotation",
    t.Kind.ANNOTATION: "user_annotation",
    t.Kind.PYTHON_FRAME: "python_function",
    t.Kind.MODULE: "python_function",
    t.Kind.HOST_OP: "cpu_op",
    t.Kind.RUNTIME_CALL: "cuda_runtime",
    t.Kind.SYNC: "cuda_runtime",
    t.Kind.ALLOCATION: "cuda_runtime",
    t.Kind.COMPILE: "cuda_runtime",
    t.Kind.OVERHEAD: "overhead",
    t.Kind.KERNEL: "kernel",
    t.Kind.COLLECTIVE: "kernel",
    t.Kind.COPY: "gpu_memcpy",
    t.Kind.MEMSET: "gpu_memset",
    t.Kind.DEVICE_WAIT: "cuda_sync",
    t.Kind.DEVICE_ANNOTATION: "gpu_user_annotation",
}
"""What Kineto calls each kind."""

_DRAWN = (t.Kind.STEP, t.Kind.ANNOTATION, t.Kind.MODULE)
"""Kinds that are ranges on a device's track as well."""


def category_of(recorded: str | None, kind: t.Kind, on_device: bool) -> str | None:
    """The category to write: the recorded one where Kineto has it, else what it calls the kind."""
    if recorded is not None and recorded.lower() in CATEGORIES:
        return recorded
    if on_device and kind in _DRAWN:
        return "gpu_user_annotation"
    return _CATEGORY.get(kind, recorded)


def slice_lines(trace: Trace, places: Places) -> Iterator[pl.Series]:
    """The slices in order, one event per row, each behind a comma."""
    slices = trace.slices
    heads, stated, of = _heads(trace)
    lanes = pl.Series([f',"pid":{pid},"tid":{tid},"ts":' for pid, tid in places.lanes])
    members = Members(trace)
    for low in range(0, len(slices), AT_ONCE):
        high = min(low + AT_ONCE, len(slices))
        here = slice(low, high)
        yield joined(
            heads.gather(of[here]),
            lanes.gather(places.of_slice[here].astype(np.uint32)),
            microseconds(slices.start_ns[here]),
            microseconds(slices.dur_ns[here], before=',"dur":'),
            arguments([*members.of(low, high), stated.gather(of[here])]),
            "}",
        )


def _heads(trace: Trace) -> tuple[pl.Series, pl.Series, np.ndarray[tuple[int], np.dtype[np.uint32]]]:
    """How events begin (category and name), what they state of their kind, and which of these each slice has."""
    slices, tracks = trace.slices, trace.tracks
    on_device = np.isin(tracks.kind, (t.TrackKind.DEVICE_STREAM, t.TrackKind.DEVICE_LINE))[slices.track]
    kinds = 2 * len(t.Kind)
    sort = (slices.category.astype(np.int64) + 1) * kinds + 2 * slices.kind + on_device
    key = sort * len(trace.strings) + slices.name
    distinct = pl.Series(key).unique(maintain_order=True)
    of = pl.select(pl.Series(key).replace_strict(distinct, pl.int_range(len(distinct), dtype=pl.UInt32, eager=True)))
    heads, stated = [], []
    for code in distinct.to_list():
        code, name = divmod(code, len(trace.strings))
        category, code = divmod(code, kinds)
        recorded = trace.strings[category - 1] if category else None
        kind, text = t.Kind(code // 2), trace.strings[name]
        written = category_of(recorded, kind, bool(code % 2))
        cat = "" if written is None else f'"cat":{quoted(written)},'
        heads.append(f',{{"ph":"X",{cat}"name":{quoted(text)}')
        stated.append(None if kind_of(written, text) == kind else f',"{KIND}":"{kind.name.lower()}"')
    return pl.Series(heads), pl.Series(stated, dtype=pl.String), of.to_series().to_numpy()
