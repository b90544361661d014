"""TensorFlow's ``StepStats`` and ``RunMetadata``: what ``Session.run`` records at a trace level.

Supported: messages of any TensorFlow 1 and 2, with times in nanoseconds where they have them and in microseconds where
not; rows of CPUs, GPUs and their streams, of threads and synchronisation; memory, outputs and placement. Not read: the
graphs that may lie beside them. Field numbers are those of tensorflow/core/framework/step_stats.proto, its neighbours
and tensorflow/core/protobuf/config.proto. A file cut at any byte gives its whole executions. Files of several runs of
one job become one trace, with a step per run (``tf_runs.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stepscope.errors import InputError
from stepscope.formats import foreign
from stepscope.formats.chrome.scan.damage import TEXTS
from stepscope.formats.tf1.fields import NODE, named
from stepscope.formats.tf1.graph import graph_trace
from stepscope.formats.tf1.recognise import levels_of
from stepscope.formats.tf1.recording import Allocations, Executions, Outputs, Tf1Recording
from stepscope.formats.tf1.relations import timeline_lanes
from stepscope.formats.tf1.runs import together
from stepscope.formats.tf1.tensors import dtype_text, shape_text
from stepscope.inputs.inflate import Fault
from stepscope.inputs.joined import parts_of
from stepscope.inputs.source import Source
from stepscope.names.tf_graph import RowKind, parse_label, parse_row
from stepscope.protobuf.columns import Children, Spans, children, decode, numbers, texts
from stepscope.trace.builder import TraceBuilder
from stepscope.trace.tables import I32, I64, NULL, U8, Bools
from stepscope.trace.trace import Completeness, Info, Loss, Trace

FORMAT = "TensorFlow StepStats"

_MANY = 1_000_000
"""Messages of one kind beyond which a file is judged by their size: real ones take so many bytes at least."""
_SMALLEST_NODE, _SMALLEST_PART = 16, 4

_LARGEST_US = (1 << 62) // 1000


def read(source: Source, progress: Callable[[int, int], None] | None = None) -> Trace:
    """Read a profile. Raises InputError where it holds no usable execution."""
    builder, parts, losses, before = TraceBuilder(), [], [], 0
    for part in parts_of(source):
        recording, of_part, whole_us, length = _read(part, builder, before)
        parts.append((recording, whole_us))
        losses += of_part
        before += length
    recording, losses = together([recording for recording, _ in parts], losses)
    events = len(recording.executions) + sum(loss.lost_events for loss in losses)
    info = Info(FORMAT, resolution_ns=1000 if any(whole_us for _, whole_us in parts) else 1)
    trace = graph_trace(builder, recording, info, Completeness(events, {}, tuple(losses)))
    if len(trace.slices) == 0:
        raise foreign.empty(source.path, trace.completeness.losses)
    if progress:
        progress(source.size, source.size)
    return trace


def _read(source: Source, builder: TraceBuilder, before: int) -> tuple[Tf1Recording, list[Loss], bool, int]:
    """One file, whose offsets count from ``before``: what it recorded, what of it was lost, whether any of its times is
    in whole microseconds only, and its length."""
    data, fault = source.data()
    levels = levels_of(bytes(data[:64]))
    if levels is None:
        raise InputError(f"{source.path}: does not begin like TensorFlow's StepStats or RunMetadata; {foreign.ASK}")
    try:
        return (*_File(data, levels, builder, before).recording(fault), len(data))
    except _DustError as dust:
        raise InputError(f"{source.path}: {dust}") from None


def arguments(source: Source, offsets: Sequence[int]) -> list[dict[str, Any]]:
    """All fields of the executions at ``offsets`` (as in ``slices.offset``), by name; ``{}`` for none."""
    by_place: dict[int, dict[str, Any]] = {}
    before = 0
    for part in parts_of(source):
        data, _ = part.data()
        nodes = _File(data, levels_of(bytes(data[:64])) or 2, TraceBuilder()).nodes
        place = dict(zip(nodes.start.tolist(), nodes.end.tolist(), strict=True))
        known = [at for at in map(int, offsets) if at - before in place]
        by_place |= {at: named(bytes(data[at - before : place[at - before]]), NODE) for at in known}
        before += len(data)
    return [by_place.get(at, {}) for at in map(int, offsets)]


class _DustError(Exception):
    """The file is made to fill the memory: millions of messages of a few bytes."""


class _File:
    """The messages of one file, and what of them could not be read."""

    def __init__(self, data: U8, levels: int, builder: TraceBuilder, before: int = 0) -> None:
        self.data, self.builder, self.before = data, builder, before
        self._damage: list[tuple[int, int, int]] = []
        stats = Spans.whole(data)
        if levels == 3:
            stats = self._inside(stats, 1)
        self.devices = self._inside(stats, 1)
        nodes = self._all(self.devices, 2, _SMALLEST_NODE)
        self._note(self.devices, nodes, events=1)
        self.nodes, self.row = nodes.spans, nodes.parent.astype(np.int32)
        self.outputs = self._all(self.nodes, 7)
        self._note(self.nodes, self.outputs)
        self.names = [name or "" for name in decode(data, texts(data, self.devices, 1))]
        self.kinds = [parse_row(name).kind for name in self.names]

    def recording(self, fault: Fault | None) -> tuple[Tf1Recording, list[Loss], bool]:
        """What the file recorded, what of it was lost, and whether any of its times is in whole microseconds only."""
        labels, label = _distinct(decode(self.data, texts(self.data, self.nodes, 8)))
        executions, whole_us = self._executions(labels, label)
        recording = Tf1Recording(
            self.names, executions, self._tensors(), self._allocations(executions), labels, self._thread_names()
        )
        losses = self._losses()
        if fault is not None:
            losses.append(Loss(fault.code, 1, TEXTS[fault.code], fault.offset, 0, fault.lost_bytes, damaged=True))
        return recording, losses, whole_us

    # --- damage ---------------------------------------------------------------------------------------------------

    def _inside(self, parents: Spans, field: int) -> Spans:
        """The sub-messages of a field, the one at a cut as far as it goes."""
        inside = children(self.data, parents, field, cut=True)
        self._note(parents, inside)
        return inside.spans

    def _all(self, parents: Spans, field: int, smallest: int = _SMALLEST_PART) -> Children:
        """The whole sub-messages of a field. Raises _DustError where they are too many for the bytes they take."""
        parts = children(self.data, parents, field)
        if len(parts) > _MANY and len(parts) * smallest > len(self.data):
            raise _DustError(f"{len(parts):,} messages in {len(self.data):,} bytes: this is no profile")
        return parts

    def _note(self, parents: Spans, parts: Children, events: int = 0) -> None:
        """Keep where messages broke off: offset, bytes that were not read, executions lost."""
        for parent in np.flatnonzero(parts.broken >= 0).tolist():
            at, end = int(parts.broken[parent]), int(parents.end[parent])
            entered = bool((parts.spans.start[parts.parent == parent] > at).any())
            self._damage.append((end, 0, 0) if entered else (at, end - at, events))

    def _losses(self) -> list[Loss]:
        if not self._damage:
            return []
        # Around a message that is cut lie others that are cut too: only the innermost counts, where it lost anything.
        lost = [one for one in self._damage if one[1]] or self._damage[:1]
        offsets, sizes, events = zip(*lost, strict=True)
        text = "messages that are cut off or damaged; what of them makes sense was used"
        return [Loss("step_stats_damaged", len(lost), text, min(offsets), sum(events), sum(sizes), damaged=True)]

    # --- executions -----------------------------------------------------------------------------------------------

    def _executions(self, labels: list[str], label: I32) -> tuple[Executions, bool]:
        """The executions, and whether any of them has times in whole microseconds only."""
        start, dur, scheduled, op_start, op_end, whole_us = self._times()
        (thread,) = numbers(self.data, self.nodes, 10)
        name = self._codes(self.nodes, 1, "")
        of_node = self._in(RowKind.HOST, RowKind.LAUNCH)
        op, inputs = self._ops(labels, np.where(of_node, label, -1))
        sane = np.where((start == NULL) | (dur == NULL), 0, start)
        ended = sane + np.where(sane == 0, 0, dur)
        lane = np.where(of_node, timeline_lanes(self.row, sane // 1000, ended // 1000), thread)
        executions = Executions(
            row=self.row,
            name=name,
            label=label,
            op=op,
            inputs=inputs,
            lane=np.where(of_node | (thread != NULL), lane, 0),
            start_ns=start,
            dur_ns=dur,
            scheduled_ns=scheduled,
            op_start_ns=op_start,
            op_end_ns=op_end,
            offset=self.nodes.start + self.before,
        )
        return executions, whole_us

    def _times(self) -> tuple[I64, I64, I64, I64, I64, bool]:
        """Start, duration, when it was ready, when its kernel began and returned: in ns, NULL where not recorded."""
        fields = (2, 5, 9, 3, 4, 13, 16, 17, 14, 15)
        columns = numbers(self.data, self.nodes, *fields)
        start_us, micros, nanos = columns[0], columns[:5], columns[5:]
        exact = nanos[0] != NULL
        # A number that is 0 is not written.
        values = [np.where(exact, fine, _thousandfold(coarse)) for fine, coarse in zip(nanos, micros, strict=True)]
        start, dur, scheduled, op_start, op_end = values
        dur = np.where(np.where(exact, nanos[1], micros[1]) == NULL, 0, dur)
        op_start = np.where(op_start == NULL, 0, op_start)
        kernel = op_end != NULL
        timed = start != NULL
        return (
            start,
            dur,
            np.where(scheduled > 0, scheduled, NULL),
            np.where(timed & kernel, start + op_start, NULL),
            np.where(timed & kernel, start + op_end, NULL),
            bool((~exact & (start_us != NULL)).any()),
        )

    def _in(self, *kinds: RowKind) -> Bools:
        """Which executions lie in rows of some kinds."""
        return np.array([kind in kinds for kind in self.kinds], np.bool_)[self.row]

    def _codes(self, messages: Spans, field: int, absent: str | None = None) -> I32:
        """A text field as dictionary codes."""
        decoded = decode(self.data, texts(self.data, messages, field))
        return np.array([self.builder.text(absent if text is None else text) for text in decoded], np.int32)

    def _ops(self, labels: list[str], label: I32) -> tuple[I32, I32]:
        """Op and inputs of nodes, from their labels."""
        used = np.unique(label[label >= 0]).tolist()
        op, inputs = np.full((2, len(labels) + 1), -1, np.int32)
        for code in used:
            op[code], inputs[code] = map(self.builder.text, parse_label(labels[code]))
        return op[label], inputs[label]

    def _thread_names(self) -> dict[tuple[int, int], str]:
        entries = self._all(self.devices, 3)
        (threads,) = numbers(self.data, entries.spans, 1)
        named = decode(self.data, texts(self.data, entries.spans, 2))
        rows = entries.parent.tolist()
        return {(row, thread): name for row, thread, name in zip(rows, threads.tolist(), named, strict=True) if name}

    # --- what executions add --------------------------------------------------------------------------------------

    def _tensors(self) -> Outputs:
        data, out = self.data, self.outputs
        (slot,) = numbers(data, out.spans, 1)
        about = texts(data, out.spans, 3)
        (dtype,) = numbers(data, about, 1)
        given = texts(data, about, 4)
        requested, allocated, buffer = numbers(data, given, 1, 2, 6)
        return Outputs(
            execution=out.parent.astype(np.int32),
            slot=np.clip(np.where(slot == NULL, 0, slot), 0, np.iinfo(np.int32).max).astype(np.int32),
            dtype=np.array([self.builder.text(dtype_text(max(n, 0))) for n in dtype.tolist()], np.int32),
            shape=self._shapes(texts(data, about, 2)),
            # A description without the number asks for no bytes.
            requested=np.where((requested == NULL) & (given.start >= 0), 0, requested),
            allocated=allocated,
            allocator=self._codes(given, 3),
            buffer=buffer,
        )

    def _shapes(self, shapes: Spans) -> I32:
        dims = self._all(shapes, 2)
        sizes, (unknown,) = numbers(self.data, dims.spans, 1)[0], numbers(self.data, shapes, 3)
        sizes = np.where(sizes == NULL, 0, sizes)
        bounds = np.searchsorted(dims.parent, np.arange(len(shapes) + 1))
        texts = [
            None if start < 0 or unranked not in (NULL, 0) else shape_text(sizes[low:high].tolist())
            for start, unranked, low, high in zip(
                shapes.start.tolist(), unknown.tolist(), bounds[:-1].tolist(), bounds[1:].tolist(), strict=True
            )
        ]
        return np.array([self.builder.text(text) for text in texts], np.int32)

    def _allocations(self, executions: Executions) -> Allocations:
        """Every recorded allocation; what is left of those of a node without records; what its allocator then held."""
        data = self.data
        used = self._all(self.nodes, 6)
        left, in_use = numbers(data, used.spans, 4, 5)
        allocator = self._codes(used.spans, 1)
        records = self._all(used.spans, 6)
        time_us, size = numbers(data, records.spans, 1, 2)
        ended = np.where(executions.op_end_ns == NULL, executions.start_ns, executions.op_end_ns)[used.parent]
        time = _thousandfold(time_us)
        time = np.where(time == NULL, ended[records.parent], time)
        bare = np.bincount(records.parent, minlength=len(used)) == 0
        summed = np.where(bare, left, NULL)
        told = np.flatnonzero((summed != NULL) | (in_use != NULL))
        execution = np.concatenate((used.parent[records.parent], used.parent[told]))
        return Allocations(
            execution=execution.astype(np.int32),
            time_ns=np.concatenate((time, ended[told])),
            bytes=np.concatenate((size, summed[told])),
            allocated=np.concatenate((np.full(len(records), NULL, np.int64), in_use[told])),
            allocator=np.concatenate((allocator[records.parent], allocator[told])),
        )


def _distinct(given: list[str | None]) -> tuple[list[str], I32]:
    """The distinct texts, and which of them each is (-1 for none)."""
    number: dict[str, int] = {}
    which = [-1 if text is None else number.setdefault(text, len(number)) for text in given]
    return list(number), np.array(which, np.int32)


def _thousandfold(micros: I64) -> I64:
    """Microseconds as nanoseconds; NULL where absent or beyond 64 bits."""
    sound = (micros != NULL) & (micros > -_LARGEST_US) & (micros < _LARGEST_US)
    return np.where(sound, np.where(sound, micros, 0) * 1000, NULL)
