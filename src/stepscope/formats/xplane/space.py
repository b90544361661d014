"""An XSpace as raw columns: planes, lines, metadata and events, nothing interpreted.

Message layout of tsl/profiler/protobuf/xplane.proto. A file cut at any byte gives its whole events: a message that
reaches beyond the end counts up to there if it is a plane or a line. An event is where its bytes begin in the file.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from stepscope.formats.xplane import wire
from stepscope.formats.xplane.stats import KEYS, SLOT, Stats, StatsPart
from stepscope.protobuf.columns import Children, Spans, children, decode, numbers, texts
from stepscope.record import record
from stepscope.trace.tables import I32, I64, NULL, U8, Rows
from stepscope.trace.trace import Loss

_BLOCK = 1 << 18
"""Events decoded at a time, by one of at most ``_THREADS`` threads."""
_THREADS = 4
_SMALLEST_STAT = 4
"""Bytes: tag and size of the stat, tag and value of its number."""

Progress = Callable[[int, int], None]


@record
class Planes:
    """One value per plane."""

    spans: Spans
    names: list[str]

    def __len__(self) -> int:
        """The number of planes."""
        return len(self.names)


@record
class SpaceLines:
    """One value per line."""

    spans: Spans
    plane: I32
    id: I64
    time_ns: I64
    names: list[str]
    displayed: list[str | None]

    def __len__(self) -> int:
        """The number of lines."""
        return len(self.names)


@record
class Names:
    """Metadata of events or statistics: one value per (plane, id), sorted by both. Texts are decoded on demand."""

    spans: Spans
    plane: I32
    id: I64
    table: wire.IdTable

    def __len__(self) -> int:
        """The number of entries."""
        return len(self.id)


@dataclass(slots=True)
class SpaceEvents:
    """One value per event, in file order."""

    offset: I64
    line: I32
    name: I32
    """Row of the event metadata, -1 where there is none."""
    start_ns: I64
    dur_ns: I64
    what: U8
    """See ``wire.SPAN``."""

    def __len__(self) -> int:
        """The number of events."""
        return len(self.line)


@record
class Space:
    """The raw columns of one file."""

    data: U8
    planes: Planes
    plane_stats: Stats
    lines: SpaceLines
    names: Names
    name_stats: Stats
    keys: Names
    key_names: list[str]
    events: SpaceEvents
    stats: Stats
    messages: dict[str, list[str]]
    """``errors``, ``warnings`` and ``hostnames`` of the file."""
    losses: list[Loss]
    cut_events: int
    """Events of which only the beginning is there."""

    def ids_of(self, rows: Rows) -> I64:
        """The metadata ids that some events write; a second walk, for those that lead nowhere."""
        spans = children(self.data, self.lines.spans, 4).spans[rows]
        id = numbers(self.data, spans, 1)[0]
        return np.where(id == NULL, 0, id)


def read_space(data: U8, progress: Progress | None = None, counted: Callable[[int], None] | None = None) -> Space:
    """The columns of a serialized XSpace. Never raises for what the bytes say, but for what ``counted`` makes of the
    number of events, which it is told before they are read."""
    damage = _Damage()
    top = children(data, Spans.whole(data), 1, cut=True)
    planes = Planes(top.spans, [name or "" for name in decode(data, texts(data, top.spans, 2))])
    parts = children(data, top.spans, 3, cut=True)
    names, keys = metadata_of(data, top.spans, 4), metadata_of(data, top.spans, 5)
    key_names = [text or "" for text in decode(data, texts(data, keys.spans, 2))]
    lines = _lines(data, parts)
    of_lines = children(data, lines.spans, 4, counted=counted)
    damage.level("file", Spans.whole(data), top)
    damage.level("plane", planes.spans, parts)
    damage.level("line", lines.spans, of_lines)
    slots = _slots(planes, lines, names, keys, key_names, data)
    decoder = _Decoder(data, lines, names, keys, key_names, slots)
    events, stats = decoder.events(of_lines, progress)
    everywhere = np.arange(len(planes), dtype=np.int32)
    messages = {
        word: [text or "" for text in decode(data, children(data, Spans.whole(data), field).spans)]
        for word, field in (("errors", 2), ("warnings", 3), ("hostnames", 4))
    }
    return Space(
        data=data,
        planes=planes,
        plane_stats=decoder.stats(planes.spans, 6, everywhere),
        lines=lines,
        names=names,
        name_stats=decoder.stats(names.spans, 5, names.plane),
        keys=keys,
        key_names=key_names,
        events=events,
        stats=stats,
        messages=messages,
        losses=damage.losses(),
        cut_events=damage.cut_events,
    )


def _lines(data: U8, lines: Children) -> SpaceLines:
    id, time = numbers(data, lines.spans, 1, 3)
    names, displayed = (decode(data, texts(data, lines.spans, field)) for field in (2, 11))
    return SpaceLines(
        spans=lines.spans,
        plane=lines.parent,
        id=np.where(id == NULL, 0, id),
        time_ns=np.where(time == NULL, 0, time),
        names=[name or "" for name in names],
        displayed=displayed,
    )


def metadata_of(data: U8, planes: Spans, field: int) -> Names:
    """The values of a map field of planes (``map<int64, …>``: key 1, value 2); of equal keys the last counts."""
    entries = children(data, planes, field)
    key = numbers(data, entries.spans, 1)[0]
    key = np.where(key == NULL, 0, key)
    order = np.lexsort((key, entries.parent))
    plane, key = entries.parent[order], key[order]
    last = np.ones(order.size, np.bool_)
    last[:-1] = (np.diff(key) != 0) | (np.diff(plane) != 0)
    plane, key = plane[last], key[last]
    spans = texts(data, entries.spans, 2)[order[last]]
    return Names(spans, plane, key, wire.IdTable.of(len(planes), plane, key))


COUNTER_LINE = "_counters_"


def _slots(planes: Planes, lines: SpaceLines, names: Names, keys: Names, key_names: list[str], data: U8) -> I32:
    """The column of every stat metadata row. On a line of counters the statistic is called what its event is."""
    slots = np.array([SLOT.get(name, -1) for name in key_names], np.int32)
    counting = {int(lines.plane[line]) for line, name in enumerate(lines.names) if name == COUNTER_LINE}
    for plane in counting:
        counters = set(decode(data, texts(data, names.spans[names.plane == plane], 2)))
        for row in np.flatnonzero((keys.plane == plane) & (slots < 0)).tolist():
            if key_names[row] in counters:
                slots[row] = SLOT["counter_value"]
    return slots


class _Decoder:
    """What the decoding of events and statistics needs to know of the file."""

    def __init__(
        self, data: U8, lines: SpaceLines, names: Names, keys: Names, key_names: Sequence[str], slots: I32
    ) -> None:
        self._data, self._lines, self._key_names, self._slots = data, lines, key_names, slots
        self._tables = names.table, keys.table
        self._scratch = threading.local()

    def events(self, messages: Children, progress: Progress | None) -> tuple[SpaceEvents, Stats]:
        """All events and their statistics, block by block: room for all at once could be many times the file."""
        line = messages.parent
        events = SpaceEvents(messages.spans.start, line, *_room_for_events(line.size))

        def block_at(low: int) -> StatsPart:
            block = slice(low, low + _BLOCK)
            times = events.start_ns[block], events.dur_ns[block]
            out = wire.EventColumns(events.name[block], *times, events.what[block])
            spans = messages.spans[block]
            of = wire.Messages(spans.start, spans.end, line[block], self._lines.plane, self._lines.time_ns)
            return self._decode(4, of, out, low)

        parts: list[StatsPart] = []
        with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1)) as pool:
            for part in pool.map(block_at, range(0, line.size, _BLOCK)):
                parts.append(part)
                if progress is not None:
                    progress(min(len(parts) * _BLOCK, line.size) * len(self._data) // line.size, len(self._data))
        return events, Stats(self._data, self._key_names, parts)

    def stats(self, messages: Spans, field: int, plane: I32) -> Stats:
        """The statistics of planes or of event metadata."""
        count = len(messages)
        lines = np.arange(count, dtype=np.int32), plane, np.zeros(count, np.int64)
        of = wire.Messages(messages.start, messages.end, *lines)
        return Stats(self._data, self._key_names, [self._decode(field, of, _room_for_events(count), 0)])

    def _decode(self, field: int, of: wire.Messages, out: wire.EventColumns, first_row: int) -> StatsPart:
        counts = np.zeros(len(KEYS), np.int64)
        room = int((of.end - of.start).sum()) // _SMALLEST_STAT
        stats = wire.ReadStats(*self._room_for_stats(room), counts)
        used = wire.decode(self._data, of, self._tables, wire.WantedStats(field, self._slots), out, stats)
        part = StatsPart(np.empty(used, np.int32), np.empty(used, np.uint8), np.empty(used, np.int64), counts)
        wire.sort_stats(stats, used, first_row, (part.rows, part.fields, part.values))
        return part

    def _room_for_stats(self, room: int) -> tuple[I32, U8, U8, I64]:
        """Room that a thread's next call uses again; most of it is never touched."""
        kept: tuple[I32, U8, U8, I64] | None = getattr(self._scratch, "room", None)
        if kept is None or kept[0].size < room:
            fields = np.empty(room, np.uint8)
            kept = np.empty(room, np.int32), np.empty(room, np.uint8), fields, np.empty(room, np.int64)
            self._scratch.room = kept
        return kept


