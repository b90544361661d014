"""The tolerant road's tokeniser: the same reading of bytes as the kernels, in Python.

Positions are indexes into ``data``, which may be any bytes-like object; ``end`` is where it stops. All patterns are
possessive, so that no input makes them backtrack.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from stepscope.formats.chrome.dialects import KEYS, OF_EVENT
from stepscope.formats.chrome.scan import decode
from stepscope.formats.chrome.scan.rows import BARE_NOTE, RANGE_NOTE, Event
from stepscope.regex import regex

Data = Any  # bytes, bytearray, memoryview or a numpy array of bytes

BLANK = regex(rb"[\x00-\x20]*+")
STRING = regex(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_MEMBER = regex(
    rb'[\x00-\x20]*+("[^"\\]*+(?:\\.[^"\\]*+)*+")[\x00-\x20]*+:[\x00-\x20]*+'
    rb'(?:("[^"\\]*+(?:\\.[^"\\]*+)*+")|([^\x00-\x20,}\]"\[{:][^\x00-\x20,}\]]*+)|([\[{]))',
    re.DOTALL,
)
_KEY = regex(rb'[\x00-\x20]*+"[^"\\]*+(?:\\.[^"\\]*+)*+"[\x00-\x20]*+(:?)[\x00-\x20]*+', re.DOTALL)
_STRUCTURE = regex(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["{}\[\]]', re.DOTALL)
_SCALAR = regex(rb'[^\x00-\x20,}\]"\[{:][^\x00-\x20,}\]]*+')
_AFTER_STRING = frozenset(b",:}]") | frozenset(range(33))

_COMMA, _OPEN_BRACE, _CLOSE_BRACE, _QUOTE, _OPEN_BRACKET, _CLOSE_BRACKET = b',{}"[]'
_MAX_DEPTH = 1000
_PAIR = {_CLOSE_BRACE: _OPEN_BRACE, _CLOSE_BRACKET: _OPEN_BRACKET}

_ARGUMENT_NUMBER = {key.encode(): number for number, key in enumerate(KEYS) if key not in OF_EVENT}


class Incomplete(Exception):
    """The data ends before the value does."""


class Malformed(Exception):
    """No JSON stands at ``position``."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


Member = tuple[bytes, bytes]
"""A key without its quotes, and the raw value."""


def skip_blank(data: Data, at: int, end: int) -> int:
    """The next byte that is neither blank nor a control character."""
    return BLANK.match(data, at, end).end()  # type: ignore[union-attr]  # it matches the empty string too


def nested_end(data: Data, at: int, end: int) -> int:
    """Past the bracket that closes the one at ``at``. Raises Incomplete, or Malformed where brackets do not pair.

    Deeper than ``_MAX_DEPTH`` counts as malformed: no JSON parser follows there.
    """
    opened = []
    for match in _STRUCTURE.finditer(data, at, end):
        start, stop = match.span()
        byte = data[start]
        if byte == _QUOTE:
            if stop == start + 1 or stop >= end:
                raise Incomplete
            if data[stop] not in _AFTER_STRING:
                raise Malformed(start)
        elif byte in (_OPEN_BRACE, _OPEN_BRACKET):
            opened.append(byte)
            if len(opened) > _MAX_DEPTH:
                raise Malformed(start)
        else:
            if opened.pop() != _PAIR[byte]:
                raise Malformed(start)
            if not opened:
                return stop
    raise Incomplete


def value_end(data: Data, at: int, end: int) -> int:
    """Past the value at ``at``. Raises as :func:`nested_end`."""
    if at >= end:
        raise Incomplete
    if data[at] in (_OPEN_BRACE, _OPEN_BRACKET):
        return nested_end(data, at, end)
    if data[at] == _QUOTE:
        match = STRING.match(data, at, end)
        if match is None:
            raise Incomplete
        return match.end()
    match = _SCALAR.match(data, at, end)
    if match is None:
        raise Malformed(at)
    if match.end() == end:
        raise Incomplete
    return match.end()


def read_object(data: Data, at: int, end: int, args: list[Member] | None = None) -> tuple[list[Member], int]:
    """The members of the object whose ``{`` stands at ``at``, and the position past its closing brace.

    Where ``args`` is given, it receives the members of a member object of that name; the last one counts.
    Raises Incomplete or Malformed.
    """
    members: list[Member] = []
    at = skip_blank(data, at + 1, end)
    if at < end and data[at] == _CLOSE_BRACE:
        return members, at + 1
    while True:
        key, start, stop = _next_member(data, at, end, args)
        members.append((key, bytes(data[start:stop])))
        at = skip_blank(data, stop, end)
        if at >= end:
            raise Incomplete
        byte = data[at]
        at += 1
        if byte == _CLOSE_BRACE:
            return members, at
        if byte != _COMMA:
            raise Malformed(at - 1)


