"""PyTorch's Kineto profiles (Chrome-trace JSON, plain or gzip), every schema generation from 2021 to 2026.

Supported: NVIDIA, AMD, Intel and MTIA device categories, host ops, annotations, Python frames, runtime and driver
calls, launch and forward-backward flows, memory instants, counters, device waits, profiler overhead, graphs.
Categories not listed in ``kineto_schema`` are kept as slices of kind ``other`` and named in a notice.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from stepscope.formats.chrome import kineto_schema as schema
from stepscope.formats.chrome import own
from stepscope.formats.chrome.conversion import Conversion
from stepscope.formats.chrome.events import Filled, RawEvents
from stepscope.formats.chrome.kineto_kinds import kinds_of
from stepscope.formats.chrome.launches import by_correlation, set_launches
from stepscope.formats.chrome.python_lines import frames_of, looks_of
from stepscope.formats.chrome.sorting import Fate
from stepscope.formats.chrome.xla_tables import xla_ops
from stepscope.names.versions import Range, of_kineto
from stepscope.regex import regex
from stepscope.trace import tables as t
from stepscope.trace.codes import grouped, united, used_codes
from stepscope.trace.trace import Info, Loss

_STREAM = regex(r"stream (\d{1,18})(?!\S)")
_DEVICES = 1 << 31
"""Numbers of devices are lower than this."""


def recognise(events: RawEvents) -> bool:
    """Whether any event is of a category that Kineto writes, or stepscope wrote the file."""
    if own.ROOT in events.header:
        return True
    used = used_codes(events.category, len(events.strings))
    return any(events.strings[code].lower() in schema.CATEGORIES for code in used.tolist())


def fill(events: RawEvents) -> Filled:
    """Make the tables of the raw events; every event ends in one or in the completeness record."""
    return _Conversion(events).filled()


class _Conversion(Conversion):
    """A Kineto file's events on their way into the tables."""

    def kinds_of_events(self) -> t.U8:
        return kinds_of(self.events, self.columns)

    def info(self) -> Info:
        info = schema.describe_run(self.events.header, self.origin, self.sorting.resolution_ns)
        if self._own is not None:
            kinds = self._own.device_kinds
            devices = tuple(replace(device, kind=kinds.get(str(device.id), device.kind)) for device in info.devices)
            grain = self._own.resolution_ns or info.resolution_ns
            steps = self._own.steps_from(self.origin)
            info = replace(info, framework=self._own.framework, resolution_ns=grain, devices=devices, steps=steps)
        versions = self._versions()
        info = replace(info, process_groups=(*info.process_groups, *self._described_groups(info)))
        info = replace(info, framework_oldest=versions.oldest, framework_newest=versions.newest)
        return self.with_seen_devices(info, self._device_numbers(self.rows_of(*t.DEVICE_BUSY_KINDS)))

    def _described_groups(self, info: Info) -> list[dict[str, str]]:
        """Process groups that only collectives themselves describe: which of the program's groups they are."""
        rows = self.rows_of(t.Kind.COLLECTIVE, t.Kind.KERNEL)
        codes = [self.columns.text(f"Process Group {what}", rows) for what in ("Name", "Description")]
        name, words = (column[(codes[0] >= 0) & (codes[1] >= 0)] for column in codes)
        first, _ = grouped(name, words)
        pairs = zip(name[first].tolist(), words[first].tolist(), strict=True)
        known = {str(group.get("pg_name")) for group in info.process_groups if group.get("pg_desc")}
        told = [(self.builder.string(name), self.builder.string(words)) for name, words in pairs]
        return [{"pg_name": name, "pg_desc": words} for name, words in told if name not in known]

    def _versions(self) -> Range:
        """The versions of PyTorch that write such a file; of our own files, those of the file it was made of."""
        if self._own is not None:
            return Range(self._own.framework_oldest, self._own.framework_newest)
        e = self.events
        categories = {e.strings[code] for code in used_codes(e.category, len(e.strings)).tolist()}
        return of_kineto(categories, e.header.keys())

    def tables(self) -> t.I64:
        self.builder.table(frames_of(self))  # first: most events are frames, and their numbers are free again
        launched = self._device_ops()
        self._host_ops()
        if self._own is None:
            self.builder.table(looks_of(self, schema.epoch_of(self.events.header, self.origin)))
        elif self._own.looks is not None:
            self.builder.table(own.stated_looks(self, self._own.looks))
        self._device_waits()
        self._memory(np.flatnonzero(self.fate == Fate.MEMORY))
        self._impossible_devices()
        self._unknown_categories()
        self.builder.table(own.stated_marks(self))
        if self._own is not None:
            self._own.restore_programs(self.builder)
            self.builder.table(own.stated_nodes(self))
        compiled = self.rows_with("hlo_op", "hlo_module", *(("tf_op", "hlo_category") if self._own else ()))
        self.builder.table(xla_ops(self, compiled, np.zeros(compiled.size, np.bool_)))
        return launched

    @cached_property
    def _own(self) -> own.OwnRoot | None:
        return own.root_of(self.events.header)

    def _unknown_categories(self) -> None:
        if self._own is not None:
            return  # our own files state the kind
        e, rows = self.events, self.rows
        categories = e.category[rows]
        held = used_codes(categories, len(e.strings)).tolist()
        for code in [-1, *held] if categories.min(initial=0) < 0 else held:
            name = e.strings[code] if code >= 0 else "none"
            if name.lower() not in schema.CATEGORIES:
                which = categories == code
                text = f"events of unknown category {name!r}, kept as other"
                first = int(e.offset[rows[which.argmax()]])
                self.sorting.losses.append(Loss("category_unknown", int(which.sum()), text, first))

    # --- tables ---------------------------------------------------------------------------------------------------

    def tracks(self) -> t.I32:
        """One track per (pid, tid) that holds anything timed; returns lane -> track."""
        if self._own is not None:
            return own.restored_tracks(self, self._own)
        lanes, rows = self.events.lanes, self.rows
        held = np.zeros((len(lanes), len(t.Kind)), np.int64)
        np.add.at(held, (self.events.lane[rows], self.kinds[rows]), 1)
        labels = self.named_by("thread_name")
        track_of = np.empty(len(lanes), np.int32)
        on_device = self.rows_of(*schema.DEVICE_KINDS)
        devices, streams = self._device_numbers(on_device), self._stream_numbers(on_device)
        representative = np.full(len(lanes), -1, np.int64)
        representative[self.events.lane[on_device]] = np.arange(on_device.size)
        for lane, (pid, tid) in enumerate(lanes):
            device_event = int(representative[lane])
            label = labels.get((pid, tid))
            if device_event < 0:
                kind = t.TrackKind.HOST_THREAD if self._is_host(held[lane]) else t.TrackKind.OTHER
                track_of[lane] = self.builder.track(kind, _text(pid), _text(tid), label=label)
                continue
            stream = int(streams[device_event])
            track_of[lane] = self.builder.track(
                t.TrackKind.DEVICE_STREAM,
                _text(pid),
                _text(tid),
                label=label,
                device=int(devices[device_event]),
                stream=None if stream == t.NULL else stream,
            )
        return track_of

    @staticmethod
    def _is_host(held: npt.NDArray[np.int64]) -> bool:
        return bool(held.sum() - held[t.Kind.OVERHEAD] - held[t.Kind.OTHER] > 0)

    def _host_ops(self) -> None:
        ops = self.rows_of(t.Kind.HOST_OP, t.Kind.ANNOTATION, t.Kind.STEP)
        detailed = np.zeros(len(self.events), np.bool_)
        for key in ("Sequence number", "Input Dims", "Input type", "Concrete Inputs", "Call stack"):
            detailed[self.columns.rows(key)] = True
        ops = ops[detailed[ops]]
        self.builder.table(
            t.HostOps(
                slice=self.slice_id[ops],
                sequence=self.columns.at("Sequence number", ops),
                forward_thread=self.columns.at("Fwd thread id", ops),
                input_dims=self.columns.text("Input Dims", ops),
                input_types=self.columns.text("Input type", ops),
                concrete_inputs=self.columns.text("Concrete Inputs", ops),
                call_stack=self.columns.text("Call stack", ops),
            )
        )

    def _device_ops(self) -> t.I64:
        """The device ops and their launches; returns the correlation ids they share."""
        ops = self.rows_of(*t.DEVICE_BUSY_KINDS)
        call, basis = by_correlation(self, ops)
        own.stated_launches(self, ops, call, basis)
        launch = set_launches(self, ops, call, basis)
        direction, source, target = self._copies(ops)
        size = self.columns.at("bytes", ops)
        size = np.where(size == t.NULL, self.columns.at("size", ops), size)
        self.builder.table(
            t.DeviceOps(
                slice=self.slice_id[ops],
                device=self._device_numbers(ops),
                stream=self._stream_numbers(ops),
                launch=launch,
                bytes=size,
                direction=direction,
                source_memory=source,
                target_memory=target,
                grid=self.columns.text("grid", ops),
                block=self.columns.text("block", ops),
                registers=self.columns.at("registers per thread", ops),
                shared_memory=self.columns.at("shared memory", ops),
                occupancy_pct=self.columns.floats("est. achieved occupancy %", ops),
                graph=self.columns.at("graph id", ops),
                collective=self.columns.text("Collective name", ops),
                process_group=self.columns.text("Process Group Name", ops),
                dtype=self.columns.text("dtype", ops),
                message_elements=self.columns.at("In msg nelems", ops),
                group_size=self.columns.at("Group size", ops),
            )
        )
        launched = ops[launch >= 0]
        stated = self.columns.at(own.LAUNCH, launched)
        return united(np.where(stated == t.NULL, self.columns.correlations(launched), stated))

    def _copies(self, ops: t.Rows) -> tuple[t.U8, t.U8, t.U8]:
        """Direction and memory kinds: from the name, else from an argument; unknown for anything that is no copy."""
        columns = [np.zeros(ops.size, np.uint8) for _ in range(3)]
        is_copy = self.kinds[ops] == t.Kind.COPY
        names = self.events.name[ops]
        for code in np.unique(names[is_copy]).tolist():
            name = self.events.strings[code]
            for column, value in zip(columns, (schema.copy_direction(name), *schema.copy_memory(name)), strict=True):
                column[is_copy & (names == code)] = value
        for key in ("direction", "kind"):
            raw = self.columns.text(key, ops)
            for code in np.unique(raw[is_copy & (raw >= 0) & (columns[0] == 0)]).tolist():
                columns[0][is_copy & (raw == code) & (columns[0] == 0)] = schema.copy_direction(
                    self.builder.string(code)
                )
        stated = self.columns.text(own.MEMORY, ops)
        for code in np.unique(stated[stated >= 0]).tolist():
            for column, value in zip(columns[1:], schema.copy_memory(self.builder.string(code)), strict=True):
                column[stated == code] = value
        return columns[0], columns[1], columns[2]

    def _device_waits(self) -> None:
        waits = self.rows_of(t.Kind.DEVICE_WAIT)
        self.builder.table(
            t.DeviceWaits(
                slice=self.slice_id[waits],
                device=self._device_numbers(waits),
                stream=self._stream_numbers(waits),
                wait_on_stream=self.columns.at("wait_on_stream", waits),
                wait_on_correlation=self.columns.at("wait_on_cuda_event_record_corr_id", waits),
            )
        )

    def _memory(self, rows: t.Rows) -> None:
        at = self.columns.at
        self.builder.table(
            t.Memory(
                time_ns=self.events.ts_ns[rows] - self.origin,
                track=self.track_of_lane[self.events.lane[rows]],
                device_type=at("Device Type", rows),
                device=at("Device Id", rows),
                address=at("Addr", rows),
                bytes=at("Bytes", rows),
                allocated=at("Total Allocated", rows),
                reserved=at("Total Reserved", rows),
                allocator=self.columns.text("allocator", rows),
                **t.Memory.untold(rows.size),
            )
        )

    # --- device and stream numbers --------------------------------------------------------------------------------

    def _impossible_devices(self) -> None:
        rows = self.rows_of(*schema.DEVICE_KINDS)
        given, which = self.columns.at("device", rows), np.zeros(len(self.events), np.bool_)
        which[rows] = (given >= _DEVICES) | ((given < -1) & (given != t.NULL))  # -1: none
        text = "device events whose `device` is no possible number: it counts as absent"
        self.sorting.lose(which, "device_out_of_range", text, lost=False)

    def _device_numbers(self, rows: t.Rows) -> t.I32:
        """The device of device events: the argument, else the process id of its row, else the only one."""
        pids = [pid if isinstance(pid, int) and 0 <= pid < _DEVICES else 0 for pid, _ in self.events.lanes]
        of_lane, given = np.array([*pids, 0]), self.columns.at("device", rows)
        return np.where((given >= 0) & (given < _DEVICES), given, of_lane[self.events.lane[rows]]).astype(np.int32)

    def _stream_numbers(self, rows: t.Rows) -> t.I64:
        # The threads of our own files are numbered as there was room.
        lanes = self.events.lanes
        of_lane = np.array([t.NULL if self._own else _stream_of(tid) for _, tid in lanes] + [t.NULL], np.int64)
        given = self.columns.at("stream", rows)
        return np.where(given == t.NULL, of_lane[self.events.lane[rows]], given)


def _text(value: int | str | None) -> str | None:
    return None if value is None else str(value)


def _stream_of(tid: int | str | None) -> int:
    """The stream that a row's thread id names (``7`` or ``stream 7``), NULL where it names none."""
    if isinstance(tid, str):
        named = _STREAM.match(tid)
        return int(named[1]) if named else t.NULL
    return t.NULL if tid is None else tid
