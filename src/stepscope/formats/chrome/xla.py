"""JSON that JAX and XProf make of an XPlane: planes are processes (``/host:CPU``, ``/device:GPU:0``), lines threads.

Supported: host threads with their ranges, Python frames and steps (``step_num``), ops of XLA on the CPU (drawn on the
threads that ran them), GPU streams, the op line of TPUs. The export leaves out what the XPlane beside it has: program
ids, producers and consumers, which ranges are roots, kernel details; and it holds at most as many events as
``EVENT_CAPS`` says. Source: xla/tsl/profiler/convert/xplane_to_trace_events.cc and trace_events_to_json.cc.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property

import numpy as np

from stepscope.formats.chrome.conversion import Conversion
from stepscope.formats.chrome.events import Filled, RawEvents
from stepscope.formats.chrome.kineto_kinds import annotation_kind, kernel_kind
from stepscope.formats.chrome.kineto_schema import describe_run
from stepscope.formats.chrome.launches import by_correlation, set_launches
from stepscope.formats.chrome.sorting import Fate
from stepscope.formats.chrome.threads import host_track, labels_of, process_names, tracks_of_lanes
from stepscope.formats.chrome.xla_tables import device_ops, xla_ops
from stepscope.formats.xla_details import is_copy, is_memset
from stepscope.formats.xplane.hosts import frame_name, host_kind, is_from_python, runs_python
from stepscope.formats.xplane.planes import LineRole, is_measured, line_role, plane_name, stream_number
from stepscope.hlo.instructions import is_collective
from stepscope.hlo.waits import is_async_end, is_feed
from stepscope.names.host_callbacks import is_host_callback
from stepscope.names.xla_hosts import XlaRole, classify_xla_name, framework_of
from stepscope.record import record
from stepscope.regex import regex
from stepscope.trace import intervals as iv
from stepscope.trace import tables as t
from stepscope.trace.codes import mapped, united, used_codes, without
from stepscope.trace.trace import Device, Info, Loss

FORMAT = "XLA trace JSON"
EVENT_CAPS = (1_000_000, 5_000_000)
"""Events that the export keeps at most: before and since the end of 2025."""

_LINE_KINDS = {LineRole.STEPS: t.Kind.STEP, LineRole.MODULES: t.Kind.MODULE}
"""What lies on the lines of a device that group its ops; anything else is an annotation there."""

_PLANE = regex(r'"/(?:host|device):')
_OPCODE = regex(r"%?([a-z][a-z\-]*[a-z])")
"""What the name of an instruction begins with: its opcode, where nobody named it otherwise."""


def recognise(events: RawEvents) -> bool:
    """Whether a process is named after an XPlane's plane."""
    named = events.argument("name")
    codes = np.unique(named.texts[events.phase[named.rows] == ord("M")])
    return any(_PLANE.match(events.raws[code]) for code in codes.tolist() if code >= 0)


def fill(events: RawEvents) -> Filled:
    """Make the tables of the raw events; every event ends in one or in the completeness record."""
    return _Conversion(events).filled()


@record
class _Line:
    """What one lane is: a host thread, or (``device`` not None) a line of a device."""

    process: str | None
    name: str | None
    role: LineRole
    device: Device | None
    stream: int | None

    @property
    def measured(self) -> bool:
        """Whether its events are the ops that ran on the device, not groups of them."""
        return self.device is not None and self.role is LineRole.STREAM


def _lines(conversion: Conversion) -> list[_Line]:
    """What each lane is."""
    processes, names = process_names(conversion), labels_of(conversion)
    lanes = conversion.events.lanes
    measured = {pid for lane, (pid, _) in enumerate(lanes) if is_measured(names.get(lane, ""))}
    lines = []
    for lane, (pid, tid) in enumerate(lanes):
        process, name = processes.get(pid), names.get(lane)
        plane = plane_name(process or "")
        role = line_role(plane, name or "", pid in measured)
        on_host = plane.kind in ("host", "host_other", "other") or lane >= conversion.sorting.thread_lanes
        device = None if on_host or plane.ordinal is None else Device(plane.ordinal, kind=plane.kind)
        stream = stream_number(name or "", tid if isinstance(tid, int) else 0) if plane.kind == "gpu" else None
        lines.append(_Line(process, name, role, device, stream if role is LineRole.STREAM else None))
    return lines


