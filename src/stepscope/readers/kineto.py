"""PyTorch's Kineto profiles (Chrome-trace JSON, plain or gzip), every schema generation from 2021 to 2026.

Supported: NVIDIA, AMD, Intel and MTIA device categories, host ops, annotations, Python frames, runtime and driver
calls, launch and forward-backward flows, memory instants, counters, device waits, profiler overhead, graphs.
Categories not listed in ``kineto_schema`` are kept as slices of kind ``other`` and named in a notice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from stepscope.limits import FAR_NS
from stepscope.names.calls import CallRole, classify_call
from stepscope.names.hosts import step_marker
from stepscope.names.kernels import describe
from stepscope.readers import kineto_schema as schema
from stepscope.readers.arguments import ArgumentColumns
from stepscope.readers.events import ArgumentKeys, RawEvents
from stepscope.readers.scan import read_events
from stepscope.readers.source import Source
from stepscope.trace import tables as t
from stepscope.trace.builder import TraceBuilder
from stepscope.trace.trace import Completeness, Device, Info, Loss, Trace

Bools = npt.NDArray[np.bool_]


def to_trace(events: RawEvents) -> Trace:
    """Make a trace of the raw events; every event ends in a table or in the completeness record."""
    return _Conversion(events).trace()


@dataclass(frozen=True)
class _Fate:
    """Which events become what; the rest is counted as lost."""

    slices: Bools
    memory: Bools
    counters: Bools
    instants: Bools
    flows: Bools
    metadata: Bools


class _Conversion:
    """One file's events on their way into the tables (row numbers are event numbers throughout)."""

    def __init__(self, events: RawEvents) -> None:
        self.events = events
        self.builder = TraceBuilder(events.strings)
        self.columns = ArgumentColumns(events, self.builder)
        self.losses = [Loss(d.code, d.count, d.text, d.first_offset, d.lost_events, d.lost_bytes, damaged=True)
                       for d in events.damages]

    def trace(self) -> Trace:
        fate = self._fate()
        rows = np.flatnonzero(fate.slices)
        timed = fate.slices | fate.memory | fate.counters | fate.instants
        stamps = self.events.ts_ns
        self.origin = int(stamps[rows].min()) if rows.size else int(stamps[timed].min()) if timed.any() else 0
        self.slice_id = np.full(len(self.events), -1, np.int32)
        self.slice_id[rows] = np.arange(rows.size, dtype=np.int32)
        info = schema.describe_run(self.events.header, self.origin, self._resolution(rows))
        self.track_of_lane = self._tracks(rows)
        self._slices(rows)
        launched = self._device_ops(rows)
        self._host_ops(rows)
        self._device_waits(rows)
        self._memory(np.flatnonzero(fate.memory))
        self._points(t.Counters, np.flatnonzero(fate.counters))
        self._points(t.Instants, np.flatnonzero(fate.instants))
        connected = self._flows(fate.flows, launched)
        self._unknown_categories(rows)
        counts = {"slices": rows.size, "memory": fate.memory.sum(), "counters": fate.counters.sum(),
                  "instants": fate.instants.sum(), "launches": connected[0], "flows": connected[1],
                  "metadata": fate.metadata.sum()}
        completeness = Completeness(len(self.events) + sum(d.lost_events for d in self.events.damages),
                                    {name: int(n) for name, n in counts.items() if n}, tuple(self.losses))
        return self.builder.build(self._with_seen_devices(info, rows), completeness)

    # --- which event becomes what ---------------------------------------------------------------------------------

    def _fate(self) -> _Fate:
        e = self.events
        is_x, is_i = e.phase == ord("X"), (e.phase == ord("i")) | (e.phase == ord("I")) | (e.phase == ord("R"))
        is_c, is_meta = e.phase == ord("C"), e.phase == ord("M")
        is_flow = (e.phase == ord("s")) | (e.phase == ord("t")) | (e.phase == ord("f"))
        has_time, has_name = e.ts_ns != t.NULL, e.name >= 0
        near = has_time & self._near(is_x & has_time)
        timed = is_x | is_i | is_c
        self._lose(timed & ~has_time, "time_missing", "events without a readable start time")
        self._lose(timed & has_time & ~near, "time_out_of_range", "events with a zero or impossible start time")
        self._lose(timed & near & ~has_name, "name_missing", "events without a name")
        self._lose(is_x & near & has_name & (e.dur_ns == t.NULL), "duration_missing", "events without a readable duration")
        self._lose(is_x & near & has_name & (e.dur_ns < 0) & (e.dur_ns != t.NULL), "duration_negative",
                   "events that end before they start")
        self._lose(~(timed | is_meta | is_flow) & (e.phase != 0), "phase_unsupported",
                   "events of a kind Kineto does not write")
        self._lose(e.phase == 0, "event_empty", "events without a phase", lost=False)
        good = near & has_name
        is_memory = is_i & good & self._named("[memory]")
        return _Fate(slices=is_x & good & (e.dur_ns >= 0), memory=is_memory, counters=is_c & good,
                     instants=is_i & good & ~is_memory, flows=is_flow, metadata=is_meta)

    def _near(self, measured: Bools) -> Bools:
        stamps = self.events.ts_ns
        if not measured.any():
            return np.ones(len(stamps), np.bool_)
        median = int(np.median(stamps[measured]))
        return np.asarray((stamps > median - FAR_NS) & (stamps < median + FAR_NS))

    def _named(self, name: str) -> Bools:
        try:
            return np.asarray(self.events.name == self.events.strings.index(name))
        except ValueError:
            return np.zeros(len(self.events), np.bool_)

    def _lose(self, which: Bools, code: str, text: str, *, lost: bool = True) -> None:
        count = int(which.sum())
        if count:
            first = int(self.events.offset[int(which.argmax())])
            self.losses.append(Loss(code, count, text, first, lost_events=count if lost else 0))

    def _resolution(self, rows: npt.NDArray[np.intp]) -> int:
        e = self.events
        whole = rows.size > 0 and not (e.ts_ns[rows] % 1000).any() and not (e.dur_ns[rows] % 1000).any()
        return 1000 if whole else 1

    # --- kinds ----------------------------------------------------------------------------------------------------

    @cached_property
    def kinds(self) -> t.U8:
        """The kind of every event, were it a slice: from its category, refined by its name."""
        e = self.events
        categories = [s.lower() for s in e.strings]
        base = np.array([schema.CATEGORIES.get(c, t.Kind.OTHER) for c in categories] + [t.Kind.OTHER], np.uint8)
        kinds = base[e.category]
        for kind, refine in ((t.Kind.RUNTIME_CALL, _call_kind), (t.Kind.PYTHON_FRAME, _frame_kind),
                             (t.Kind.ANNOTATION, _annotation_kind), (t.Kind.KERNEL, _kernel_kind)):
            self._refine(kinds, kind, refine)
        self._refine_mtia(kinds, categories)
        self._refine_old_annotations(kinds, categories)
        collective = self.columns.rows("Collective name")
        kinds[collective[kinds[collective] == t.Kind.KERNEL]] = t.Kind.COLLECTIVE
        return kinds

    def _refine(self, kinds: t.U8, kind: t.Kind, refine: Callable[[str], t.Kind]) -> None:
        rows = np.flatnonzero((kinds == kind) & (self.events.name >= 0))
        names, dense = np.unique(self.events.name[rows], return_inverse=True)
        kinds[rows] = np.array([refine(self.events.strings[n]) for n in names.tolist()], np.uint8)[dense] \
            if rows.size else kinds[rows]

    def _refine_mtia(self, kinds: t.U8, categories: list[str]) -> None:
        if "mtia_ccp_events" not in categories:
            return
        rows = np.flatnonzero((self.events.category == categories.index("mtia_ccp_events")) & (self.events.name >= 0))
        for name in np.unique(self.events.name[rows]).tolist():
            of_name = rows[self.events.name[rows] == name]
            kinds[of_name] = schema.device_kind(t.Kind.KERNEL, "mtia_ccp_events", self.events.strings[name])

    def _refine_old_annotations(self, kinds: t.U8, categories: list[str]) -> None:
        """In 2021 ranges were written as operators; unlike operators they have no inputs, and torch's own have a #."""
        old = np.isin(self.events.category, [i for i, c in enumerate(categories) if c == "operator"])
        if not old.any():
            return
        has_inputs = np.zeros(len(self.events), np.bool_)
        has_inputs[self.columns.rows("Input Dims")] = True
        rows = np.flatnonzero(old & ~has_inputs & (self.events.name >= 0))
        for name in np.unique(self.events.name[rows]).tolist():
            text = self.events.strings[name]
            if "#" in text or step_marker(text) is not None or (has_inputs.any() and "::" not in text):
                kinds[rows[self.events.name[rows] == name]] = _annotation_kind(text)

    def _unknown_categories(self, rows: npt.NDArray[np.intp]) -> None:
        e = self.events
        codes, first, counts = np.unique(e.category[rows], return_index=True, return_counts=True)
        for code, at, count in zip(codes.tolist(), first.tolist(), counts.tolist(), strict=True):
            name = e.strings[code] if code >= 0 else "none"
            if name.lower() not in schema.CATEGORIES:
                self.losses.append(Loss("category_unknown", count, f"events of the unknown category {name!r} are kept as other",
                                        int(e.offset[rows[at]])))

    # --- tables ---------------------------------------------------------------------------------------------------

    def _tracks(self, rows: npt.NDArray[np.intp]) -> t.I32:
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
            track_of[lane] = self.builder.track(t.TrackKind.DEVICE_STREAM, _text(pid), _text(tid), label=label,
                                                device=int(devices[device_event]),
                                                stream=None if stream == t.NULL else stream)
        return track_of

    @staticmethod
    def _is_host(held: npt.NDArray[np.int64]) -> bool:
        return bool(held.sum() - held[t.Kind.OVERHEAD] - held[t.Kind.OTHER] > 0)

    def _labels(self) -> dict[tuple[int | str | None, int | str | None], str]:
        """Thread names; where the profile names only the process, that."""
        e = self.events
        argument = e.argument("name")
        found: dict[tuple[int | str | None, int | str | None], str] = {}
        wanted = self._named("thread_name") & (e.phase == ord("M"))
        for row, number, raw in zip(argument.rows.tolist(), argument.ints.tolist(), argument.texts.tolist(), strict=True):
            if wanted[row]:
                text = str(number) if raw < 0 else e.raws[raw].strip('"')
                found[e.lanes[int(e.lane[row])]] = text.strip()
        return found

    def _slices(self, rows: npt.NDArray[np.intp]) -> None:
        e = self.events
        self.builder.slices(
            track=self.track_of_lane[e.lane[rows]], start_ns=e.ts_ns[rows] - self.origin, dur_ns=e.dur_ns[rows],
            name=e.name[rows], kind=self.kinds[rows], category=e.category[rows],
            correlation=self.columns.at("correlation", rows), external_id=self.columns.external_ids(rows), offset=e.offset[rows])

    def _host_ops(self, rows: npt.NDArray[np.intp]) -> None:
        ops = rows[np.isin(self.kinds[rows], (t.Kind.HOST_OP, t.Kind.ANNOTATION, t.Kind.STEP))]
        detailed = np.zeros(len(self.events), np.bool_)
        for key in ("Sequence number", "Input Dims", "Input type", "Concrete Inputs", "Call stack"):
            detailed[self.columns.rows(key)] = True
        ops = ops[detailed[ops]]
        self.builder.table(t.HostOps(
            slice=self.slice_id[ops], sequence=self.columns.at("Sequence number", ops),
            forward_thread=self.columns.at("Fwd thread id", ops), input_dims=self.columns.text("Input Dims", ops),
            input_types=self.columns.text("Input type", ops), concrete_inputs=self.columns.text("Concrete Inputs", ops),
            call_stack=self.columns.text("Call stack", ops)))

    def _device_ops(self, rows: npt.NDArray[np.intp]) -> t.I64:
        """The device ops and their launches; returns the correlation ids they share."""
        ops = rows[np.isin(self.kinds[rows], t.DEVICE_BUSY_KINDS)]
        call, basis = self._launching_calls(rows, ops)
        launched = call >= 0
        self.builder.table(t.Launches(call=self.slice_id[call[launched]], op=self.slice_id[ops[launched]],
                                      basis=basis[launched]))
        direction, source, target = self._copies(ops)
        size = self.columns.at("bytes", ops)
        size = np.where(size == t.NULL, self.columns.at("size", ops), size)
        self.builder.table(t.DeviceOps(
            slice=self.slice_id[ops], device=self._device_numbers(ops), stream=self._stream_numbers(ops),
            launch=np.where(launched, self.slice_id[call], -1).astype(np.int32), bytes=size, direction=direction,
            source_memory=source, target_memory=target, grid=self.columns.text("grid", ops), block=self.columns.text("block", ops),
            registers=self.columns.at("registers per thread", ops), shared_memory=self.columns.at("shared memory", ops),
            occupancy_pct=self.columns.floats("est. achieved occupancy %", ops), graph=self.columns.at("graph id", ops),
            collective=self.columns.text("Collective name", ops), process_group=self.columns.text("Process Group Name", ops),
            dtype=self.columns.text("dtype", ops), message_elements=self.columns.at("In msg nelems", ops),
            group_size=self.columns.at("Group size", ops)))
        return np.unique(self.columns.at("correlation", ops[launched]))

    def _launching_calls(self, rows: npt.NDArray[np.intp], ops: npt.NDArray[np.intp]) -> tuple[t.I64, t.U8]:
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

    def _copies(self, ops: npt.NDArray[np.intp]) -> tuple[t.U8, t.U8, t.U8]:
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
                columns[0][is_copy & (raw == code) & (columns[0] == 0)] = schema.copy_direction(self.builder.string(code))
        return columns[0], columns[1], columns[2]

    def _device_waits(self, rows: npt.NDArray[np.intp]) -> None:
        waits = rows[self.kinds[rows] == t.Kind.DEVICE_WAIT]
        self.builder.table(t.DeviceWaits(
            slice=self.slice_id[waits], device=self._device_numbers(waits), stream=self._stream_numbers(waits),
            wait_on_stream=self.columns.at("wait_on_stream", waits),
            wait_on_correlation=self.columns.at("wait_on_cuda_event_record_corr_id", waits)))

    def _memory(self, rows: npt.NDArray[np.intp]) -> None:
        at = self.columns.at
        self.builder.table(t.Memory(
            time_ns=self.events.ts_ns[rows] - self.origin, track=self.track_of_lane[self.events.lane[rows]],
            device_type=at("Device Type", rows), device=at("Device Id", rows), address=at("Addr", rows),
            bytes=at("Bytes", rows), allocated=at("Total Allocated", rows),
            reserved=at("Total Reserved", rows)))

    def _points(self, table: type[t.Counters] | type[t.Instants], rows: npt.NDArray[np.intp]) -> None:
        e = self.events
        common = {"time_ns": e.ts_ns[rows] - self.origin, "track": self.track_of_lane[e.lane[rows]],
                  "name": e.name[rows], "offset": e.offset[rows]}
        if table is t.Counters:
            self.builder.table(t.Counters(**common))
        else:
            self.builder.table(t.Instants(**common, category=e.category[rows]))

    def _flows(self, is_flow: Bools, launched: t.I64) -> tuple[int, int]:
        """Forward-backward arrows become flows; launch arrows repeat what correlation already says."""
        e = self.events
        rows = np.flatnonzero(is_flow)
        ids = self.columns.at(ArgumentKeys.FLOW_ID, rows)
        categories = np.array([s.lower() for s in e.strings] + [""])[e.category[rows]]
        is_launch = np.isin(categories, schema.LAUNCH_FLOWS)
        repeats = is_launch & np.isin(ids, launched)
        paired = self._forward_backward(rows, ids, categories == schema.FORWARD_BACKWARD)
        open_ended = np.zeros(len(e), np.bool_)
        open_ended[rows] = ~repeats
        open_ended[paired] = False
        self._lose(open_ended, "flow_open", "flow arrows whose other end is not a device op or op of this profile", lost=False)
        return int(repeats.sum()), paired.size

    def _forward_backward(self, rows: npt.NDArray[np.intp], ids: t.I64, wanted: Bools) -> npt.NDArray[np.intp]:
        """Pair starts and ends by id; returns the events paired."""
        e = self.events
        starts = {i: r for i, r in zip(ids[wanted].tolist(), rows[wanted].tolist(), strict=True) if e.phase[r] == ord("s")}
        pairs = [(starts[i], r) for i, r in zip(ids[wanted].tolist(), rows[wanted].tolist(), strict=True)
                 if e.phase[r] == ord("f") and i in starts and e.ts_ns[r] != t.NULL and e.ts_ns[starts[i]] != t.NULL]
        source, target = np.array(pairs, np.int64).reshape(-1, 2).T
        self.builder.flow_points(t.FlowKind.FORWARD_BACKWARD,
                                 (self.track_of_lane[e.lane[source]], e.ts_ns[source] - self.origin),
                                 (self.track_of_lane[e.lane[target]], e.ts_ns[target] - self.origin))
        return np.union1d(source, target)

    def _with_seen_devices(self, info: Info, rows: npt.NDArray[np.intp]) -> Info:
        """Only devices that did something, plus those the profile describes and nothing else contradicts."""
        ops = rows[np.isin(self.kinds[rows], t.DEVICE_BUSY_KINDS)]
        seen = set(np.unique(self._device_numbers(ops)).tolist()) if ops.size else set()
        described = {device.id: device for device in info.devices}
        return replace(info, devices=tuple(described.get(i) or Device(i) for i in sorted(seen)))

    # --- device and stream numbers --------------------------------------------------------------------------------

    def _device_numbers(self, rows: npt.NDArray[np.intp]) -> t.I32:
        """The device of device events: the argument, else the process id of the row it is drawn on."""
        of_lane = np.array([pid if isinstance(pid, int) else -1 for pid, _ in self.events.lanes] + [-1], np.int64)
        given = self.columns.at("device", rows)
        return np.where(given == t.NULL, of_lane[self.events.lane[rows]], given).astype(np.int32)

    def _stream_numbers(self, rows: npt.NDArray[np.intp]) -> t.I64:
        of_lane = np.array([_stream_of(tid) for _, tid in self.events.lanes] + [t.NULL], np.int64)
        given = self.columns.at("stream", rows)
        return np.where(given == t.NULL, of_lane[self.events.lane[rows]], given)


def _call_kind(name: str) -> t.Kind:
    role = classify_call(name).role
    return {CallRole.SYNC: t.Kind.SYNC, CallRole.ALLOCATION: t.Kind.ALLOCATION, CallRole.FREE: t.Kind.ALLOCATION,
            CallRole.MODULE_LOAD: t.Kind.COMPILE}.get(role, t.Kind.RUNTIME_CALL)


def _frame_kind(name: str) -> t.Kind:
    return t.Kind.MODULE if name.startswith("nn.Module: ") else t.Kind.PYTHON_FRAME


def _annotation_kind(name: str) -> t.Kind:
    return t.Kind.STEP if step_marker(name) is not None else t.Kind.ANNOTATION


def _kernel_kind(name: str) -> t.Kind:
    return t.Kind.KERNEL if describe(name).collective is None else t.Kind.COLLECTIVE


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

    Raises InputError where the content is no trace JSON at all.
    """
    return to_trace(read_events(source, progress))
