"""One ``XPlane`` in the making: its lines, and the metadata that names their events and statistics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from stepscope.formats.xplane.writing.wire import DATA, TEXT, number_field
from stepscope.trace.tables import I32, I64, U8
from stepscope.wire import field, prefix

Value = int | str | bytes
_PLANES, _LINES, _EVENT_NAMES, _STAT_NAMES, _STATS = 1, 3, 4, 5, 6
"""The field of ``XSpace`` that holds planes, and fields of ``XPlane``."""


class Plane:
    """Collects a plane; ``parts`` gives its bytes."""

    def __init__(self, name: str) -> None:
        self._head = field(2, name)
        self._stats: dict[str, int] = {}
        self._body: list[bytes | memoryview] = []
        self._line_ids: set[int] = set()

    def stat(self, name: str) -> int:
        """The id of a statistic's name, or of a text that references name."""
        return self._stats.setdefault(name, len(self._stats) + 1)

    def texts(self, codes: I64 | I32, strings: Sequence[str]) -> I64:
        """The ids of texts given by dictionary codes."""
        used, dense = np.unique(codes, return_inverse=True)
        return np.array([self.stat(strings[code]) for code in used.tolist()], np.int64)[dense]

    def describe(self, stats: Mapping[str, Value]) -> None:
        """Add statistics of the plane itself."""
        self._body += [field(_STATS, stat) for stat in self._encoded(stats)]

    def name_events(self, id: int, name: str, display: str | None, stats: Mapping[str, Value]) -> None:
        """Add the metadata behind the events of one name, and the name people see where it is another one."""
        shown = b"" if display is None else field(4, display)
        own = b"".join(field(5, stat) for stat in self._encoded(stats))
        self._body.append(field(_EVENT_NAMES, field(1, id) + field(2, field(1, id) + field(2, name) + shown + own)))

    def _encoded(self, stats: Mapping[str, Value]) -> Iterator[bytes]:
        for name, value in stats.items():
            kind = number_field(name) if isinstance(value, int) else TEXT if isinstance(value, str) else DATA
            yield field(1, self.stat(name)) + field(kind, value)

    def add_line(self, id: int, name: str, start_ns: int, events: U8) -> None:
        """Add a line of encoded events; an id that is taken gives way to the next free one."""
        while id in self._line_ids:
            id += 1
        self._line_ids.add(id)
        head = field(1, id) + field(2, name) + field(3, start_ns)
        self._body += [prefix(_LINES, len(head) + len(events)) + head, events.data]

    def parts(self) -> Iterator[bytes | memoryview]:
        """The plane as a field of ``XSpace``, in pieces."""
        body = [self._head, *self._body]
        for name, id in self._stats.items():
            body.append(field(_STAT_NAMES, field(1, id) + field(2, field(1, id) + field(2, name))))
        yield prefix(_PLANES, sum(map(len, body)))
        yield from body
