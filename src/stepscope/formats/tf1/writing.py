"""Chrome traces in the form of TensorFlow's Timeline, for chrome://tracing and the tools made for Timelines.

What ``timeline.Timeline(step_stats).generate_chrome_trace_format(show_memory=True)`` writes: a process per device row
for its executions (``X``, category Op, on greedy lanes) and one for its tensors (objects ``N``, ``O``, ``D``), arrows
from node to node where lanes differ (``s``, ``t``), and what the tensors of each allocator ask for over time (``C``).
Times are whole Unix microseconds. Of a node in a loop every execution has tensors and arrows of its own, where
TensorFlow's keeps those of the last one. Source: tensorflow/python/client/timeline.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from stepscope.errors import OutputError
from stepscope.formats.lacks import Lack, column, notices, parts_of_microseconds, programs, spelled, whole
from stepscope.formats.tf1.relations import timeline_lanes
from stepscope.formats.tf1.timeline import ALLOCATORS, COMPUTE, TENSORS, UNKNOWN
from stepscope.replacing import replacing
from stepscope.trace import tables as t
from stepscope.trace.trace import Trace

Event = dict[str, Any]

LACKS = (
    Lack("slices whose times are rounded down to microseconds",
         ("slices", "flows", "nodes", "tensors", "launches", "device_ops", "info.origin_epoch_ns",
          "info.resolution_ns"),
         parts_of_microseconds),
    Lack("device ops without the names of kernels and the sizes of copies", ("slices", "device_ops", "launches"),
         lambda trace: len(trace.device_ops)),
    Lack("slices of no node, without what else is known of them", ("slices", "host_ops", "device_ops", "device_waits"),
         lambda trace: len(trace.slices) - len(np.unique(trace.nodes.slice))),
    whole("frames", "lines at which functions were called"),
    whole("looks", "looks at the line that a thread was at"),
    whole("memory", "memory events"),
    whole("instants", "events without a duration"),
    whole("step_marks", "marks of steps"),
    whole("xla_ops", "facts about ops of XLA"),
    programs(),
    whole("programs", "programs compiled by XLA"),
    whole("iterators", "settings of tf.data's iterators"),
    whole("metrics", "counters of PyTorch/XLA"),
    whole("placements", "logged placements of ops"),
    Lack("arrows other than dataflow", ("flows",), lambda trace: int((trace.flows.kind != t.FlowKind.DATAFLOW).sum())),
    *(column("nodes", name, f"times when a node {when}")
      for name, when in (("scheduled_ns", "was ready"), ("op_start_ns", "began"), ("op_end_ns", "ended"))),
    Lack("notices about what was lost or cut out", ("losses",), notices),
    spelled("counters are what the tensors of each allocator ask for", "counters", "tracks"),
)  # fmt: skip


def write(trace: Trace, path: Path) -> None:
    """Write a trace as a Timeline.

    Raises OutputError where it holds no node of a TensorFlow graph or nothing lies on a device of TensorFlow's, OSError
    where the disk does.
    """
    if len(trace.nodes) == 0:
        raise OutputError(
            "this trace holds no node of a TensorFlow graph, of which a Timeline is made; write it --to chrome instead"
        )
    if not _on_a_device(trace):
        raise OutputError(
            "nothing in this trace lies on a device that TensorFlow names (/job:…/device:GPU:0), by which a Timeline "
            "is known; write it --to chrome instead"
        )
    with replacing(path) as beside:
        beside.write_bytes(msgspec.json.encode({"traceEvents": list(events(trace))}))


def _on_a_device(trace: Trace) -> bool:
    """Whether what is written is known for a Timeline again."""
    processes = trace.tracks.process[trace.slices.track]
    return any(code >= 0 and trace.strings[code].startswith("/") for code in np.unique(processes).tolist())


def events(trace: Trace) -> Iterator[Event]:
    """The events, in the order in which TensorFlow writes them."""
    return _Timeline(trace).events()


_CATEGORIES = {"X": "Op", "s": "DataFlow", "t": "DataFlow", "N": "Tensor", "O": "Tensor", "D": "Tensor"}
"""What an event is about, by its phase."""


@dataclass(slots=True)
class _Tensor:
    """A tensor, alive from the begin of the execution that made it."""

    name: str
    slice: int
    text: str
    bytes: int
    allocator: str
    last_used_us: int


class _Timeline:
    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        slices, origin = trace.slices, trace.info.origin_epoch_ns or 0
        self._start = (slices.start_ns + origin) // 1000
        self._end = (slices.start_ns + slices.dur_ns + origin) // 1000
        process = trace.tracks.process[slices.track]
        codes, first = np.unique(process, return_index=True)
        codes = codes[np.argsort(first, kind="stable")]
        self._rows = [self._text(code) or UNKNOWN for code in codes.tolist()]
        number = np.zeros(len(trace.strings) + 1, np.int32)
        number[codes] = np.arange(codes.size)
        self._row = number[process]
        # Lanes are given out in the order in which executions were recorded.
        order = self._order = np.lexsort((self._start, slices.offset))
        self._lane = np.empty(len(slices), np.int32)
        self._lane[order] = timeline_lanes(self._row[order], self._start[order], self._end[order])
        self._node = np.full(len(slices), -1, np.int64)
        self._node[trace.nodes.slice] = np.arange(len(trace.nodes))
        self._tensors, self._sources_of = self._made(), self._sources()

    def events(self) -> Iterator[Event]:
        yield _process(0, ALLOCATORS)
        for at, name in enumerate(self._rows):
            yield _process(2 * at + 1, name + COMPUTE)
            yield _process(2 * at + 2, name + TENSORS)
        tensors = list(self._tensors.values())
        for number, tensor in enumerate(tensors):
            yield from self._shown(number, tensor)
        arrow = 0
        for at in self._order.tolist():
            yield self._execution(at)
            for name, source, taken in self._taken(at):
                if taken is not None:
                    taken.last_used_us = max(taken.last_used_us, int(self._end[at]) - 1)
                if (self._row[source], self._lane[source]) != (self._row[at], self._lane[at]):
                    yield self._event("s", name, source, int(self._end[source])) | {"id": arrow}
                    yield self._event("t", name, at, int(self._start[at])) | {"id": arrow}
                    arrow += 1
        for number, tensor in enumerate(tensors):
            gone = self._event("D", tensor.name, tensor.slice, tensor.last_used_us)
            yield gone | {"tid": 0, "id": number}
        yield from _counters(tensors, self._start)

    def _event(self, phase: str, name: str, at: int, ts: int) -> Event:
        """An event on the lane of a slice, in the process of its executions or tensors."""
        category = _CATEGORIES[phase]
        pid = 2 * int(self._row[at]) + 1 + (category == "Tensor")
        return {"ph": phase, "cat": category, "name": name, "pid": pid, "tid": int(self._lane[at]), "ts": ts}

    def _execution(self, at: int) -> Event:
        node, op = self._called(at)
        event = self._event("X", op, at, int(self._start[at]))
        inputs = {f"input{k}": name for k, name in enumerate(self._inputs(at))}
        return event | {"dur": int(self._end[at] - self._start[at]), "args": {"name": node, "op": op, **inputs}}

    def _called(self, at: int) -> tuple[str, str]:
        """Node and op of a slice; of one that belongs to no node only the name is known."""
        nodes, row = self.trace.nodes, int(self._node[at])
        if row >= 0:
            return self._text(nodes.node[row]) or UNKNOWN, self._text(nodes.op[row]) or UNKNOWN
        name = self.trace.name_of(at)
        return (UNKNOWN, name) if self.trace.slices.kind[at] == t.Kind.COPY else (name, UNKNOWN)

    def _inputs(self, at: int) -> list[str]:
        row = int(self._node[at])
        text = self._text(self.trace.nodes.inputs[row]) if row >= 0 else None
        return text.split(", ") if text else []

    # --- tensors --------------------------------------------------------------------------------------------------

    def _made(self) -> dict[tuple[int, int], _Tensor]:
        """Tensors by execution and place among its outputs; used until the last execution that takes them ends."""
        table = self.trace.tensors
        tensors: dict[tuple[int, int], _Tensor] = {}
        places: Counter[int] = Counter()
        for row in np.argsort(self.trace.slices.offset[table.slice], kind="stable").tolist():
            at = int(table.slice[row])
            place = places[at]
            places[at] += 1
            name = self._called(at)[0] + (f":{place}" if place else "")
            size = max(int(table.requested[row]), 0)
            allocator = self._text(table.allocator[row]) or ""
            tensors[at, place] = _Tensor(name, at, self._description(row), size, allocator, int(self._end[at]))
        return tensors

    def _sources(self) -> dict[int, dict[str, int]]:
        """Per execution, the executions that made its inputs, by node."""
        flows = self.trace.flows
        sources: dict[int, dict[str, int]] = {}
        for row in np.flatnonzero(flows.kind == t.FlowKind.DATAFLOW).tolist():
            source = int(flows.source[row])
            sources.setdefault(int(flows.target[row]), {})[self._called(source)[0]] = source
        return sources

    def _taken(self, at: int) -> Iterator[tuple[str, int, _Tensor | None]]:
        """The tensors that an execution takes: name, the execution that made each, and the tensor where recorded."""
        sources = self._sources_of.get(at, {})
        for given in self._inputs(at) if sources else ():
            for name in (given, given.rpartition("/_")[0]):
                node, _, place = name.partition(":")
                source = sources.get(node)
                if source is not None:
                    tensor = self._tensors.get((source, int(place) if place.isdecimal() and len(place) < 10 else 0))
                    if tensor is not None or not self._tensors:
                        yield name, source, tensor
                    break

    def _shown(self, number: int, tensor: _Tensor) -> Iterator[Event]:
        at, begin, end = tensor.slice, int(self._start[tensor.slice]), int(self._end[tensor.slice])
        yield self._event("N", tensor.name, at, begin) | {"id": number}
        snapshot = {"snapshot": {"tensor_description": tensor.text}}
        yield self._event("O", tensor.name, at, end - 1) | {"id": number, "args": snapshot}

    def _description(self, row: int) -> str:
        """A tensor as protocol buffers print a ``TensorDescription``, its quotes left out."""
        table = self.trace.tensors
        dtype, shape, allocator = (self._text(column[row]) for column in (table.dtype, table.shape, table.allocator))
        lines = [] if dtype is None else [f"dtype: {dtype}"]
        if shape is not None:
            sizes = [size for size in shape.strip("[]").split(",") if size]
            dims = ["  dim {\n" + (f"    size: {size}\n" if size != "0" else "") + "  }" for size in sizes]
            lines += ["shape {", *dims, "}"]
        counts = {"requested_bytes": table.requested[row], "allocated_bytes": table.allocated[row]}
        about = [f"  {name}: {count}" for name, count in counts.items() if count not in (t.NULL, 0)]
        about += [] if allocator is None else [f"  allocator_name: {allocator}"]
        about += [] if table.buffer[row] in (t.NULL, 0) else [f"  ptr: {table.buffer[row]}"]
        lines += ["allocation_description {", *about, "}"] if about else []
        return "".join(f"{line}\n" for line in lines)

    def _text(self, code: int) -> str | None:
        return self.trace.strings[code] if code >= 0 else None


def _process(pid: int, name: str) -> Event:
    return {"name": "process_name", "ph": "M", "pid": pid, "args": {"name": name}}


def _counters(tensors: Sequence[_Tensor], start_us: t.I64) -> Iterator[Event]:
    """What the tensors of each allocator ask for, summed up, whenever one begins or ends."""
    changes: dict[str, list[tuple[int, int, str]]] = {}
    for tensor in tensors:
        begun, ended = int(start_us[tensor.slice]), tensor.last_used_us
        mine = changes.setdefault(tensor.allocator, [])
        mine += [(begun, tensor.bytes, tensor.name), (ended, -tensor.bytes, tensor.name)]
    for allocator, mine in changes.items():
        total = 0
        for ts, size, _ in sorted(mine):
            total += size
            place = {"ph": "C", "cat": "Memory", "name": allocator, "pid": 0, "tid": 0}
            yield place | {"ts": ts, "args": {allocator: total}}