class _Conversion(Conversion):
    """The events of one export on their way into the tables."""

    @cached_property
    def lines(self) -> list[_Line]:
        """What each lane is."""
        return _lines(self)

    @cached_property
    def on_host(self) -> t.Bools:
        """Which lanes are host threads."""
        return np.array([line.device is None for line in self.lines], np.bool_)

    @cached_property
    def measured(self) -> t.Bools:
        """Which lanes hold the ops that ran on a device."""
        return np.array([line.measured for line in self.lines], np.bool_)

    @cached_property
    def cpu_ops(self) -> t.Rows:
        """Slices that are ops of XLA on the CPU, drawn on host threads, on a device that they name."""
        rows = self.rows_with("hlo_op")
        ordinals = self.columns.at("device_ordinal", rows)
        return rows[self.on_host[self.events.lane[rows]] & (ordinals >= 0) & (ordinals <= np.iinfo(np.int32).max)]

    @cached_property
    def ordinals(self) -> t.I64:
        """The device of each op of XLA on the CPU."""
        return self.columns.at("device_ordinal", self.cpu_ops)

    def _runs_python(self) -> t.Bools:
        """Which lanes run Python: by their name, or because of what they hold: frames, calls from Python, steps."""
        e = self.events
        runs = np.array([runs_python(line.name or "") for line in self.lines], np.bool_)
        runs[np.unique(e.lane[mapped(e.name, e.strings, is_from_python, np.bool_)])] = True
        runs[np.unique(e.lane[self.columns.rows("step_num")])] = True
        return runs

    def fate_of_events(self) -> t.U8:
        """Host events without a duration are instants: the export gives each event at least a picosecond."""
        fate = self.sorting.fate
        point = (fate == Fate.SLICE) & (self.events.dur_ns == 0) & self.on_host[self.events.lane]
        point[self.columns.rows("hlo_op")] = False
        return np.where(point, np.uint8(Fate.INSTANT), fate)

    # --- kinds ----------------------------------------------------------------------------------------------------

    def kinds_of_events(self) -> t.U8:
        e = self.events
        of_line = np.array([_LINE_KINDS.get(line.role, t.Kind.DEVICE_ANNOTATION) for line in self.lines], np.uint8)
        kinds = of_line[e.lane]
        python = self._runs_python()
        for kind_of, lanes in ((_python_kind, python), (_pool_kind, ~python)):
            rows = np.flatnonzero((self.on_host & lanes)[e.lane])
            kinds[rows] = mapped(e.name[rows], e.strings, kind_of, np.uint8)
        kinds[self._inside_framework(kinds)] = t.Kind.HOST_OP
        steps = self.columns.rows("step_num")
        kinds[steps[self.on_host[e.lane[steps]]]] = t.Kind.STEP
        ops = united(np.flatnonzero(self.measured[e.lane]), self.cpu_ops)
        kinds[ops] = mapped(e.name[ops], e.strings, _op_kind, np.uint8)
        unplaced = without(self.columns.rows("hlo_op"), ops)
        kinds[unplaced[self.on_host[e.lane[unplaced]]]] = t.Kind.HOST_OP
        return kinds

    def _inside_framework(self, kinds: t.U8) -> t.Rows:
        """Annotations inside a compilation or execution: no user's, for passes have names of all kinds."""
        e = self.events
        end = e.ts_ns + np.maximum(e.dur_ns, 0)
        around = self.rows[mapped(e.name[self.rows], e.strings, _is_framework, np.bool_)]
        noted = self.rows[kinds[self.rows] == t.Kind.ANNOTATION]
        around, noted = (rows[np.argsort(e.lane[rows], kind="stable")] for rows in (around, noted))
        lanes = np.arange(len(e.lanes) + 1, dtype=e.lane.dtype)
        bounds = [np.searchsorted(e.lane[rows], lanes) for rows in (around, noted)]
        inside = [np.empty(0, np.intp)]
        for lane in np.unique(e.lane[around]).tolist():
            covering = around[bounds[0][lane] : bounds[0][lane + 1]]
            mine = noted[bounds[1][lane] : bounds[1][lane + 1]]
            low, high = iv.union(e.ts_ns[covering], end[covering])
            at = np.searchsorted(low, e.ts_ns[mine], "right") - 1
            inside.append(mine[(at >= 0) & (end[mine] <= high[at])] if low.size else mine[:0])
        return np.concatenate(inside)

    def names(self, rows: t.Rows) -> t.I32:
        names = self.events.name[rows].copy()
        frames = np.flatnonzero(self.kinds[rows] == t.Kind.PYTHON_FRAME)
        strings, text = self.events.strings, self.builder.text
        names[frames] = mapped(names[frames], strings, lambda name: text(frame_name(name)), np.int32)
        return names

    # --- tracks ---------------------------------------------------------------------------------------------------

    def tracks(self) -> t.I32:
        processes, labels = process_names(self), labels_of(self)

        def make(lane: int, held: bool) -> int:
            line = self.lines[lane]
            if line.device is None:
                return host_track(self, lane, held, processes, labels)
            return self._device_track(lane, line.measured, line.device.id, line.stream)

        return tracks_of_lanes(self, make)

    def _device_track(self, lane: int, measured: bool, device: int, stream: int | None) -> int:
        line, (_, tid) = self.lines[lane], self.events.lanes[lane]
        return self.builder.track(
            t.TrackKind.DEVICE_STREAM if measured else t.TrackKind.DEVICE_LINE,
            line.process,
            None if tid is None else str(tid),
            label=line.name,
            device=device,
            stream=stream,
        )

    def track_of(self, rows: t.Rows) -> t.I32:
        tracks = self.track_of_lane[self.events.lane[rows]]
        on_cpu = np.isin(rows, self.cpu_ops)
        tracks[on_cpu] = self.cpu_places[0][np.searchsorted(self.cpu_ops, rows[on_cpu])]
        return tracks

    @cached_property
    def cpu_places(self) -> tuple[t.I32, t.I64]:
        """Track and stream of each op of XLA on the CPU: a track per device and thread, its stream a small number."""
        lanes = self.events.lane[self.cpu_ops].astype(np.int64)
        places, of = np.unique(self.ordinals * len(self.lines) + lanes, return_inverse=True)
        devices, lanes = np.divmod(places, len(self.lines))
        streams = np.arange(places.size) - np.searchsorted(devices, devices)
        tracks = [
            self._device_track(lane, True, device, stream)
            for device, lane, stream in zip(devices.tolist(), lanes.tolist(), streams.tolist(), strict=True)
        ]
        return np.array(tracks, np.int32)[of], streams.astype(np.int64)[of]

    # --- tables ---------------------------------------------------------------------------------------------------

    def tables(self) -> t.I64:
        ops, waits = self.rows_of(*t.DEVICE_BUSY_KINDS), self.rows_of(t.Kind.DEVICE_WAIT)
        call, basis = by_correlation(self, ops)
        basis[call < 0] = t.LaunchBasis.EXECUTION
        launch = set_launches(self, ops, np.where(call < 0, self._executions(ops), call), basis)
        self.builder.table(device_ops(self, ops, *self._places(ops), launch))
        device, stream = self._places(waits)
        unknown = np.full(waits.size, t.NULL, np.int64)
        self.builder.table(t.DeviceWaits(self.slice_id[waits], device, stream, unknown, unknown))
        drawn = np.array([line.measured and line.stream is None for line in self.lines], np.bool_)
        compiled = united(ops, waits, self.rows_with("hlo_op"))
        self.builder.table(xla_ops(self, compiled, drawn[self.events.lane[compiled]]))
        self._step_marks()
        self._note_cap()
        self._note_unplaced(compiled)
        return np.empty(0, np.int64)

    def _places(self, rows: t.Rows) -> tuple[t.I32, t.I64]:
        """Device and stream of what ran on devices."""
        number = np.array([-1 if line.device is None else line.device.id for line in self.lines], np.int32)
        streams = np.array([t.NULL if line.stream is None else line.stream for line in self.lines], np.int64)
        device, stream = number[self.events.lane[rows]], streams[self.events.lane[rows]]
        on_cpu = np.isin(rows, self.cpu_ops)
        at = np.searchsorted(self.cpu_ops, rows[on_cpu])
        device[on_cpu], stream[on_cpu] = self.ordinals[at], self.cpu_places[1][at]
        return device, stream

    def _executions(self, ops: t.Rows) -> t.I64:
        """The event of the call that started the run each op belongs to, -1 where none is recorded."""
        calls = self.rows_of(t.Kind.RUNTIME_CALL)
        runs = self.columns.at("run_id", calls)
        calls, runs = calls[runs != t.NULL], runs[runs != t.NULL]
        order = np.lexsort((self.events.ts_ns[calls], runs))
        runs, first = np.unique(runs[order], return_index=True)
        wanted = self.columns.at("run_id", ops)
        if runs.size == 0:
            return np.full(ops.size, -1, np.int64)
        at = np.minimum(np.searchsorted(runs, wanted), runs.size - 1)
        return np.where(runs[at] == wanted, calls[order][first][at], -1)

    def _step_marks(self) -> None:
        steps = self.rows_of(t.Kind.STEP)
        on_host = self.on_host[self.events.lane[steps]]
        root = self.columns.at("_r", steps) > 0
        source = np.where(root, t.MarkerSource.STEP_NUM_ROOT, t.MarkerSource.STEP_NUM)
        drawn = mapped(self.events.name[steps], self.events.strings, _number, np.int64)
        self.builder.table(
            t.StepMarks(
                slice=self.slice_id[steps],
                source=np.where(on_host, source, t.MarkerSource.STEPS_LINE).astype(np.uint8),
                number=np.where(on_host, self.columns.at("step_num", steps), np.where(drawn < 0, t.NULL, drawn)),
            )
        )

    def _note_cap(self) -> None:
        count = int(np.count_nonzero(self.events.phase == ord("X")))
        if count in EVENT_CAPS:
            self.sorting.losses.append(
                Loss(
                    "event_cap",
                    1,
                    f"the export keeps the first {count:,} events and this file has exactly so many: what came later "
                    "is probably missing; the .xplane.pb beside it has all of it",
                )
            )

    def _note_unplaced(self, compiled: t.Rows) -> None:
        """Ops of XLA on the CPU that name no device, as PyTorch/XLA's: they stay with the thread that ran them."""
        unplaced = compiled[self.on_host[self.events.lane[compiled]]]
        count = np.setdiff1d(unplaced, self.cpu_ops).size
        if count:
            self.sorting.losses.append(
                Loss(
                    "ops_unplaced",
                    count,
                    "ops of compiled programs name no device in this JSON and count as work of the host; read the "
                    ".xplane.pb beside it, which tells the device",
                )
            )

    def info(self) -> Info:
        run = describe_run(self.events.header, self.origin, self.sorting.resolution_ns)
        measured = {line.device.id: line.device for line in self.lines if line.device is not None and line.measured}
        measured |= {number: Device(number, kind="cpu") for number in np.unique(self.ordinals).tolist()}
        devices = tuple(measured[number] for number in sorted(measured))
        strings = self.events.strings
        framework = framework_of(strings[code] for code in used_codes(self.events.name, len(strings)).tolist())
        return dataclasses.replace(run, format=FORMAT, framework=framework, devices=devices)


def _op_kind(name: str) -> t.Kind:
    """What an op on a device is, by its name."""
    if is_copy(name):
        return t.Kind.COPY
    if is_memset(name):
        return t.Kind.MEMSET
    named = _OPCODE.match(name)
    opcode = named[1] if named else ""
    if is_feed(opcode) or is_host_callback(name):
        return t.Kind.DEVICE_WAIT
    if is_async_end(opcode):
        return t.Kind.COPY
    return t.Kind.COLLECTIVE if is_collective(opcode) else kernel_kind(name)


def _is_framework(name: str) -> bool:
    return classify_xla_name(name) in (XlaRole.COMPILE, XlaRole.EXECUTE)


def _python_kind(name: str) -> t.Kind:
    kind = host_kind(name, on_python=True)
    return annotation_kind(name) if kind is t.Kind.ANNOTATION else kind


def _pool_kind(name: str) -> t.Kind:
    return host_kind(name, on_python=False)


def _number(name: str) -> int:
    """The step that an event of the Steps line is named after, -1 for none."""
    return int(name) if name.isdecimal() and len(name) < 16 else -1
