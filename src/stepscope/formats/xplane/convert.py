"""From raw columns to a trace: every event ends in a table or in the completeness record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stepscope.formats.xplane.device_clock import losses as clock_losses
from stepscope.formats.xplane.deviceops import OpEvents, device_ops, device_waits
from stepscope.formats.xplane.devices import Devices, SpaceTracks
from stepscope.formats.xplane.fate import fate_of
from stepscope.formats.xplane.flows import add_flows
from stepscope.formats.xplane.handovers import Handovers
from stepscope.formats.xplane.hosts import frame_name
from stepscope.formats.xplane.info import describe_run, plane_headers, session_start, warnings
from stepscope.formats.xplane.iterators import iterators
from stepscope.formats.xplane.kinds import kinds_of
from stepscope.formats.xplane.launches import HostSlices, LaunchFinder
from stepscope.formats.xplane.memory import memory_events
from stepscope.formats.xplane.modules import Key, Modules
from stepscope.formats.xplane.own import (
    restated_launches,
    restated_marks,
    restated_part,
    restated_run,
    restated_tables,
    with_restated_columns,
)
from stepscope.formats.xplane.planes import LineRole
from stepscope.formats.xplane.space import Space
from stepscope.formats.xplane.stats import CATEGORY
from stepscope.formats.xplane.steps import step_marks
from stepscope.formats.xplane.threads import threads_of_lines
from stepscope.formats.xplane.times import times_of
from stepscope.formats.xplane.view import View
from stepscope.formats.xplane.xla import SpaceXlaOps
from stepscope.trace import tables as t
from stepscope.trace.builder import TraceBuilder
from stepscope.trace.codes import among, used_codes, without
from stepscope.trace.trace import Completeness, Info, Loss, Trace

_LAST = np.iinfo(np.int64).max


def to_trace(space: Space, losses: list[Loss]) -> Trace:
    """Make a trace; ``losses`` are those of the file's container."""
    conversion = _Conversion(space)
    info, completeness = conversion.fill_tables(losses)
    builder = conversion.builder
    # What is sorted next takes the place of the raw columns.
    del conversion, space
    return builder.build(info, completeness)


