"""What memory was used for: its course and peak per device, what was alive then, growth, fragmentation and headroom."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stepscope.analysis.blocks import HELD, Blocks, Held, Pool, held_code, held_over, pools
from stepscope.analysis.limits import GROWTH_BLOCKS_SHARE, GROWTH_STEPS
from stepscope.analysis.steps import Markers
from stepscope.analysis.where import Locator, Where
from stepscope.record import record
from stepscope.trace.codes import among, grouped
from stepscope.trace.tables import I64, NULL, Bools, Rows
from stepscope.trace.trace import Trace

POINTS = 200
"""Points of a course in the report."""
PLACES = 50
"""Places listed per device: those that hold most."""


@record
class Tensor:
    """What blocks were asked for, as the allocator says; None for what it does not."""

    dtype: str | None = None
    shape: str | None = None
    region: str | None = None
    """``output`` and ``temp`` of an op, ``persist`` for what it keeps."""


@record
class BlocksPlace:
    """Blocks of one kind from one place in the program."""

    held: Held
    where: Where
    blocks: int
    bytes: int
    tensor: Tensor


@record
class MemoryCourse:
    """Memory over time: in each of ``POINTS`` equal stretches the event with most in use, and the last one, whose
    values hold until the next stretch with events."""

    time_ns: I64
    allocated: I64
    reserved: I64
    held: dict[Held, I64]
    """By what it is for; empty where blocks cannot be followed."""


@record
class Peak:
    """The most that was in use at once."""

    time_ns: int
    step: int | None
    """Step of the host at that instant, None outside of the steps."""
    allocated: int
    reserved: int | None
    """What the allocator held at that instant."""
    held: dict[Held, int]
    """What was in use by what it is for, adding up to ``allocated``; empty where blocks cannot be followed."""
    fragmentation: float | None
    """Share of the allocator's free bytes that lie outside of its largest free piece, where it says so."""
    places: tuple[BlocksPlace, ...]
    """Of the blocks allocated inside the profile, largest sum first."""


@record
class Fragmentation:
    """Memory that the allocator holds and nothing uses."""

    free_bytes: int
    """At the peak: held by the allocator beyond what is in use."""
    share: float
    """Of what it holds."""
    taken_beside_free: int
    """How often, in the used steps, it took more from the device while that much and more of its own was free."""


@record
class Growth:
    """How memory in use differs from one step's end to the next one's, over the used steps."""

    per_step: tuple[int, ...]
    """Bytes, one value per step that follows another."""
    steps: tuple[int, ...]
    """The index of that step, a value each."""
    grows: bool
    """Whether it rises in every step, and blocks that stay make up most of that."""
    places: tuple[BlocksPlace, ...]
    """Blocks that a step allocated and that outlive the next one, largest sum first; none unless it grows."""

    @property
    def mean_bytes(self) -> int:
        """Bytes per step."""
        return round(sum(self.per_step) / len(self.per_step))


@record
class Headroom:
    """What the allocator has left of its limit, else the device beside the allocator's most; what others hold on it
    was not recorded."""

    capacity_bytes: int
    of_allocator: bool
    """Whether the capacity is the allocator's limit; else the device's memory."""
    free_bytes: int
    batch_factor: float | None
    """How many times as large could be what grows with the batch: at the peak, activations, temporaries and, lest it be
    too much, what is of no known phase."""


@record
class MemoryUse:
    """The memory of one allocator."""

    pool: Pool
    peak: Peak
    reserved_bytes: int | None
    """The most that the allocator held."""
    course: MemoryCourse
    fragmentation: Fragmentation | None
    growth: Growth | None
    headroom: Headroom | None


def memory_use(trace: Trace, markers: Markers, used: tuple[int, ...], locator: Locator) -> list[MemoryUse]:
    """Each allocator the profile recorded; ``used`` are the steps that costs are made of."""
    all_pools = pools(trace, np.sort(markers.start))
    capacities = _capacities(trace, all_pools)
    return [
        _use(pool, markers, used, locator, None if pool.device is None else capacities.get(pool.device))
        for pool in all_pools
    ]


