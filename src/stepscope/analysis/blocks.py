"""Memory events as blocks: when each was allocated and freed, by what, and what it is for."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import numpy as np

from stepscope.analysis.phases import Phase, phase_code, slice_phases
from stepscope.names.scopes import tensorflow_part
from stepscope.record import record
from stepscope.regex import regex
from stepscope.trace.codes import among, grouped
from stepscope.trace.codes import mapped as named
from stepscope.trace.forest import innermost_at, outermost
from stepscope.trace.tables import F64, I32, I64, NULL, U8, Bools, Kind, Memory, Rows
from stepscope.trace.trace import Trace

MOST_POOLS = 64
"""Allocators that are followed: those with most events. A machine has a few per device."""
_MOST = 1 << 50
"""Bytes: no allocator holds a pebibyte, and sums of less cannot overflow."""
_GPU = regex(r"GPU_(\d{1,4})(?:\D|$)")
_HOST = 0
"""PyTorch's number for memory of the host."""
_TEMPORARY = "temp"
"""What TensorFlow calls the memory that an op gives back when it is done (OpKernelContext::allocate_temp)."""


class Held(StrEnum):
    """What memory is for, by when it was allocated and freed."""

    BEFORE = "before_profile"
    """Allocated before the profile began: parameters and optimizer state, in a loop that is under way."""
    ACTIVATION = "activation"
    """Allocated in the forward pass or the loss, and kept beyond the op."""
    GRADIENT = "gradient"
    """Allocated in the backward pass and kept beyond it."""
    OPTIMIZER_STATE = "optimizer_state"
    """Allocated in the optimizer's step and kept beyond it."""
    TEMPORARY = "temporary"
    """Freed before the op, the backward pass or the optimizer's step that allocated it was over."""
    UNKNOWN = "unknown"
    """Allocated where no phase of a step was recorded."""


HELD = tuple(Held)


def held_code(held: Held) -> int:
    """The place of a kind of memory in ``HELD``."""
    return HELD.index(held)


@record
class Blocks:
    """Blocks allocated inside the profile, one value per block."""

    begun: Rows
    """The pool's event that allocated it."""
    ended: Rows
    """The event that freed it; the number of events where none did."""
    bytes: I64
    held: U8
    """Index in ``HELD``."""
    slice: I32
    """Innermost slice of the allocating thread, -1 where it was in none."""
    row: Rows
    """Row of the table of memory that allocated it."""

    def __len__(self) -> int:
        """The number of blocks."""
        return self.begun.size

    def alive_at(self, event: int) -> Bools:
        """Which blocks hold memory after an event of the pool."""
        return np.asarray((self.begun <= event) & (self.ended > event))


@record
class Pool:
    """The events of one allocator on one device, in order of time."""

    device: int | None
    """None for memory of the host, and where the profile does not tell."""
    on_host: bool
    allocator: str | None
    whole: bool
    """Whether ``allocated`` counts what was allocated before the profile; else it is the least that was in use."""
    time_ns: I64
    bytes: I64
    allocated: I64
    """Bytes in use after each event."""
    reserved: I64
    """Bytes the allocator holds after each event; ``NULL`` where it does not tell."""
    blocks: Blocks | None
    """None where blocks cannot be followed: no addresses, or events are missing."""
    limit: int | None = None
    """Bytes that the allocator may give out at most."""
    least_available: int | None = None
    """The least that it had left of these."""
    fragmentation: F64 | None = None
    """Share of the free bytes it holds that lie outside of its largest free piece, after each event; NaN where it
    does not tell. None where it never does."""


@record
class _Events:
    """What is looked up for all memory events at once; one value per row of the table."""

    memory: Memory
    before: Rows
    """The event before it at the same address, -1 for none."""
    slice: I32
    """Innermost slice of the thread around it, -1 for none."""
    temporary: Bools
    """Whether the allocator says that the op asked for it as a temporary."""
    op_end: I64
    """When the outermost op around it ends that is not autograd's own wrapper; ``NULL`` outside of ops."""
    phase: U8
    step: Rows
    """How many steps had begun."""


