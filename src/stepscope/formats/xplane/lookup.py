"""Metadata by plane and id, and every statistic of chosen messages as a dictionary: for headers and for people."""

from __future__ import annotations

from typing import Any

import numpy as np

from stepscope.formats.xplane.space import Names
from stepscope.formats.xplane.wire import DATA, DOUBLE, REFERENCE, SIGNED, TEXT, UNSIGNED
from stepscope.protobuf.columns import Spans, children, decode, numbers, texts
from stepscope.trace.tables import I32, I64, NULL, U8, Rows


def find(names: Names, plane: I64 | I32, id: I64) -> Rows:
    """The metadata row of each (plane, id), -1 where there is none."""
    ids, dense = np.unique(names.id, return_inverse=True)
    if not ids.size:
        return np.full(id.size, -1, np.intp)
    # Entries are sorted by plane and id, so one number for both is sorted too.
    at = np.minimum(np.searchsorted(ids, id), ids.size - 1)
    of_plane, of_names = (np.multiply(planes, ids.size, dtype=np.int64) for planes in (plane, names.plane))
    wanted, known = of_plane + at, of_names + dense
    row = np.minimum(np.searchsorted(known, wanted), known.size - 1)
    return np.where((known[row] == wanted) & (ids[at] == id), row, -1)


def all_stats(data: U8, messages: Spans, field: int, plane: I64 | I32, keys: Names) -> list[dict[str, Any]]:
    """Every statistic of some messages, names resolved; ``plane`` is the plane of each message."""
    stats = children(data, messages, field)
    of_plane = plane[stats.parent]
    key, *values = numbers(data, stats.spans, 1, DOUBLE, UNSIGNED, SIGNED, REFERENCE)
    key = np.where(key == NULL, 0, key)
    named = find(keys, of_plane, key)
    referred = find(keys, of_plane, values[3])
    words = _words(data, keys, np.concatenate((named, referred)))
    written, blobs = decode(data, texts(data, stats.spans, TEXT)), texts(data, stats.spans, DATA)
    by_message: list[dict[str, Any]] = [{} for _ in range(len(messages))]
    for row, parent in enumerate(stats.parent.tolist()):
        if written[row] is not None:
            value: Any = written[row]
        elif blobs.start[row] >= 0:
            value = f"<{int(blobs.end[row] - blobs.start[row])} bytes>"
        else:
            value = _number(row, values) if values[3][row] == NULL else words[len(stats) + row]
        by_message[parent][words[row] or f"stat {int(key[row])}"] = value
    return by_message


def _words(data: U8, keys: Names, rows: Rows) -> list[str | None]:
    known = np.flatnonzero(rows >= 0)
    words: list[str | None] = [None] * rows.size
    for row, word in zip(known.tolist(), decode(data, texts(data, keys.spans[rows[known]], 2)), strict=True):
        words[row] = word
    return words


def _number(row: int, values: list[I64]) -> float | int | None:
    double, unsigned, signed, _ = values
    if signed[row] != NULL:
        return int(signed[row])
    if unsigned[row] != NULL:
        return int(unsigned[row]) % (1 << 64)
    return float(double[row : row + 1].view(np.float64)[0]) if double[row] != NULL else None