def _capacities(trace: Trace, all_pools: list[Pool]) -> dict[int, int | None]:
    """The size of each device's memory. The only allocator is the only device's, also where a process numbers it among
    the devices it sees and the profiler among the node's (ROCm)."""
    sizes = {device.id: device.memory_bytes for device in trace.info.devices}
    allocating = {pool.device for pool in all_pools if pool.device is not None}
    if len(allocating) == len(sizes) == 1:
        return dict(zip(allocating, sizes.values(), strict=True))
    return sizes


def _use(pool: Pool, markers: Markers, used: tuple[int, ...], locator: Locator, capacity: int | None) -> MemoryUse:
    peak = _peak(pool, markers, locator)
    told = pool.reserved[pool.reserved != NULL]
    reserved = int(told.max()) if told.size else None
    return MemoryUse(
        pool=pool,
        peak=peak,
        reserved_bytes=reserved,
        course=_course(pool),
        fragmentation=_fragmentation(pool, peak, markers, used),
        growth=_growth(pool, markers, used, locator),
        headroom=_headroom(pool, peak, reserved, capacity),
    )


def _peak(pool: Pool, markers: Markers, locator: Locator) -> Peak:
    at = int(pool.allocated.argmax())
    time, reserved = int(pool.time_ns[at]), int(pool.reserved[at])
    step = int(np.searchsorted(markers.start, time, "right")) - 1
    held = held_over(pool, np.array([at]))
    blocks = pool.blocks
    return Peak(
        time_ns=time,
        step=step if step >= 0 and time <= markers.end[step] else None,
        allocated=int(pool.allocated[at]),
        reserved=None if reserved == NULL else reserved,
        held={kind: int(values[0]) for kind, values in held.items()},
        fragmentation=_share(pool, at),
        places=() if blocks is None else _places(blocks, blocks.alive_at(at), locator),
    )


def _share(pool: Pool, event: int) -> float | None:
    share = float("nan") if pool.fragmentation is None else float(pool.fragmentation[event])
    return None if np.isnan(share) else share


def _places(blocks: Blocks, chosen: Bools, locator: Locator) -> tuple[BlocksPlace, ...]:
    """The chosen blocks by kind, place and tensor, largest sum first."""
    rows = np.flatnonzero(chosen)
    if not rows.size:
        return ()
    memory, asked = locator.trace.memory, blocks.row[rows]
    told = (memory.op[asked], memory.region[asked], memory.dtype[asked], memory.shape[asked])
    first, group = grouped(blocks.held[rows], locator.group(blocks.slice[rows]), *told)
    counts = np.bincount(group)
    total = np.zeros(first.size, np.int64)
    np.add.at(total, group, blocks.bytes[rows])
    return tuple(
        BlocksPlace(
            held=HELD[int(blocks.held[rows[first[at]]])],
            where=_where(locator, blocks, int(rows[first[at]])),
            blocks=int(counts[at]),
            bytes=int(total[at]),
            tensor=_tensor(locator.trace, int(asked[first[at]])),
        )
        for at in np.argsort(-total, kind="stable")[:PLACES].tolist()
    )


def _where(locator: Locator, blocks: Blocks, block: int) -> Where:
    """The place of the slice around an allocation; the op is the one that the allocator names, where it does."""
    slice_, op = int(blocks.slice[block]), int(locator.trace.memory.op[blocks.row[block]])
    place = locator.where(slice_) if slice_ >= 0 else Where()
    return place if op < 0 else replace(place, op=locator.trace.strings[op])


def _tensor(trace: Trace, row: int) -> Tensor:
    codes = (int(column[row]) for column in (trace.memory.dtype, trace.memory.shape, trace.memory.region))
    return Tensor(*(trace.strings[code] if code >= 0 else None for code in codes))


