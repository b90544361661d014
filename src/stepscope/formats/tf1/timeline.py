"""TensorFlow's Timeline: the Chrome trace that ``timeline.Timeline(step_stats).generate_chrome_trace_format()`` writes.

Supported: with and without dataflow and memory, of CPUs and GPUs, of any TensorFlow 1 and 2. Times are whole
microseconds; what StepStats say beyond that (memory, threads, kernels' names) the JSON does not hold. Its ``tid`` is a
lane, not a thread. Source: tensorflow/python/client/timeline.py.
"""

from __future__ import annotations

import json

import numpy as np

from stepscope.formats.chrome.arguments import ArgumentColumns
from stepscope.formats.chrome.dialects import NODE_INPUTS
from stepscope.formats.chrome.events import Filled, RawEvents
from stepscope.formats.chrome.samples import series_names
from stepscope.formats.tf1.graph import graph_trace
from stepscope.formats.tf1.recording import Allocations, Executions, Outputs, Readings, Tf1Recording
from stepscope.formats.tf1.relations import latest_before
from stepscope.formats.tf1.tensors import shape_text
from stepscope.names.tf_graph import RowKind, parse_row
from stepscope.regex import regex
from stepscope.trace.builder import TraceBuilder
from stepscope.trace.codes import marked
from stepscope.trace.tables import I32, I64, NULL, Bools, Rows
from stepscope.trace.trace import Completeness, Info, Loss, Trace

FORMAT = "TensorFlow Timeline"

COMPUTE, TENSORS, ALLOCATORS = " Compute", " Tensors", "Allocators"
"""What the names of processes end in, and the name of the one that counts memory."""
UNKNOWN = "unknown"
"""The op of a node or kernel of which TensorFlow's Timeline knows none."""


def recognise(events: RawEvents) -> bool:
    """Whether processes are called like a Timeline's, and events of category Op lie in one."""
    if "Op" not in events.strings:
        return False
    names = _process_names(events)
    own = [pid for pid, name in names.items() if name.endswith(COMPUTE) and name.startswith("/")]
    lanes = [at for at, (pid, _) in enumerate(events.lanes) if pid in own]
    is_op = (events.phase == ord("X")) & (events.category == events.strings.index("Op"))
    return bool((is_op & np.isin(events.lane, lanes)).any())


def fill(events: RawEvents) -> Filled:
    """Take a Timeline's events; every event ends in a table or in the completeness record."""
    trace = _Timeline(events).trace()
    return lambda: trace


def _process_names(events: RawEvents) -> dict[int | str | None, str]:
    """The name of each process, in the order of the file."""
    if "process_name" not in events.strings:
        return {}
    argument = events.argument("name")
    named = (events.name == events.strings.index("process_name")) & (events.phase == ord("M"))
    rows = np.flatnonzero(named[argument.rows] & (argument.texts >= 0))
    return {
        events.lanes[int(events.lane[argument.rows[at]])][0]: events.raws[int(argument.texts[at])].strip('"')
        for at in rows.tolist()
    }


