"""The two roads behind one interface: windows in, parts out."""

from __future__ import annotations

from enum import Enum, auto
from typing import ClassVar, Protocol

import numpy as np

from stepscope.formats.chrome.scan import bulk
from stepscope.formats.chrome.scan.damage import Tally
from stepscope.formats.chrome.scan.repair import Repairer, RepairOutcome, RepairStep
from stepscope.formats.chrome.scan.rows import Event, RowsPart, Scratch, Tables
from stepscope.formats.chrome.scan.window import TextWindow
from stepscope.trace.tables import I64


class Stop(Enum):
    """Why a road stopped."""

    NEED_MORE = auto()
    AT_LIMIT = auto()
    DONE = auto()


class Road(Protocol):
    """Reads events out of windows; not shared between threads."""

    parallel: ClassVar[bool]
    """Whether several of them on several threads are faster than one."""

    @property
    def parts(self) -> list[RowsPart]:
        """What was read since the last ``take``."""

    def advance(self, window: TextWindow, at: int, limit: int, comma_due: bool) -> tuple[int, bool, Stop]:
        """Read the events from ``at`` on: where to go on, whether a comma is due there, and why it stopped.

        AT_LIMIT: at the first event that begins at ``limit`` or later. NEED_MORE: call again with a window that holds
        more from there on. DONE: behind the list of events. Never NEED_MORE for a window that is the last.
        """

    def take(self) -> tuple[list[RowsPart], Tally]:
        """Hand over the parts and the damage, and begin anew; tables and templates stay."""


_ROWS = 1 << 12
"""Rows in a part: first touching the pages of more room would take longer than reading a small file."""


class TolerantRoad:
    """Python only: slow, and for every input."""

    parallel: ClassVar[bool] = False

    def __init__(self) -> None:
        self.parts: list[RowsPart] = []
        self._repairer = Repairer()
        self._scratch = Scratch(Tables(_Strings(), _Strings(), _Lanes()), _ROWS)

    def advance(self, window: TextWindow, at: int, limit: int, comma_due: bool) -> tuple[int, bool, Stop]:
        """As :meth:`Road.advance`; the limit is not looked at, for this road reads front to back."""
        step = RepairStep(at, comma_due)
        bulk_from = at
        while step.outcome is RepairOutcome.GOING:
            if step.at >= bulk_from and not step.comma_due and not self._repairer.searching:
                block = bulk.read_block(window, step.at)
                if block is not None:
                    self._append(block[0], window)
                    step = RepairStep(block[1], comma_due=False)
                    continue
                bulk_from = step.at + bulk.BLOCK
            step = self._repairer.step(window, step.at, step.comma_due)
            if step.event is not None:
                self._append([step.event], window)
        self._flush(window)
        return step.at, step.comma_due, Stop.DONE if step.outcome is RepairOutcome.DONE else Stop.NEED_MORE

    def take(self) -> tuple[list[RowsPart], Tally]:
        """As :meth:`Road.take`."""
        taken = self.parts, self._repairer.tally
        self.parts, self._repairer.tally = [], Tally()
        return taken

    def _append(self, events: list[Event], window: TextWindow) -> None:
        for event in events:
            if self._scratch.full:
                self._flush(window)
            self._scratch.append(event, window.base)

    def _flush(self, window: TextWindow) -> None:
        if part := self._scratch.take(window.base):
            self.parts.append(part)


class _Strings:
    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def intern(self, text: bytes) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    def texts(self) -> list[bytes]:
        return list(self._numbers)


class _Lanes:
    def __init__(self) -> None:
        self._numbers: dict[tuple[int, int, int], int] = {}

    def number(self, pid: int, tid: int, kinds: int) -> int:
        return self._numbers.setdefault((pid, tid, kinds), len(self._numbers))

    def lanes(self) -> I64:
        return np.array(list(self._numbers), np.int64).reshape(-1, 3)
