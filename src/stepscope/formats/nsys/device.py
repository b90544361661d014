"""The devices' side: kernels, copies, memsets, whole graphs, and waits between streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import IntEnum
from typing import Any

import numpy as np

from stepscope.formats.chrome.kineto_kinds import kernel_kind
from stepscope.formats.nsys import schema
from stepscope.formats.nsys.draft import Draft, dense, groups
from stepscope.formats.nsys.export import EventRows, Export, known
from stepscope.formats.nsys.host import ApiCalls, correlations
from stepscope.names.calls import is_graph_launch
from stepscope.trace import tables as t
from stepscope.trace.tables import I32, I64, NULL, U8, Direction, Kind, MemoryKind

_MOST_DEVICES = 1 << 16


def add_device_work(export: Export, draft: Draft, calls: ApiCalls) -> tuple[t.DeviceOps, t.Launches]:
    """Everything that occupies a device, each with the call that launched it."""
    parts: list[t.DeviceOps] = []
    ids: list[I64] = []
    for table, make in _TABLES.items():
        events = _on_devices(export, export.events(table))
        parts.append(make(export, draft, events))
        ids.append(correlations(events))
    ops = t.DeviceOps(*(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(t.DeviceOps)))
    call = calls.by_id(np.concatenate(ids))
    launched = call >= 0
    ops.launch[launched] = calls.slice[call[launched]]
    is_graph = draft.by_name(calls.name, is_graph_launch, np.bool_)[call[launched]]
    basis = np.where(is_graph, t.LaunchBasis.GRAPH, t.LaunchBasis.CORRELATION).astype(np.uint8)
    return ops, t.Launches(ops.launch[launched], ops.slice[launched], basis)


def _on_devices(export: Export, events: EventRows) -> EventRows:
    device = events.number("deviceId")
    wrong = (device < 0) | (device >= _MOST_DEVICES)
    export.losses.rows(wrong, events.rows.offset, "device_missing", "device events that do not say on which device")
    return events[~wrong]


def _kernels(export: Export, draft: Draft, events: EventRows) -> t.DeviceOps:
    codes = np.full(len(events), -1, np.int32)
    for column in schema.KERNEL_NAMES:
        open_ = codes < 0
        if open_.any():
            codes[open_] = draft.strings.codes(events.number(column)[open_])
    codes, missing = draft.strings.named(codes, events.number(schema.KERNEL_NAMES[0]))
    export.losses.rows(missing, events.rows.offset, "name_missing", "events whose name the file lacks", lost=False)
    shared = events.number("staticSharedMemory"), events.number("dynamicSharedMemory")
    return _ops(
        draft,
        events,
        (codes, draft.by_name(codes, kernel_kind, np.uint8), schema.KERNELS),
        grid=_extent(draft, events, schema.GRID),
        block=_extent(draft, events, schema.BLOCK),
        registers=events.number("registersPerThread"),
        shared_memory=np.where((shared[0] == NULL) | (shared[1] == NULL), NULL, shared[0] + shared[1]),
    )


def _copies(export: Export, draft: Draft, events: EventRows) -> t.DeviceOps:
    kind, source, target = (events.number(column) for column in ("copyKind", "srcKind", "dstKind"))
    first, which = groups(kind, source, target)
    names = [
        draft.builder.text(_copy_name(*values))
        for values in zip(kind[first].tolist(), source[first].tolist(), target[first].tolist(), strict=True)
    ]
    return _ops(
        draft,
        events,
        (np.array(names, np.int32)[which], Kind.COPY, schema.COPIES),
        bytes=events.number("bytes"),
        direction=_labels(kind, schema.COPY_KINDS, Direction.UNKNOWN),
        source_memory=_labels(source, schema.MEMORY_KINDS, MemoryKind.UNKNOWN),
        target_memory=_labels(target, schema.MEMORY_KINDS, MemoryKind.UNKNOWN),
    )


def _copy_name(kind: int, source: int, target: int) -> str:
    """As PyTorch's profiler names copies, so that reports of either read alike."""
    ends = [schema.MEMORY_KINDS[end][1] for end in (source, target) if end in schema.MEMORY_KINDS]
    name = f"Memcpy {schema.COPY_KINDS[kind][1]}" if kind in schema.COPY_KINDS else "Memcpy"
    return f"{name} ({' -> '.join(ends)})" if len(ends) == 2 else name


def _memsets(export: Export, draft: Draft, events: EventRows) -> t.DeviceOps:
    kinds, which = dense(events.number("memKind"))
    names = [
        f"Memset ({schema.MEMORY_KINDS[kind][1]})" if kind in schema.MEMORY_KINDS else "Memset"
        for kind in kinds.tolist()
    ]
    codes = np.array([draft.builder.text(name) for name in names], np.int32)[which]
    return _ops(draft, events, (codes, Kind.MEMSET, schema.MEMSETS), bytes=events.number("bytes"))


def _graphs(export: Export, draft: Draft, events: EventRows) -> t.DeviceOps:
    numbers, which = dense(events.number("graphId"))
    names = ["CUDA graph" if number == NULL else f"CUDA graph {number}" for number in numbers.tolist()]
    codes = np.array([draft.builder.text(name) for name in names], np.int32)[which]
    export.losses.rows(
        np.ones(len(events), np.bool_),
        events.rows.offset,
        "graphs_whole",
        "CUDA graphs were recorded as a whole; record with --cuda-graph-trace=node to see their kernels",
        lost=False,
    )
    return _ops(draft, events, (codes, Kind.KERNEL, schema.GRAPHS))


_TABLES: dict[str, Callable[[Export, Draft, EventRows], t.DeviceOps]] = {
    schema.KERNELS: _kernels,
    schema.COPIES: _copies,
    schema.MEMSETS: _memsets,
    schema.GRAPHS: _graphs,
}


