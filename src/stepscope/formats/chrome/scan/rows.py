"""Where scanned events are put until the columns are made: scratch rows, and the parts copied out of them."""

from __future__ import annotations

import mmap
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from stepscope.formats.chrome.dialects import KEYS
from stepscope.record import record
from stepscope.trace.tables import I64

ROW = np.dtype([("ts_ns", "<i8"), ("dur_ns", "<i8"), ("name", "<i4"), ("category", "<i4"), ("lane", "<i4"),
                ("offset", "<u4"), ("phase", "u1")])  # fmt: skip
"""One event; ``offset`` counts from the start of its window, ``phase`` has the bit ``BOUND``."""

BOUND = 0x80
"""Bit of a row's phase: the event binds to the slice around it (``"bp": "e"``). Phases are ASCII."""

BARE_NOTE, RANGE_NOTE = 0, 1
FIRST_ARGUMENT = 2
STREAM_COUNT = FIRST_ARGUMENT + 2 * len(KEYS)
"""Two streams note events with a value that is no JSON (NaN, inf, N/A) and with a time beyond int64. Argument k fills
stream 2k + 2 with integers and stream 2k + 3 with numbers of raw texts."""

LANE_ABSENT, LANE_INTEGER, LANE_TEXT = range(3)
"""What a pid or tid is; a lane's ``kinds`` is pid's kind + 4 * tid's kind."""

SCRATCH_ROWS = 1 << 13
"""Rows of some two megabytes of text. The room of every argument is touched in pages of 2 MB where the system has them,
so that with eight times as many rows two threads held 80 MB more."""


class ByteStrings(Protocol):
    """A table of distinct byte strings."""

    def __len__(self) -> int: ...

    def intern(self, text: bytes) -> int:
        """The number of ``text``."""

    def texts(self) -> list[bytes]:
        """The strings, by number."""


class Lanes(Protocol):
    """A table of distinct lanes."""

    def number(self, pid: int, tid: int, kinds: int) -> int:
        """The number of a lane."""

    def lanes(self) -> I64:
        """Rows of (pid, tid, kinds), by number."""


@dataclass(slots=True)
class Tables:
    """The tables that rows refer to: names and categories as raw string bodies, arguments and ids as raw JSON."""

    strings: ByteStrings
    raws: ByteStrings
    lanes: Lanes


@record
class RowsPart:
    """Rows of one stretch of input, in order; ``base`` is the offset that row offsets count from."""

    base: int
    rows: npt.NDArray[Any]
    arguments: dict[int, tuple[npt.NDArray[np.uint32], I64]]
    tables: Tables


@dataclass(slots=True)
class Event:
    """One event as the tolerant road read it; texts are raw JSON."""

    offset: int
    phase: int = 0
    bound: bool = False
    category: bytes | None = None
    name: bytes | None = None
    pid: int | bytes | None = None
    tid: int | bytes | None = None
    ts_ns: int | None = None
    dur_ns: int | None = None
    arguments: dict[int, int | bytes] = field(default_factory=dict)
    notes: set[int] = field(default_factory=set)
    """Streams ``BARE_NOTE`` and ``RANGE_NOTE``."""


class Scratch:
    """Rows and argument streams that one thread fills again and again."""

    def __init__(self, tables: Tables, capacity: int = SCRATCH_ROWS) -> None:
        self.tables = tables
        self.rows = np.empty(capacity, ROW)
        self.argument_rows = np.empty((STREAM_COUNT, capacity), np.uint32)
        self.argument_values = np.empty((STREAM_COUNT, capacity), np.int64)
        self.argument_counts = np.zeros(STREAM_COUNT, np.int64)
        self.count = 0

    @property
    def full(self) -> bool:
        """Whether no further row fits."""
        return self.count == len(self.rows)

    def append(self, event: Event, base: int) -> None:
        """Add an event that the tolerant road read."""
        tables, null = self.tables, np.iinfo(np.int64).min
        row = self.count
        self.rows[row] = (
            null if event.ts_ns is None else event.ts_ns,
            null if event.dur_ns is None else event.dur_ns,
            -1 if event.name is None else tables.strings.intern(event.name),
            -1 if event.category is None else tables.strings.intern(event.category),
            self._lane(event),
            event.offset - base,
            event.phase | (BOUND if event.bound else 0),
        )
        for key, value in event.arguments.items():
            if isinstance(value, int):
                self._push(FIRST_ARGUMENT + 2 * key, row, value)
            else:
                self._push(FIRST_ARGUMENT + 2 * key + 1, row, tables.raws.intern(value))
        for stream in event.notes:
            self._push(stream, row, 0)
        self.count += 1

    def take(self, base: int) -> RowsPart | None:
        """The rows so far as a part, the scratch empty again; None where there are none."""
        if self.count == 0:
            return None
        streams = np.flatnonzero(self.argument_counts).tolist()
        counts = self.argument_counts[streams].tolist()
        arena = _Arena(self.count * ROW.itemsize + 12 * sum(counts) + 8 * (2 * len(counts) + 1))
        part = RowsPart(
            base,
            arena.copy(self.rows[: self.count]),
            {
                stream: (
                    arena.copy(self.argument_rows[stream, :count]),
                    arena.copy(self.argument_values[stream, :count]),
                )
                for stream, count in zip(streams, counts, strict=True)
            },
            self.tables,
        )
        self.count = 0
        self.argument_counts[:] = 0
        return part

    def _push(self, stream: int, row: int, value: int) -> None:
        count = int(self.argument_counts[stream])
        self.argument_rows[stream, count] = row
        self.argument_values[stream, count] = value
        self.argument_counts[stream] = count + 1

    def _lane(self, event: Event) -> int:
        (pid, pid_kind), (tid, tid_kind) = self._identifier(event.pid), self._identifier(event.tid)
        return self.tables.lanes.number(pid, tid, pid_kind + 4 * tid_kind)

    def _identifier(self, value: int | bytes | None) -> tuple[int, int]:
        if value is None:
            return 0, LANE_ABSENT
        if isinstance(value, int):
            return value, LANE_INTEGER
        return self.tables.raws.intern(value), LANE_TEXT


class _Arena:
    """Exactly sized memory of its own mapping, so that dropping a part gives its pages back at once."""

    def __init__(self, size: int) -> None:
        self._memory = _private_memory(max(size, 1))
        self._used = 0

    def copy(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """A copy of ``values`` in the arena."""
        target = np.frombuffer(self._memory, values.dtype, len(values), self._used)
        target[:] = values
        self._used += -(-values.nbytes // 8) * 8
        return target


if hasattr(mmap, "MAP_ANONYMOUS"):
    # Python's default is memory shared between processes, whose pages cost several times as much to touch first.
    _FLAGS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_POPULATE", 0)

    def _private_memory(size: int) -> mmap.mmap:
        return mmap.mmap(-1, size, flags=_FLAGS)

else:  # Windows, where an anonymous mapping is private

    def _private_memory(size: int) -> mmap.mmap:
        return mmap.mmap(-1, size)
