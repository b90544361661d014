"""The only way to make a ``Trace``: readers add rows in any order, ``build`` sorts, nests, checks and freezes them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from stepscope.trace import tables as t
from stepscope.trace.check import check
from stepscope.trace.codes import united
from stepscope.trace.forest import innermost_at, nest
from stepscope.trace.plausible import plausible
from stepscope.trace.trace import Completeness, Info, Trace

TableT = TypeVar("TableT", bound=t.Table)

_SLICE_TYPES = {declared.name: t.dtype_of(declared) for declared in dataclasses.fields(t.Slices)}


class TraceBuilder:
    """Collects the tables of one trace.

    Slice ids given to the builder (in ``launches``, ``flows``, ...) are positions in the columns given to
    ``slices``; ``build`` sorts the slices and renumbers every column declared to hold slice ids.
    """

    def __init__(self, strings: Sequence[str] = ()) -> None:
        self._strings = list(strings)
        self._codes: dict[str, int] = {}
        self._tracks: list[tuple[Any, ...]] = []
        self._tables: dict[str, t.Table] = {}
        self._slices: dict[str, npt.NDArray[Any]] = {}
        self._of_few: list[tuple[str, t.I32, npt.NDArray[Any]]] = []
        self._chosen: t.Rows | None = None
        self._origin_ns = 0
        self._flow_points: list[tuple[t.FlowKind, tuple[t.I32, t.I64], tuple[t.I32, t.I64]]] = []
        self._hlo: tuple[bytes, ...] = ()

    def text(self, value: str | None) -> int:
        """The dictionary code of a text, -1 for None."""
        if value is None:
            return -1
        if not self._codes:
            self._codes = {text: code for code, text in reversed(list(enumerate(self._strings)))}
        code = self._codes.setdefault(value, len(self._strings))
        if code == len(self._strings):
            self._strings.append(value)
        return code

    def track(
        self,
        kind: t.TrackKind,
        process: str | None,
        thread: str | None,
        *,
        label: str | None = None,
        device: int | None = None,
        stream: int | None = None,
    ) -> int:
        """Add a track; returns its id."""
        self._tracks.append(
            (
                kind,
                self.text(process),
                self.text(thread),
                self.text(label),
                -1 if device is None else device,
                t.NULL if stream is None else stream,
            )
        )
        return len(self._tracks) - 1

    def string(self, code: int) -> str:
        """The text behind a dictionary code."""
        return self._strings[code]

    def slices(self, chosen: t.Rows | None = None, origin_ns: int = 0, /, **columns: npt.NDArray[Any]) -> None:
        """Set the slices: every column of ``tables.Slices`` but depth and parent; nullable ones may be left out.

        Of columns that are longer than ``chosen`` these rows are the slices; they are copied when the trace is built.
        ``origin_ns`` is what starts are counted from.
        """
        self._slices, self._chosen, self._origin_ns = columns, chosen, origin_ns

    def of_few_slices(self, name: str, positions: t.I32, values: npt.NDArray[Any]) -> None:
        """Set what few slices have of a column that ``slices`` leaves out, in place of what was set before."""
        self._of_few.append((name, positions, values))

    def table(self, table: t.Table) -> None:
        """Set any other table, with slice ids as positions in the columns given to ``slices``."""
        self._tables[type(table).__name__] = table

    def hlo(self, programs: Sequence[bytes]) -> None:
        """Set what XLA says of each row of the table of programs, empty where it says nothing."""
        self._hlo = tuple(programs) if any(programs) else ()

    def flow_points(self, kind: t.FlowKind, source: tuple[t.I32, t.I64], target: tuple[t.I32, t.I64]) -> None:
        """Add flows between points ``(tracks, times)``, each bound to the innermost slice around it.

        A flow of which an end lies in no slice is left out.
        """
        self._flow_points.append((kind, source, target))

    def build(self, info: Info, completeness: Completeness) -> Trace:
        """Sort, nest, renumber, check and freeze.

        Raises TraceInvariantError where the rows contradict their declaration (a defect of the reader).
        """
        slices, new_id = self._sorted_slices(info.resolution_ns)
        made: dict[str, Any] = {"slices": slices, "tracks": self._track_table()}
        for name, kind in t.TABLES.items():
            if name not in made:
                table = self._tables.get(kind.__name__)
                made[name] = kind.empty() if table is None else _renumbered(table, new_id)
        made["device_ops"] = _by_device(made["device_ops"], slices)
        made["flows"] = self._bound_flows(made["flows"], slices)
        made["memory"] = _in_time_order(made["memory"])
        info, completeness = plausible(info, completeness, made)
        for table in made.values():
            for declared in dataclasses.fields(table):
                getattr(table, declared.name).setflags(write=False)
        strings = tuple(self._strings)
        trace = Trace(info=info, completeness=completeness, strings=strings, hlo=self._hlo, **made)
        check(trace)
        return trace

    def _bound_flows(self, flows: t.Flows, slices: t.Slices) -> t.Flows:
        columns: tuple[list[Any], ...] = ([flows.kind], [flows.source], [flows.target])
        for kind, source, target in self._flow_points:
            ends = innermost_at(slices, *source), innermost_at(slices, *target)
            bound = (ends[0] >= 0) & (ends[1] >= 0)
            columns[0].append(np.full(int(bound.sum()), kind, np.uint8))
            columns[1].append(ends[0][bound])
            columns[2].append(ends[1][bound])
        return t.Flows(*(np.concatenate(column) for column in columns))

    def _track_table(self) -> t.Tracks:
        columns = list(zip(*self._tracks, strict=True)) or [()] * len(dataclasses.fields(t.Tracks))
        return t.Tracks(
            *(
                np.array(values, t.dtype_of(declared))
                for values, declared in zip(columns, dataclasses.fields(t.Tracks), strict=True)
            )
        )

    def _order(self, chosen: t.Rows | None) -> t.Rows | None:
        """Slices by track, start, falling duration; ties keep the file's order. None where that is their order."""
        track, start, dur = (self._slices[name] for name in ("track", "start_ns", "dur_ns"))
        key = _key(_compact(track, chosen), _compact(start, chosen))
        if key is None:
            return np.lexsort((-_compact(dur, chosen), _compact(start, chosen), _compact(track, chosen)))
        is_sorted = bool((key[1:] >= key[:-1]).all())
        # Files are nearly sorted, and a stable sort of one column profits from it.
        order = np.arange(key.size) if is_sorted else np.argsort(key, kind="stable")
        key = key if is_sorted else key[order]
        tied = np.flatnonzero(key[1:] == key[:-1])
        rows = united(tied, tied + 1)
        within = order[rows]
        longest = dur[within if chosen is None or len(dur) == key.size else chosen[within]]
        order[rows] = within[np.lexsort((within, -longest, key[rows]))]
        return None if is_sorted and (order[rows] == rows).all() else order

    def _sorted_slices(self, resolution_ns: int) -> tuple[t.Slices, t.I32]:
        columns, new_id = self._gathered()
        if not new_id.size:
            return t.Slices.empty(), new_id
        if self._origin_ns:
            columns["start_ns"] = columns["start_ns"] - self._origin_ns
        tolerance = resolution_ns if resolution_ns > 1 else 1
        placed = columns["track"], columns["start_ns"], columns["dur_ns"]
        columns["parent"], columns["depth"] = nest(*placed, columns["kind"] == t.Kind.STEP, tolerance)
        return t.Slices(**{declared.name: columns[declared.name] for declared in dataclasses.fields(t.Slices)}), new_id

    def _gathered(self) -> tuple[dict[str, npt.NDArray[Any]], t.I32]:
        """The columns that were given, sorted, and the row of each slice. What was given goes on the way, so that a
        large trace is never held twice."""
        given, chosen, self._chosen = self._slices, self._chosen, None
        count = len(given.get("track", ())) if chosen is None else chosen.size
        new_id = np.arange(count, dtype=np.int32)
        columns: dict[str, npt.NDArray[Any]] = {}
        if not count:
            return columns, new_id
        order = self._order(chosen)
        if order is not None:
            new_id[order] = new_id.copy()
        of_chosen = [name for name, values in given.items() if len(values) == count]
        for name in of_chosen:
            columns[name] = _taken(name, given.pop(name), order)
        if chosen is not None and order is not None:
            chosen = chosen[order]
        del order
        for name in list(given):
            columns[name] = _taken(name, given.pop(name), chosen)
        for name, dtype in _SLICE_TYPES.items():
            if name not in (*columns, "depth", "parent"):
                columns[name] = np.full(count, t.NULL if dtype == np.int64 else -1, dtype)
        while self._of_few:
            name, positions, values = self._of_few.pop(0)
            columns[name][new_id[positions]] = values
        return columns, new_id


