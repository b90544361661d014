"""What a compiled program needs of memory, as XLA assigned it (``HloProto.buffer_assignment``).

Field numbers are those of xla/service/hlo.proto. An allocation is a piece of one memory space; values that live at
different times may lie in the same one. Parameters, results and constants live as long as the program runs; when the
others begin and end, XLA's simulation of its heap says. Damaged bytes never raise: what is not there is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import StrEnum

import numpy as np

from stepscope.hlo.instructions import HloOp, read_hlo
from stepscope.hlo.shapes import UNKNOWN, Shape, read_shapes
from stepscope.protobuf.columns import Spans, children, decode, numbers, repeated_numbers, texts
from stepscope.record import record
from stepscope.trace.tables import I64, NULL, U8, Bools

_MOST_BYTES = 1 << 50
"""No machine holds more; larger sizes are damage."""
_ALLOCATE, _FREE, _SHARE = range(3)
"""Kinds of events of the simulated heap."""
_CHAIN = 16
"""Values that share the memory of values that share the memory of others: real chains are one or two long."""


class Use(StrEnum):
    """What an allocation is for."""

    PARAMETER = "parameter"
    OUTPUT = "output"
    THREAD_LOCAL = "thread_local"
    CONSTANT = "constant"
    TEMPORARY = "temporary"


@record
class Buffer:
    """A value that is in memory when the program needs most of a memory space."""

    name: str
    """The instruction that makes it, with the part of its result (``copy-start{0}``)."""
    op: HloOp | None
    shape: Shape
    use: Use
    bytes: int
    unpadded: int
    """Bytes of its elements alone."""
    until: str | None
    """The last op that took memory while it lived; None for what lives as long as the program runs."""
    beside: int
    """How many values took memory while it lived; 0 for what lives as long as the program runs."""
    peak_without: int
    """What the program would need at most without it."""
    donor: str | None = None
    """Of a result the parameter of the same size whose memory it could take, were that donated."""


@record
class SpaceUse:
    """What a program needs of one memory space."""

    space: int
    """0 is the device's main memory."""
    peak: int
    unpadded: int
    """The same without padding."""
    allocated: int
    """Bytes of all its allocations: what it takes while it runs."""
    uses: dict[Use, int]
    """What the peak is made of."""
    buffers: tuple[Buffer, ...]
    """At the peak, largest first."""


def read_buffers(data: bytes) -> tuple[SpaceUse, ...] | None:
    """What the program in a serialized ``xla.HloProto`` needs, by memory space; None where it was not recorded."""
    raw = np.frombuffer(data, np.uint8)
    assignment = texts(raw, Spans.whole(raw), 3)
    if assignment.start[0] < 0:
        return None
    buffers = _Assignment(raw, assignment)
    spaces = sorted({int(color) for color in buffers.color[buffers.size > 0]})
    return tuple(buffers.space(color) for color in spaces)


@record
class _Alive:
    """The values in memory at the peak of a simulated heap (rows of logical buffers), and what the heap would need
    without each."""

    peak: int
    rows: list[int]
    without: list[int]
    lives: list[tuple[str, int]]
    """The last op that took memory while each lived, and how many did."""


