"""What one device did and who told it to: its ops with categories and launches, and its busy time."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from stepscope.analysis.categories import CATEGORIES, Category
from stepscope.hlo.instructions import is_control_flow
from stepscope.hlo.waits import is_async_end
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, distinct
from stepscope.trace.tables import I32, I64, NULL, U8, Bools, Direction, Kind, LaunchBasis, MemoryKind
from stepscope.trace.trace import Trace

_HOST_MEMORY = (MemoryKind.PAGEABLE, MemoryKind.PINNED)
_COPIES = {Direction.H2D: Category.COPY_H2D, Direction.D2H: Category.COPY_D2H, Direction.P2P: Category.COPY_P2P}


@record
class DeviceActivity:
    """One device's ops in order of start; all arrays have one value per op."""

    device: int
    row: I32
    """Row in ``device_ops``."""
    slice: I32
    start: I64
    end: I64
    category: U8
    """Code of the op's ``Category``."""
    stream: I64
    call: I32
    """Slice of the runtime call that launched the op, -1 where none is recorded."""
    launch: I64
    """Start of that call, NULL where none is recorded: the launch instant."""
    launch_end: I64
    thread: I32
    """Track of that call, -1 where none is recorded."""
    unnumbered: Bools
    """Ops of compiled modules without a launch that carry no number of one: nothing was taken out of the profile, the
    launch was not recorded."""
    unrecorded: iv.Intervals = iv.EMPTY
    """When the device worked on what the profile does not hold (``analysis/unrecorded.py``)."""
    by_node: bool = False
    """Launches were found by the names of a graph's nodes (TensorFlow 1): copies, which belong to none, have no launch,
    and nothing is left over from before the session's run."""

    def __len__(self) -> int:
        """The number of ops."""
        return len(self.row)

    @cached_property
    def launched(self) -> Bools:
        """Which ops have a recorded launch."""
        return np.asarray(self.call >= 0)

    @cached_property
    def busy(self) -> iv.Intervals:
        """The set of instants at which a recorded op ran."""
        return iv.union(self.start, self.end)

    @cached_property
    def occupied(self) -> iv.Intervals:
        """The set of instants at which the device worked, on recorded ops or others."""
        return iv.union(*(np.concatenate(part) for part in zip(self.busy, self.unrecorded, strict=True)))

    @cached_property
    def busy_pieces(self) -> tuple[I64, I64, U8]:
        """Busy time partitioned by category: the earliest category of the list wins where streams overlap."""
        start, end, code = iv.sweep(self.start, self.end, self.category, len(CATEGORIES))
        if not len(self.unrecorded[0]):
            return start, end, code
        start, end = (np.concatenate(part) for part in zip((start, end), self.unrecorded, strict=True))
        code = np.append(code, np.full(len(self.unrecorded[0]), Category.UNRECORDED.code, np.uint8))
        order = np.argsort(start)
        return start[order], end[order], code[order]

    @property
    def begins_occupied(self) -> bool:
        """Whether the first op waited until the device had done what was launched before the profile."""
        return bool(len(self.unrecorded[0]) and self.unrecorded[0][0] < self.start[0])

    @cached_property
    def before_profile(self) -> Bools:
        """Ops launched before the profile began: no launch, and they start before the first op of their stream that
        has one (of the device, where no op of the stream has).
        """
        if self.by_node or not self.launched.any():
            return np.zeros(len(self), np.bool_)
        early: Bools = ~self.launched & (self.start < self.start[self.launched.argmax()])
        for stream in distinct(self.stream[~self.launched]):
            mine = self.stream == stream
            known = mine & self.launched
            if known.any():
                early[mine] = ~self.launched[mine] & (self.start[mine] < self.start[known.argmax()])
        return early