def _ops(draft: Draft, events: EventRows, look: tuple[I32, U8 | Kind, str], **columns: Any) -> t.DeviceOps:
    """Add the slices (``look``: name, kind, category) and make their rows; columns not given are absent."""
    device, stream = events.number("deviceId"), events.number("streamId")
    track = draft.device_tracks(device, stream)
    columns |= {
        "slice": draft.slices(events, track, *look, correlations(events)),
        "device": device.astype(np.int32),
        "stream": stream,
        "graph": _graph(events),
    }
    return t.DeviceOps(
        *(
            columns[declared.name] if declared.name in columns else _absent(declared, len(events))
            for declared in fields(t.DeviceOps)
        )
    )


def _absent(declared: Any, size: int) -> Any:
    dtype = t.dtype_of(declared)
    value = {np.dtype(np.int64): NULL, np.dtype(np.float64): np.nan, np.dtype(np.uint8): 0}.get(dtype, -1)
    return np.full(size, value, dtype)


def _graph(events: EventRows) -> I64:
    """The graph an op ran in: its own column, else the upper half of the node's number (NVIDIA, ``graphNodeId``)."""
    graph, node = events.number("graphId"), events.number("graphNodeId")
    return np.where((graph != NULL) & (graph != 0), graph, np.where((node == NULL) | (node == 0), NULL, node >> 32))


def _extent(draft: Draft, events: EventRows, columns: tuple[str, str, str]) -> I32:
    """Three numbers as text, absent where one is."""
    values = [events.number(column) for column in columns]
    first, which = groups(*values)
    texts = [
        None if NULL in extent else f"[{', '.join(map(str, extent))}]"
        for extent in zip(*(column[first].tolist() for column in values), strict=True)
    ]
    return np.array([draft.builder.text(text) for text in texts], np.int32)[which]


def _labels(values: I64, meaning: Mapping[int, tuple[IntEnum, str]], unknown: IntEnum) -> U8:
    used, which = dense(values)
    return np.array([meaning.get(value, (unknown, ""))[0] for value in used.tolist()], np.uint8)[which]


def add_waits(export: Export, draft: Draft, calls: ApiCalls) -> t.DeviceWaits:
    """CUPTI's rows of waits: drawn on the stream, never busy."""
    events = export.events(schema.SYNCS)
    device, stream = events.number("deviceId"), events.number("streamId")
    device = np.where((device < 0) | (device >= _MOST_DEVICES), -1, device)
    stream = np.where(np.isin(stream, schema.NO_STREAM), NULL, stream)
    types, which = dense(events.number("syncType"))
    names = [draft.builder.text(schema.SYNC_NAMES.get(kind, "Sync")) for kind in types.tolist()]
    track = draft.device_tracks(device, stream)
    slices = draft.slices(
        events, track, np.array(names, np.int32)[which], Kind.DEVICE_WAIT, schema.SYNCS, correlations(events)
    )
    record = _records(export, events, calls)
    recorded = export.raw(schema.EVENTS).numbers
    # One more value stands behind each column, for waits whose record is not known.
    on_stream, by = (np.append(known(recorded[column]), NULL)[record] for column in ("streamId", "correlationId"))
    return t.DeviceWaits(slices, device.astype(np.int32), stream, on_stream, by)


def _records(export: Export, waits: EventRows, calls: ApiCalls) -> I64:
    """The row of the event record that each stream waits for, -1 where it is not known.

    By ``eventSyncId`` where the export has it; else the last record of the same event before the wait's call.
    """
    records = np.full(len(waits), -1, np.int64)
    raw = export.raw(schema.EVENTS).numbers
    if not len(raw["eventId"]) or not len(waits):
        return records
    rows = np.flatnonzero(waits.number("syncType") == schema.STREAM_WAIT)
    ids = waits.number("eventSyncId")[rows]
    order = np.argsort(raw["eventSyncId"], kind="stable")
    place = np.searchsorted(raw["eventSyncId"][order][:-1], ids)
    same = (raw["eventSyncId"][order[place]] == ids) & (ids > 0)
    records[rows[same]] = order[place[same]]
    rest = rows[~same]
    call = calls.by_id(raw["correlationId"])
    recorded = np.where(call >= 0, calls.start[call], NULL) if len(calls.start) else np.full(call.size, NULL)
    called = calls.by_id(correlations(waits)[rest])
    when = np.where(called >= 0, calls.start[called], waits.start[rest]) if len(calls.start) else waits.start[rest]
    timed = np.flatnonzero(recorded != NULL)
    records[rest] = _latest(raw["eventId"][timed], recorded[timed], waits.number("eventId")[rest], when, timed)
    return records


def _latest(event: I64, time: I64, wanted: I64, before: I64, rows: t.Rows) -> I64:
    """Of the rows of the same event, the last one before an instant; -1 where there is none."""
    # All in one order: at one instant of one event a record stands before the wait.
    is_wait = np.repeat([False, True], (event.size, wanted.size))
    order = np.lexsort((is_wait, np.concatenate((time, before)), np.concatenate((event, wanted))))
    seen = np.maximum.accumulate(np.where(is_wait[order], -1, np.arange(order.size)))
    latest = np.where(seen >= 0, order[np.maximum(seen, 0)], -1)
    at = order[is_wait[order]] - event.size
    record = latest[is_wait[order]]
    newest = np.full(wanted.size, -1, np.int64)
    fits = (record >= 0) & (event[np.maximum(record, 0)] == wanted[at]) if event.size else np.zeros(at.size, np.bool_)
    newest[at[fits]] = rows[record[fits]]
    return newest