def _room_for_events(count: int) -> wire.EventColumns:
    times = np.empty(count, np.int64), np.empty(count, np.int64)
    return wire.EventColumns(np.empty(count, np.int32), *times, np.empty(count, np.uint8))


class _Damage:
    """Where messages stopped making sense, and what that cost."""

    def __init__(self) -> None:
        self._first: int | None = None
        self._count = 0
        self._bytes = 0
        self.cut_events = 0

    def level(self, what: str, parents: Spans, spans: Children) -> None:
        """Note the broken messages of one level; what a cut child of theirs still gave is not lost."""
        for parent in np.flatnonzero(spans.broken >= 0).tolist():
            at, end = int(spans.broken[parent]), int(parents.end[parent])
            self._count += 1
            self._first = at if self._first is None else max(self._first, at)
            last = np.searchsorted(spans.parent, parent, "right") - 1
            if last >= 0 and spans.parent[last] == parent and spans.spans.start[last] > at:
                continue
            self._bytes += end - at
            self.cut_events += what == "line"

    def losses(self) -> list[Loss]:
        """One loss for all of it, or none."""
        if not self._count:
            return []
        text = "places where the file is cut off or its bytes make no sense"
        return [Loss("xplane_damaged", self._count, text, self._first, self.cut_events, self._bytes, damaged=True)]