def device_activities(trace: Trace) -> list[DeviceActivity]:
    """The activity of every device that did anything, by device number."""
    ops, slices = trace.device_ops, trace.slices
    categories = _categories(trace)
    contains = _containers(trace)
    unnumbered = np.zeros(len(slices), np.bool_)
    unnumbered[trace.xla_ops.slice] = slices.correlation[trace.xla_ops.slice] == NULL
    by_node = bool((trace.launches.basis == LaunchBasis.NODE).any())
    activities = []
    for device in distinct(ops.device):
        low, high = np.searchsorted(ops.device, [device, device + 1])
        rows = _without_containers(trace, np.arange(low, high, dtype=np.int32), contains)
        ids, call = ops.slice[rows], ops.launch[rows]
        known = call >= 0
        start = slices.start_ns[ids]
        activities.append(
            DeviceActivity(
                device=int(device),
                row=rows,
                slice=ids,
                start=start,
                end=start + slices.dur_ns[ids],
                category=categories[rows],
                stream=ops.stream[rows],
                call=call,
                launch=np.where(known, slices.start_ns[call], NULL),
                launch_end=np.where(known, slices.start_ns[call] + slices.dur_ns[call], NULL),
                thread=np.where(known, slices.track[call], -1).astype(np.int32),
                unnumbered=~known & unnumbered[ids],
                by_node=by_node,
            )
        )
    return activities


def _containers(trace: Trace) -> Bools:
    """Which device ops only run other ops (XLA's control flow): what happens inside them is recorded op by op."""
    compiled, names = trace.xla_ops, trace.strings
    used = {code for column in (compiled.op, compiled.category) for code in distinct(column) if code >= 0}
    codes = [code for code in used if is_control_flow(names[code])]
    holds = np.zeros(len(trace.slices), np.bool_)
    holds[compiled.slice] = among(compiled.op, codes) | among(compiled.category, codes)
    return np.asarray(holds[trace.device_ops.slice])


def _without_containers(trace: Trace, rows: I32, contains: Bools) -> I32:
    """One device's ops, in order of start, without the containers in which another op, or a wait of the program for
    the host, began."""
    ids, waits = trace.device_ops.slice[rows], trace.device_waits
    if not contains[rows].any():
        return rows
    start = trace.slices.start_ns[ids]
    within = waits.slice[waits.device == trace.device_ops.device[rows[0]]]
    begins = np.sort(np.concatenate((start, trace.slices.start_ns[within])))
    begun = np.searchsorted(begins, start + trace.slices.dur_ns[ids]) - np.searchsorted(begins, start)
    return rows[~(contains[rows] & (begun > 1))]


def _categories(trace: Trace) -> U8:
    ops = trace.device_ops
    kinds = trace.slices.kind[ops.slice]
    codes = np.full(len(ops), Category.COMPUTE.code, np.uint8)
    codes[kinds == Kind.COLLECTIVE] = Category.COLLECTIVE.code
    codes[kinds == Kind.MEMSET] = Category.MEMSET.code
    codes[kinds == Kind.COPY] = Category.COPY_D2D.code
    for direction, category in _COPIES.items():
        codes[(kinds == Kind.COPY) & (ops.direction == direction)] = category.code
    return _ends_of_copies(trace, codes)


def _ends_of_copies(trace: Trace, codes: U8) -> U8:
    """Copies of a compiled program that run beside its ops: the op that ends one waits, for what lies at its ends."""
    ops, compiled, names = trace.device_ops, trace.xla_ops, trace.strings
    used = {code for column in (compiled.op, compiled.category) for code in distinct(column) if code >= 0}
    ends = [code for code in used if is_async_end(names[code])]
    if not ends:
        return codes
    waits = np.zeros(len(trace.slices), np.bool_)
    waits[compiled.slice] = among(compiled.op, ends) | among(compiled.category, ends)
    waits = waits[ops.slice] & (trace.slices.kind[ops.slice] == Kind.COPY)
    on_host = among(ops.source_memory, _HOST_MEMORY) | among(ops.target_memory, _HOST_MEMORY)
    codes[waits] = Category.MEMORY_SPACE.code
    codes[waits & on_host] = Category.HOST_MEMORY.code
    codes[waits & (ops.direction == Direction.P2P)] = Category.PEER.code
    return codes
