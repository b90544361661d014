"""Argument columns of raw events, for chosen events only: most events lack most arguments."""

from __future__ import annotations

import msgspec
import numpy as np

from stepscope.formats.chrome.events import RawEvents
from stepscope.trace import tables as t
from stepscope.trace.builder import TraceBuilder
from stepscope.trace.codes import mapped

_FEW = 16
"""Of one event in so many the arguments are looked up one by one."""


class ArgumentColumns:
    """Looks arguments up by event; ``rows`` are rising event numbers everywhere."""

    def __init__(self, events: RawEvents, builder: TraceBuilder) -> None:
        self.events = events
        self.builder = builder
        self._looked_up: tuple[t.Rows | None, t.I32] = (None, np.empty(0, np.int32))
        """Rows that were asked for, and the place of each event among them, -1 for none."""

    def rows(self, key: str) -> t.I32:
        """The events that have the argument."""
        return self.events.argument(key).rows

    def at(self, key: str, rows: t.Rows) -> t.I64:
        """An integer argument, NULL where absent or not a whole number."""
        values = np.full(rows.size, t.NULL, np.int64)
        argument = self.events.argument(key)
        if not argument.rows.size:
            return values
        at, known = self._places(rows, argument.rows)
        values[at] = argument.ints[known]
        return values

    def of_slices(self, key: str, slice_id: t.I32) -> tuple[t.I32, t.I64]:
        """The slices that have an integer argument, and its values."""
        argument = self.events.argument(key)
        slices = slice_id[argument.rows]
        told = (slices >= 0) & (argument.ints != t.NULL)
        return (slices, argument.ints) if told.all() else (slices[told], argument.ints[told])

    def correlations(self, rows: t.Rows) -> t.I64:
        """The id that a launch and its device ops share; XLA spells it its own way."""
        kineto = self.at("correlation", rows)
        if len(self.rows("correlation_id")) == 0:
            return kineto
        return np.where(kineto == t.NULL, self.at("correlation_id", rows), kineto)

    def text(self, key: str, rows: t.Rows) -> t.I32:
        """A text argument as dictionary codes, -1 where absent; numbers and lists as they were written."""
        argument = self.events.argument(key)
        codes = np.full(rows.size, -1, np.int32)
        if not argument.rows.size:
            return codes
        at, known = self._places(rows, argument.rows)
        raws, ints = argument.texts[known], argument.ints[known]
        codes[at[raws >= 0]] = mapped(raws[raws >= 0], self.events.raws, self._code, np.int32)
        if (raws >= 0).all():
            return codes
        used, dense = np.unique(ints[raws < 0], return_inverse=True)
        codes[at[raws < 0]] = np.array([self.builder.text(str(number)) for number in used.tolist()], np.int32)[dense]
        return codes

    def floats(self, key: str, rows: t.Rows) -> t.F64:
        """A number that may have a fraction, NaN where absent."""
        argument = self.events.argument(key)
        values = np.full(rows.size, np.nan)
        if not argument.rows.size:
            return values
        at, known = self._places(rows, argument.rows)
        raws = argument.texts[known]
        values[at[raws < 0]] = argument.ints[known][raws < 0]
        values[at[raws >= 0]] = mapped(raws[raws >= 0], self.events.raws, _number, np.float64)
        return values

    def _places(self, rows: t.Rows, of: t.I32) -> tuple[t.Rows | t.I32, t.Rows | slice]:
        """Where the members of one list stand in another: positions in ``rows``, positions in ``of``."""
        if rows.size * _FEW < len(self.events):
            place = np.minimum(np.searchsorted(of, rows.astype(np.int32)), of.size - 1)
            has = of[place] == rows
            return np.flatnonzero(has), place[has]
        if self._looked_up[0] is not rows:  # Mostly all slices: one argument after another is asked for.
            place = np.full(len(self.events), -1, np.int32)
            place[rows] = np.arange(rows.size, dtype=np.int32)
            self._looked_up = rows, place
        at = self._looked_up[1][of]
        known = at >= 0
        return (at, slice(None)) if known.all() else (at[known], np.flatnonzero(known))

    def _code(self, raw: str) -> int:
        return self.builder.text(_unquoted(raw))


def _unquoted(raw: str) -> str:
    if raw[0] != '"':
        return raw
    return str(msgspec.json.decode(raw)) if "\\" in raw else raw[1:-1]


def _number(raw: str) -> float:
    try:
        return float(raw)
    except ValueError:
        return float("nan")