def _taken(name: str, values: npt.NDArray[Any], rows: t.Rows | None) -> npt.NDArray[Any]:
    """Rows of a column of the slices, of the type that it is declared with."""
    return np.ascontiguousarray(values if rows is None else values[rows], _SLICE_TYPES[name])


def _compact(column: npt.NDArray[Any], chosen: t.Rows | None) -> npt.NDArray[Any]:
    """A column of the slices alone."""
    return column if chosen is None or len(column) == chosen.size else column[chosen]


def _key(track: t.I32, start: t.I64) -> t.I64 | None:
    """One key instead of two, None where 64 bits have no room for it."""
    first = int(start.min())
    span = int(start.max()) - first + 1
    if span * (int(track.max()) + 1) >= 1 << 62:
        return None
    key = track.astype(np.int64)
    key *= span
    key += start
    key -= first
    return key


def _renumbered(table: TableT, new_id: t.I32) -> TableT:
    changed: dict[str, Any] = {}
    for declared in dataclasses.fields(table):
        if declared.metadata["table"] == "slices":
            ids = getattr(table, declared.name)
            changed[declared.name] = np.where(ids < 0, ids, new_id[ids]).astype(np.int32) if len(ids) else ids
    return dataclasses.replace(table, **changed)


def _reordered(table: TableT, order: t.Rows) -> TableT:
    return type(table)(*(getattr(table, declared.name)[order] for declared in dataclasses.fields(table)))


def _by_device(ops: t.DeviceOps, slices: t.Slices) -> t.DeviceOps:
    return _reordered(ops, np.lexsort((ops.slice, slices.start_ns[ops.slice], ops.device)))


def _in_time_order(memory: t.Memory) -> t.Memory:
    return _reordered(memory, np.argsort(memory.time_ns, kind="stable"))
