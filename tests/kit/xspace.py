"""XPlane files as plain objects, read with nothing of stepscope's: what the tests of the writer look at.

Field numbers are those of tsl/profiler/protobuf/xplane.proto.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.kit.wire import fields

SIGNED, REFERENCE, TEXTS = 4, 7, (5, 6)


@dataclass
class XEvent:
    name: str
    display: str
    start_ps: int
    dur_ps: int
    stats: dict[str, Any]
    shared: dict[str, Any]
    """Statistics of the event's metadata."""


@dataclass
class XLine:
    id: int
    name: str
    time_ns: int
    events: list[XEvent]


@dataclass
class XPlane:
    name: str
    stats: dict[str, Any]
    lines: list[XLine]
    names: dict[int, tuple[str, str, dict[str, Any]]]
    """Event metadata: name, display name and statistics."""

    def line(self, name: str) -> XLine:
        return next(line for line in self.lines if line.name == name)


@dataclass
class XSpace:
    planes: list[XPlane] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    hostnames: list[str] = field(default_factory=list)

    def plane(self, name: str) -> XPlane:
        return next(plane for plane in self.planes if plane.name == name)


def read_xspace(data: bytes) -> XSpace:
    space = XSpace()
    for number, value in fields(data):
        assert isinstance(value, bytes)
        if number == 1:
            space.planes.append(_plane(value))
        else:
            {3: space.warnings, 4: space.hostnames}[number].append(value.decode())
    return space


def _plane(data: bytes) -> XPlane:
    parts: dict[int, list[Any]] = {}
    for number, value in fields(data):
        parts.setdefault(number, []).append(value)
    keys = {id: _text(message, 2) for id, message in map(_entry, parts.get(5, []))}
    assert len(keys) == len(parts.get(5, [])), "two statistics share an id"
    names = {
        id: (_text(message, 2), _text(message, 4), _stats(message, 5, keys))
        for id, message in map(_entry, parts.get(4, []))
    }
    assert len(names) == len(parts.get(4, [])), "two kinds of event share an id"
    lines = [_line(line, names, keys) for line in parts.get(3, [])]
    assert len({line.id for line in lines}) == len(lines), "two lines share an id"
    return XPlane(parts[2][0].decode(), _stats(data, 6, keys), lines, names)


def _line(data: bytes, names: dict[int, tuple[str, str, dict[str, Any]]], keys: dict[int, str]) -> XLine:
    numbers = {number: value for number, value in fields(data) if number in (1, 3)}
    events = []
    for number, message in fields(data):
        if number == 4:
            assert isinstance(message, bytes)
            own: dict[int, Any] = dict(fields(message))
            name, display, shared = names[own[1]]
            start, dur = _signed(own.get(2, 0)), _signed(own.get(3, 0))
            events.append(XEvent(name, display, start, dur, _stats(message, 4, keys), shared))
    return XLine(_signed(numbers.get(1, 0)), _text(data, 2), _signed(numbers.get(3, 0)), events)


def _entry(data: bytes) -> tuple[int, bytes]:
    parts: dict[int, Any] = dict(fields(data))
    return parts[1], parts[2]


def _text(data: bytes, wanted: int) -> str:
    return next((value.decode() for number, value in fields(data) if number == wanted), "")  # type: ignore[union-attr]


def _stats(data: bytes, wanted: int, keys: dict[int, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, message in fields(data):
        if number == wanted:
            assert isinstance(message, bytes)
            ((_, key), (kind, value)) = fields(message)
            assert keys[key] not in found, "a statistic stands twice"  # type: ignore[index]
            if kind == REFERENCE:
                value = keys[value]  # type: ignore[index]
            elif kind in TEXTS:
                value = value.decode()  # type: ignore[union-attr]
            found[keys[key]] = _signed(value) if kind == SIGNED else value  # type: ignore[index]
    return found


def _signed(value: Any) -> int:
    return int(value) - (1 << 64) if value >= 1 << 63 else int(value)
