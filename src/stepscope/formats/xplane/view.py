"""One file's raw columns with what every part of the conversion asks of them: roles, texts and statistics of events."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from stepscope.formats.xplane.planes import LineRole, is_measured, line_role, plane_name
from stepscope.formats.xplane.space import Space
from stepscope.formats.xplane.stats import DERIVED, KIND
from stepscope.protobuf.columns import decode, texts
from stepscope.trace.builder import TraceBuilder
from stepscope.trace.codes import among, marked, used_codes
from stepscope.trace.tables import F64, I32, I64, NULL, U8, Bools, Kind, Rows

Scalar = TypeVar("Scalar", bound="np.generic[Any]")

_OWN_KINDS = {kind.name.lower(): int(kind) for kind in Kind}
ONLY_SHOWN, FOREIGN = 254, 255
"""What is no kind: an event that stands in a file of stepscope's only for XProf to see; one of another writer."""

HOST_ROLES = (LineRole.HOST, LineRole.HOST_OTHER, LineRole.OTHER)


class View:
    """Answers about events by row number. Nothing here changes the file's columns."""

    def __init__(self, space: Space, builder: TraceBuilder) -> None:
        self.space, self.builder = space, builder
        self.events, self.lines = space.events, space.lines
        self.planes = [plane_name(name) for name in space.planes.names]
        measured = {int(space.lines.plane[line]) for line, name in enumerate(space.lines.names) if is_measured(name)}
        self.role: U8 = np.array(
            [
                line_role(self.planes[plane], name, plane in measured)
                for plane, name in zip(space.lines.plane.tolist(), space.lines.names, strict=True)
            ],
            np.uint8,
        )
        """What each line is."""
        self._on: dict[tuple[LineRole, ...], Bools] = {}

    def on(self, *roles: LineRole) -> Bools:
        """Which events lie on lines of some roles; not to be written to."""
        if roles not in self._on:
            self._on[roles] = among(self._role, roles)
        return self._on[roles]

    @cached_property
    def _role(self) -> U8:
        return self.of_lines(self.role)

    def of_lines(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """Per event the value of its line: events stand line by line."""
        return np.repeat(values[: len(self.lines)], np.diff(self._first))

    def lines_with(self, chosen: Bools) -> Bools:
        """Which lines hold any of some events."""
        lines = np.flatnonzero(np.diff(self._first))
        holds = np.zeros(len(self.lines), np.bool_)
        if lines.size:
            holds[lines] = np.logical_or.reduceat(chosen, self._first[lines])
        return holds

    @cached_property
    def _first(self) -> Rows:
        """Where the events of each line begin, and where the last one's end."""
        line = self.events.line
        return np.searchsorted(line, np.arange(len(self.lines) + 1, dtype=line.dtype))

    # --- what stepscope's own files say beside what any file does (writing) -----------------------------------------

    @property
    def is_own(self) -> bool:
        """Whether stepscope wrote the file."""
        return self.space.name_stats.rows(KIND).size > 0

    @cached_property
    def own_kind(self) -> U8:
        """Per event the kind of slice it was when stepscope wrote it, else ``ONLY_SHOWN`` or ``FOREIGN``."""
        if not self.is_own:
            return np.broadcast_to(np.uint8(FOREIGN), len(self.events))
        return np.append(self._own_kinds, np.uint8(FOREIGN))[self.events.name]

    @cached_property
    def _own_kinds(self) -> U8:
        words, places = self.space.name_stats.texts(KIND, np.arange(len(self.space.names)))
        kinds = [ONLY_SHOWN if word == DERIVED else _OWN_KINDS.get(word, FOREIGN) for word in words]
        return np.array([*kinds, FOREIGN], np.uint8)[places]

    # --- texts ----------------------------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """The distinct names of events."""
        return self._naming[0]

    @cached_property
    def name(self) -> I32:
        """The place of each event's name in ``names``."""
        row = self.events.name
        rows, ids = self._lost
        if rows.size:
            row = row.copy()
            row[rows] = len(self.space.names) + np.unique(ids, return_inverse=True)[1]
        return self._naming[1][row]

    def called(self, says: Callable[[str], bool]) -> Bools:
        """Which events have a name of which a function says so: asked once per distinct name."""
        return among(self.name, [code for code, name in enumerate(self.names) if says(name)])

    @cached_property
    def _naming(self) -> tuple[list[str], I32]:
        """The distinct names, and which of them each row of event metadata has; ids without a row come behind."""
        space, used = self.space, used_codes(self.events.name, len(self.space.names))
        spans = space.names.spans[used]
        told = decode(space.data, texts(space.data, spans, 2))
        shown = decode(space.data, texts(space.data, spans, 4))
        codes: dict[str, int] = {}
        table = np.full(len(space.names) + np.unique(self._lost[1]).size, -1, np.int32)
        for row, id, name, display in zip(used.tolist(), space.names.id[used].tolist(), told, shown, strict=True):
            if self._own_kinds[row] == FOREIGN:
                text = _short(name or display or f"event {id}", display)
            else:
                text = display or name or ""  # where both differ the name is one that XProf knows
            table[row] = codes.setdefault(text, len(codes))
        for row, id in enumerate(np.unique(self._lost[1]).tolist(), len(space.names)):
            table[row] = codes.setdefault(f"event {id} (name lost)", len(codes))
        return list(codes), table

    @property
    def lost_names(self) -> Rows:
        """Events whose metadata is not in the file."""
        return self._lost[0]

    @cached_property
    def _lost(self) -> tuple[Rows, I64]:
        rows = np.flatnonzero(self.events.name < 0)
        return rows, self.space.ids_of(rows) if rows.size else np.empty(0, np.int64)

    # --- statistics -----------------------------------------------------------------------------------------------

    def integers(self, key: str, rows: Rows) -> I64:
        """A whole number per event, from the event or else its metadata; NULL where absent."""
        values = self.space.stats.integers(key, rows)
        if len(self.space.name_stats.rows(key)):
            own = self.space.name_stats.integers(key, np.arange(len(self.space.names)))
            shared = np.append(own, NULL)[self.events.name[rows]]
            values = np.where(values == NULL, shared, values)
        return values

    def sizes(self, key: str, rows: Rows) -> I64:
        """As ``integers``, of what is never negative."""
        values = self.integers(key, rows)
        values[values < 0] = NULL
        return values

    def floats(self, key: str, rows: Rows) -> F64:
        """A number per event, NaN where absent."""
        return self.space.stats.floats(key, rows)

    def codes(self, key: str, rows: Rows) -> I32:
        """Dictionary codes of a text per event, from the event or else its metadata; -1 where absent."""
        codes = self._coded(*self.space.stats.texts(key, rows))
        if len(self.space.name_stats.rows(key)):
            own = self._coded(*self.space.name_stats.texts(key, np.arange(len(self.space.names))))
            shared = np.append(own, np.int32(-1))[self.events.name[rows]]
            codes = np.where(codes < 0, shared, codes)
        return codes

    def _coded(self, words: list[str], places: I32) -> I32:
        table = np.array([self.builder.text(word) for word in words] + [-1], np.int32)
        return table[places]

    def having(self, key: str) -> Bools:
        """Which events have a statistic of their own."""
        return marked(self.space.stats.rows(key), len(self.events))


def _short(name: str, display: str | None) -> str:
    """The name of an event; in place of an instruction's text its name."""
    return (display or name.split(" ", 1)[0].removeprefix("%")) if name.startswith("%") else name