class _Conversion:
    """One file's events on their way into the tables; rows are event numbers throughout."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.builder = TraceBuilder()
        self.view = View(space, self.builder)
        self.handovers = Handovers(self.view)
        self.times = times_of(self.view, self.handovers, session_start(space))
        self.modules = Modules(space)
        self.ops = SpaceXlaOps(self.view, self.times, self.modules)
        self.fate = fate_of(self.view, self.times, self.ops.on_processor)
        self.devices = Devices(self.view, self.ops)
        self.kinds = kinds_of(self.view, self.times, self.ops)
        self.placed = SpaceTracks(
            self.view, self.ops, self.devices, self.fate.held, threads_of_lines(self.view, self.times)
        )
        rows = np.flatnonzero(self.fate.slices)
        self.rows = rows
        self.slice_id = np.full(len(self.view.events), -1, np.int32)
        self.slice_id[rows] = np.arange(rows.size, dtype=np.int32)
        self.headers = plane_headers(space)
        self.own = restated_run(self.headers)
        self.programs: list[Key] = []
        self.part = restated_part(self.headers)
        timed = self.fate.slices if rows.size else self.fate.held
        self.origin = int(self.times.start.min(where=timed, initial=_LAST)) if timed.any() else 0

    def fill_tables(self, losses: list[Loss]) -> tuple[Info, Completeness]:
        """Give the builder every table."""
        view, fate = self.view, self.fate
        seen = self._device_ops()
        self._xla_ops()
        self._programs()
        self.builder.hlo(self.modules.protos(self.programs))
        self.builder.table(iterators(view, fate.slices, self.slice_id))
        self._memory(np.flatnonzero(fate.memory))
        self._counters(np.flatnonzero(fate.counters))
        self._instants(np.flatnonzero(fate.instants))
        if self.own is None:
            self.builder.table(step_marks(view, self.times, fate.slices, self.slice_id))
        else:
            self.builder.table(restated_marks(view, fate.slices, self.slice_id))
            for table in restated_tables(view, fate.slices, self.slice_id):
                self.builder.table(table)
        add_flows(view, self.handovers, (self.times.start, self.origin), self.placed.track, self.slice_id)
        session = self.times.session_ns
        info = replace(
            describe_run(self.space, self.headers, view.names),
            origin_epoch_ns=None if session is None else session + self.origin,
            devices=self.devices.described(seen, self.headers),
        )
        if self.own is not None:
            info = self.own.restored(info, self.origin)
        elif self.part is not None:
            info = self.part.run.restored(info, 0)
        tables = ("slices", "memory", "counters", "instants", "metadata")
        counts = {name: int(np.count_nonzero(getattr(fate, name))) for name in tables}
        self._slices()
        cuts = [] if self.part is None else self.part.told()
        completeness = Completeness(
            len(view.events) + self.space.cut_events,
            {name: count for name, count in counts.items() if count},
            (*losses, *self.space.losses, *fate.losses, *self._clocks(), *warnings(self.space), *cuts),
        )
        return info, completeness

    def _clocks(self) -> list[Loss]:
        return clock_losses(self.view, self.times.aligned)

    def _slices(self) -> None:
        self.builder.slices(
            self.rows,
            self.origin,
            track=self.placed.track,
            start_ns=self.times.start,
            dur_ns=self.times.dur,
            name=self._names(self.rows),
            kind=self.kinds,
            offset=self.view.events.offset,
            **self._rare_columns(),
        )

    def _rare_columns(self) -> dict[str, t.I32 | t.I64]:
        """What few files say of slices; a column that is left out is absent."""
        columns: dict[str, t.I32 | t.I64] = {}
        for name, key in (("correlation", "correlation_id"), ("external_id", "external_id")):
            if self.space.stats.rows(key).size:
                columns[name] = self.space.stats.integers(key, self.rows)
        if self.space.name_stats.rows(CATEGORY).size:
            columns["category"] = self.view.codes(CATEGORY, self.rows)
        return columns

    def _names(self, rows: t.Rows) -> t.I32:
        names, text, name = self.view.names, self.builder.text, self.view.name[rows]
        table = np.full(len(names), -1, np.int32)
        used = used_codes(name, len(names))
        table[used] = [text(frame_name(told) if (told := names[code]).startswith("$") else told) for code in used]
        return table[name]

    def _device_ops(self) -> list[int]:
        """The device ops, their launches and the waits of devices; returns the devices that did anything."""
        kinds, placed = self.kinds, self.placed
        ops, waits = self._on_devices(t.DEVICE_BUSY_KINDS), self._on_devices((t.Kind.DEVICE_WAIT,))
        on_host = self.fate.slices & self.view.on(LineRole.HOST)
        slices = HostSlices(on_host, kinds)
        launches = LaunchFinder(self.view, self.times, slices, self.ops, self.handovers, self.devices)
        calls = launches.of(ops, placed.device(ops))
        if self.own is not None:
            restated_launches(self.view, without(np.flatnonzero(on_host), ops), ops, calls.call, calls.basis)
        known = calls.call >= 0
        call = np.where(known, self.slice_id[calls.call], np.int32(-1)).astype(np.int32)
        self.builder.table(t.Launches(call[known], self.slice_id[ops[known]], calls.basis[known]))
        op_events = OpEvents(ops, kinds[ops], self.slice_id[ops], call)
        op_table = device_ops(self.view, op_events, placed, self.ops.columns)
        wait_table = device_waits(waits, placed, self.slice_id)
        if self.own is not None:
            op_table = with_restated_columns(self.view, op_table, ops)
            wait_table = with_restated_columns(self.view, wait_table, waits)
        self.builder.table(op_table)
        self.builder.table(wait_table)
        return [int(number) for number in np.unique(placed.device(ops))]

    def _on_devices(self, kinds: Sequence[t.Kind]) -> t.Rows:
        rows = np.flatnonzero(self.fate.slices & among(self.kinds, kinds))
        return rows[self.placed.device(rows) >= 0]

    def _xla_ops(self) -> None:
        view, columns = self.view, self.ops.columns
        kept = self.fate.slices[columns.rows]
        rows = columns.rows[kept]
        self.builder.table(
            t.XlaOps(
                slice=self.slice_id[rows],
                module=columns.module[kept],
                program=columns.program[kept],
                run=columns.run[kept],
                op=columns.op[kept],
                category=columns.category[kept],
                scope=columns.scope[kept],
                flops=view.sizes("flops", rows),
                bytes_accessed=view.sizes("bytes_accessed", rows),
                source=columns.source[kept],
                replica_groups=columns.replica_groups[kept],
            )
        )

    def _programs(self) -> None:
        if self.own is not None:
            self.programs = [(module, program) for program, module, _ in self.own.programs]
            self.own.restore_programs(self.builder)
            return
        text = self.builder.text
        self.programs = self.modules.keys
        parameters = [(key, self.modules.module(key).parameters) for key in self.programs]
        self.builder.table(
            t.Programs(
                program=np.array([t.NULL if program is None else program for (_, program), _ in parameters], np.int64),
                module=np.array([text(module) for (module, _), _ in parameters], np.int32),
                parameters=np.array(
                    [text(None if shapes is None else ", ".join(shapes)) for _, shapes in parameters], np.int32
                ),
            )
        )

    def _memory(self, rows: t.Rows) -> None:
        time = self.times.start[rows] - self.origin
        self.builder.table(memory_events(self.view, rows, time, self.placed.track[rows]))

    def _counters(self, rows: t.Rows) -> None:
        self.builder.table(
            t.Counters(
                time_ns=self.times.start[rows] - self.origin,
                track=self.placed.track[rows],
                name=self._names(rows),
                value=self.view.floats("counter_value", rows),
                offset=self.view.events.offset[rows],
            )
        )

    def _instants(self, rows: t.Rows) -> None:
        self.builder.table(
            t.Instants(
                time_ns=self.times.start[rows] - self.origin,
                track=self.placed.track[rows],
                name=self._names(rows),
                category=np.full(rows.size, -1, np.int32),
                offset=self.view.events.offset[rows],
            )
        )
