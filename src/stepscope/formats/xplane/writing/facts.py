"""What a trace's tables say of its slices, as XPlane statistics: names as XProf and the collectors of CUPTI know them.

Texts of kernels and copies are those of xla/backends/profiler/gpu/cupti_buffer_events.h and cupti_collector.cc,
without what the trace does not know.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from stepscope.analysis.steps import Markers
from stepscope.formats.xplane.own import launch_number
from stepscope.formats.xplane.stats import FIRST_FLOW_TYPE, ITERATORS, LAUNCH, MARKER, NUMBER, OWN_COLUMNS
from stepscope.formats.xplane.writing.distinct import distinct
from stepscope.names.hosts import HostRole, classify_host_name
from stepscope.record import record
from stepscope.trace import tables as t
from stepscope.trace.trace import Trace

STEP_TYPE = FIRST_FLOW_TYPE + 100
"""Type of what leads from a step to its windows on devices; a flow's is the first plus its FlowKind."""

_COLUMNS = (
    ("slices", "correlation", "correlation_id"),
    ("slices", "external_id", "external_id"),
    ("device_ops", "graph", "cuda_graph_id"),
    *((table, column, stat) for table, columns in OWN_COLUMNS.items() for column, stat in columns.items()),
    *(("iterators", column, stat) for column, stat in ITERATORS.items()),
    ("iterators", "dataset", "name"),
    ("xla_ops", "op", "hlo_op"),
    ("xla_ops", "module", "hlo_module"),
    ("xla_ops", "program", "program_id"),
    ("xla_ops", "run", "run_id"),
    ("xla_ops", "replica_groups", "replica_groups"),
)
"""Columns of tables and the statistics they become; a name of PyTorch's where XLA has none."""

_RANGES = (t.Kind.ANNOTATION, t.Kind.HOST_OP, t.Kind.PYTHON_FRAME)


@record
class Fact:
    """A statistic of some slices."""

    stat: str
    slices: t.I32
    """Rising."""
    values: t.I64 | t.I32
    """Numbers, or dictionary codes of texts."""
    texts: Sequence[str] | None = None


def facts_of(trace: Trace, markers: Markers) -> list[Fact]:
    """Every statistic the tables hold, each with the slices that have it."""
    facts = (
        *_columns(trace),
        *_scopes(trace),
        *_launching(trace),
        *_processors(trace),
        *_details(trace),
        *_steps(trace, markers),
        *_inputs(trace),
        *_flows(trace, markers),
    )
    return [fact for fact in facts if len(fact.slices)]


def _columns(trace: Trace) -> Iterator[Fact]:
    for table, column, stat in _COLUMNS:
        rows = getattr(trace, table)
        values = getattr(rows, column)
        ids = np.arange(len(rows), dtype=np.int32) if table == "slices" else rows.slice
        is_text = values.dtype == np.int32
        yield _fact(stat, ids, values, trace.strings if is_text else None, absent=-1 if is_text else t.NULL)


def _scopes(trace: Trace) -> Iterator[Fact]:
    """Ops of a GPU of which the scope is all that is known have it themselves: by it readers know them."""
    xla = trace.xla_ops
    alone = (xla.op < 0) & (xla.module < 0)
    yield _fact("tf_op", xla.slice[alone], xla.scope[alone], trace.strings, absent=-1)


def _fact(
    stat: str, slices: t.I32, values: t.I64 | t.I32, texts: Sequence[str] | None = None, absent: int = t.NULL
) -> Fact:
    """A fact of the slices whose value is not absent, once per slice, in order."""
    known = np.flatnonzero(values != absent)
    ids, first = np.unique(slices[known], return_index=True)
    return Fact(stat, ids, values[known[first]], texts)


