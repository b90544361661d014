"""The fast road: the compiled kernel, with the tolerant road's help for what it does not understand."""

from __future__ import annotations

from typing import ClassVar

from stepscope.formats.chrome.scan import kernel
from stepscope.formats.chrome.scan.damage import Tally
from stepscope.formats.chrome.scan.repair import Repairer, RepairOutcome, list_ends
from stepscope.formats.chrome.scan.roads import Stop
from stepscope.formats.chrome.scan.rows import SCRATCH_ROWS, RowsPart
from stepscope.formats.chrome.scan.window import TextWindow

_EVENT_BYTES = 64
"""Few profiles have smaller events on the whole; a room that is full is emptied, and filled again."""


class FastRoad:
    """See :class:`~stepscope.formats.chrome.scan.roads.Road`."""

    parallel: ClassVar[bool] = True

    def __init__(self) -> None:
        self.parts: list[RowsPart] = []
        self._repairer = Repairer()
        self._made: kernel.Scanner | None = None

    def advance(self, window: TextWindow, at: int, limit: int, comma_due: bool) -> tuple[int, bool, Stop]:
        """As :meth:`Road.advance`."""
        scanner = self._made = self._made or kernel.Scanner(_rows(window))
        while True:
            if not self._repairer.searching:
                at, comma_due, why = scanner.scan(window.buffer, at, limit, window.end, comma_due)
                if scanner.scratch.full:
                    self._flush(window)
                if why == kernel.ROWS_FULL:
                    continue
                stop = self._stop(window, at, why)
                if stop is not None:
                    self._flush(window)
                    return at + (stop is Stop.DONE), comma_due or stop is Stop.DONE, stop
            step = self._repairer.step(window, at, comma_due)
            at, comma_due = step.at, step.comma_due
            if step.event is not None:
                scanner.scratch.append(step.event, window.base)
            if step.outcome is not RepairOutcome.GOING:
                self._flush(window)
                return at, comma_due, Stop.DONE if step.outcome is RepairOutcome.DONE else Stop.NEED_MORE

    def _stop(self, window: TextWindow, at: int, why: int) -> Stop | None:
        """What the kernel's reason means to the caller; None where the tolerant road must look."""
        if why == kernel.AT_LIMIT:
            return Stop.AT_LIMIT
        if why == kernel.NEED_MORE and not window.is_enough(at):
            return Stop.NEED_MORE
        if why == kernel.DONE:
            ends = list_ends(window, at)
            return Stop.NEED_MORE if ends is None else Stop.DONE if ends else None
        return None

    def take(self) -> tuple[list[RowsPart], Tally]:
        """As :meth:`Road.take`."""
        taken = self.parts, self._repairer.tally
        self.parts, self._repairer.tally = [], Tally()
        return taken

    def _flush(self, window: TextWindow) -> None:
        if self._made and (part := self._made.scratch.take(window.base)):
            self.parts.append(part)


def _rows(window: TextWindow) -> int:
    """Room for so many rows: first touching the pages of full room takes longer than to scan a small file."""
    return min(SCRATCH_ROWS, window.end // _EVENT_BYTES + 1) if window.last else SCRATCH_ROWS
