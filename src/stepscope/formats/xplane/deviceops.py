"""The table of device ops: what kernels, copies and collectives add to their slices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from stepscope.formats.xla_details import CopyDetails, copy_details, direction_of, kernel_details
from stepscope.formats.xplane.devices import SpaceTracks
from stepscope.formats.xplane.grouping import dense, distinct, match
from stepscope.formats.xplane.view import View
from stepscope.formats.xplane.xla import XlaColumns
from stepscope.names.replicas import group_size
from stepscope.trace import tables as t

T = TypeVar("T")


class _Parsed(Generic[T]):
    """Texts of some statistics, parsed once per distinct text, and which of them each op has."""

    def __init__(self, view: View, ops: t.Rows, keys: tuple[str, ...], parse: Callable[[str], T]) -> None:
        self.values: list[T] = []
        self.at = np.full(ops.size, -1, np.int32)
        for key in keys:
            words, places = view.space.stats.texts(key, ops)
            self.at = np.where((self.at < 0) & (places >= 0), len(self.values) + places, self.at)
            self.values += [parse(word) for word in words]

    def column(self, field: Callable[[T], Any], absent: Any, dtype: type[Any]) -> npt.NDArray[Any]:
        """One field of every op's value."""
        return np.array([*map(field, self.values), absent], dtype)[self.at]


class _Ends(NamedTuple):
    """What ends of asynchronous copies moved, by the program's text; per op."""

    known: t.Bools
    moved: t.I64
    direction: t.U8
    source: t.U8
    target: t.U8

    @classmethod
    def of(cls, ops: t.Rows, xla: XlaColumns) -> _Ends:
        at = match((ops,), (xla.rows,))
        known = (at >= 0) & np.append(xla.copied & ((xla.moved != t.NULL) | (xla.direction > 0)), np.False_)[at]
        ways = (np.append(column, np.uint8(0))[at] for column in (xla.direction, xla.source_memory, xla.target_memory))
        return cls(known, np.append(xla.moved, t.NULL)[at], *ways)

    def told(self, column: Any, otherwise: Any) -> Any:
        """A column, where the program's text tells it."""
        return np.where(self.known, column, otherwise).astype(column.dtype)


class OpEvents(NamedTuple):
    """Device ops: their events and kinds, the slices that they become, and those of the calls that launched them."""

    rows: t.Rows
    kind: t.U8
    slice: t.I32
    launch: t.I32


def device_ops(view: View, op: OpEvents, placed: SpaceTracks, xla: XlaColumns) -> t.DeviceOps:
    """The rows of some device ops."""
    ops = op.rows
    text = view.builder.text
    kernel = _Parsed(view, ops, ("kernel_details",), kernel_details)
    copied = _Parsed(view, ops, ("memcpy_details", "Memset_details"), copy_details)
    is_copy = op.kind == t.Kind.COPY
    share = view.floats("theoretical_occupancy_pct", ops)
    written = kernel.column(lambda k: k.occupancy_pct, np.nan, np.float64)
    graph = view.integers("cuda_graph_id", ops)
    graph = np.where(graph == t.NULL, view.integers("cuda_graph_exec_id", ops), graph)
    collective, dtype, elements, group_size = _collectives(view, op, xla)
    ends = _Ends.of(ops, xla)
    return t.DeviceOps(
        slice=op.slice,
        device=placed.device(ops),
        stream=placed.stream(ops),
        launch=op.launch,
        bytes=ends.told(ends.moved, copied.column(lambda c: c.bytes, t.NULL, np.int64)),
        direction=ends.told(ends.direction, _directions(view, ops, is_copy, copied)),
        source_memory=ends.told(ends.source, np.where(is_copy, copied.column(lambda c: c.source, 0, np.uint8), 0)),
        target_memory=ends.told(ends.target, np.where(is_copy, copied.column(lambda c: c.target, 0, np.uint8), 0)),
        grid=kernel.column(lambda k: text(k.grid), -1, np.int32),
        block=kernel.column(lambda k: text(k.block), -1, np.int32),
        registers=kernel.column(lambda k: k.registers, t.NULL, np.int64),
        shared_memory=kernel.column(lambda k: k.shared_memory, t.NULL, np.int64),
        occupancy_pct=np.where((share > 0) & (share <= 100), share, written),
        graph=np.where(graph == 0, t.NULL, graph),
        collective=collective,
        process_group=np.full(ops.size, -1, np.int32),
        dtype=dtype,
        message_elements=elements,
        group_size=group_size,
    )


def device_waits(waits: t.Rows, placed: SpaceTracks, slice_id: t.I32) -> t.DeviceWaits:
    """The rows of ops in which a device waits for the host."""
    nothing = np.full(waits.size, t.NULL, np.int64)
    return t.DeviceWaits(slice_id[waits], placed.device(waits), placed.stream(waits), nothing, nothing.copy())


def _directions(view: View, ops: t.Rows, is_copy: t.Bools, copied: _Parsed[CopyDetails]) -> t.U8:
    """Which way each copy goes: asked once per distinct name and memory at its ends."""
    name, at, values = view.name[ops[is_copy]], copied.at[is_copy], [*copied.values, CopyDetails()]
    each, first = dense(name, at)
    told = zip(name[first].tolist(), at[first].tolist(), strict=True)
    directions = np.zeros(ops.size, np.uint8)
    directions[is_copy] = np.array([direction_of(view.names[code], values[k]) for code, k in told], np.uint8)[each]
    return directions


def _collectives(view: View, op: OpEvents, xla: XlaColumns) -> tuple[t.I32, t.I32, t.I64, t.I64]:
    """Opcode, element type, elements and group size of XLA's collectives; the names of others' kernels tell enough."""
    at = np.where(op.kind == t.Kind.COLLECTIVE, match((op.rows,), (xla.rows,)), -1)
    codes = [np.append(column, np.int32(-1))[at] for column in (xla.collective, xla.dtype, xla.replica_groups)]
    used, each = distinct(codes[2])
    sizes = [None if code < 0 else group_size(view.builder.string(code)) for code in used.tolist()]
    size = np.array([t.NULL if known is None else known for known in sizes], np.int64)
    elements = np.append(xla.elements, t.NULL)[at]
    return codes[0], codes[1], elements, size[each] if op.rows.size else np.empty(0, np.int64)
