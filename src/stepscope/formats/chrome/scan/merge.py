"""From the parts that the threads made to the columns of ``RawEvents``."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from stepscope.formats.chrome.dialects import KEYS
from stepscope.formats.chrome.events import ArgumentColumn, RawEvents
from stepscope.formats.chrome.scan import decode
from stepscope.formats.chrome.scan.damage import Tally
from stepscope.formats.chrome.scan.rows import (
    BARE_NOTE,
    BOUND,
    FIRST_ARGUMENT,
    LANE_INTEGER,
    LANE_TEXT,
    RANGE_NOTE,
    STREAM_COUNT,
    RowsPart,
    Tables,
)
from stepscope.trace.tables import I32, I64, NULL, U8

Identifier = int | str | None
Value = TypeVar("Value")
_NULL, _UNUSED = -1, -2  # raw texts without a code: the word null, and what only pids and tids use


@dataclass(slots=True)
class _Vocabulary:
    """Distinct decoded texts over all threads, and which of them carried damage."""

    texts: list[str] = field(default_factory=list)
    codes: dict[str, int] = field(default_factory=dict)
    damaged: dict[str, set[int]] = field(default_factory=dict)

    def code(self, text: str, damage: Iterable[str]) -> int:
        """The code of a text."""
        code = self.codes.setdefault(text, len(self.texts))
        if code == len(self.texts):
            self.texts.append(text)
        for kind in damage:
            self.damaged.setdefault(kind, set()).add(code)
        return code


@dataclass(slots=True)
class _Maps:
    """From one thread's numbers to the common codes; each ends in -1, so that index -1 stays -1."""

    strings: I32
    raws: I32
    lanes: I32


class _Names:
    """The common numbering of strings, raw texts and lanes."""

    def __init__(self) -> None:
        self.strings, self.raws = _Vocabulary(), _Vocabulary()
        self.lanes: dict[tuple[Identifier, Identifier], int] = {}

    def maps(self, tables: Tables, used_raws: npt.NDArray[np.bool_]) -> _Maps:
        """The maps of one thread's tables; a raw ``null`` maps to -1."""
        raws = tables.raws.texts()
        raw_map = [
            _UNUSED if not used else _NULL if text == b"null" else self.raws.code(*decode.raw(text))
            for text, used in zip(raws, used_raws.tolist(), strict=True)
        ]
        string_map = [self.strings.code(*decode.string(text)) for text in tables.strings.texts()]
        lane_map = [self.lanes.setdefault(lane, len(self.lanes)) for lane in _lanes(tables, raws)]
        return _Maps(*(np.array([*numbers, -1], np.int32) for numbers in (string_map, raw_map, lane_map)))


