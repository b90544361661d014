"""The tolerant road's steps: one element of ``traceEvents`` at a time, and what to do where it is damaged.

A damaged event reaches at most to where the next event plausibly begins; that stretch is read once more, forgivingly,
and either makes a row or is counted as lost. Every search goes over bytes that are then left behind, so the work grows
with the size of the file however it is damaged.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import TypeVar

from stepscope.formats.chrome.scan.damage import Tally
from stepscope.formats.chrome.scan.header import EVENT_START
from stepscope.formats.chrome.scan.mend import mend
from stepscope.formats.chrome.scan.plain import STRING, Incomplete, Malformed, read_event, skip_blank, value_end
from stepscope.formats.chrome.scan.rows import Event
from stepscope.formats.chrome.scan.window import TextWindow
from stepscope.record import record
from stepscope.regex import regex

_OVERLAP = 4096
_NEAR = (1 << 10, 1 << 14, 1 << 62)
"""An element is looked for in so many bytes, one after another: damage must not make each event cost a look at all that
follows."""
_PATIENCE = 32 << 20
"""Bytes that may be read in vain, in all, for elements that hold something which looks like an event."""
_MAX_STRAYS = 100
_ARRAY_END = regex(
    rb'\}[\x00-\x20]*+(\])[\x00-\x20]*+(?:,[\x00-\x20]*+"[^"\\\n]{1,200}+"[\x00-\x20]*+:|\}[\x00-\x20]*+\Z)'
)
Read = TypeVar("Read")
_AFTER_LIST = regex(rb"[\x00-\x20]*+,?[\x00-\x20]*+")


class RepairOutcome(Enum):
    """What a step leads to."""

    GOING = auto()
    NEED_MORE = auto()
    DONE = auto()


@record
class RepairStep:
    """Where to go on (for DONE: behind the list), whether a comma is due there, and the event read, if any."""

    at: int
    comma_due: bool = True
    event: Event | None = None
    outcome: RepairOutcome = RepairOutcome.GOING


def list_ends(window: TextWindow, at: int) -> bool | None:
    """Whether the bracket at ``at`` ends the list: not where an event follows it; None where more must be seen."""
    if not window.last and window.end - at < _OVERLAP:
        return None
    after = _AFTER_LIST.match(window.view, at + 1, window.end)
    return after is None or EVENT_START.match(window.view, after.end(), window.end) is None


class Repairer:
    """Reads what the fast road cannot, element by element, and counts the damage."""

    def __init__(self) -> None:
        self.tally = Tally()
        self.searching = False
        """The next event start is being looked for; nothing else may read on."""
        self._search_code = "garbage"
        self._patience = _PATIENCE
        self._strays = 0

    def step(self, window: TextWindow, at: int, comma_due: bool) -> RepairStep:
        """Read the element at ``at``, or what stands between two elements."""
        if self.searching:
            return self._search(window, at)
        view, end = window.view, window.end
        at = skip_blank(view, at, end)
        if at >= end:
            return self._at_end(window, at, comma_due)
        byte = view[at]
        if byte == ord("{"):
            self._strays = 0
            if comma_due:
                self.tally.note("stray_comma", window.base + at)
            return self._event(window, at)
        self._strays += 1
        if self._strays > _MAX_STRAYS:
            self._strays = 0
            return self._start_search(at, "garbage", window)
        return _BETWEEN.get(byte, Repairer._element)(self, window, at, comma_due)

    def _at_end(self, window: TextWindow, at: int, comma_due: bool) -> RepairStep:
        if not window.last:
            return RepairStep(at, comma_due, outcome=RepairOutcome.NEED_MORE)
        self.tally.note("missing_end", window.base + at)
        return RepairStep(at, outcome=RepairOutcome.DONE)

    def _comma(self, window: TextWindow, at: int, comma_due: bool) -> RepairStep:
        after = skip_blank(window.view, at + 1, window.end)
        if after >= window.end and not window.is_enough(at):
            return RepairStep(at, comma_due, outcome=RepairOutcome.NEED_MORE)
        closes = after < window.end and window.view[after] == ord("]")
        if not comma_due or closes:
            self.tally.note("stray_comma", window.base + at)
        return RepairStep(after, comma_due=closes)

    def _close_bracket(self, window: TextWindow, at: int, comma_due: bool) -> RepairStep:
        ends = list_ends(window, at)
        if ends is None:
            return RepairStep(at, comma_due, outcome=RepairOutcome.NEED_MORE)
        if ends:
            return RepairStep(at + 1, outcome=RepairOutcome.DONE)
        self.tally.note("stray_bracket", window.base + at)
        return RepairStep(at + 1)

    def _close_brace(self, window: TextWindow, at: int, comma_due: bool) -> RepairStep:
        after = skip_blank(window.view, at + 1, window.end)
        if after >= window.end:
            if not window.is_enough(at):
                return RepairStep(at, comma_due, outcome=RepairOutcome.NEED_MORE)
            if window.last:
                self.tally.note("missing_end", window.base + at)
                return RepairStep(at, outcome=RepairOutcome.DONE)
        self.tally.note("stray_bracket", window.base + at)
        return RepairStep(at + 1)

    def _quote(self, window: TextWindow, at: int, comma_due: bool) -> RepairStep:
        """A text as an element, or a key: then the list's closing bracket is missing, or an event closed too early."""
        key = STRING.match(window.view, at, window.end)
        colon = skip_blank(window.view, key.end(), window.end) if key else window.end
        if colon >= window.end and not window.is_enough(at):
            return RepairStep(at, comma_due, outcome=RepairOutcome.NEED_MORE)
        if key is None or colon >= window.end or window.view[colon] != ord(":"):
            return self._element(window, at, comma_due)
        if EVENT_START.search(window.view, colon, window.end):
            return self._start_search(at, "garbage", window)
        if not window.is_enough(at):
            return RepairStep(at, comma_due, outcome=RepairOutcome.NEED_MORE)
        self.tally.note("missing_end", window.base + at)
        return RepairStep(at, outcome=RepairOutcome.DONE)

    def _element(self, window: TextWindow, at: int, comma_due: bool) -> RepairStep:
        try:
            stop = self._read(window, at, lambda end: value_end(window.view, at, end))
        except Incomplete:
            if not window.is_enough(at):
                return RepairStep(at, comma_due, outcome=RepairOutcome.NEED_MORE)
        except Malformed:
            pass
        else:
            event = EVENT_START.search(window.view, at, min(stop + _OVERLAP, window.end))
            if event is None or event.start() >= stop:
                self.tally.note("not_an_object", window.base + at, events=1, size=stop - at)
                return RepairStep(stop)
        return self._start_search(at, "garbage", window)

    def _event(self, window: TextWindow, at: int) -> RepairStep:
        cut = False
        try:
            event, stop = self._read(window, at, lambda end: read_event(window.view, at, end, window.base))
            return RepairStep(stop, event=event)
        except Incomplete:
            if not window.is_enough(at):
                return RepairStep(at, False, outcome=RepairOutcome.NEED_MORE)
            cut = True
        except Malformed:
            pass
        return self._damaged(window, at, cut)

    def _read(self, window: TextWindow, at: int, read: Callable[[int], Read]) -> Read:
        """Call ``read`` with the end of what it may look at. Raises Incomplete, or Malformed.

        That end is the next event start: an element that reaches over it has lost a bracket. Rarely it holds an object
        that looks like an event; it is read on as long as the patience lasts.
        """
        for near in _NEAR:
            reach = min(at + near, window.end)
            following = EVENT_START.search(window.view, at + 1, reach)
            try:
                return read(following.start() if following else reach)
            except Incomplete:
                if following:
                    return self._read_over(window, at, reach, read)
                if reach == window.end:
                    break
        raise Incomplete

    def _read_over(self, window: TextWindow, at: int, near: int, read: Callable[[int], Read]) -> Read:
        """Read on behind what looks like an event. Raises as :meth:`_read`."""
        for reach in (near, window.end):
            self._patience -= reach - at
            if self._patience < 0:
                break
            try:
                return read(reach)
            except Incomplete:
                if reach == window.end:
                    raise
        raise Malformed(at)

    def _damaged(self, window: TextWindow, at: int, cut: bool) -> RepairStep:
        """An event that is no JSON: it reaches to the next event, or to the end of the list."""
        view, end = window.view, window.end
        following = EVENT_START.search(view, at + 1, end)
        stop = following.start() if following else end
        if following is None and not window.is_enough(at):
            return RepairStep(at, False, outcome=RepairOutcome.NEED_MORE)
        # Where an event follows, the list has not ended.
        closing = None if following else _ARRAY_END.search(view, at, end)
        if closing is not None:
            stop = closing.start(1)
        elif following is None and not window.last:
            return self._start_search(at, "oversized_event", window, events=1)
        elif following is None and cut:
            self.tally.note("truncated", window.base + at, events=1, size=end - at)
            return RepairStep(end, outcome=RepairOutcome.DONE)
        mended = mend(bytes(view[at:stop]), window.base + at, must_close=following is None)
        if mended is None:
            self.tally.note("lost_event", window.base + at, events=1, size=stop - at)
            return RepairStep(stop, comma_due=following is None)
        for code in mended.codes:
            self.tally.note(code, window.base + at)
        if mended.stop is not None:
            return RepairStep(at + mended.stop, event=mended.event)
        return RepairStep(stop, comma_due=following is None, event=mended.event)

    def _start_search(self, at: int, code: str, window: TextWindow, events: int = 0) -> RepairStep:
        self.searching, self._search_code = True, code
        self.tally.note(code, window.base + at, events=events, size=1)
        return RepairStep(at + 1)

    def _search(self, window: TextWindow, at: int) -> RepairStep:
        """Go to the next event start, or to the end of the list."""
        view, end = window.view, window.end
        following = EVENT_START.search(view, at, end)
        closing = _ARRAY_END.search(view, at, following.start() if following else end)
        if following is None and closing is None and not window.last:
            stop = max(at, end - _OVERLAP)
            self._lose(stop - at)
            return RepairStep(stop, outcome=RepairOutcome.NEED_MORE)
        self.searching = False
        if closing is not None:
            self._lose(closing.start(1) - at)
            return RepairStep(closing.start(1))
        stop = following.start() if following else end
        self._lose(stop - at)
        return RepairStep(stop, comma_due=following is None)

    def _lose(self, size: int) -> None:
        self.tally.note(self._search_code, None, count=0, size=size)


_BETWEEN: dict[int, Callable[[Repairer, TextWindow, int, bool], RepairStep]] = {
    ord(","): Repairer._comma,
    ord("]"): Repairer._close_bracket,
    ord("}"): Repairer._close_brace,
    ord('"'): Repairer._quote,
}