class _Assignment:
    def __init__(self, raw: U8, assignment: Spans) -> None:
        self._raw = raw
        self._logical = children(raw, assignment, 1).spans
        id, self._bytes, self._defined = _sizes(raw, self._logical)
        self._row = {int(one): row for row, one in enumerate(id.tolist())}
        spans = children(raw, assignment, 3).spans
        columns = numbers(raw, spans, 1, 2, 3, 5, 12, 7, 8)
        self.index, self.size, local, parameter, constant, live, self.color = (
            np.where(column == NULL, 0, column) for column in columns
        )
        self.size = np.where((self.size < 0) | (self.size > _MOST_BYTES), 0, self.size)
        choice = [parameter > 0, live > 0, local > 0, constant > 0]
        self._use = np.select(choice, range(4), 4)
        self._aliased = (parameter > 0) & (live > 0)
        assigned = children(raw, spans, 9)
        ids = _zeros(numbers(raw, assigned.spans, 1)[0]).tolist()
        self._values: dict[int, list[int]] = {}
        self._allocation: dict[int, int] = {}
        for allocation, one in zip(assigned.parent.tolist(), ids, strict=True):
            if (row := self._row.get(one)) is not None:
                self._values.setdefault(allocation, []).append(row)
                self._allocation[row] = allocation
        self._traces = children(raw, assignment, 4).spans
        self._instructions = _Instructions(raw)

    def space(self, color: int) -> SpaceUse:
        here = np.flatnonzero((self.color == color) & (self.size > 0))
        lasting = [allocation for allocation in here.tolist() if self._use[allocation] < 4]
        heaps = [heap for trace in range(len(self._traces)) if (heap := self._heap(trace, color)) is not None]
        always, peaks = int(self.size[lasting].sum()), sum(heap.peak for heap in heaps)
        peak = always + peaks
        buffers = [*self._lasting(lasting, peak)]
        for heap in heaps:
            others = peak - heap.peak
            buffers += [
                self._buffer(row, Use.TEMPORARY, int(self._bytes[row]), others + without, life)
                for row, without, life in zip(heap.rows, heap.without, heap.lives, strict=True)
            ]
        uses = dict.fromkeys(Use, 0)
        for allocation in lasting:
            uses[tuple(Use)[self._use[allocation]]] += int(self.size[allocation])
        uses[Use.TEMPORARY] = peaks
        return SpaceUse(
            space=color,
            peak=peak,
            unpadded=peak - sum(one.bytes - one.unpadded for one in buffers),
            allocated=int(self.size[here].sum()),
            uses={use: size for use, size in uses.items() if size},
            buffers=tuple(sorted(buffers, key=lambda one: -one.bytes)),
        )

    def _lasting(self, allocations: Sequence[int], peak: int) -> Iterator[Buffer]:
        """What lives as long as the program runs: of each allocation its largest value."""
        lasting = []
        for allocation in allocations:
            rows = self._values.get(allocation, [])
            if rows:
                row = max(rows, key=lambda one: int(self._bytes[one]))
                lasting.append((allocation, row))
        donors = [
            (int(self.size[allocation]), self._name(row))
            for allocation, row in lasting
            if self._use[allocation] == 0 and not self._aliased[allocation]
        ]
        for allocation, row in lasting:
            size, use = int(self.size[allocation]), tuple(Use)[self._use[allocation]]
            donor = None
            if use is Use.OUTPUT:
                at = next((at for at, (bytes_, _) in enumerate(donors) if bytes_ == size), None)
                donor = None if at is None else donors.pop(at)[1]
            yield replace(self._buffer(row, use, size, peak - size), donor=donor)

    def _buffer(self, row: int, use: Use, size: int, without: int, life: tuple[str | None, int] = (None, 0)) -> Buffer:
        op, shape = self._instructions.at(int(self._defined[row]), self._path(row))
        unpadded = min(shape.bytes, size) if shape.bits else size
        return Buffer(self._name(row), op, shape, use, size, unpadded, life[0], life[1], without)

    def _path(self, row: int) -> list[int]:
        where = texts(self._raw, self._logical[row : row + 1], 3)
        return [int(one) for one in repeated_numbers(self._raw, where, 3)[0]]

    def _name(self, row: int) -> str:
        name, path = self._instructions.name(int(self._defined[row])), self._path(row)
        return f"{name}{{{','.join(map(str, path))}}}" if path else name

    def _heap(self, trace: int, color: int) -> _Alive | None:
        """The peak of one simulated heap, if it is one of values that do not last in this memory space."""
        raw = self._raw
        events = children(raw, self._traces[trace : trace + 1], 1).spans
        kind, buffer, share = (_zeros(column) for column in numbers(raw, events, 1, 2, 5))
        row = np.array([self._row.get(one, -1) for one in buffer.tolist()], np.int64)
        other = np.array([self._row.get(one, -1) for one in share.tolist()], np.int64)
        known = (row >= 0) & (self._bytes[row] >= 0) if row.size else np.zeros(0, np.bool_)
        if not known.any():
            return None
        allocation = self._allocation.get(int(row[known][0]), -1)
        if allocation < 0 or self.color[allocation] != color or self._use[allocation] < 4:
            return None
        canonical = np.arange(len(self._bytes))
        shares = np.flatnonzero(known & (kind == _SHARE) & (other >= 0))
        canonical[row[shares]] = other[shares]
        for _ in range(_CHAIN):
            canonical = canonical[canonical]
        kind, row, events = kind[known], canonical[row[known]], events[np.flatnonzero(known)]
        return _at_peak(row, kind, self._bytes, decode(raw, texts(raw, events, 4)))


