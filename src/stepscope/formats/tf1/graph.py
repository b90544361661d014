"""From what StepStats and Timelines hold of a session's run to the tables of a trace.

Rows of CPU devices become lanes of host ops. Rows of other devices are the host's work of launching, not the device's
time: lanes of runtime calls. A lane is no thread: nobody recorded which thread ran a node. GPU streams become device
tracks; ``stream:all`` and ``memcpy`` list their kernels and copies again: what a stream holds too is counted once.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stepscope.formats.limits import FAR_NS
from stepscope.formats.tf1.activity import DeviceSlices
from stepscope.formats.tf1.devices import number_devices
from stepscope.formats.tf1.recording import Tf1Recording
from stepscope.formats.tf1.relations import latest_before, launching, repeated
from stepscope.names.tf_graph import DeviceRow, RowKind, is_passive, parse_row
from stepscope.trace import tables as t
from stepscope.trace.builder import TraceBuilder
from stepscope.trace.trace import Completeness, Device, Info, Loss, Trace

_ON_DEVICE = (RowKind.STREAM, RowKind.ALL, RowKind.COPIES)
_OF_NODES = (RowKind.HOST, RowKind.LAUNCH)
_KINDS = {
    RowKind.HOST: t.Kind.HOST_OP,
    RowKind.LAUNCH: t.Kind.RUNTIME_CALL,
    RowKind.SYNC: t.Kind.SYNC,
    RowKind.THREADS: t.Kind.ANNOTATION,
}


def graph_trace(builder: TraceBuilder, recording: Tf1Recording, info: Info, completeness: Completeness) -> Trace:
    """The trace of a recording.

    ``completeness`` says how many events the file holds, what was lost in reading them, and which became rows that
    are no executions; ``info`` names format and resolution.
    """
    return _Conversion(builder, recording, completeness).trace(info)


class _Conversion:
    """One recording on its way into the tables; positions are those of the executions throughout."""

    def __init__(self, builder: TraceBuilder, recording: Tf1Recording, completeness: Completeness) -> None:
        self.builder, self.recording, self.completeness = builder, recording, completeness
        self.losses = list(completeness.losses)
        self.runs = recording.executions
        self.rows: list[DeviceRow] = [parse_row(name) for name in recording.rows]
        kinds = list(RowKind)
        self._kind = np.array([kinds.index(row.kind) for row in self.rows], np.int64)[self.runs.row]
        sound = self._sound()
        again, copied = self._repeats(sound)
        self.duplicates = int(again.sum())
        self.kept = np.flatnonzero(sound & ~again)
        """The executions that become slices."""
        self.slice_of = np.full(len(self.runs), -1, np.int32)
        self.slice_of[self.kept] = np.arange(self.kept.size, dtype=np.int32)
        self.origin = int(self.runs.start_ns[self.kept].min()) if self.kept.size else 0
        self.device = DeviceSlices.of(builder, recording, self._of(*_ON_DEVICE), copied)
        self.numbers, self.devices = self._number_devices()

    def trace(self, info: Info) -> Trace:
        self.track_of = self._tracks()
        self._slices()
        self._device_ops()
        self._nodes()
        self._dataflow()
        self._outputs()
        self._allocations()
        self._readings()
        info = replace(
            info, framework="TensorFlow", devices=self.devices, origin_epoch_ns=self.origin if self.kept.size else None
        )
        rows = {"slices": int(self.kept.size), "duplicates": self.duplicates, **self.completeness.rows}
        counted = {name: count for name, count in rows.items() if count}
        return self.builder.build(info, Completeness(self.completeness.events, counted, tuple(self.losses)))

    def _is(self, *kinds: RowKind) -> t.Bools:
        every = list(RowKind)
        return np.asarray(np.isin(self._kind, [every.index(kind) for kind in kinds]))

    def _of(self, *kinds: RowKind) -> t.Rows:
        """The slices in rows of some kinds."""
        return self.kept[self._is(*kinds)[self.kept]]

    # --- which executions count, and where ------------------------------------------------------------------------

    def _sound(self) -> t.Bools:
        """Executions with a usable time; the others are lost."""
        start, dur = self.runs.start_ns, self.runs.dur_ns
        timed = (start != t.NULL) & (start != 0) & (dur != t.NULL) & (dur < FAR_NS)
        median = int(np.median(start[timed])) if timed.any() else 0
        timed &= (start > median - FAR_NS) & (start < median + FAR_NS)
        self._lose(~timed, "time_out_of_range", "executions with an absent or impossible time")
        self._lose(timed & (dur < 0), "duration_negative", "executions that end before they start")
        return np.asarray(timed & (dur >= 0))

    def _lose(self, which: t.Bools, code: str, text: str) -> None:
        count = int(which.sum())
        if count:
            first = int(self.runs.offset[int(which.argmax())])
            self.losses.append(Loss(code, count, text, None if first == t.NULL else first, lost_events=count))

    def _repeats(self, sound: t.Bools) -> tuple[t.Bools, t.Bools]:
        """Which executions another row of their device holds too, and which of the others the row of copies lists."""
        runs = self.runs
        places = {place: at for at, place in enumerate(dict.fromkeys((row.task, row.number) for row in self.rows))}
        place = np.array([places[row.task, row.number] for row in self.rows], np.int64)[runs.row]
        at = np.flatnonzero(sound & self._is(*_ON_DEVICE))
        again = self._is(RowKind.ALL, RowKind.COPIES)[at]
        keys = place[at], runs.start_ns[at], runs.dur_ns[at], runs.name[at].astype(np.int64)
        repeats, others = repeated(keys, again)
        mask, copied = np.zeros(len(runs), np.bool_), np.zeros(len(runs), np.bool_)
        mask[at[repeats]] = True
        copied[at[others[self._is(RowKind.COPIES)[at[repeats]]]]] = True
        return mask, copied

    def _number_devices(self) -> tuple[t.I32, tuple[Device, ...]]:
        """The device number of each row, and the devices."""
        launches, unknown = self.runs.row[self._of(RowKind.LAUNCH)], self._of(RowKind.UNKNOWN)
        numbers, devices, loss = number_devices(self.rows, self.runs.row[self.device.ops], launches)
        if loss is not None:
            self.losses.append(loss)
        if launches.size and not devices:
            text = (
                "nodes ran on an accelerator of which no kernel or copy was recorded: their times are those of "
                "launching; record with RunOptions.FULL_TRACE, and with CUPTI's library where it can be found"
            )
            self.losses.append(Loss("accelerator_missing", int(launches.size), text))
        if unknown.size:
            name = self.recording.rows[int(self.runs.row[unknown[0]])]
            text = f"executions in device rows of unknown kind ({name!r} the first), kept as other"
            self.losses.append(Loss("row_unknown", int(unknown.size), text))
        return np.array(numbers, np.int32), devices

    # --- tables ---------------------------------------------------------------------------------------------------

    def _tracks(self) -> t.I32:
        """A track per GPU row and per lane or thread of the other rows; the track of each execution, -1 for none."""
        row = self.runs.row[self.kept]
        lane = np.where(self._is(*_ON_DEVICE)[self.kept], 0, self.runs.lane[self.kept])
        pairs, which = np.unique(np.stack((row, lane)), axis=1, return_inverse=True)
        tracks = np.full(len(self.runs), -1, np.int32)
        tracks[self.kept] = np.array([self._track(*pair) for pair in pairs.T.tolist()], np.int32)[which.ravel()]
        return tracks

    def _track(self, at: int, lane: int) -> int:
        name, row, add = self.recording.rows[at], self.rows[at], self.builder.track
        if row.kind in _ON_DEVICE:
            number = int(self.numbers[at])
            return add(t.TrackKind.DEVICE_STREAM, name, None, label=name, device=number, stream=row.stream)
        thread = None if lane == t.NULL else str(lane)
        if row.kind in (RowKind.SYNC, RowKind.THREADS) and self.recording.knows_threads:
            return add(t.TrackKind.HOST_THREAD, name, thread, label=self.recording.thread_names.get((at, lane)))
        kind = t.TrackKind.OTHER if row.kind is RowKind.UNKNOWN else t.TrackKind.HOST_THREAD
        return add(kind, name, thread, label=f"lane {lane} (not a thread)")

    def _slices(self) -> None:
        runs, kept = self.runs, self.kept
        name = np.where(runs.op >= 0, runs.op, runs.name)
        kind = np.full(len(runs), t.Kind.OTHER, np.uint8)
        for of_row, own in _KINDS.items():
            kind[self._is(of_row)] = own
        nodes = self._of(*_OF_NODES)
        passive = [code for code in np.unique(name[nodes]).tolist() if is_passive(self.builder.string(code))]
        kind[nodes[np.isin(name[nodes], passive)]] = t.Kind.OTHER
        kind[self.device.ops] = self.device.kind
        name[self.device.ops] = self.device.codes(self.builder, lambda a: a.name)
        track, start, end, named = self._steps()
        self.builder.slices(
            track=np.append(self.track_of[kept], track),
            start_ns=np.append(runs.start_ns[kept], start) - self.origin,
            dur_ns=np.append(runs.dur_ns[kept], end - start),
            name=np.append(name[kept], named),
            kind=np.append(kind[kept], np.full(named.size, t.Kind.STEP, np.uint8)),
            offset=np.append(runs.offset[kept], np.full(named.size, t.NULL, np.int64)),
        )

    def _steps(self) -> tuple[t.I32, t.I64, t.I64, t.I32]:
        """Track, start, end and name of the runs that are steps, on a track of their own: no thread ran all of one."""
        steps = np.array(self.recording.steps if self.kept.size else (), np.int64).reshape(-1, 2)
        place = "runs of the session"
        track = self.builder.track(t.TrackKind.HOST_THREAD, place, None, label=place) if len(steps) else 0
        names = [self.builder.text(f"tf.Session.run#{number}") for number in range(len(steps))]
        return np.full(len(steps), track, np.int32), steps[:, 0], steps[:, 1], np.array(names, np.int32)

    def _device_ops(self) -> None:
        """Kernels, copies and memsets, each launched by an execution of the node that it names."""
        runs, busy, calls = self.runs, self.device.busy(), self._of(RowKind.LAUNCH)
        ops, node = busy.ops, busy.codes(self.builder, lambda a: a.node)
        times = runs.start_ns[ops], runs.start_ns[calls]
        launched_by = launching((node, runs.name[calls]), times, runs.scheduled_ns[ops])
        call = np.where((launched_by >= 0) & (node >= 0), np.append(calls, -1)[launched_by], -1)
        launch = np.where(call >= 0, self.slice_of[call], -1).astype(np.int32)
        launched = launch >= 0
        basis = np.full(int(launched.sum()), t.LaunchBasis.NODE, np.uint8)
        self.builder.table(t.Launches(launch[launched], self.slice_of[ops[launched]], basis))
        streams = np.array([t.NULL if row.stream is None else row.stream for row in self.rows], np.int64)
        placed = self.numbers[runs.row[ops]], streams[runs.row[ops]]
        self.builder.table(busy.table(self.builder, self.slice_of[ops], placed, launch))

    def _nodes(self) -> None:
        """What nodes add to the slices of their executions, and to those of their kernels and copies."""
        runs, own, text = self.runs, self._of(*_OF_NODES), self.builder.text
        node = self.device.codes(self.builder, lambda a: a.node)
        op = self.device.codes(self.builder, lambda a: a.op)
        named = node >= 0
        rows = np.concatenate((own, self.device.ops[named]))
        placement = np.array([text(name) for name in self.recording.rows], np.int32)[runs.row[own]]
        self.builder.table(
            t.Nodes(
                slice=self.slice_of[rows],
                node=np.concatenate((runs.name[own], node[named])),
                op=np.concatenate((runs.op[own], op[named])),
                inputs=runs.inputs[rows],
                placement=np.concatenate((placement, np.full(int(named.sum()), -1, np.int32))),
                scheduled_ns=self._since(runs.scheduled_ns[rows], rows),
                op_start_ns=self._since(runs.op_start_ns[rows], rows),
                op_end_ns=self._since(runs.op_end_ns[rows], rows),
            )
        )

    def _since(self, times: t.I64, rows: t.Rows) -> t.I64:
        """Times from the origin, NULL where they lie far from the execution they belong to."""
        start = self.runs.start_ns[rows]
        near = (times > start - FAR_NS) & (times < start + FAR_NS)
        return np.where(near, times - self.origin, t.NULL)

    def _dataflow(self) -> None:
        """A flow per tensor from the last execution of the node that made it, begun by then, to the one that took it.

        Where a graph was cut into several a tensor is called after the node that received it (``node/_12``).
        """
        runs, nodes, text = self.runs, self._of(*_OF_NODES), self.builder.string
        code_of = {text(code): code for code in np.unique(runs.name[nodes]).tolist()}
        texts, which = np.unique(runs.inputs[nodes], return_inverse=True)
        makers = [list(dict.fromkeys(_makers(text(code), code_of))) if code >= 0 else [] for code in texts.tolist()]
        counts = np.array([len(of_node) for of_node in makers], np.int64)
        first = np.concatenate(([0], np.cumsum(counts)))
        taken = counts[which]
        target = np.repeat(nodes, taken)
        within = np.arange(target.size) - np.repeat(np.cumsum(taken) - taken, taken)
        flat = np.array([code for of_node in makers for code in of_node], np.int32)
        maker = flat[np.repeat(first[:-1][which], taken) + within] if flat.size else flat
        latest = latest_before((maker, runs.name[nodes]), (runs.start_ns[target], runs.start_ns[nodes]))
        made = latest >= 0
        kind = np.full(int(made.sum()), t.FlowKind.DATAFLOW, np.uint8)
        self.builder.table(t.Flows(kind, self.slice_of[nodes[latest[made]]], self.slice_of[target[made]]))

    def _outputs(self) -> None:
        out = self.recording.outputs
        kept = self.slice_of[out.execution] >= 0
        self.builder.table(
            t.Tensors(
                slice=self.slice_of[out.execution[kept]],
                slot=out.slot[kept],
                dtype=out.dtype[kept],
                shape=out.shape[kept],
                requested=out.requested[kept],
                allocated=out.allocated[kept],
                allocator=out.allocator[kept],
                buffer=out.buffer[kept],
            )
        )

    def _allocations(self) -> None:
        given = self.recording.allocations
        start = self.runs.start_ns[given.execution]
        near = (given.time_ns > start - FAR_NS) & (given.time_ns < start + FAR_NS)
        kept = np.flatnonzero((self.slice_of[given.execution] >= 0) & near)
        of = given.execution[kept]
        on_device = self._is(RowKind.LAUNCH)[of]
        self.builder.table(
            t.Memory(
                time_ns=given.time_ns[kept] - self.origin,
                track=self.track_of[of],
                device_type=np.full(kept.size, t.NULL, np.int64),
                device=np.where(on_device, self.numbers[self.runs.row[of]].astype(np.int64), t.NULL),
                address=np.full(kept.size, t.NULL, np.int64),
                bytes=given.bytes[kept],
                allocated=given.allocated[kept],
                reserved=np.full(kept.size, t.NULL, np.int64),
                allocator=given.allocator[kept],
                **t.Memory.untold(kept.size),
            )
        )

    def _readings(self) -> None:
        given = self.recording.readings
        if given is None or not self.kept.size:
            return
        track = self.builder.track(t.TrackKind.OTHER, given.process, None)
        self.builder.table(
            t.Counters(
                time_ns=given.time_ns - self.origin,
                track=np.full(given.time_ns.size, track, np.int32),
                name=given.name,
                value=given.value,
                offset=given.offset,
            )
        )


def _makers(inputs: str, code_of: dict[str, int]) -> list[int]:
    """The nodes that made some inputs (``a, b:1, ^c``); control inputs carry no tensor."""
    makers = []
    for given in inputs.split(", "):
        if given.startswith("^"):
            continue
        name = given.partition(":")[0]
        at = code_of.get(name)
        if at is None and "/_" in name:
            at = code_of.get(name.rpartition("/_")[0])
        if at is not None:
            makers.append(at)
    return makers
