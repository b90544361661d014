"""What a file holds that no table of a trace does: what a conversion to another format leaves behind."""

from __future__ import annotations

from collections import Counter

import numpy as np

from stepscope.formats.xplane.lookup import find
from stepscope.formats.xplane.space import Names, metadata_of
from stepscope.formats.xplane.stats import KEYS
from stepscope.inputs.source import Source
from stepscope.protobuf.columns import Spans, children, decode, numbers, texts
from stepscope.trace.tables import I32, I64, NULL, U8

_UNREAD = {"device_id", "model_flops"}
"""Statistics that tell what a table needs, and are in none."""
_HELD = {*KEYS} - _UNREAD


def beyond_tables(source: Source, header: bool) -> list[tuple[int, str]]:
    """How many there are of each thing, in words; ``header`` says whether what planes say of themselves is kept."""
    data = np.asarray(source.data()[0])
    planes = children(data, Spans.whole(data), 1, cut=True).spans
    keys, names = metadata_of(data, planes, 5), metadata_of(data, planes, 4)
    lines = children(data, planes, 3, cut=True)
    events = children(data, lines.spans, 4)
    counts = Counter[str]()
    for messages, field, plane in (
        (events.spans, 4, lines.parent[events.parent]),
        (names.spans, 5, names.plane),
    ):
        counts += _counted(data, messages, field, plane, keys)
    of_planes = Counter[str]() if header else _counted(data, planes, 6, np.arange(len(planes)), keys)
    lost = {name: count for name, count in counts.items() if name not in _HELD}
    told = [
        (sum(lost.values()), f"statistics of events: {', '.join(sorted(lost))}"),
        (sum(of_planes.values()), f"statistics of planes: {', '.join(sorted(of_planes))}"),
    ]
    return [(count, words) for count, words in told if count]


def _counted(data: U8, messages: Spans, field: int, plane: I64 | I32, keys: Names) -> Counter[str]:
    """How often each statistic stands in some messages."""
    stats = children(data, messages, field)
    key = numbers(data, stats.spans, 1)[0]
    row = find(keys, plane[stats.parent], np.where(key == NULL, 0, key))
    used, counts = np.unique(row[row >= 0], return_counts=True)
    words = decode(data, texts(data, keys.spans[used], 2))
    occurrences = Counter[str]()
    for word, count in zip(words, counts.tolist(), strict=True):
        occurrences[word or ""] += count
    return occurrences