def _at_peak(row: I64, kind: I64, sizes: I64, names: Sequence[str | None]) -> _Alive:
    """Values come and go: memory is taken by the first that needs it, and given back by the last."""
    step = np.where(kind == _FREE, -1, 1)
    order = np.lexsort((np.arange(row.size), row))
    begins = np.append(True, np.diff(row[order]) != 0)
    total = np.cumsum(step[order])
    before_group = (total - step[order])[begins][np.cumsum(begins) - 1]
    holders = np.empty(row.size, np.int64)
    holders[order] = total - before_group
    on, off = (holders > 0) & (holders - step <= 0), (holders <= 0) & (holders - step > 0)
    heap = np.cumsum(np.where(on, sizes[row], 0) - np.where(off, sizes[row], 0))
    at = int(heap.argmax())
    highest_before = np.maximum.accumulate(heap)
    highest_after = np.maximum.accumulate(heap[::-1])[::-1]
    taking = np.maximum.accumulate(np.where(kind == _ALLOCATE, np.arange(row.size), 0))
    begun, ended = _lives(row, on, off, at)
    alive = np.array(sorted(begun, key=lambda one: begun[one]), np.int64)
    without, lives = [], []
    taken = np.append(0, np.cumsum(kind == _ALLOCATE))
    for one in alive.tolist():
        start, end = begun[one], ended.get(one, row.size)
        around = [int(highest_before[start - 1])] if start else []
        around += [int(highest_after[end])] if end < row.size else []
        without.append(max([int(heap[at] - sizes[one]), *around]))
        lives.append((names[int(taking[end - 1])] or "", int(taken[end] - taken[start + 1])))
    return _Alive(int(heap[at]), alive.tolist(), without, lives)


def _lives(row: I64, on: Bools, off: Bools, at: int) -> tuple[dict[int, int], dict[int, int]]:
    """Of the values alive behind an event, where they began, and where those end that do."""
    begun: dict[int, int] = {}
    changes = np.flatnonzero(on | off)
    for event in changes[changes <= at].tolist():
        if on[event]:
            begun[int(row[event])] = event
        else:
            begun.pop(int(row[event]), None)
    ended: dict[int, int] = {}
    for event in np.flatnonzero(off).tolist():
        if event > at:
            ended.setdefault(int(row[event]), event)
    return begun, ended


class _Instructions:
    """The instructions of the program, by id."""

    def __init__(self, raw: U8) -> None:
        self._raw = raw
        self._ops = read_hlo(raw, 0, len(raw)).ops
        module = children(raw, Spans.whole(raw), 1, cut=True).spans[:1]
        self._spans = children(raw, children(raw, module, 3, cut=True).spans, 2, cut=True).spans
        ids = _zeros(numbers(raw, self._spans, 35)[0]).tolist()
        self._rows = {one: row for row, one in enumerate(ids)}
        self._names = decode(raw, texts(raw, self._spans, 1))

    def name(self, id: int) -> str:
        """What an instruction is called."""
        row = self._rows.get(id)
        return "" if row is None else self._names[row] or ""

    def at(self, id: int, path: Sequence[int]) -> tuple[HloOp | None, Shape]:
        """An instruction, and the shape of a part of its result."""
        row = self._rows.get(id)
        if row is None:
            return None, UNKNOWN
        where = texts(self._raw, self._spans[row : row + 1], 3)
        shape = read_shapes(self._raw, where)[0] if where.start[0] >= 0 else UNKNOWN
        for part in path:
            shape = shape.parts[part] if 0 <= part < len(shape.parts) else UNKNOWN
        return self._ops.get(self._names[row] or ""), shape


def _sizes(raw: U8, logical: Spans) -> tuple[I64, I64, I64]:
    """Id, bytes and defining instruction of every value; bytes of -1 are none that can be."""
    id, size = (_zeros(column) for column in numbers(raw, logical, 1, 2))
    defined = texts(raw, logical, 3)
    instruction = _zeros(numbers(raw, defined, 4)[0])
    return id, np.where((size < 0) | (size > _MOST_BYTES), -1, size), instruction


def _zeros(column: I64) -> I64:
    """What proto3 leaves out is 0."""
    return np.where(column == NULL, 0, column)
