"""What ``read_events`` must return, worked out the slow and obvious way: ``json`` and ``Decimal``."""

from __future__ import annotations

import json
import re
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np

from stepscope.formats.chrome.dialects import KEYS, OF_EVENT
from stepscope.formats.chrome.events import RawEvents
from stepscope.trace.tables import NULL

_WIDE = Context(prec=60)
_CANONICAL = re.compile(r"-?(0|[1-9][0-9]*)")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


class Number(str):
    """A JSON number as it was written."""


def load(data: bytes) -> Any:
    """The document, numbers kept as text, duplicate keys resolved by the last."""
    return json.loads(data.decode(), parse_int=Number, parse_float=Number)


def rows(data: bytes) -> list[dict[str, Any]]:
    """One dictionary per event, with every column's value."""
    document = load(data)
    events = document["traceEvents"] if isinstance(document, dict) else document
    return [_row(event) for event in events]


def header(data: bytes) -> dict[str, Any]:
    """The root keys except traceEvents."""
    document = json.loads(data)
    return {key: value for key, value in document.items() if key != "traceEvents"} if isinstance(document, dict) else {}


def _row(event: dict[str, Any]) -> dict[str, Any]:
    args = event.get("args")
    values = (
        {key: value for key, value in args.items() if key in KEYS[len(OF_EVENT) :]} if isinstance(args, dict) else {}
    )
    values |= {key: event[key] for key in OF_EVENT if key in event}
    phase = event.get("ph")
    return {
        "phase": ord(phase) if _is_text(phase) and len(phase) == 1 and ord(phase) < 128 else 0,
        "name": _clean(event["name"]) if _is_text(event.get("name")) else None,
        "category": _clean(event["cat"]) if _is_text(event.get("cat")) else None,
        "lane": (_identifier(event.get("pid")), _identifier(event.get("tid"))),
        "ts_ns": _nanoseconds(event.get("ts")),
        "dur_ns": _nanoseconds(event.get("dur")),
        "bound": event.get("bp") == "e" and not isinstance(event["bp"], Number),
        "arguments": {key: _argument(value) for key, value in values.items() if value is not None},
    }


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not isinstance(value, Number)


def _clean(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _integer(value: object) -> int | None:
    if isinstance(value, str) and _CANONICAL.fullmatch(value) and abs(int(value)) < 2**63:
        return int(value)
    return None


def _identifier(value: Any) -> int | str | None:
    if value is None:
        return None
    if (number := _integer(value)) is not None:
        return number
    if isinstance(value, Number):
        exact = float(value)
        if re.fullmatch(r"-?\d+", value):
            return int(value)
        return int(exact) if exact.is_integer() and abs(exact) < 2**53 else str(value)
    return _clean(value) if isinstance(value, str) else "<json>"


def _nanoseconds(value: Any) -> int | None:
    if not isinstance(value, str) or not _NUMBER.fullmatch(value.strip()):
        return None
    number = Decimal(value.strip())
    if not number:
        return 0
    if number.adjusted() > 30:
        return None
    if number.adjusted() < -30:
        return 0
    rounded = int((number * 1000).quantize(Decimal(1), rounding=ROUND_HALF_UP, context=_WIDE))
    return rounded if abs(rounded) < 2**63 else None


def _argument(value: Any) -> Any:
    number = _integer(value)
    return number if number is not None else _plain(value)


def _plain(value: Any) -> Any:
    """A value that does not depend on how a number was spelled."""
    if isinstance(value, Number):
        return ("number", float(value))
    if isinstance(value, str):
        return _clean(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {_clean(key): _plain(item) for key, item in value.items()}
    return value


def columns(events: RawEvents) -> list[dict[str, Any]]:
    """The rows of ``events`` in the same form."""
    arguments: list[dict[str, Any]] = [{} for _ in range(len(events))]
    for key, column in events.arguments.items():
        assert np.all(np.diff(column.rows) > 0), f"{key}: rows must rise"
        for row, number, text in zip(column.rows.tolist(), column.ints.tolist(), column.texts.tolist(), strict=True):
            assert (number == NULL) != (text < 0), f"{key}: one of the two, never both"
            arguments[row][key] = (
                number if text < 0 else _plain(json.loads(events.raws[text], parse_int=Number, parse_float=Number))
            )
    return [
        {
            "phase": int(events.phase[row]),
            "name": _text(events, events.name[row]),
            "category": _text(events, events.category[row]),
            "lane": tuple(_blur(value) for value in events.lanes[events.lane[row]]),
            "ts_ns": _time(events.ts_ns[row]),
            "dur_ns": _time(events.dur_ns[row]),
            "bound": events.bound is not None and bool(events.bound[row]),
            "arguments": arguments[row],
        }
        for row in range(len(events))
    ]


def _text(events: RawEvents, code: int) -> str | None:
    return None if code < 0 else events.strings[code]


def _time(value: int) -> int | None:
    return None if value == NULL else int(value)


def _blur(value: int | str | None) -> int | str | None:
    """Raw JSON as a pid is kept as text; how it is spelled does not matter here, nor is a whole number too large for 64
    bits another one as text."""
    if isinstance(value, str) and re.fullmatch(r"-?\d{19,40}", value):
        return int(value)
    return "<json>" if isinstance(value, str) and value.startswith(("true", "false", "[", "{")) else value


def same(first: RawEvents, second: RawEvents) -> bool:
    """Whether two readings agree in every row, offset and header key."""
    return (
        columns(first) == columns(second)
        and np.array_equal(first.offset, second.offset)
        and first.header == second.header
        and first.total_bytes == second.total_bytes
    )


def tidy(value: Any) -> Any:
    """Text without lone surrogates, which no encoding can carry."""
    if isinstance(value, str):
        return _clean(value)
    if isinstance(value, list):
        return [tidy(item) for item in value]
    if isinstance(value, dict):
        return {_clean(key): tidy(item) for key, item in value.items()}
    return value
