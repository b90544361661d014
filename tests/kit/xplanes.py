"""XPlane files from plain objects: what the tests of the reader are made of.

Field numbers are those of tsl/profiler/protobuf/xplane.proto, and fields stand in their order, as every protocol-buffer
library writes them: a file cut off in the middle has lost the names of its last plane.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.kit.wire import message


@dataclass(frozen=True)
class Unsigned:
    """A number written as ``uint64_value``; plain integers are ``int64_value``."""

    value: int


@dataclass(frozen=True)
class Inline:
    """A text written into the event; plain texts are references."""

    text: str


Stats = Mapping[str, "int | float | str | bytes | Unsigned | Inline"]


@dataclass(frozen=True)
class Ev:
    """An event; times in picoseconds from the line's."""

    name: str
    start: int = 0
    dur: int = 0
    stats: Stats = field(default_factory=dict)
    occurrences: int | None = None


@dataclass(frozen=True)
class Line:
    """A line of events."""

    name: str
    events: tuple[Ev, ...] = ()
    id: int = 0
    time_ns: int = 0
    shown: str = ""


@dataclass(frozen=True)
class Plane:
    """A plane; ``shared`` are the statistics of events' metadata and ``shown`` their display names, by name."""

    name: str
    lines: tuple[Line, ...] = ()
    stats: Stats = field(default_factory=dict)
    shared: Mapping[str, Stats] = field(default_factory=dict)
    shown: Mapping[str, str] = field(default_factory=dict)
    extra_names: tuple[str, ...] = ()
    """Metadata that no event has (the modules of ``/host:metadata``)."""


def line(name: str, *events: Ev, id: int = 0, time_ns: int = 0, shown: str = "") -> Line:
    """A line, events as arguments."""
    return Line(name, events, id, time_ns, shown)


def space(*planes: Plane, errors: tuple[str, ...] = (), warnings: tuple[str, ...] = (),
          hosts: tuple[str, ...] = ()) -> bytes:  # fmt: skip
    """The bytes of an XSpace."""
    texts = [(2, text) for text in errors] + [(3, text) for text in warnings] + [(4, text) for text in hosts]
    return message(*((1, _plane(plane)) for plane in planes), *texts)


def _plane(plane: Plane) -> bytes:
    keys, names = _Ids(), _Ids()
    lines = [(3, _line(part, names, keys)) for part in plane.lines]
    for name in plane.extra_names:
        names[name]
    stats = [(6, _stat(key, value, keys)) for key, value in plane.stats.items()]
    entries = [(4, message((1, id), (2, _name(name, id, plane, keys)))) for name, id in list(names.items())]
    told = [(5, message((1, id), (2, message((1, id), (2, key))))) for key, id in keys.items()]
    return message((2, plane.name), *lines, *entries, *told, *stats)


def _name(name: str, id: int, plane: Plane, keys: _Ids) -> bytes:
    shown = [(4, plane.shown[name])] if name in plane.shown else []
    stats = [(5, _stat(key, value, keys)) for key, value in plane.shared.get(name, {}).items()]
    return message((1, id), (2, name), *shown, *stats)


def _line(part: Line, names: _Ids, keys: _Ids) -> bytes:
    events = [(4, _event(event, names, keys)) for event in part.events]
    shown = [(11, part.shown)] if part.shown else []
    return message((1, part.id), (2, part.name), (3, part.time_ns), *events, *shown)


def _event(event: Ev, names: _Ids, keys: _Ids) -> bytes:
    place = (2, event.start) if event.occurrences is None else (5, event.occurrences)
    stats = [(4, _stat(key, value, keys)) for key, value in event.stats.items()]
    return message((1, names[event.name]), place, (3, event.dur), *stats)


def _stat(key: str, value: Any, keys: _Ids) -> bytes:
    fields: dict[type, tuple[int, Any]] = {
        float: (2, value),
        int: (4, value),
        bytes: (6, value),
        Unsigned: (3, getattr(value, "value", 0)),
        Inline: (5, getattr(value, "text", "")),
    }
    return message((1, keys[key]), fields.get(type(value)) or (7, keys[value]))


class _Ids(dict[str, int]):
    """Numbers for names, from 1."""

    def __missing__(self, name: str) -> int:
        self[name] = len(self) + 1
        return self[name]
