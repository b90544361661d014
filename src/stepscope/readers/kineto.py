"""PyTorch's Kineto profiles (Chrome-trace JSON, plain or gzip), every schema generation from 2021 to 2026.

Supported: NVIDIA, AMD, Intel and MTIA device categories, host ops, annotations, Python frames, runtime and driver
calls, launch and forward-backward flows, memory instants, counters, device waits, profiler overhead, graphs.
Categories not listed in ``kineto_schema`` are kept as slices of kind ``other`` and named in a notice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from stepscope.errors import InputError
from stepscope.names.calls import CallRole, classify_call
from stepscope.readers import kineto_schema as schema
from stepscope.readers.arguments import ArgumentColumns
from stepscope.readers.events import ArgumentKeys, RawEvents
from stepscope.readers.kineto_kinds import kinds_of
from stepscope.readers.scan import read_events
from stepscope.readers.sorting import Sorting
from stepscope.readers.source import Source
from stepscope.trace import tables as t
from stepscope.trace.builder import TraceBuilder
from stepscope.trace.codes import used_codes
from stepscope.trace.trace import Completeness, Device, Info, Loss, Trace


def to_trace(events: RawEvents) -> Trace:
    """Make a trace of the raw events; every event ends in a table or in the completeness record."""
    return _Conversion(events).trace()


class _Conversion:
    """One file's events on their way into the tables (row numbers are event numbers throughout)."""

    def __init__(self, events: RawEvents) -> None:
        self.events = events
        self.builder = TraceBuilder(events.strings)
        self.columns = ArgumentColumns(events, self.builder)
        self.sorting = Sorting(events)
        self.kinds = kinds_of(events, self.columns)

    def trace(self) -> Trace:
        fate = self.sorting.fate
        rows = np.flatnonzero(fate.slices)
        timed = fate.slices | fate.memory | fate.counters | fate.instants
        stamps = self.events.ts_ns
        self.origin = int(stamps[rows].min()) if rows.size else int(stamps[timed].min()) if timed.any() else 0
        self.slice_id = np.full(len(self.events), -1, np.int32)
        self.slice_id[rows] = np.arange(rows.size, dtype=np.int32)
        info = schema.describe_run(self.events.header, self.origin, self.sorting.resolution_ns)
        self.track_of_lane = self._tracks(rows)
        self._slices(rows)
        launched = self._device_ops(rows)
        self._host_ops(rows)
        self._device_waits(rows)
        self._memory(np.flatnonzero(fate.memory))
        self._counters(np.flatnonzero(fate.counters))
        self._instants(np.flatnonzero(fate.instants))
        connected = self._flows(fate.flows, launched)
        self._unknown_categories(rows)
        counts = {
            "slices": rows.size,
            "memory": fate.memory.sum(),
            "counters": fate.counters.sum(),
            "instants": fate.instants.sum(),
            "launches": connected[0],
            "flows": connected[1],
            "metadata": fate.metadata.sum(),
        }
        completeness = Completeness(
            len(self.events) + sum(d.lost_events for d in self.events.damages),
            {name: int(n) for name, n in counts.items() if n},
            tuple(self.sorting.losses),
        )
        return self.builder.build(self._with_seen_devices(info, rows), completeness)

    def _unknown_categories(self, rows: t.Rows) -> None:
        e = self.events
        codes, first, counts = np.unique(e.category[rows], return_index=True, return_counts=True)
        for code, at, count in zip(codes.tolist(), first.tolist(), counts.tolist(), strict=True):
            name = e.strings[code] if code >= 0 else "none"
            if name.lower() not in schema.CATEGORIES:
                self.sorting.losses.append(
                    Loss(
                        "category_unknown",
                        count,
                        f"events of unknown category {name!r}, kept as other",
                        int(e.offset[rows[at]]),
                    )
                )

    # --- tables ---------------------------------------------------------------------------------------------------

    def _tracks(self, rows: t.Rows) -> t.I32:
        """One track per (pid, tid) that holds anything timed; returns lane -> track."""
        lanes = self.events.lanes
        held = np.zeros((len(lanes), len(t.Kind)), np.int64)
        np.add.at(held, (self.events.lane[rows], self.kinds[rows]), 1)
        labels = self._labels()
        track_of = np.empty(len(lanes), np.int32)
        on_device = rows[np.isin(self.kinds[rows], schema.DEVICE_KINDS)]
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

    def _labels(self) -> dict[tuple[int | str | None, int | str | None], str]:
        """Thread names; where the profile names only the process, that."""
        e = self.events
        argument = e.argument("name")
        found: dict[tuple[int | str | None, int | str | None], str] = {}
        wanted = self.sorting.named("thread_name") & (e.phase == ord("M"))
        for row, number, raw in zip(
            argument.rows.tolist(), argument.ints.tolist(), argument.texts.tolist(), strict=True
        ):
            if wanted[row]:
                text = str(number) if raw < 0 else e.raws[raw].strip('"')
                found[e.lanes[int(e.lane[row])]] = text.strip()
        return found

    def _slices(self, rows: t.Rows) -> None:
        e = self.events
        self.builder.slices(
            track=self.track_of_lane[e.lane[rows]],
            start_ns=e.ts_ns[rows] - self.origin,
            dur_ns=e.dur_ns[rows],
            name=e.name[rows],
            kind=self.kinds[rows],
            category=e.category[rows],
            correlation=self.columns.at("correlation", rows),
            external_id=self.columns.external_ids(rows),
            offset=e.offset[rows],
        )

    def _host_ops(self, rows: t.Rows) -> None:
        ops = rows[np.isin(self.kinds[rows], (t.Kind.HOST_OP, t.Kind.ANNOTATION, t.Kind.STEP))]
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

    def _device_ops(self, rows: t.Rows) -> t.I64:
        """The device ops and their launches; returns the correlation ids they share."""
        ops = rows[np.isin(self.kinds[rows], t.DEVICE_BUSY_KINDS)]
        call, basis = self._launching_calls(rows, ops)
        launched = call >= 0
        self.builder.table(
            t.Launches(call=self.slice_id[call[launched]], op=self.slice_id[ops[launched]], basis=basis[launched])
        )
        direction, source, target = self._copies(ops)
        size = self.columns.at("bytes", ops)
        size = np.where(size == t.NULL, self.columns.at("size", ops), size)
        self.builder.table(
            t.DeviceOps(
                slice=self.slice_id[ops],
                device=self._device_numbers(ops),
                stream=self._stream_numbers(ops),
                launch=np.where(launched, self.slice_id[call], -1).astype(np.int32),
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
        return np.unique(self.columns.at("correlation", ops[launched]))

    def _launching_calls(self, rows: t.Rows, ops: t.Rows) -> tuple[t.I64, t.U8]:
        """The event of the runtime call behind each device op (-1 where none is recorded), and how it was found."""
        e = self.events
        calls = rows[np.isin(self.kinds[rows], (t.Kind.RUNTIME_CALL, t.Kind.SYNC, t.Kind.ALLOCATION, t.Kind.COMPILE))]
        ids = self.columns.at("correlation", calls)
        calls, ids = calls[ids != t.NULL], ids[ids != t.NULL]
        # Where two calls share an id (a driver call inside a runtime call) the outer, earlier one is the launch.
        order = np.lexsort((-e.dur_ns[calls], e.ts_ns[calls], ids))
        ids, first = np.unique(ids[order], return_index=True)
        calls = calls[order][first]
        wanted = self.columns.at("correlation", ops)
        call = np.full(ops.size, -1, np.int64)
        if ids.size:
            at = np.minimum(np.searchsorted(ids, wanted), ids.size - 1)
            call = np.where(ids[at] == wanted, calls[at], -1)
        is_graph = np.array([classify_call(name).role is CallRole.GRAPH_LAUNCH for name in e.strings] + [False])
        basis = np.where(is_graph[e.name[call]], t.LaunchBasis.GRAPH, t.LaunchBasis.CORRELATION)
        return call, basis.astype(np.uint8)

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
        return columns[0], columns[1], columns[2]

    def _device_waits(self, rows: t.Rows) -> None:
        waits = rows[self.kinds[rows] == t.Kind.DEVICE_WAIT]
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
                allocator=np.full(rows.size, -1, np.int32),
            )
        )

    def _counters(self, rows: t.Rows) -> None:
        e = self.events
        self.builder.table(
            t.Counters(
                time_ns=e.ts_ns[rows] - self.origin,
                track=self.track_of_lane[e.lane[rows]],
                name=e.name[rows],
                value=np.full(rows.size, np.nan),
                offset=e.offset[rows],
            )
        )

    def _instants(self, rows: t.Rows) -> None:
        e = self.events
        self.builder.table(
            t.Instants(
                time_ns=e.ts_ns[rows] - self.origin,
                track=self.track_of_lane[e.lane[rows]],
                name=e.name[rows],
                category=e.category[rows],
                offset=e.offset[rows],
            )
        )

    def _flows(self, is_flow: t.Bools, launched: t.I64) -> tuple[int, int]:
        """Forward-backward arrows become flows; launch arrows repeat what correlation already says."""
        e = self.events
        rows = np.flatnonzero(is_flow)
        ids = self.columns.at(ArgumentKeys.FLOW_ID, rows)
        repeats = self._in_categories(rows, schema.LAUNCH_FLOWS) & np.isin(ids, launched)
        backward = self._in_categories(rows, schema.FORWARD_BACKWARD)
        paired = self._forward_backward(rows[backward], ids[backward])
        open_ended = np.zeros(len(e), np.bool_)
        open_ended[rows] = ~repeats
        open_ended[paired] = False
        self.sorting.lose(open_ended, "flow_open", "flow arrows that end in nothing this profile holds", lost=False)
        return int(repeats.sum()), paired.size

    def _in_categories(self, rows: t.Rows, categories: tuple[str, ...]) -> t.Bools:
        codes = [code for code, text in enumerate(self.events.strings) if text.lower() in categories]
        return np.isin(self.events.category[rows], codes)

    def _forward_backward(self, rows: t.Rows, ids: t.I64) -> t.Rows:
        """Pair starts and ends by id; returns the events paired."""
        e = self.events
        timed = (e.ts_ns[rows] != t.NULL) & (ids != t.NULL)
        starts, ends = timed & (e.phase[rows] == ord("s")), timed & (e.phase[rows] == ord("f"))
        known, first = np.unique(ids[starts], return_index=True)
        at = np.searchsorted(known, ids[ends])
        paired = at < known.size
        paired[paired] = known[at[paired]] == ids[ends][paired]
        source, target = rows[starts][first[at[paired]]], rows[ends][paired]
        self.builder.flow_points(
            t.FlowKind.FORWARD_BACKWARD,
            (self.track_of_lane[e.lane[source]], e.ts_ns[source] - self.origin),
            (self.track_of_lane[e.lane[target]], e.ts_ns[target] - self.origin),
        )
        return np.union1d(source, target)

    def _with_seen_devices(self, info: Info, rows: t.Rows) -> Info:
        """Only devices that did something, plus those the profile describes and nothing else contradicts."""
        ops = rows[np.isin(self.kinds[rows], t.DEVICE_BUSY_KINDS)]
        seen = set(np.unique(self._device_numbers(ops)).tolist()) if ops.size else set()
        described = {device.id: device for device in info.devices}
        return replace(info, devices=tuple(described.get(i) or Device(i) for i in sorted(seen)))

    # --- device and stream numbers --------------------------------------------------------------------------------

    def _device_numbers(self, rows: t.Rows) -> t.I32:
        """The device of device events: the argument, else the process id of its row, else the only one."""
        of_lane = np.array([pid if isinstance(pid, int) and pid >= 0 else 0 for pid, _ in self.events.lanes] + [0])
        given = self.columns.at("device", rows)
        return np.where(given == t.NULL, of_lane[self.events.lane[rows]], given).astype(np.int32)

    def _stream_numbers(self, rows: t.Rows) -> t.I64:
        of_lane = np.array([_stream_of(tid) for _, tid in self.events.lanes] + [t.NULL], np.int64)
        given = self.columns.at("stream", rows)
        return np.where(given == t.NULL, of_lane[self.events.lane[rows]], given)


