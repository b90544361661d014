"""What stands around ``traceEvents``: finding the list's first byte, and the other keys of the root object."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from stepscope.errors import InputError
from stepscope.formats.chrome.scan import decode
from stepscope.formats.chrome.scan.damage import Tally
from stepscope.formats.chrome.scan.plain import BLANK, STRING, Incomplete, Malformed, skip_blank, value_end
from stepscope.formats.foreign import ASK
from stepscope.regex import regex

HEAD_LIMIT = 64 << 20
"""traceEvents must begin within so many bytes: what precedes it is held in memory."""
TAIL_LIMIT = 64 << 20
_GLANCE = 4096

EVENT_START = regex(
    rb'\{[\x00-\x20]*+(?:(?:"(?:name|cat|ts|dur|pid|tid|id|s|bp|tts|tdur|sf|cname)"[\x00-\x20]*+:[\x00-\x20]*+'
    rb'(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"|[-+.\w]++)[\x00-\x20]*+,[\x00-\x20]*+){0,12}?"ph"[\x00-\x20]*+:[\x00-\x20]*+"'
    rb'|"args"[\x00-\x20]*+:[\x00-\x20]*+\{)',
    re.DOTALL,
)
"""Where an event plausibly begins: an opening brace, simple members, then ``ph``; or args first (sorted keys). It
cannot match inside a valid string, where the quotes would be escaped."""

_LIST_START = regex(rb"\[[\x00-\x20]*+(?=" + EVENT_START.pattern + rb")", re.DOTALL)
_TRACE_EVENTS = regex(rb'"traceEvents"[\x00-\x20]*+:[\x00-\x20]*+\[')
_NESTED = regex(rb'\[?[\x00-\x20]*+\{[\x00-\x20]*+"traceEvents"[\x00-\x20]*+:[\x00-\x20]*+\[')
_KEY = regex(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")[\x00-\x20]*+:[\x00-\x20]*+', re.DOTALL)
_NEXT_KEY = regex(rb',([\x00-\x20]*+)("[^"\\\n]{1,200}+")[\x00-\x20]*+:[\x00-\x20]*+(?=[\[{"\-0-9tfn])')
_PHASE = regex(rb'"ph"[\x00-\x20]*+:[\x00-\x20]*+"')
_BLANKS = bytes(range(33))
_BOM = b"\xef\xbb\xbf"
_ELEMENT_END = regex(rb'"[\x00-\x20]*+,[\x00-\x20]*+"')


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
        while len(data) < 1 << 16 and more():
            pass
        if data[at : at + 1] == b"[" and _starts_list(data, skip_blank(data, at + 1, len(data))):
            return self._bare_list(data, at)
        if data[at : at + 1] != b"{":
            return self._salvage(data, more)
        opening = Opening(-1)
        at += 1
        while opening.start < 0:
            at = self._member(data, at, more, opening)
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
            at += data[at : at + 1] == b"}"
        at = skip_blank(data, at, size)
        if at < size:
            events = sum(1 for _ in EVENT_START.finditer(data, at))
            self._tally.note("trailing_content", base + at, events=events, size=size - at)
        return header

    def _tail_member(self, data: bytes, at: int, base: int, header: dict[str, Any]) -> int:
        try:
            key = _key_at(data, at)
            stop = value_end(data, key.end(), len(data))
            self._keep(header, key.group(1), bytes(data[key.end() : stop]))
            return skip_blank(data, stop, len(data))
        except Incomplete:
            self._tally.note("truncated_tail", base + at, size=len(data) - at)
            return len(data)
        except (Malformed, ValueError, RecursionError):
            following, closing = _next_key(data, at), data.rfind(b"}")
            if following is None:
                following = closing if closing > at else len(data)
            self._repair(data, at, following, base, header)
            return following

    def _member(self, data: bytearray, at: int, more: Callable[[], bool], opening: Opening) -> int:
        """Read one root member (and the comma behind it) before the events; sets ``opening.start`` on finding them."""
        at = self._blank(data, at, more)
        if data[at : at + 1] == b"}":
            raise self._refuse(f"is JSON without traceEvents, so no trace; {ASK}")
        try:
            key = self._grown(data, more, lambda: _key_at(data, at))
            opening.start = self._events_start(data, key, more)
            if opening.start >= 0:
                return at
            stop = self._grown(data, more, lambda: value_end(data, key.end(), len(data)))
            self._keep(opening.header, key.group(1), bytes(data[key.end() : stop]))
            at = self._blank(data, stop, more)
            if data[at : at + 1] == b",":
                return at + 1
            if data[at : at + 1] == b"}":
                return at
            raise Malformed(at)
        except (Malformed, ValueError, RecursionError):
            return self._after_damage(data, at, more, opening)
        except Incomplete:
            raise self._refuse("ends before its traceEvents begin; get the whole file") from None

    def _events_start(self, data: bytearray, key: re.Match[bytes], more: Callable[[], bool]) -> int:
        """Where the first event may stand if this key's value is the list of events; -1 where it is not."""
        value = key.end()
        while len(data) < value + _GLANCE and more():
            pass
        if key.group(1) == b'"traceEvents"':
            nested = _NESTED.match(data, value)
            if nested:
                self._tally.note("nested_trace_events", value)
                return nested.end()
            if data[value : value + 1] == b"[":
                return value + 1
            event = EVENT_START.search(data, value, value + _GLANCE)
        else:
            event = EVENT_START.match(data, skip_blank(data, value + 1, len(data)))
            if data[value : value + 1] != b"[":
                event = None
        if event is None:
            return -1
        self._tally.note("header_damaged", key.start())
        return event.start()

    def _after_damage(self, data: bytearray, at: int, more: Callable[[], bool], opening: Opening) -> int:
        """Where to go on behind a root member that makes no sense: the next key, or the events themselves."""
        while True:
            stop, events = _next_key(data, at), _LIST_START.search(data, at)
            if stop is not None and (events is None or stop < events.start()):
                self._repair(data, at, stop, 0, opening.header)
                return stop + 1
            if events is not None:
                self._tally.note("header_damaged", at)
                opening.start = events.end()
                return at
            if not self._more(data, more):
                raise self._refuse(f"is damaged before its traceEvents begin, or is no trace; {ASK}")

    def _keep(self, header: dict[str, Any], key: bytes, value: bytes) -> None:
        name = decode.string(key[1:-1])[0]
        if name != "traceEvents":
            header[name] = decode.loads(value.decode(errors="replace"))

    def _repair(self, data: bytes | bytearray, at: int, stop: int, base: int, header: dict[str, Any]) -> None:
        """Drop or repair the damaged member that reaches from ``at`` to ``stop``."""
        key = _KEY.match(data, at)
        texts = _texts(bytes(data[key.end() : stop])) if key else None
        if key is None or texts is None:
            self._tally.note("header_damaged", base + at, size=stop - at)
        else:
            header[decode.string(key.group(1)[1:-1])[0]] = texts
            self._tally.note("header_repaired", base + at)

    def _bare_list(self, data: bytearray, at: int) -> Opening:
        if not _PHASE.search(data):
            raise self._refuse(f"is a JSON list, but not of trace events; {ASK}")
        return Opening(at + 1, bare=True)

    def _salvage(self, data: bytearray, more: Callable[[], bool]) -> Opening:
        """A root whose opening brace is damaged."""
        while len(data) < 1 << 20 and more():
            pass
        match = _TRACE_EVENTS.search(data)
        if match is None and re.fullmatch(rb"\s*\[\s*\]\s*", data):
            raise self._refuse("is an empty list of events; record the run again")
        if match is None:
            raise self._refuse(f"is no trace: it is not JSON, or JSON of another kind; {ASK}")
        self._tally.note("header_damaged", 0, size=match.start())
        return Opening(match.end())

    def _blank(self, data: bytearray, at: int, more: Callable[[], bool]) -> int:
        while (at := BLANK.match(data, at).end()) == len(data):  # type: ignore[union-attr]
            if not self._more(data, more):
                raise self._refuse(
                    "ends before its traceEvents begin; get the whole file"
                    if data.strip(_BLANKS)
                    else "holds nothing but blanks; record the run again"
                )
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
            raise self._refuse(f"has no traceEvents within its first {HEAD_LIMIT >> 20} MiB; {ASK}")
        return grew

    def _refuse(self, why: str) -> InputError:
        return InputError(f"{self._path}: {why}")


