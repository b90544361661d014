"""What every dialect shares on the way from raw events to the tables: one event ends in a table or is counted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import partial

import numpy as np

from stepscope.formats.chrome.arguments import ArgumentColumns
from stepscope.formats.chrome.arrows import FLOW_KINDS, arrows
from stepscope.formats.chrome.events import Filled, RawEvents
from stepscope.formats.chrome.samples import series_names
from stepscope.formats.chrome.sorting import POINTS, Fate, Sorting
from stepscope.trace import tables as t
from stepscope.trace.builder import TraceBuilder
from stepscope.trace.codes import among, united
from stepscope.trace.trace import Completeness, Device, Info, Loss

Identifier = int | str | None
Lane = tuple[Identifier, Identifier]

_ID_COLUMNS = {
    "correlation_id": "correlation",
    "correlation": "correlation",
    "external id": "external_id",
    "External id": "external_id",
}
"""Arguments of which few slices have any, and their column: of two that an event has the latter counts. XLA spells the
id that a launch and its device ops share its own way; the op that an event belongs to was written so in 2021."""


class Conversion(ABC):
    """One file's events on their way into the tables (row numbers are event numbers throughout).

    A dialect says what its events are: ``kinds``, ``tracks``, ``info``, and the tables that only it has.
    """

    def __init__(self, events: RawEvents) -> None:
        self.sorting = Sorting(events)
        self.events = self.sorting.events
        self.builder = TraceBuilder(self.events.strings)
        self.columns = ArgumentColumns(self.events, self.builder)
        self.fate = self.fate_of_events()
        self.rows = np.flatnonzero(self.fate == Fate.SLICE)
        """The events that are slices."""
        self.slice_id = np.full(len(self.events), -1, np.int32)
        self.slice_id[self.rows] = np.arange(self.rows.size, dtype=np.int32)
        self.origin = self._origin()
        self.kinds = self.kinds_of_events()
        self.track_of_lane = self.tracks()

    def filled(self) -> Filled:
        """Make all tables."""
        launched = self.tables()
        self._points()
        repeated, connected = self._flows(launched)
        info = self.info()
        self._slices()  # last: what the other tables need for a moment is free again
        of = np.bincount(self.fate, minlength=len(Fate)).tolist()
        counts = {
            "slices": of[Fate.SLICE] + of[Fate.END],
            "memory": of[Fate.MEMORY],
            "counters": of[Fate.COUNTER],
            "instants": of[Fate.INSTANT],
            "launches": repeated,
            "flows": connected,
            "metadata": of[Fate.METADATA],
        }
        completeness = Completeness(
            len(self.events) + sum(d.lost_events for d in self.events.damages),
            {name: n for name, n in counts.items() if n},
            tuple(self.sorting.losses),
        )
        return partial(self.builder.build, info, completeness)

    # --- what a dialect says --------------------------------------------------------------------------------------

    def fate_of_events(self) -> t.U8:
        """The ``Fate`` of every event."""
        return self.sorting.fate

    @abstractmethod
    def kinds_of_events(self) -> t.U8:
        """The kind of every event, were it a slice."""

    @abstractmethod
    def tracks(self) -> t.I32:
        """Make the tracks; returns lane -> track."""

    @abstractmethod
    def info(self) -> Info:
        """What the file says of the run."""

    def tables(self) -> t.I64:
        """Make the tables beside slices, points and flows; returns the correlation ids that launch arrows repeat."""
        return np.empty(0, np.int64)

    def names(self, rows: t.Rows) -> t.I32:
        """The names of slices."""
        return self.events.name[rows]

    def track_of(self, rows: t.Rows) -> t.I32:
        """The tracks of events."""
        return self.track_of_lane[self.events.lane[rows]]

    # --- helpers --------------------------------------------------------------------------------------------------

    def rows_of(self, *kinds: t.Kind) -> t.Rows:
        """The slices of some kinds."""
        return self.rows[among(self.kinds[self.rows], kinds)]

    def rows_with(self, *keys: str) -> t.Rows:
        """The slices that have any of some arguments."""
        has_any = np.zeros(len(self.events), np.bool_)
        for key in keys:
            has_any[self.columns.rows(key)] = True
        return self.rows[has_any[self.rows]]

    def named_by(self, metadata: str) -> dict[Lane, str]:
        """The names that metadata events (``thread_name``, ``process_name``) give to lanes."""
        e = self.events
        argument = e.argument("name")
        wanted = (self.sorting.named(metadata) & (self.sorting.fate == Fate.METADATA))[argument.rows]
        names: dict[Lane, str] = {}
        for row, number, raw in zip(
            argument.rows[wanted].tolist(), argument.ints[wanted].tolist(), argument.texts[wanted].tolist(), strict=True
        ):
            text = str(number) if raw < 0 else e.raws[raw].strip('"')
            names[e.lanes[int(e.lane[row])]] = text.strip()
        return names

    def with_seen_devices(self, info: Info, devices: t.I32) -> Info:
        """Only devices that did something, described as far as the profile does. Those it does not describe are of the
        model that all others are: they share a host. Where they are more than it lists at all that is said."""
        described = {device.id: device for device in info.devices}
        seen = np.unique(devices).tolist()
        model = _only_model(info.devices)
        unlisted = [i for i in seen if i not in described]
        if model is not None and unlisted and len(seen) > len(described):
            text = "devices of which the profile says nothing: taken for the same kind as the one it lists"
            self.sorting.losses.append(Loss("device_unlisted", len(unlisted), text))
        others = {i: Device(i) if model is None else replace(model, id=i) for i in seen}
        return replace(info, devices=tuple(described.get(i) or others[i] for i in seen))

    # --- tables ---------------------------------------------------------------------------------------------------

    def _origin(self) -> int:
        timed = self.fate == Fate.SLICE if self.rows.size else among(self.fate, POINTS)
        return int(self.events.ts_ns.min(where=timed, initial=np.iinfo(np.int64).max)) if timed.any() else 0

    def _slices(self) -> None:
        e, rows = self.events, self.rows
        self.builder.slices(
            rows,
            self.origin,
            track=self.track_of(rows),
            start_ns=e.ts_ns,
            dur_ns=e.dur_ns,
            name=self.names(rows),
            kind=self.kinds,
            category=e.category,
            offset=e.offset,
        )
        for key, column in _ID_COLUMNS.items():
            self.builder.of_few_slices(column, *self.columns.of_slices(key, self.slice_id))

    def _points(self) -> None:
        """Counters, a row per series, and instants."""
        e = self.events
        counters, instants = (np.flatnonzero(self.fate == fate) for fate in (Fate.COUNTER, Fate.INSTANT))
        self.builder.table(
            t.Instants(
                time_ns=e.ts_ns[instants] - self.origin,
                track=self.track_of(instants),
                name=e.name[instants],
                category=e.category[instants],
                offset=e.offset[instants],
            )
        )
        rows, names, values = series_names(e, counters, self.builder)
        self.builder.table(
            t.Counters(
                time_ns=e.ts_ns[rows] - self.origin,
                track=self.track_of(rows),
                name=names,
                value=values,
                offset=e.offset[rows],
            )
        )

    def _flows(self, launched: t.I64) -> tuple[int, int]:
        """Arrows become flows, but for those of launches, which repeat what correlation already says."""
        e = self.events
        rows = np.flatnonzero(self.fate == Fate.FLOW)
        kinds = np.array([FLOW_KINDS.get(text.lower(), t.FlowKind.ARROW) for text in e.strings] + [t.FlowKind.ARROW])
        launches = kinds[e.category[rows]] == -1
        repeats = launches & np.isin(self.columns.at("id", rows), launched)
        source, target, at = arrows(e, rows[~launches], self.rows)
        for kind in np.unique(kinds[e.category[source]]).tolist():
            of_kind = kinds[e.category[source]] == kind
            begin, end = source[of_kind], target[of_kind]
            self.builder.flow_points(
                t.FlowKind(kind),
                (self.track_of(begin), e.ts_ns[begin] - self.origin),
                (self.track_of(end), at[of_kind] - self.origin),
            )
        connected = united(source, target)
        open_ended = self.fate == Fate.FLOW
        open_ended[rows[repeats]] = False
        open_ended[connected] = False
        self.sorting.lose(open_ended, "flow_open", "flow arrows that end in nothing this profile holds", lost=False)
        return int(repeats.sum()), connected.size


def _only_model(listed: tuple[Device, ...]) -> Device | None:
    """What all listed devices are. ROCm numbers ops by the node's devices and lists those that the process sees: where
    these are of one model, an op's device is too, whatever its number.
    """
    models = {replace(device, id=0, memory_bytes=None) for device in listed}
    sizes = {device.memory_bytes for device in listed}
    return replace(models.pop(), memory_bytes=sizes.pop() if len(sizes) == 1 else None) if len(models) == 1 else None
