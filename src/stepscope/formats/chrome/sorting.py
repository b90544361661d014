"""Which raw event becomes a row of which table, and which become none: counted, with the first one's offset."""

from __future__ import annotations

from enum import IntEnum
from functools import cached_property

import numpy as np

from stepscope.formats.chrome.events import RawEvents
from stepscope.formats.chrome.pairs import ASYNC_END, END, is_phase, paired
from stepscope.formats.limits import FAR_NS
from stepscope.trace import tables as t
from stepscope.trace.trace import Loss

INSTANTS = tuple(map(ord, "iIRnTp"))
"""Phases of events without a duration, steps of asynchronous operations among them."""

_BLOCK = 1 << 16
"""Events whose times are looked at at once."""


class Fate(IntEnum):
    """What becomes of an event."""

    LOST = 0
    """Counted, with what else is lost."""
    SLICE = 1
    MEMORY = 2
    COUNTER = 3
    INSTANT = 4
    FLOW = 5
    METADATA = 6
    END = 7
    """It gave a slice its duration."""


POINTS = (Fate.MEMORY, Fate.COUNTER, Fate.INSTANT)
"""Fates of events with a time and no duration."""


class Sorting:
    """Sorts one file's events; ``losses`` starts with the damage found on the way in.

    ``events`` are those that were given, begins and ends paired (``formats.chrome.pairs``).
    """

    def __init__(self, events: RawEvents) -> None:
        self._pairs = paired(events)
        self.thread_lanes = len(events.lanes)
        """Lanes from this one on hold asynchronous operations."""
        self.events = self._pairs.events
        self.losses = [
            Loss(d.code, d.count, d.text, d.first_offset, d.lost_events, d.lost_bytes, damaged=True)
            for d in events.damages
        ]
        self.losses += [Loss("reader", 1, notice) for notice in events.notices]

    @cached_property
    def fate(self) -> t.U8:
        """The ``Fate`` of every event; what is lost is counted in ``losses``."""
        e = self.events
        is_x, is_i = e.phase == ord("X"), is_phase(e, INSTANTS)
        is_c, is_meta = e.phase == ord("C"), e.phase == ord("M")
        is_flow = (e.phase == ord("s")) | (e.phase == ord("t")) | (e.phase == ord("f"))
        is_end = is_phase(e, END + ASYNC_END)
        has_time, has_name = e.ts_ns != t.NULL, e.name >= 0
        near = has_time & self._near(is_x & has_time) & ~(is_x & (e.dur_ns >= FAR_NS))
        timed = is_x | is_i | is_c
        self.lose(timed & ~has_time, "time_missing", "events without a readable start time")
        out_of_range = timed & has_time & ~near
        self.lose(out_of_range, "time_out_of_range", "events with a zero or impossible start time or duration")
        self.lose(timed & near & ~has_name, "name_missing", "events without a name")
        self.lose(is_x & near & has_name & (e.dur_ns == t.NULL), "duration_missing", "events without a duration")
        self.lose(
            is_x & near & has_name & (e.dur_ns < 0) & (e.dur_ns != t.NULL),
            "duration_negative",
            "events that end before they start",
        )
        self.lose(
            ~(timed | is_meta | is_flow | is_end) & (e.phase != 0),
            "phase_unsupported",
            "events of kinds that are not read (objects, samples, memory dumps, …)",
        )
        said = has_name | has_time
        self.lose((e.phase == 0) & said, "phase_missing", "events that do not say what they are (`ph`)")
        self.lose((e.phase == 0) & ~said, "event_empty", "empty events", lost=False)
        good = near & has_name
        slices = is_x & good & (e.dur_ns >= 0)
        fate = np.full(len(e), Fate.LOST, np.uint8)
        fate[slices] = Fate.SLICE
        fate[is_c & good] = Fate.COUNTER
        fate[is_i & good] = Fate.INSTANT
        fate[is_i & good & self.named("[memory]")] = Fate.MEMORY
        fate[is_flow] = Fate.FLOW
        fate[is_meta] = Fate.METADATA
        fate[self._ends(is_end, slices)] = Fate.END
        return fate

    def _ends(self, is_end: t.Bools, slices: t.Bools) -> t.Bools:
        """Ends whose begin became a slice; the others, and begins without an end, are counted."""
        pairs = self._pairs
        ends, unclosed = np.zeros(len(self.events), np.bool_), np.zeros(len(self.events), np.bool_)
        ends[pairs.ends] = slices[pairs.begins]
        unclosed[pairs.unclosed] = slices[pairs.unclosed]
        self.lose(is_end & ~ends, "end_unmatched", "events that end what never began")
        self.lose(
            unclosed,
            "begin_unclosed",
            "events that begin and never end: they last until the last event of their thread",
            lost=False,
        )
        return ends

    def _near(self, measured: t.Bools) -> t.Bools:
        stamps = self.events.ts_ns
        if not measured.any():
            return np.ones(len(stamps), np.bool_)
        # Zeroed stamps may be the majority; what they stand beside tells the time of the file.
        stamped = measured & (stamps != 0)
        median = int(np.median(stamps[stamped if stamped.any() else measured]))
        return np.asarray((stamps > median - FAR_NS) & (stamps < median + FAR_NS))

    def named(self, name: str) -> t.Bools:
        """Which events have a name."""
        try:
            return np.asarray(self.events.name == self.events.strings.index(name))
        except ValueError:
            return np.zeros(len(self.events), np.bool_)

    def lose(self, which: t.Bools, code: str, text: str, *, lost: bool = True) -> None:
        """Count events that no table takes."""
        count = int(which.sum())
        if count:
            first = int(self.events.offset[int(which.argmax())])
            self.losses.append(Loss(code, count, text, first, lost_events=count if lost else 0))

    @property
    def resolution_ns(self) -> int:
        """The grain of the times: whole microseconds where every one is."""
        e, rows = self.events, np.flatnonzero(self.fate == Fate.SLICE)
        blocks = [rows[low : low + _BLOCK] for low in range(0, rows.size, _BLOCK)]
        whole = not any((e.ts_ns[block] % 1000).any() or (e.dur_ns[block] % 1000).any() for block in blocks)
        return 1000 if whole and blocks else 1