def _launching(trace: Trace) -> Iterator[Fact]:
    """Calls name the device they launch on."""
    device = np.full(len(trace.slices), t.NULL, np.int64)
    device[trace.device_ops.slice] = trace.device_ops.device
    launches = trace.launches
    yield _fact("device_id", launches.call, device[launches.op])
    # Correlation ids tell the others.
    rows = np.flatnonzero(np.isin(launches.basis, (t.LaunchBasis.EXECUTION, t.LaunchBasis.NODE)))
    number = launch_number(launches.call[rows].astype(np.int64), launches.basis[rows])
    yield _fact(LAUNCH, np.concatenate((launches.call[rows], launches.op[rows])), np.concatenate((number, number)))


def _processors(trace: Trace) -> Iterator[Fact]:
    """Ops of XLA:CPU stand on host threads and name their device."""
    slices = np.flatnonzero(_on_processor(trace)).astype(np.int32)
    yield Fact("device_ordinal", slices, trace.tracks.device[trace.slices.track[slices]])


def _on_processor(trace: Trace) -> t.Bools:
    processors = [device.id for device in trace.info.devices if device.kind == "cpu"]
    tracks = trace.tracks
    on_device = (tracks.kind == t.TrackKind.DEVICE_STREAM) & np.isin(tracks.device, processors)
    return np.asarray(on_device[trace.slices.track], np.bool_)


def _details(trace: Trace) -> Iterator[Fact]:
    ops, kind = trace.device_ops, trace.slices.kind[trace.device_ops.slice]
    memory = [member.name.lower() for member in t.MemoryKind]

    def kernel(row: int) -> str:
        parts = [("regs", ops.registers[row]), ("static_shared", ops.shared_memory[row])]
        text = [f"{key}:{value}" for key, value in parts if value != t.NULL]
        shapes = [("grid", ops.grid[row]), ("block", ops.block[row])]
        text += [f"{key}:{_triple(trace.strings[code])}" for key, code in shapes if code >= 0]
        if not math.isnan(ops.occupancy_pct[row]):
            text.append(f"occ_pct:{ops.occupancy_pct[row]:g}")
        return " ".join(text) or " "  # XProf takes an op without details for no kernel

    def size(row: int, key: str) -> str:
        return "" if ops.bytes[row] == t.NULL else f" {key}:{ops.bytes[row]}"

    def copy(row: int) -> str:
        source, target = memory[ops.source_memory[row]], memory[ops.target_memory[row]]
        way = t.Direction(ops.direction[row])
        told = "" if way is t.Direction.UNKNOWN else f" direction:{way.name}"
        return f"kind_src:{source} kind_dst:{target}{size(row, 'size')}{told}"

    def memset(row: int) -> str:
        return f"kind:{memory[ops.target_memory[row]]}{size(row, 'num_bytes')}"

    is_kernel = np.isin(kind, (t.Kind.KERNEL, t.Kind.COLLECTIVE))
    shape = (ops.registers, ops.shared_memory, ops.grid, ops.block, ops.occupancy_pct)
    yield _described("kernel_details", ops.slice, is_kernel, shape, kernel)
    yield _described(
        "memcpy_details",
        ops.slice,
        kind == t.Kind.COPY,
        (ops.source_memory, ops.target_memory, ops.bytes, ops.direction),
        copy,
    )
    yield _described("Memset_details", ops.slice, kind == t.Kind.MEMSET, (ops.target_memory, ops.bytes), memset)


def _described(
    stat: str, slices: t.I32, chosen: t.Bools, columns: Sequence[npt.NDArray[Any]], text: Callable[[int], str]
) -> Fact:
    """A text about each chosen row, made once per distinct combination of the columns it tells."""
    rows = np.flatnonzero(chosen)
    rows = rows[np.unique(slices[rows], return_index=True)[1]]
    if not rows.size:
        return Fact(stat, np.empty(0, np.int32), np.empty(0, np.int32))
    first, codes = distinct([column[rows] for column in columns])
    return Fact(stat, slices[rows], codes.astype(np.int32), [text(row) for row in rows[first].tolist()])


