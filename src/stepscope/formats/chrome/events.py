"""What the roads into a Chrome-trace JSON file produce: raw columns, one row per event, nothing interpreted.

Two roads fill them (``scan``): a fast one compiled by numba, and a tolerant one in Python that also repairs
damage and stands in where numba is missing. Both give the same columns for the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

import numpy as np

from stepscope.record import record
from stepscope.trace.tables import F64, I32, I64, U8, Bools
from stepscope.trace.trace import Trace


@record
class ArgumentColumn:
    """One argument key over all the events that have it.

    ``rows`` (rising) are event rows. Where the value is a plain integer (also a quoted one, ``"9216"``), ``ints``
    holds it and ``texts`` is -1; anything else is raw JSON text, ``texts`` indexes ``RawEvents.raws`` and ``ints``
    is NULL. A JSON ``null`` leaves no row. If a key occurs twice in an event the last one counts. Where all values are
    of one sort the other column may be one value repeated without memory (stride 0): read it, never write it.
    """

    rows: I32
    ints: I64
    texts: I32

    @classmethod
    def empty(cls) -> ArgumentColumn:
        """No event has the argument."""
        return cls(np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int32))


@record
class Damage:
    """One kind of damage in the input: how often, where first (byte offset in the decompressed text), in words.

    ``lost_events`` and ``lost_bytes`` count what could not become rows; both are 0 where everything was repaired.
    """

    code: str
    count: int
    first_offset: int | None
    text: str
    lost_events: int = 0
    lost_bytes: int = 0


@record
class Samples:
    """The numbers in the arguments of counter events (``C``): one row per series of an event."""

    rows: I32
    """Event rows, not falling."""
    series: I32
    """Index into ``names``."""
    values: F64
    names: list[str]

    @classmethod
    def none(cls) -> Samples:
        """No values, or none were read."""
        return cls(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float64), [])


@record
class RawEvents:
    """Columns of the elements of ``traceEvents``, in file order.

    ``phase`` is the code of ``ph`` (0 where absent). ``category`` and ``name`` index ``strings`` (-1 where absent).
    ``lane`` indexes ``lanes``, the distinct (pid, tid) pairs with text of digits turned into numbers. ``ts_ns`` and
    ``dur_ns`` are exact decimal microseconds times 1000, rounded half away from zero below the nanosecond, NULL
    where absent or not a number. ``offset`` is where the event's ``{`` stands in the decompressed text.
    """

    phase: U8
    category: I32
    name: I32
    lane: I32
    ts_ns: I64
    dur_ns: I64
    offset: I64
    strings: list[str]
    raws: list[str]
    lanes: list[tuple[int | str | None, int | str | None]]
    arguments: dict[str, ArgumentColumn]
    header: dict[str, Any]
    """Every root key except ``traceEvents``; empty for a bare list."""
    total_bytes: int
    damages: list[Damage] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    """What a person should know about how the file was read: not damage."""
    samples: Samples = field(default_factory=Samples.none)
    bound: Bools | None = None
    """Which events bind to the slice around them (``"bp": "e"``); None where nothing says it."""

    def __len__(self) -> int:
        """The number of events."""
        return len(self.phase)

    def argument(self, key: str) -> ArgumentColumn:
        """The argument of that key, empty where no event has it."""
        return self.arguments.get(key) or ArgumentColumn.empty()


Filled = Callable[[], Trace]
"""Builds the trace of events that have all become rows of its tables. Only this is kept of them by then: a large file's
events and its trace are never held at once."""
