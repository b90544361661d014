"""Reading one damaged event forgivingly: unescaped quotes, lost quotes and commas, arguments that make no sense."""

from __future__ import annotations

from dataclasses import dataclass, field

from stepscope.formats.chrome.scan.header import EVENT_START
from stepscope.formats.chrome.scan.plain import (
    STRING,
    Incomplete,
    Malformed,
    Member,
    make_event,
    skip_blank,
    value_end,
)
from stepscope.formats.chrome.scan.rows import Event
from stepscope.regex import regex

_KEY = regex(rb'"([^"\\\n]{0,200}+)"[\x00-\x20]*+:[\x00-\x20]*+')
_KEY_WITHOUT_QUOTE = regex(rb'"?([A-Za-z_][\w .%()/-]{0,60}+)"?[\x00-\x20]*+:[\x00-\x20]*+')
_NEXT_KEY = regex(rb',[\x00-\x20]*+(?="[^"\\\n]{1,200}+"[\x00-\x20]*+:)|\}')
_TEXT_END = regex(rb'"(?=[\x00-\x20]*+(?:,[\x00-\x20]*+"[^"\\\n]{1,200}+"[\x00-\x20]*+:|\}[\x00-\x20]*+(?:[,}]|\Z)))')
_COMMA, _OPEN_BRACE, _CLOSE_BRACE, _QUOTE = b',{}"'
_SIZE_LIMIT = 1 << 20
_MAX_UNREADABLE = 16
"""An event with so many values that make no sense is lost; together with the size limit this bounds the work."""


@dataclass(slots=True)
class Mended:
    """The event, the codes of its damage, and where its closing brace ends it, if one was found."""

    event: Event
    codes: list[str]
    stop: int | None


def mend(data: bytes, offset: int, must_close: bool) -> Mended | None:
    """Read the event that begins ``data``; None where what matters of it (when, where, what) is lost.

    ``must_close``: the data ends with the file, so an event without its closing brace was cut off.
    """
    walk = _Walk(data)
    if len(data) > _SIZE_LIMIT or not walk.run():
        return None
    event = make_event(walk.members, walk.args, offset)
    if (must_close and walk.stop is None) or not _is_whole(event, {key for key, _ in walk.members}):
        return None
    return Mended(event, sorted(walk.codes), walk.stop)


def mend_arguments(data: bytes) -> list[Member]:
    """What can be read of the args of the damaged event that begins ``data``."""
    following = EVENT_START.search(data, 1)
    walk = _Walk(data[: min(following.start() if following else len(data), _SIZE_LIMIT)])
    walk.run()
    return walk.args


def _is_whole(event: Event, keys: set[bytes]) -> bool:
    phase = chr(event.phase)
    if phase == "M":
        return event.name is not None
    if event.phase == 0 or event.ts_ns is None or not keys >= {b"name", b"pid", b"tid"}:
        return False
    return phase != "X" or event.dur_ns is not None


@dataclass(slots=True)
class _Walk:
    """One pass over a damaged event."""

    data: bytes
    members: list[Member] = field(default_factory=list)
    args: list[Member] = field(default_factory=list)
    codes: set[str] = field(default_factory=set)
    stop: int | None = None
    unreadable: int = 0

    def run(self) -> bool:
        """Collect the members that can be read; False where there are too few."""
        at, depth, commas_due = 1, 1, 0
        while (at := skip_blank(self.data, at, len(self.data))) < len(self.data):
            if self.unreadable > _MAX_UNREADABLE:
                return False
            byte = self.data[at]
            if byte == _CLOSE_BRACE:
                at, depth, commas_due = at + 1, depth - 1, 1
                if depth == 0:
                    self.stop = at
                    return True
            elif byte == _COMMA:
                if commas_due < 1:
                    self.codes.add("member_comma")
                at, commas_due = at + 1, commas_due - 1
            else:
                if commas_due > 0:
                    self.codes.add("member_comma")
                at, opened = self._member(at, depth)
                depth, commas_due = (2, 0) if opened else (depth, 1)
        return True

    def _member(self, at: int, depth: int) -> tuple[int, bool]:
        """Read a member: where to go on, and whether it opened args."""
        key = _KEY.match(self.data, at)
        if key is None:
            key = _KEY_WITHOUT_QUOTE.match(self.data, at)
            if key is None:
                return self._skip(at), False
            self.codes.add("missing_key_quote")
        name, value = key.group(1), key.end()
        if depth == 1 and name == b"args" and self.data[value : value + 1] == b"{":
            return value + 1, True
        stop = self._value_end(value)
        if stop is None:
            return self._skip(value), False
        (self.args if depth == 2 else self.members).append((name, self.data[value:stop]))
        return stop, False

    def _value_end(self, at: int) -> int | None:
        """Past the value at ``at``; None where it makes no sense or touches the end."""
        data = self.data
        try:
            stop = value_end(data, at, len(data))
        except (Incomplete, Malformed):
            stop = None
        if stop is not None and self._may_end(stop):
            return stop
        if data[at : at + 1] != b'"':
            return None
        quote = _TEXT_END.search(data, at + 1)
        if quote is None:
            return None
        if STRING.fullmatch(data, at, quote.end()) is None:
            self.codes.add("unescaped_quote")
        return quote.end()

    def _may_end(self, at: int) -> bool:
        at = skip_blank(self.data, at, len(self.data))
        return at < len(self.data) and self.data[at] in (_COMMA, _CLOSE_BRACE)

    def _skip(self, at: int) -> int:
        """Leave out what cannot be read: to the comma before the next key, or to a closing brace."""
        self.codes.add("broken_event")
        self.unreadable += 1
        following = _NEXT_KEY.search(self.data, at)
        return following.start() if following else len(self.data)