def _triple(text: str) -> str:
    """``256,1,1`` from ``[256, 1, 1]``."""
    return re.sub(r"[^\d,]", "", text)


def _steps(trace: Trace, markers: Markers) -> Iterator[Fact]:
    """Steps as ``StepTraceAnnotation`` records them: XProf takes for steps what has ``_r``."""
    marks, chosen = trace.step_marks, host_steps(trace, markers)
    recorded = np.isin(marks.source, (t.MarkerSource.STEP_NUM_ROOT, t.MarkerSource.STEP_NUM))
    numbers = np.array([t.NULL if number is None else number for number in markers.numbers], np.int64)[chosen]
    yield _fact(
        "step_num", np.append(markers.slices[chosen], marks.slice[recorded]), np.append(numbers, marks.number[recorded])
    )
    roots = np.append(markers.slices[chosen], marks.slice[marks.source == t.MarkerSource.STEP_NUM_ROOT])
    yield _fact("_r", roots, np.ones(len(roots), np.int64))
    sources = [source.name.lower() for source in t.MarkerSource]
    yield _fact(MARKER, marks.slice, marks.source.astype(np.int32), sources, absent=-1)
    yield _fact(NUMBER, marks.slice, marks.number)


def host_steps(trace: Trace, markers: Markers) -> t.Bools:
    """Which steps a slice of a host thread marks."""
    on_host = trace.tracks.kind[trace.slices.track] == t.TrackKind.HOST_THREAD
    return np.asarray((markers.slices >= 0) & on_host[markers.slices], np.bool_)


def _inputs(trace: Trace) -> Iterator[Fact]:
    """Ranges that fetch input, so that XProf counts waiting for them as input."""
    for kind in _RANGES:
        rows = np.flatnonzero(trace.slices.kind == kind).astype(np.int32)
        names = trace.slices.name[rows]
        fetching = [
            code
            for code in np.unique(names).tolist()
            if classify_host_name(trace.strings[code], kind == t.Kind.PYTHON_FRAME) is HostRole.INPUT
        ]
        chosen = np.isin(names, fetching)
        yield Fact("_ipl_stage_name", rows[chosen], names[chosen], trace.strings)


def _flows(trace: Trace, markers: Markers) -> Iterator[Fact]:
    """Flows on the host as producers and consumers; a slice can be a consumer only once in XPlane."""
    rows, type_ = carried_flows(trace), producer_types(trace, markers)
    source, target = trace.flows.source[rows], trace.flows.target[rows]
    producers = np.flatnonzero(type_ != t.NULL).astype(np.int32)
    yield Fact("_pt", producers, type_[producers])
    yield Fact("_p", producers, producers)
    yield _fact("_ct", target, type_[source])
    yield _fact("_c", target, source.astype(np.int64))


def producer_types(trace: Trace, markers: Markers) -> t.I64:
    """Per slice the type under which it hands over, NULL for most; ids are the numbers of slices.

    A step hands over to its windows on devices.
    """
    types = np.full(len(trace.slices), t.NULL, np.int64)
    types[markers.slices[host_steps(trace, markers)]] = STEP_TYPE
    rows = carried_flows(trace)
    types[trace.flows.source[rows]] = FIRST_FLOW_TYPE + trace.flows.kind[rows].astype(np.int64)
    return types


def carried_flows(trace: Trace) -> t.Rows:
    """The flows that are written: one per target, and of one kind per source."""
    flows = trace.flows
    on_host = (trace.tracks.kind[trace.slices.track] == t.TrackKind.HOST_THREAD) | _on_processor(trace)
    rows = np.flatnonzero(on_host[flows.source] & on_host[flows.target])
    rows = rows[np.unique(flows.target[rows], return_index=True)[1]]
    _, first, of_source = np.unique(flows.source[rows], return_index=True, return_inverse=True)
    return np.asarray(rows[flows.kind[rows] == flows.kind[rows][first][of_source]])
