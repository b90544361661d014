"""One file's raw columns with what every part of the conversion asks of them: roles, texts and statistics of events."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from stepscope.readers.protobuf import decode, texts
from stepscope.readers.xplane.planes import LineRole, is_measured, line_role, plane_name
from stepscope.readers.xplane.space import Space
from stepscope.trace.builder import TraceBuilder
from stepscope.trace.codes import used_codes
from stepscope.trace.tables import F64, I32, I64, NULL, U8, Bools, Rows

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

    def on(self, *roles: LineRole) -> Bools:
        """Which events lie on lines of some roles."""
        chosen = np.isin(self.role, roles)
        return chosen[self.events.line] if len(chosen) else np.zeros(0, np.bool_)

    # --- texts ----------------------------------------------------------------------------------------------------

    @cached_property
    def names(self) -> list[str]:
        """The text of each row of event metadata that an event refers to (else empty), then of lost ones."""
        space, used = self.space, used_codes(self.events.name, len(self.space.names))
        spans = space.names.spans[used]
        found = [""] * len(space.names)
        told = zip(used.tolist(), decode(space.data, texts(space.data, spans, 2)), strict=True)
        shown = decode(space.data, texts(space.data, spans, 4))
        for (row, name), display in zip(told, shown, strict=True):
            found[row] = name or display or f"event {int(space.names.id[row])}"
            if found[row].startswith("%"):
                found[row] = display or found[row].split(" ", 1)[0].removeprefix("%")  # the text of an instruction
        return found + [f"event {id} (name lost)" for id in np.unique(self._lost[1]).tolist()]

    @cached_property
    def name(self) -> I32:
        """The place of each event's name in ``names``."""
        rows, ids = self._lost
        if not rows.size:
            return self.events.name
        name = self.events.name.copy()
        name[rows] = len(self.space.names) + np.unique(ids, return_inverse=True)[1]
        return name

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
        return np.where(values < 0, NULL, values)

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
        found = np.zeros(len(self.events), np.bool_)
        found[self.space.stats.rows(key)] = True
        return found