def _text(value: int | str | None) -> str | None:
    return None if value is None else str(value)


def _stream_of(tid: int | str | None) -> int:
    """The stream that a row's thread id names (``7`` or ``stream 7``), NULL where it names none."""
    if isinstance(tid, str) and tid.startswith("stream ") and tid.split()[1].isdigit():
        return int(tid.split()[1])
    return tid if isinstance(tid, int) else t.NULL


def recognise(head: bytes) -> bool:
    """Whether a file begins like Chrome-trace JSON: an object or a list, after blanks or a byte-order mark."""
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")


def read(source: Source, progress: Callable[[int, int], None] | None = None) -> Trace:
    """Read a Kineto profile.

    Raises InputError where the content is no trace JSON at all, is somebody else's trace, or holds no usable event.
    """
    events = read_events(source, progress)
    used = used_codes(events.category, len(events.strings))
    if len(events) and not any(events.strings[code].lower() in schema.CATEGORIES for code in used.tolist()):
        raise InputError(
            f"{source.path} is a trace, but not one of PyTorch's profiler: none of its events has a category stepscope "
            "knows. Other formats are not read yet."
        )
    trace = to_trace(events)
    if len(trace.slices) == 0:
        lost = [f"{loss.count} {loss.text}" for loss in trace.completeness.losses if loss.lost_events]
        raise InputError(f"{source.path} holds no usable event" + (f": {'; '.join(lost)}." if lost else "."))
    return trace