class _Timeline:
    """One Timeline's events as a recording; row numbers are event numbers."""

    def __init__(self, events: RawEvents) -> None:
        self.events, self.builder = events, TraceBuilder(events.strings)
        self.columns = ArgumentColumns(events, self.builder)
        self.runs = np.flatnonzero(events.phase == ord("X"))
        names = _process_names(events)
        processes = dict.fromkeys((*names, *(pid for pid, _ in events.lanes)))
        named = {pid: names.get(pid, str(pid)) for pid in processes}
        self.rows = list(dict.fromkeys(name.removesuffix(COMPUTE).removesuffix(TENSORS) for name in named.values()))
        place = {name: at for at, name in enumerate(self.rows)}
        pids = [pid for pid, _ in events.lanes]
        self._row_of_lane = np.array(
            [place[named[pid].removesuffix(COMPUTE).removesuffix(TENSORS)] for pid in pids], np.int32
        )
        self._lane_of_lane = np.array([tid if isinstance(tid, int) else 0 for _, tid in events.lanes], np.int64)
        self.losses = [
            Loss(d.code, d.count, d.text, d.first_offset, d.lost_events, d.lost_bytes, damaged=True)
            for d in events.damages
        ]
        self.losses += [Loss("reader", 1, notice) for notice in events.notices]

    def trace(self) -> Trace:
        """The trace."""
        e = self.events
        objects, counters = self._phase("NOD"), np.flatnonzero(self._phase("C") & (e.ts_ns != NULL) & (e.name >= 0))
        executions, labels = self._executions()
        outputs, tensors = self._outputs(executions, objects)
        flows, metadata = self._phase("stf"), self._phase("M")
        self._lose(objects & ~tensors, "tensor_unmatched", "records of tensors that no execution put out")
        self._lose(self._phase("C") & ~marked(counters, len(e)), "counter_damaged", "counters without a time or a name")
        known = self._phase("XstfMCNOD")
        self._lose(~known, "phase_unsupported", "events of kinds that a Timeline does not hold")
        counted = {
            "counters": counters.size,
            "flows": flows.sum(),
            "tensors": tensors.sum(),
            "metadata": metadata.sum(),
        }
        events = len(e) + sum(damage.lost_events for damage in e.damages)
        completeness = Completeness(events, {name: int(n) for name, n in counted.items()}, tuple(self.losses))
        nothing, none = np.empty(0, np.int32), np.empty(0, np.int64)
        recording = Tf1Recording(
            self.rows,
            executions,
            outputs,
            Allocations(nothing, none, none, none, nothing),
            labels,
            knows_threads=False,
            readings=self._readings(counters),
        )
        return graph_trace(self.builder, recording, Info(FORMAT, resolution_ns=1000), completeness)

    def _phase(self, phases: str) -> Bools:
        return np.asarray(np.isin(self.events.phase, [ord(phase) for phase in phases]))

    def _lose(self, which: Bools, code: str, text: str) -> None:
        count = int(which.sum())
        if count:
            first = int(self.events.offset[int(which.argmax())])
            self.losses.append(Loss(code, count, text, first, lost_events=count))

    # --- executions -----------------------------------------------------------------------------------------------

    def _executions(self) -> tuple[Executions, list[str]]:
        e, runs, text = self.events, self.runs, self.columns.text
        row = self._row_of_lane[e.lane[runs]]
        name, op, kernel = text("name", runs), text("op", runs), text("kernel", runs)
        name = np.where(name < 0, e.name[runs], name)
        name = np.where(name < 0, self.builder.text(""), name)
        op = np.where(op == self.builder.text(UNKNOWN), -1, op)
        kinds = [parse_row(name).kind for name in self.rows]
        of_node = np.array([kind in (RowKind.HOST, RowKind.LAUNCH) for kind in kinds], np.bool_)[row]
        # The Timeline cuts what StepStats say of a kernel, "node:Op", into name and op.
        pairs, which = np.unique(np.stack((name, np.where(of_node, -1, op))), axis=1, return_inverse=True)
        joined = [code if op < 0 else self._joined(code, op) for code, op in pairs.T.tolist()]
        labels, label = np.unique(kernel, return_inverse=True)
        absent = np.full(runs.size, NULL, np.int64)
        executions = Executions(
            row=row,
            name=np.array(joined, np.int32)[which.ravel()],
            label=label.astype(np.int32),
            op=np.where(of_node, op, -1).astype(np.int32),
            inputs=self._inputs(),
            lane=self._lane_of_lane[e.lane[runs]],
            start_ns=e.ts_ns[runs],
            dur_ns=e.dur_ns[runs],
            scheduled_ns=absent,
            op_start_ns=absent,
            op_end_ns=absent,
            offset=e.offset[runs],
        )
        return executions, ["" if code < 0 else self.builder.string(code) for code in labels.tolist()]

    def _joined(self, name: int, op: int) -> int:
        return self.builder.text(f"{self.builder.string(name)}:{self.builder.string(op)}")

    def _inputs(self) -> I32:
        """The inputs of each execution, comma-separated; only the first of very many have a column."""
        last = self.columns.rows(NODE_INPUTS[-1])
        if len(last):
            text = f"nodes with {len(NODE_INPUTS)} or more inputs, of which so many are kept"
            self.losses.append(Loss("inputs_many", len(last), text, int(self.events.offset[last[0]])))
        given = [key for key in NODE_INPUTS if len(self.columns.rows(key))]
        if not given:
            return np.full(self.runs.size, -1, np.int32)
        codes = np.stack([self.columns.text(key, self.runs) for key in given])
        distinct, which = np.unique(codes, axis=1, return_inverse=True)
        texts = [", ".join(self.builder.string(code) for code in row if code >= 0) for row in distinct.T.tolist()]
        return np.array([self.builder.text(text or None) for text in texts], np.int32)[which.ravel()]

    # --- tensors and counters -------------------------------------------------------------------------------------

    def _outputs(self, executions: Executions, objects: Bools) -> tuple[Outputs, Bools]:
        """The tensors that snapshots describe, and which events tell of them.

        A snapshot lies on its execution's lane, one microsecond before that ends.
        """
        e = self.events
        rows = np.flatnonzero(objects & (e.phase == ord("O")) & (e.ts_ns != NULL) & (e.name >= 0))
        timed = np.flatnonzero((executions.start_ns != NULL) & (executions.dur_ns != NULL))
        places = np.stack(
            (
                np.concatenate((self._row_of_lane[e.lane[rows]], executions.row[timed])),
                np.concatenate((self._lane_of_lane[e.lane[rows]], executions.lane[timed])),
            )
        )
        place = np.unique(places, axis=1, return_inverse=True)[1].ravel().astype(np.int32)
        ends, wanted = executions.start_ns[timed] + executions.dur_ns[timed], e.ts_ns[rows] + 1000
        makers = latest_before((place[: rows.size], place[rows.size :]), (wanted, ends))
        met = (makers >= 0) & (np.append(ends, 0)[makers] == wanted)
        execution = np.append(timed, -1)[makers]
        slot = self._slots(executions.name[execution], e.name[rows])
        met &= slot >= 0
        described = self._descriptions(rows[met])
        told = objects & np.isin(e.name, np.unique(e.name[rows[met]]))
        told[rows[~met]] = False
        return Outputs(execution[met].astype(np.int32), slot[met], *described), told

    def _slots(self, node: I32, tensor: I32) -> I32:
        """Which output of its node a tensor is, by its name (``node``, ``node:1``); -1 where it is none of them."""
        pairs, which = np.unique(np.stack((node, tensor)), axis=1, return_inverse=True)
        slots = [_slot(self.builder.string(a), self.builder.string(b)) for a, b in pairs.T.tolist()]
        return np.array(slots, np.int32)[which.ravel()]

    def _descriptions(self, rows: Rows) -> tuple[I32, I32, I64, I64, I32, I64]:
        """Element type, shape, bytes asked for and allocated, allocator and address of snapshots."""
        argument = self.events.argument("snapshot")
        raw = np.full(len(self.events), -1, np.int32)
        raw[argument.rows] = argument.texts
        distinct, which = np.unique(raw[rows], return_inverse=True)
        described = [_Description(self.events.raws[code] if code >= 0 else "") for code in distinct.tolist()]
        codes = [
            np.array([self.builder.text(text) for text in texts], np.int32)[which]
            for texts in ([d.dtype for d in described], [d.shape for d in described], [d.allocator for d in described])
        ]
        counts = [
            np.array([NULL if n is None else n for n in numbers], np.int64)[which]
            for numbers in (
                [d.requested for d in described],
                [d.allocated for d in described],
                [d.buffer for d in described],
            )
        ]
        return codes[0], codes[1], counts[0], counts[1], codes[2], counts[2]

    def _readings(self, counters: Rows) -> Readings | None:
        if counters.size == 0:
            return None
        rows, names, values = series_names(self.events, counters, self.builder)
        return Readings(ALLOCATORS, self.events.ts_ns[rows], names, values, self.events.offset[rows])


