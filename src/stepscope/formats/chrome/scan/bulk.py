"""The tolerant road's quick step: many sound events at once, decoded by msgspec."""

from __future__ import annotations

import msgspec

from stepscope.formats.chrome.scan.header import EVENT_START
from stepscope.formats.chrome.scan.plain import set_argument, set_field
from stepscope.formats.chrome.scan.rows import Event
from stepscope.formats.chrome.scan.window import TextWindow
from stepscope.regex import regex

BLOCK = 1 << 18
OVERLAP = 1 << 12
_COMMA = regex(rb"[\x00-\x20]*+,[\x00-\x20]*+")
_ABSENT = msgspec.Raw()


class _Event(msgspec.Struct):
    """The keys of an event that make columns, as raw JSON; msgspec skips the others."""

    ph: msgspec.Raw = _ABSENT
    cat: msgspec.Raw = _ABSENT
    name: msgspec.Raw = _ABSENT
    pid: msgspec.Raw = _ABSENT
    tid: msgspec.Raw = _ABSENT
    ts: msgspec.Raw = _ABSENT
    dur: msgspec.Raw = _ABSENT
    id: msgspec.Raw = _ABSENT
    id2: msgspec.Raw = _ABSENT
    bp: msgspec.Raw = _ABSENT
    args: dict[str, msgspec.Raw] | None = None


_KEYS = tuple(key.encode() for key in _Event.__struct_fields__ if key != "args")
_split = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode = msgspec.json.Decoder(_Event).decode


def read_block(window: TextWindow, at: int) -> tuple[list[Event], int] | None:
    """The events from the one at ``at`` to the last that begins within ``BLOCK`` bytes, and where the next begins.

    None where they cannot all be read this way; whatever msgspec refuses, the tolerant tokeniser looks at.
    """
    view = window.view
    following = EVENT_START.search(view, min(at + BLOCK, window.end), min(at + BLOCK + OVERLAP, window.end))
    if following is None:
        return None
    text = bytes(view[at : following.start()])
    last = text.rfind(b"}") + 1
    if not _COMMA.fullmatch(text, last):
        return None
    events, start = [], 0
    try:
        for raw in _split(b"[" + text[:last] + b"]"):
            start = text.index(b"{", start)
            events.append(_event(raw, window.base + at + start))
            start += len(bytes(raw))
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError, RecursionError):
        return None
    return events, following.start()


def _event(raw: msgspec.Raw, offset: int) -> Event:
    event = Event(offset)
    decoded = _decode(raw)
    for key, value in zip(_KEYS, msgspec.structs.astuple(decoded), strict=False):
        if value is not _ABSENT:
            set_field(event, key, bytes(value))
    if decoded.args:
        for name, value in decoded.args.items():
            set_argument(event, name.encode("utf-8", "replace"), bytes(value))
    return event