def _starts_list(data: bytearray, at: int) -> bool:
    """Whether ``at`` is the first event of a bare list, not a root object behind a stray bracket."""
    if EVENT_START.match(data, at):
        return True
    return data[at : at + 1] == b"{" and _TRACE_EVENTS.search(data, at) is None


def _next_key(data: bytes | bytearray, at: int) -> int | None:
    """The comma before the next root key.

    That is a key on a line of its own, indented as the one at ``at``; or behind what makes a list of texts but for
    unescaped quotes; or traceEvents.
    """
    line = max(data.rfind(b"\n", 0, at), 0)
    indent = bytes(data[line:at])
    value = _KEY.match(data, at)
    for count, match in enumerate(_NEXT_KEY.finditer(data, at)):
        if match.group(2) == b'"traceEvents"' or (indent.isspace() and match.group(1) == indent):
            return match.start()
        # A few candidates only: each is compared with all that precedes it.
        if value and count < 64 and _texts(bytes(data[value.end() : match.start()])) is not None:
            return match.start()
    return None


def _key_at(data: bytes | bytearray, at: int) -> re.Match[bytes]:
    """The key and colon at ``at``, the value in sight. Raises Incomplete or Malformed."""
    key = _KEY.match(data, at)
    if key is None:
        text = STRING.match(data, at)
        if data[at : at + 1] != b'"' or (text and skip_blank(data, text.end(), len(data)) < len(data)):
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
