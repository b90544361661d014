"""What happened in a stretch of time: what each device's time was booked to, and what each host thread did in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import BUSY, CATEGORIES
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.facts import Facts
from stepscope.errors import UsageError
from stepscope.trace.codes import distinct
from stepscope.trace.select import overlapping
from stepscope.trace.self_time import self_time
from stepscope.trace.tables import I64, U8, Kind, TrackKind
from stepscope.trace.trace import Trace

REGION = {
    "device": pl.Int32,
    "process": pl.String,
    "thread": pl.String,
    "label": pl.String,
    "kind": pl.String,
    "name": pl.String,
    "self_ns": pl.Int64,
    "count": pl.Int64,
    "share": pl.Float64,
}
"""Columns of :func:`region`. A row is a device's (``device`` is given) or a thread's; times are ns, shares are of the
range."""


def region(facts: Facts, start_ns: int, end_ns: int) -> pl.DataFrame:
    """Where the time of ``[start_ns, end_ns)`` went (columns: :data:`REGION`), largest first within each owner.

    Devices come first: ``name`` is the category, ``kind`` busy or idle, ``count`` in how many pieces. Then the host
    threads that did anything, the busiest first: ``self_ns`` is the time in which the named slices were the thread's
    innermost, ``count`` their number. A row without a name is time that holds nothing recorded. The rows of each
    device and thread sum to the range exactly. Raises UsageError where the range is empty.
    """
    if end_ns <= start_ns:
        raise UsageError("a range of time ends after it starts")
    rows = [
        *(row for pair in facts.devices for row in _device_rows(*pair, start_ns, end_ns)),
        *_thread_rows(facts.trace, start_ns, end_ns),
    ]
    frame = pl.DataFrame(rows, schema={name: kind for name, kind in REGION.items() if name != "share"}, orient="row")
    return frame.with_columns(share=pl.col("self_ns") / (end_ns - start_ns))


def _device_rows(activity: DeviceActivity, account: Account, start: int, end: int) -> Iterator[tuple[Any, ...]]:
    pieces: list[tuple[I64, I64, U8]] = [activity.busy_pieces]
    if account.idle is not None:
        idle = account.idle.pieces
        pieces.append((idle.start, idle.end, idle.category))
    sums: list[tuple[int, int, int]] = []
    for starts, ends, codes in pieces:
        length = np.minimum(ends, end) - np.maximum(starts, start)
        inside = length > 0
        for code in distinct(codes[inside]):
            chosen = inside & (codes == code)
            sums.append((int(length[chosen].sum()), int(chosen.sum()), code))
    for ns, count, code in sorted(sums, reverse=True):
        kind = "busy" if CATEGORIES[code] in BUSY else "idle"
        yield activity.device, None, None, None, kind, str(CATEGORIES[code]), ns, count
    rest = end - start - sum(ns for ns, _, _ in sums)
    if rest:  # before the first or after the last op of the device
        yield activity.device, None, None, None, None, None, rest, None


def _thread_rows(trace: Trace, start: int, end: int) -> Iterator[tuple[Any, ...]]:
    slices, tracks = trace.slices, trace.tracks
    own = self_time(slices, start, end)
    rows = np.flatnonzero(
        overlapping(trace, start, end) & (own > 0) & (tracks.kind[slices.track] == TrackKind.HOST_THREAD)
    )
    names, kinds = len(trace.strings), len(Kind)
    keys = (slices.track[rows].astype(np.int64) * names + slices.name[rows]) * kinds + slices.kind[rows]
    groups, group, count = np.unique(keys, return_inverse=True, return_counts=True)
    ns = np.zeros(groups.size, np.int64)
    np.add.at(ns, group, own[rows])
    track, name, kind = groups // (names * kinds), groups // kinds % names, groups % kinds
    covered = np.zeros(len(tracks), np.int64)
    np.add.at(covered, track, ns)
    for owner in sorted(distinct(track), key=lambda owner: (-int(covered[owner]), owner)):
        text = (tracks.process[owner], tracks.thread[owner], tracks.label[owner])
        who = (None, *(trace.strings[code] if code >= 0 else None for code in text))
        mine = np.flatnonzero(track == owner)
        for i in mine[np.argsort(-ns[mine], kind="stable")].tolist():
            yield *who, Kind(kind[i]).name.lower(), trace.strings[name[i]], int(ns[i]), int(count[i])
        rest = end - start - int(covered[owner])
        if rest:
            yield *who, None, None, rest, None