def _lanes(tables: Tables, raws: list[bytes]) -> list[tuple[Identifier, Identifier]]:
    def value(number: int, kind: int) -> Identifier:
        if kind == LANE_TEXT:
            return decode.identifier(raws[number])
        return number if kind == LANE_INTEGER else None

    return [(value(pid, kinds % 4), value(tid, kinds // 4)) for pid, tid, kinds in tables.lanes.lanes().tolist()]


@dataclass(slots=True)
class _Columns:
    """The columns being filled; rows of a part go to [done, done + n)."""

    phase: U8
    category: I32
    name: I32
    lane: I32
    ts_ns: I64
    dur_ns: I64
    offset: I64
    done: int = 0

    @classmethod
    def of(cls, count: int) -> _Columns:
        """Columns of ``count`` rows, not yet filled."""
        return cls(
            phase=np.empty(count, np.uint8),
            category=np.empty(count, np.int32),
            name=np.empty(count, np.int32),
            lane=np.empty(count, np.int32),
            ts_ns=np.empty(count, np.int64),
            dur_ns=np.empty(count, np.int64),
            offset=np.empty(count, np.int64),
        )

    def take(self, part: RowsPart, maps: _Maps) -> None:
        """Append the rows of a part."""
        rows, here = part.rows, slice(self.done, self.done + len(part.rows))
        self.phase[here] = rows["phase"]
        self.ts_ns[here] = rows["ts_ns"]
        self.dur_ns[here] = rows["dur_ns"]
        np.add(rows["offset"], np.int64(part.base), out=self.offset[here], casting="unsafe")
        self.category[here] = maps.strings[rows["category"]]
        self.name[here] = maps.strings[rows["name"]]
        self.lane[here] = maps.lanes[rows["lane"]]
        self.done += len(rows)


class _ArgumentColumn:
    """One argument over all parts. A column without texts (or without integers) holds that one value once, repeated."""

    def __init__(self, integers: int, texts: int) -> None:
        count = integers + texts
        self.rows = np.empty(count, np.int32)
        self.ints = np.empty(count, np.int64) if integers else np.broadcast_to(np.int64(NULL), (count,))
        self.texts = np.empty(count, np.int32) if texts else np.broadcast_to(np.int32(-1), (count,))
        self._mixed = bool(integers and texts)
        self._done = 0

    def take(self, part: RowsPart, key: int, first_row: int, raws: I32) -> None:
        """Append what a part has of argument ``key``."""
        integers, texts = (part.arguments.get(FIRST_ARGUMENT + 2 * key + is_text) for is_text in (0, 1))
        start = self._done
        if integers is not None:
            here = slice(self._done, self._done + len(integers[0]))
            self.rows[here] = integers[0]
            self.ints[here] = integers[1]
            if self._mixed:
                self.texts[here] = -1
            self._done = here.stop
        if texts is not None:
            here = slice(self._done, self._done + len(texts[0]))
            self.rows[here] = texts[0]
            self.texts[here] = raws[texts[1]]
            if self._mixed:
                self.ints[here] = NULL
            self._done = here.stop
        filled = slice(start, self._done)
        if integers is not None and texts is not None:
            order = np.argsort(self.rows[filled], kind="stable")
            for column in (self.rows, self.ints, self.texts):
                column[filled] = column[filled][order]
        self.rows[filled] += first_row

    def finish(self, nulls: bool) -> ArgumentColumn:
        """The argument, without the rows whose value was ``null``."""
        if nulls:
            kept = (self.ints != NULL) | (self.texts >= 0)
            return ArgumentColumn(self.rows[kept], self.ints[kept], self.texts[kept])
        return ArgumentColumn(self.rows, self.ints, self.texts)


def merge(parts: deque[RowsPart], header: dict[str, Any], total_bytes: int, tally: Tally) -> RawEvents:
    """Make the columns. ``parts`` is emptied on the way, so that its memory is given back as the columns fill."""
    names = _Names()
    maps = {id(tables): names.maps(tables, used) for tables, used in _used_raws(parts)}
    columns = _Columns.of(sum(len(part.rows) for part in parts))
    arguments = _argument_columns(parts)
    while parts:
        part = parts.popleft()
        of_part = maps[id(part.tables)]
        for key, column in arguments.items():
            column.take(part, key, columns.done, of_part.raws)
        for stream, code in ((BARE_NOTE, "not_json_value"), (RANGE_NOTE, "time_out_of_range")):
            if stream in part.arguments:
                noted = part.arguments[stream][0]
                tally.note(code, part.base + int(part.rows["offset"][noted[0]]), count=len(noted))
        columns.take(part, of_part)
    nulls = any((of_thread.raws[:-1] == _NULL).any() for of_thread in maps.values())
    made = {KEYS[key]: column.finish(nulls) for key, column in arguments.items()}
    _note_texts(names, columns, made, tally)
    texts = [column.texts for column in made.values() if column.texts.flags.writeable]
    bound = columns.phase >= BOUND
    columns.phase &= BOUND - 1
    return RawEvents(
        columns.phase,
        columns.category,
        columns.name,
        columns.lane,
        columns.ts_ns,
        columns.dur_ns,
        columns.offset,
        strings=_numbered_by_use(names.strings.texts, [columns.name, columns.category]),
        raws=_numbered_by_use(names.raws.texts, texts),
        lanes=_numbered_by_use(list(names.lanes), [columns.lane]),
        arguments={key: argument for key, argument in made.items() if len(argument.rows)},
        header=header,
        total_bytes=total_bytes,
        damages=tally.damages(),
        bound=bound,
    )


def _numbered_by_use(values: list[Value], columns: Sequence[I32]) -> list[Value]:
    """Number values anew, in the order of their first use; the columns change in place.

    Which road reads, and which of several threads meets a value first, must not matter.
    """
    never = np.iinfo(np.int64).max
    first, before = np.full(len(values) + 1, never), 0  # the last is that of -1
    for column in columns:
        here = np.full_like(first, never)
        here[column[::-1]] = np.arange(before + column.size - 1, before - 1, -1)  # of equal indices the last counts
        first, before = np.minimum(first, here), before + column.size
    used = np.argsort(first[:-1])[: np.count_nonzero(first[:-1] < never)]
    new = np.full(first.size, -1, np.int32)
    new[used] = np.arange(used.size)
    for column in columns:
        column[:] = new[column]
    return [values[old] for old in used.tolist()]


def _used_raws(parts: Iterable[RowsPart]) -> list[tuple[Tables, npt.NDArray[np.bool_]]]:
    """Every thread's tables, and which of its raw texts are arguments (the others are pids and tids)."""
    used: dict[int, tuple[Tables, npt.NDArray[np.bool_]]] = {}
    for part in parts:
        _, flags = used.setdefault(id(part.tables), (part.tables, np.zeros(len(part.tables.raws), np.bool_)))
        for stream, (_, values) in part.arguments.items():
            if stream % 2 == 1 and stream >= FIRST_ARGUMENT:
                flags[values] = True
    return list(used.values())


def _argument_columns(parts: Iterable[RowsPart]) -> dict[int, _ArgumentColumn]:
    counts = np.zeros(STREAM_COUNT, np.int64)
    for part in parts:
        for stream, (rows, _) in part.arguments.items():
            counts[stream] += len(rows)
    pairs = counts[FIRST_ARGUMENT:].reshape(-1, 2)
    return {int(key): _ArgumentColumn(*pairs[key].tolist()) for key in np.flatnonzero(pairs.sum(axis=1))}


def _note_texts(names: _Names, columns: _Columns, arguments: dict[str, ArgumentColumn], tally: Tally) -> None:
    """Count the events that use a text with damage in it."""
    for code, damaged in names.strings.damaged.items():
        rows = np.flatnonzero(np.isin(columns.name, list(damaged)) | np.isin(columns.category, list(damaged)))
        if len(rows):
            tally.note(code, int(columns.offset[rows[0]]), count=len(rows))
    for code, damaged in names.raws.damaged.items():
        for argument in arguments.values():
            using = argument.rows[np.isin(argument.texts, list(damaged))]
            if len(using):
                tally.note(code, int(columns.offset[using[0]]), count=len(using))