def pools(trace: Trace, step_starts: I64) -> list[Pool]:
    """The allocators of a trace: memory of devices first, then by device and name."""
    memory = trace.memory
    if not len(memory):
        return _counted(trace)
    events = _events(trace, step_starts)
    mapped = _mapped(memory, events.before)
    group = grouped(memory.device_type, memory.device, memory.allocator, mapped)[1]
    counts = np.bincount(group)
    members = np.split(np.argsort(group, kind="stable"), np.cumsum(counts)[:-1])
    largest = np.argsort(-counts, kind="stable")[:MOST_POOLS].tolist()
    made = [_pool(trace, members[at], events, mapped=bool(mapped[members[at][0]])) for at in largest]
    return sorted(
        (pool for pool in made if pool.time_ns.size),
        key=lambda pool: (pool.on_host, -1 if pool.device is None else pool.device, pool.allocator or ""),
    )


def _counted(trace: Trace) -> list[Pool]:
    """The allocators of a TensorFlow Timeline: it counts the bytes of the tensors that are alive, of each allocator."""
    counters, tracks = trace.counters, trace.tracks
    processes = [code for code, text in enumerate(trace.strings) if text == "Allocators"]
    counted = among(tracks.process[counters.track], processes) & np.isfinite(counters.value)
    rows = np.flatnonzero(counted & (counters.value >= 0) & (counters.value < _MOST))
    if not len(trace.nodes) or not rows.size:
        return []
    rows = rows[np.argsort(counters.time_ns[rows], kind="stable")]
    names, counts = np.unique(counters.name[rows], return_counts=True)
    return [
        _counted_pool(trace, rows[counters.name[rows] == names[at]])
        for at in np.argsort(-counts, kind="stable")[:MOST_POOLS].tolist()
    ]


def _counted_pool(trace: Trace, rows: Rows) -> Pool:
    allocator = trace.strings[int(trace.counters.name[rows[0]])]
    gpu = _GPU.search(allocator)
    allocated = trace.counters.value[rows].astype(np.int64)
    return Pool(
        device=int(gpu[1]) if gpu else None,
        on_host=gpu is None,
        allocator=allocator,
        whole=False,
        time_ns=trace.counters.time_ns[rows],
        bytes=np.diff(allocated, prepend=0),
        allocated=allocated,
        reserved=np.full(rows.size, NULL, np.int64),
        blocks=None,
    )


def _events(trace: Trace, step_starts: I64) -> _Events:
    memory, slices = trace.memory, trace.slices
    wrappers = [code for code, text in enumerate(trace.strings) if text.startswith("autograd::engine")]
    ops = outermost((slices.kind == Kind.HOST_OP) & ~among(slices.name, wrappers), slices.parent)
    at = innermost_at(slices, memory.track, memory.time_ns)
    op = np.append(ops, np.int32(-1))[at]
    op_end = np.full(op.size, NULL, np.int64)
    in_op = op >= 0
    op_end[in_op] = slices.start_ns[op[in_op]] + slices.dur_ns[op[in_op]]
    phase = np.append(slice_phases(trace), np.uint8(phase_code(Phase.UNKNOWN)))[at]
    by_op = named(memory.op, trace.strings, _phase_of_node, np.uint8)
    return _Events(
        memory=memory,
        before=_event_before(memory),
        slice=at,
        op_end=op_end,
        phase=np.where((phase == phase_code(Phase.UNKNOWN)) & (memory.op >= 0), by_op, phase),
        temporary=named(memory.region, trace.strings, _TEMPORARY.__eq__, np.bool_),
        step=np.searchsorted(step_starts, memory.time_ns, "right"),
    )