def _course(pool: Pool) -> MemoryCourse:
    span = max(int(pool.time_ns[-1] - pool.time_ns[0]) + 1, 1)
    stretch = (pool.time_ns - pool.time_ns[0]) * POINTS // span
    # The first of the most of each stretch: sorted by stretch, then falling.
    order = np.lexsort((np.arange(stretch.size), -pool.allocated, stretch))
    most = order[np.unique(stretch[order], return_index=True)[1]]
    last = np.append(np.flatnonzero(np.diff(stretch)), stretch.size - 1)
    events = np.union1d(most, last)
    return MemoryCourse(pool.time_ns[events], pool.allocated[events], pool.reserved[events], held_over(pool, events))


def _fragmentation(pool: Pool, peak: Peak, markers: Markers, used: tuple[int, ...]) -> Fragmentation | None:
    if not peak.reserved or peak.reserved < peak.allocated:
        return None
    took = np.diff(pool.reserved) > 0
    free = pool.reserved[:-1] - pool.allocated[:-1]
    known = (pool.reserved[1:] != NULL) & (pool.reserved[:-1] != NULL)
    step = np.searchsorted(markers.start, pool.time_ns[1:], "right") - 1
    beside = took & known & (free >= pool.bytes[1:]) & among(step, used)
    free_bytes = peak.reserved - peak.allocated
    return Fragmentation(free_bytes, free_bytes / peak.reserved, int(beside.sum()))


def _growth(pool: Pool, markers: Markers, used: tuple[int, ...], locator: Locator) -> Growth | None:
    """Compared where used steps end that follow each other in one cycle of the profiler."""
    steps = np.array(used, np.intp)
    follows = np.flatnonzero((np.diff(steps) == 1) & ~markers.gap_after[steps[:-1]]) if steps.size > 1 else steps[:0]
    if not follows.size:
        return None
    event = np.searchsorted(pool.time_ns, markers.end[steps], "right") - 1
    if (event < 0).any():
        return None
    differences = np.diff(pool.allocated[event])[follows]
    staying = _staying(pool, event)
    places: tuple[BlocksPlace, ...] = ()
    grows = differences.size >= GROWTH_STEPS and bool((differences > 0).all()) and staying is not None
    if grows and pool.blocks is not None and staying is not None:
        kept = int(pool.blocks.bytes[staying].sum())
        # The last step's blocks had no next step to outlive.
        grows = kept >= GROWTH_BLOCKS_SHARE * int(np.diff(pool.allocated[event])[:-1].sum())
        places = _places(pool.blocks, staying, locator) if grows else ()
    return Growth(tuple(differences.tolist()), tuple(steps[follows + 1].tolist()), grows, places)


def _staying(pool: Pool, event: Rows) -> Bools | None:
    """Blocks allocated between the first and the last but one of some events that are alive after the last one."""
    blocks = pool.blocks
    if blocks is None:
        return None
    return np.asarray((blocks.begun > event[0]) & (blocks.begun <= event[-2]) & blocks.alive_at(int(event[-1])))


def _headroom(pool: Pool, peak: Peak, reserved: int | None, capacity: int | None) -> Headroom | None:
    """What is left of the allocator's limit where it tells that: a device may have more, but not for this program."""
    of_allocator = pool.limit is not None and pool.least_available is not None
    if pool.limit and pool.least_available is not None:
        capacity, free = pool.limit, pool.least_available
    else:
        holds = peak.allocated if reserved is None and pool.whole else reserved
        if holds is None or not capacity:
            return None
        free = max(capacity - holds, 0)
    grows = sum(peak.held.get(held, 0) for held in (Held.ACTIVATION, Held.TEMPORARY, Held.UNKNOWN))
    return Headroom(capacity, of_allocator, free, 1 + free / grows if grows else None)


__all__ = [
    "BlocksPlace",
    "Fragmentation",
    "Growth",
    "Headroom",
    "Held",
    "MemoryCourse",
    "MemoryUse",
    "Peak",
    "held_code",
]