def _next_member(data: Data, at: int, end: int, args: list[Member] | None) -> tuple[bytes, int, int]:
    match = _MEMBER.match(data, at, end)
    if match is None:
        raise _why_no_member(data, at, end)
    key_start, key_stop = match.span(1)
    key = bytes(data[key_start + 1 : key_stop - 1])
    if b"\\" in key:
        key = decode.string(key)[0].encode()
    which = match.lastindex or 0
    start, stop = match.span(which)
    if args is not None and key == b"args":
        args.clear()
    if which != 4:
        if stop == end:
            raise Incomplete
    elif args is not None and key == b"args" and data[start] == _OPEN_BRACE:
        args[:], stop = read_object(data, start, end)
    else:
        stop = nested_end(data, start, end)
    return key, start, stop


def _why_no_member(data: Data, at: int, end: int) -> Incomplete | Malformed:
    at = skip_blank(data, at, end)
    if at < end and data[at] != _QUOTE:
        return Malformed(at)
    key = _KEY.match(data, at, end)
    if key is None or key.end() == end:
        return Incomplete()
    at = key.end()
    if not key.group(1):
        return Malformed(at)
    return Incomplete() if data[at] == _QUOTE else Malformed(at)


def read_event(data: Data, at: int, end: int, base: int) -> tuple[Event, int]:
    """The event whose ``{`` stands at ``at``, and the position past it. Raises Incomplete or Malformed."""
    args: list[Member] = []
    members, stop = read_object(data, at, end, args)
    return make_event(members, args, base + at), stop


def make_event(members: list[Member], args: list[Member], offset: int) -> Event:
    """The event that the members say; the last of duplicate keys counts."""
    event = Event(offset)
    for key, token in members:
        if _is_bare(token):
            event.notes.add(BARE_NOTE)
            token = b"null"
        set_field(event, key, token)
    for key, token in args:
        if _is_bare(token):
            event.notes.add(BARE_NOTE)
        else:
            set_argument(event, key, token)
    return event


def set_field(event: Event, key: bytes, token: bytes) -> None:
    """Take over a member of the event itself."""
    setter = _SETTERS.get(key)
    if setter is not None:
        setter(event, token)


def set_argument(event: Event, key: bytes, token: bytes) -> None:
    """Take over a member of ``args``."""
    number = _ARGUMENT_NUMBER.get(key)
    if number is not None:
        value = decode.integer(token)
        event.arguments[number] = token if value is None else value


def _is_bare(token: bytes) -> bool:
    return token[0] not in b'"{[' and not decode.is_plain_scalar(token)


def _set_phase(event: Event, token: bytes) -> None:
    text = decode.string(token[1:-1])[0] if token.startswith(b'"') else ""
    event.phase = ord(text) if len(text) == 1 and ord(text) < 0x80 else 0


def _set_binding(event: Event, token: bytes) -> None:
    event.bound = token.startswith(b'"') and decode.string(token[1:-1])[0] == "e"


def _set_name(event: Event, token: bytes) -> None:
    event.name = token[1:-1] if token.startswith(b'"') else None


def _set_category(event: Event, token: bytes) -> None:
    event.category = token[1:-1] if token.startswith(b'"') else None


def _set_pid(event: Event, token: bytes) -> None:
    value = decode.integer(token)
    event.pid = token if value is None else value


def _set_tid(event: Event, token: bytes) -> None:
    value = decode.integer(token)
    event.tid = token if value is None else value


def _set_ts(event: Event, token: bytes) -> None:
    event.ts_ns = _time(event, token)


def _set_dur(event: Event, token: bytes) -> None:
    event.dur_ns = _time(event, token)


def _set_own(number: int) -> Callable[[Event, bytes], None]:
    def setter(event: Event, token: bytes) -> None:
        value = decode.integer(token)
        event.arguments[number] = token if value is None else value

    return setter


_SETTERS: dict[bytes, Callable[[Event, bytes], None]] = {
    b"ph": _set_phase, b"name": _set_name, b"cat": _set_category, b"pid": _set_pid, b"tid": _set_tid, b"ts": _set_ts,
    b"dur": _set_dur, b"bp": _set_binding,
} | {key.encode(): _set_own(number) for number, key in enumerate(OF_EVENT)}  # fmt: skip


def _time(event: Event, token: bytes) -> int | None:
    try:
        return decode.nanoseconds(token)
    except OverflowError:
        event.notes.add(RANGE_NOTE)
        return None