def _phase_of_node(node: str) -> int:
    """The phase of a node of TensorFlow's graph by its scope; what lies in no scope may be of any."""
    part = tensorflow_part(node)
    return phase_code(Phase.UNKNOWN if part is None else Phase(part.value))


def _event_before(memory: Memory) -> Rows:
    """Per event the one before it at the same address, -1 for none and where no address was recorded."""
    rows = np.arange(len(memory))
    order = np.lexsort((rows, memory.address, memory.device, memory.device_type))
    same = np.ones(order.size - 1, np.bool_)
    for column in (memory.address, memory.device, memory.device_type):
        same &= column[order[1:]] == column[order[:-1]]
    before = np.full(len(memory), -1, np.intp)
    before[order[1:][same]] = order[:-1][same]
    before[memory.address == NULL] = -1
    return before


def _mapped(memory: Memory, before: Rows) -> Bools:
    """Events of memory that PyTorch maps (tensors shared between processes).

    They stand among those of the host's allocator without being in its total: their own total is 0, and their size
    counts as reserved (``MapAllocator``).
    """
    on_host = (memory.device_type == _HOST) & (memory.allocated == 0)
    mapped: Bools = on_host & (memory.bytes > 0) & (memory.reserved == memory.bytes)
    frees = on_host & (memory.bytes < 0) & (memory.reserved == 0)
    mapped |= frees & (before >= 0) & mapped[before]
    # A free of what was allocated before the profile is the allocator's where its total goes down to 0 by it.
    others = np.flatnonzero((memory.device_type == _HOST) & ~mapped & ~(frees & (before < 0)))
    loose = np.flatnonzero(frees & (before < 0))
    last = np.searchsorted(others, loose) - 1
    known = last >= 0
    left = np.where(known, memory.allocated[others[last]] if others.size else 0, 0)
    mapped[loose[left + memory.bytes[loose] != 0]] = True
    return mapped


def _pool(trace: Trace, rows: Rows, events: _Events, *, mapped: bool) -> Pool:
    memory = trace.memory
    first = int(rows[0])
    device, kind, name = int(memory.device[first]), int(memory.device_type[first]), int(memory.allocator[first])
    on_host = kind == _HOST or (kind == NULL and device < 0)
    told = (memory.allocated[rows] >= 0) & _possible(memory.allocated[rows])
    recorded = bool(told.any()) and not mapped
    if recorded:
        rows = rows[told]
        allocated = memory.allocated[rows]
    else:
        rows = rows[_possible(memory.bytes[rows])]
        total = np.cumsum(memory.bytes[rows])
        # At least what was freed without having been allocated was in use when the profile began.
        allocated = total - min(int(total.min(initial=0)), 0)
    reserved = memory.reserved[rows]
    blocks = _blocks(events, rows)
    if blocks is not None and (resting(allocated, blocks, np.arange(rows.size)) < 0).any():
        blocks = None  # more was allocated than is in use: frees are missing
    return Pool(
        device=None if on_host or device < 0 else device,
        on_host=on_host,
        allocator="shared memory" if mapped else trace.strings[name] if name >= 0 else None,
        # PyTorch's total for the host begins with the profile.
        whole=recorded and not (on_host and trace.info.framework == "PyTorch"),
        time_ns=memory.time_ns[rows],
        bytes=memory.bytes[rows],
        allocated=allocated,
        reserved=np.where(on_host | ~_possible(reserved) | (reserved < 0), NULL, reserved),
        blocks=blocks,
        limit=_known(memory.limit[rows], np.max),
        least_available=_known(memory.available[rows], np.min),
        fragmentation=None if np.isnan(memory.fragmentation[rows]).all() else memory.fragmentation[rows],
    )


def _known(sizes: I64, of: Callable[[I64], np.int64]) -> int | None:
    known = sizes[_possible(sizes) & (sizes >= 0)]
    return int(of(known)) if known.size else None


