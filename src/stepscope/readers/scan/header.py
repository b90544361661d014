"""What stands around ``traceEvents``: finding the list's first byte, and the other keys of the root object."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from stepscope.errors import InputError
from stepscope.readers.scan import decode
from stepscope.readers.scan.damage import Tally
from stepscope.readers.scan.plain import BLANK, STRING, Incomplete, Malformed, skip_blank, value_end

HEAD_LIMIT = 128 << 20
"""traceEvents must begin within so many bytes: what precedes it is held in memory."""
TAIL_LIMIT = 64 << 20

EVENT_START = re.compile(
    rb'\{[\x00-\x20]*+(?:(?:"(?:name|cat|ts|dur|pid|tid|id|s|bp|tts|tdur|sf|cname)"[\x00-\x20]*+:[\x00-\x20]*+'
    rb'(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"|[-+.\w]++)[\x00-\x20]*+,[\x00-\x20]*+){0,12}?"ph"[\x00-\x20]*+:[\x00-\x20]*+"'
    rb'|"args"[\x00-\x20]*+:[\x00-\x20]*+\{)', re.DOTALL)
"""Where an event plausibly begins: an opening brace, simple members, then ``ph``; or args first (sorted keys). It cannot
match inside a valid string, where the quotes would be escaped."""

_TRACE_EVENTS = re.compile(rb'"traceEvents"[\x00-\x20]*+:[\x00-\x20]*+\[')
_NESTED = re.compile(rb'\[?[\x00-\x20]*+\{[\x00-\x20]*+"traceEvents"[\x00-\x20]*+:[\x00-\x20]*+\[')
_KEY = re.compile(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")[\x00-\x20]*+:[\x00-\x20]*+', re.DOTALL)
_NEXT_KEY = re.compile(rb',([\x00-\x20]*+)("[^"\\\n]{1,200}+")[\x00-\x20]*+:[\x00-\x20]*+(?=[\[{"\-0-9tfn])')
_PHASE = re.compile(rb'"ph"[\x00-\x20]*+:[\x00-\x20]*+"')
_BOM = b"\xef\xbb\xbf"
_ELEMENT_END = re.compile(rb'"[\x00-\x20]*+,[\x00-\x20]*+"')


@dataclass(slots=True)
class Opening:
    """Where the first element of the list of events may stand, and the root keys before it."""

    start: int
    bare: bool = False
    """The root is the list itself."""
    header: dict[str, Any] = field(default_factory=dict)


class Root:
    """Walks the keys of the root object in a text that grows on demand."""

    def __init__(self, path: object, tally: Tally) -> None:
        self._path, self._tally = path, tally

    def open(self, data: bytearray, more: Callable[[], bool]) -> Opening:
        """Find the list of events. ``more`` appends to ``data`` and returns whether it did.

        Raises :class:`InputError` where the text is no trace.
        """
        at = len(_BOM) if data.startswith(_BOM) else 0
        at = self._blank(data, at, more)
        if data[at:at + 1] == b"[":
            return self._bare_list(data, at, more)
        if data[at:at + 1] != b"{":
            return self._salvage(data, more)
        opening = Opening(-1)
        at += 1
        while opening.start < 0:
            at = self._member(data, at, more, opening)
        nested = _NESTED.match(data, opening.start - 1)
        if nested:
            self._tally.note("nested_trace_events", opening.start)
            opening.start = nested.end()
        return opening

    def close(self, data: bytes, at: int, base: int, bare: bool) -> dict[str, Any]:
        """The root keys in the tail ``data``, from ``at`` behind the list's closing bracket; ``base`` is its offset."""
        header: dict[str, Any] = {}
        size = len(data)
        at = skip_blank(data, at, size)
        while not bare and at < size and data[at] in b',"':
            at = self._tail_member(data, skip_blank(data, at + (data[at] == ord(",")), size), base, header)
        if not bare:
            if at >= size:
                self._tally.note("truncated_tail", base + size)
                return header
            at += data[at:at + 1] == b"}"
        at = skip_blank(data, at, size)
        if at < size:
            self._tally.note("trailing_content", base + at, size=size - at)
        return header

    def _tail_member(self, data: bytes, at: int, base: int, header: dict[str, Any]) -> int:
        try:
            key = _key_at(data, at)
            stop = value_end(data, key.end(), len(data))
            self._keep(header, key.group(1), bytes(data[key.end():stop]))
            return skip_blank(data, stop, len(data))
        except Incomplete:
            self._tally.note("truncated_tail", base + at, size=len(data) - at)
            return len(data)
        except (Malformed, ValueError, RecursionError):
            return self._repair(data, at, base, header)

    def _member(self, data: bytearray, at: int, more: Callable[[], bool], opening: Opening) -> int:
        """Read one root member (and the comma behind it) before traceEvents; sets ``opening.start`` on finding it."""
        at = self._blank(data, at, more)
        if data[at:at + 1] == b"}":
            raise self._refuse("is JSON, but no trace: it has no traceEvents")
        try:
            key = self._grown(data, more, lambda: _key_at(data, at))
            if self._starts_events(data, key, more):
                opening.start = key.end() + 1
                return at
            stop = self._grown(data, more, lambda: value_end(data, key.end(), len(data)))
            self._keep(opening.header, key.group(1), bytes(data[key.end():stop]))
            at = self._blank(data, stop, more)
            if data[at:at + 1] == b",":
                return at + 1
            if data[at:at + 1] == b"}":
                return at
            raise Malformed(at)
        except (Malformed, ValueError, RecursionError):
            stop = self._repair(data, at, 0, opening.header, more)
            return stop + (data[stop:stop + 1] == b",")
        except Incomplete:
            raise self._refuse("ends before its traceEvents begin") from None

    def _starts_events(self, data: bytearray, key: re.Match[bytes], more: Callable[[], bool]) -> bool:
        while len(data) < key.end() + 4096 and more():
            pass
        value = key.end()
        if data[value:value + 1] == b"[" and key.group(1) == b'"traceEvents"':
            return True
        if key.group(1) == b'"traceEvents"' and _NESTED.match(data, value):
            return True
        first = skip_blank(data, value + 1, len(data))
        if data[value:value + 1] == b"[" and EVENT_START.match(data, first):
            self._tally.note("header_damaged", key.start())  # a list of events under a key spelled otherwise
            return True
        return False

    def _keep(self, header: dict[str, Any], key: bytes, value: bytes) -> None:
        name = decode.string(key[1:-1])[0]
        if name != "traceEvents":
            header[name] = decode.loads(value.decode(errors="replace"))

    def _repair(self, data: bytes | bytearray, at: int, base: int, header: dict[str, Any],
                more: Callable[[], bool] = lambda: False) -> int:
        """Drop or repair the damaged member at ``at``; the position of the comma before the next one, or the end."""
        key = _KEY.match(data, at)
        stop = self._next_key(data, at, more)
        if key is not None and (texts := _texts(bytes(data[key.end():stop]))) is not None:
            header[decode.string(key.group(1)[1:-1])[0]] = texts
            self._tally.note("header_repaired", base + at)
        else:
            self._tally.note("header_damaged", base + at, size=stop - at)
        return stop

    def _next_key(self, data: bytes | bytearray, at: int, more: Callable[[], bool]) -> int:
        """The comma before the next root key: on a line of its own, indented as the damaged one; else traceEvents."""
        line = max(data.rfind(b"\n", 0, at), 0)
        indent = bytes(data[line:at]) if not bytes(data[line:at]).strip() else None
        while True:
            for match in _NEXT_KEY.finditer(data, at):
                if match.group(2) == b'"traceEvents"' or (indent and match.group(1) == indent):
                    return match.start()
            if not self._more(data, more):
                break
        closing = data.rfind(b"}")
        return closing if closing > at else len(data)

    def _bare_list(self, data: bytearray, at: int, more: Callable[[], bool]) -> Opening:
        while len(data) < 1 << 16 and more():
            pass
        if not _PHASE.search(data):
            raise self._refuse("is a JSON list, but not of trace events")
        return Opening(at + 1, bare=True)

    def _salvage(self, data: bytearray, more: Callable[[], bool]) -> Opening:
        """A root whose opening brace is damaged."""
        while len(data) < 1 << 20 and more():
            pass
        match = _TRACE_EVENTS.search(data)
        if match is None:
            raise self._refuse("is no trace: it is not JSON")
        self._tally.note("header_damaged", 0, size=match.start())
        return Opening(match.end())

    def _blank(self, data: bytearray, at: int, more: Callable[[], bool]) -> int:
        while (at := BLANK.match(data, at).end()) == len(data):  # type: ignore[union-attr]
            if not self._more(data, more):
                raise self._refuse("ends before its traceEvents begin" if data.strip() else "holds nothing but blanks")
        return at

    def _grown(self, data: bytearray, more: Callable[[], bool], read: Callable[[], Any]) -> Any:
        while True:
            try:
                return read()
            except Incomplete:
                if not self._more(data, more):
                    raise

    def _more(self, data: bytes | bytearray, more: Callable[[], bool]) -> bool:
        """Twice the data, so that reading again from the start stays linear."""
        wanted = 2 * len(data)
        grew = more()
        while grew and len(data) < wanted and more():
            pass
        if grew and len(data) > HEAD_LIMIT:
            raise self._refuse(f"has no traceEvents within its first {HEAD_LIMIT >> 20} MiB")
        return grew

    def _refuse(self, why: str) -> InputError:
        return InputError(f"{self._path}: {why}")


def _key_at(data: bytes | bytearray, at: int) -> re.Match[bytes]:
    """The key and colon at ``at``, the value in sight. Raises Incomplete or Malformed."""
    key = _KEY.match(data, at)
    if key is None:
        text = STRING.match(data, at)
        if data[at:at + 1] != b'"' or (text and skip_blank(data, text.end(), len(data)) < len(data)):
            raise Malformed(at)
    if key is None or key.end() == len(data):
        raise Incomplete
    return key


def _texts(value: bytes) -> list[str] | str | None:
    """A list of texts, or a text, with unescaped quotes inside; None where it is neither."""
    value = value.rstrip(b" \t\r\n,")
    if value.startswith(b"[") and value.endswith(b"]"):
        inner = value[1:-1].strip()
        if len(inner) < 2 or not (inner.startswith(b'"') and inner.endswith(b'"')):
            return None
        return [_literal(text) for text in _ELEMENT_END.split(inner[1:-1])]
    if len(value) >= 2 and value.startswith(b'"') and value.endswith(b'"'):
        return _literal(value[1:-1])
    return None


def _literal(body: bytes) -> str:
    return decode.string(body)[0]