def _slot(node: str, tensor: str) -> int:
    if tensor == node:
        return 0
    rest = tensor.removeprefix(node + ":") if tensor.startswith(node + ":") else ""
    return int(rest) if rest.isdecimal() and len(rest) < 10 else -1


_FIELD = regex(r"\b(dtype|requested_bytes|allocated_bytes|allocator_name|ptr): ?(\S*)")
_SHAPE = regex(r"\bshape \{(?P<dims>(?:\s*dim \{[^{}]*\})*)\s*(?P<unknown>unknown_rank: true)?\s*\}")
_DIM = regex(r"dim \{(?:\s*size: (-?\d{1,18}))?")


class _Description:
    """The text of a ``TensorDescription`` in a snapshot."""

    def __init__(self, raw: str) -> None:
        text = _tensor_description(raw)
        fields = dict(_FIELD.findall(text))
        shape = _SHAPE.search(text)
        ranked = shape is not None and not shape["unknown"]
        self.dtype: str | None = fields.get("dtype")
        self.shape = shape_text([int(n or 0) for n in _DIM.findall(shape["dims"])]) if shape and ranked else None
        allocated = "allocation_description" in text
        self.requested = _whole(fields.get("requested_bytes", "0")) if allocated else None
        self.allocated = _whole(fields.get("allocated_bytes"))
        self.allocator: str | None = fields.get("allocator_name")
        self.buffer = _whole(fields.get("ptr"))


def _tensor_description(raw: str) -> str:
    try:
        snapshot = json.loads(raw) if raw else {}
    except (ValueError, RecursionError):
        return ""
    text = snapshot.get("tensor_description") if isinstance(snapshot, dict) else None
    return text if isinstance(text, str) else ""


def _whole(digits: str | None) -> int | None:
    return int(digits) if digits and digits.isdecimal() and len(digits) < 20 and int(digits) < 1 << 63 else None