def _possible(sizes: I64) -> Bools:
    """Which sizes are known and no nonsense."""
    return np.asarray((sizes > -_MOST) & (sizes < _MOST))


def resting(allocated: I64, blocks: Blocks, events: Rows) -> I64:
    """Bytes in use after some events that were allocated before the profile."""
    return np.asarray(allocated[events] - _running(blocks, np.ones(len(blocks), np.bool_), allocated.size)[events])


def held_over(pool: Pool, events: Rows) -> dict[Held, I64]:
    """Bytes in use after some events, by what they are for; they add up to ``allocated``. Nothing without blocks."""
    blocks = pool.blocks
    if blocks is None:
        return {}
    bytes_of = {Held.BEFORE: resting(pool.allocated, blocks, events)}
    for code, held in enumerate(HELD[1:], 1):
        bytes_of[held] = _running(blocks, blocks.held == code, pool.allocated.size)[events]
    return bytes_of


def _running(blocks: Blocks, chosen: Bools, events: int) -> I64:
    """Bytes of the chosen blocks that are in use after each event."""
    change = np.zeros(events + 1, np.int64)
    np.add.at(change, blocks.begun[chosen], blocks.bytes[chosen])
    np.subtract.at(change, blocks.ended[chosen], blocks.bytes[chosen])
    return np.cumsum(change)[:events]


def _blocks(events: _Events, rows: Rows) -> Blocks | None:
    """Every allocation with the free that follows it at its address."""
    memory = events.memory
    if (memory.address[rows] == NULL).any() or not _possible(memory.bytes[rows]).all():
        return None
    place = np.full(len(memory), -1, np.intp)
    place[rows] = np.arange(rows.size)
    previous = np.where(events.before[rows] >= 0, place[events.before[rows]], -1)
    # An address that is allocated again was freed in between, unseen: no later than that.
    follows = np.flatnonzero(previous >= 0)
    ended = np.full(rows.size, rows.size, np.intp)
    ended[previous[follows]] = follows
    begun = np.flatnonzero(memory.bytes[rows] > 0)
    freed = np.append(rows, -1)[ended[begun]]
    return Blocks(
        begun=begun,
        ended=ended[begun],
        bytes=memory.bytes[rows][begun],
        held=_held(events, rows[begun], freed),
        slice=events.slice[rows][begun],
        row=rows[begun],
    )


def _held(events: _Events, begun: Rows, freed: Rows) -> U8:
    """What blocks are for, from the rows that allocated and freed them (-1: not freed)."""
    phase, known = events.phase[begun], freed >= 0
    same_step = known & (events.step[freed] == events.step[begun])
    held = np.full(begun.size, held_code(Held.UNKNOWN), np.uint8)
    held[among(phase, (phase_code(Phase.FORWARD), phase_code(Phase.LOSS)))] = held_code(Held.ACTIVATION)
    held[phase == phase_code(Phase.BACKWARD)] = held_code(Held.GRADIENT)
    held[phase == phase_code(Phase.OPTIMIZER)] = held_code(Held.OPTIMIZER_STATE)
    passing = among(phase, (phase_code(Phase.BACKWARD), phase_code(Phase.OPTIMIZER)))
    temporary = passing & same_step & (events.phase[freed] == phase)
    # Around TensorFlow's ops stand its executors, which run many: its allocators say what is a temporary. Of a free
    # they do not say for whom; an optimizer's state stays.
    in_op = known & (events.memory.time_ns[freed] <= events.op_end[begun]) & (events.memory.op[begun] < 0)
    updating = same_step & (phase == phase_code(Phase.OPTIMIZER)) & (events.memory.op[begun] >= 0)
    temporary |= in_op | events.temporary[begun] | updating
    held[temporary] = held_code(Held.TEMPORARY)
    return held


__all__ = ["HELD", "Blocks", "Held", "Pool", "held_code", "held_over", "pools", "resting"]
