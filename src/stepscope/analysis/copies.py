"""Copies: which op asks for them, whether they recur in every step, and how much of their time nothing hides."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import CATEGORIES, Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.where import Locator, Where
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, grouped
from stepscope.trace.forest import innermost_at
from stepscope.trace.tables import I32, I64, MemoryKind, Rows
from stepscope.trace.trace import Trace

COPY_CATEGORIES = (Category.COPY_H2D, Category.COPY_D2H, Category.COPY_D2D, Category.COPY_P2P)


@record
class Copies:
    """All copies of one direction and memory from one place in the program, over the used steps."""

    category: Category
    source_memory: str
    target_memory: str
    op: str | None
    where: Where
    count: int
    steps: frozenset[int]
    bytes: int | None
    """None where the profile does not give the size of every copy."""
    total_ns: int
    exposed_ns: int
    """Time in which the device did nothing but copy."""
    launch_recorded: bool
    """False where the place is a guess: the nearest op on the main thread."""
    slices: tuple[int, ...]


def find_copies(
    trace: Trace, activity: DeviceActivity, account: Account, locator: Locator, used: tuple[int, ...], main: int
) -> list[Copies]:
    """The copies of the used steps, grouped by place, most exposed first; ``main`` is the main thread's track."""
    codes = [category.code for category in COPY_CATEGORIES]
    row = account.rows.at(activity.start)
    chosen = np.flatnonzero(among(activity.category, codes) & among(row, account.step_rows(used)))
    if chosen.size == 0:
        return []
    exposed = _exposed(activity, chosen)
    place = _host_side(trace, activity, chosen, main)
    ops = trace.device_ops
    memory = ops.source_memory[activity.row[chosen]], ops.target_memory[activity.row[chosen]]
    group = grouped(activity.category[chosen], *memory, activity.launched[chosen], locator.group(place))[1]
    order = np.argsort(group, kind="stable")
    every = []
    for members in np.split(order, np.cumsum(np.bincount(group))[:-1]):
        at = int(place[members[0]])
        steps = frozenset(step for r in row[chosen[members]].tolist() if (step := account.rows.steps[r]) is not None)
        where = locator.where(at) if at >= 0 else Where()
        every.append(_copies(trace, activity, chosen[members], where, steps, int(exposed[members].sum())))
    return sorted(every, key=lambda copies: -copies.exposed_ns)


def _host_side(trace: Trace, activity: DeviceActivity, chosen: Rows, main: int) -> I32:
    """Per copy, the launch call; without one, what the main thread was doing when the copy began (a guess)."""
    calls = activity.call[chosen]
    bare = calls < 0
    if main < 0 or not bare.any():
        return calls
    tracks = np.full(chosen.size, main, np.int32)
    return np.where(bare, innermost_at(trace.slices, tracks, activity.start[chosen]), calls)


def _copies(
    trace: Trace, activity: DeviceActivity, chosen: Rows, where: Where, steps: frozenset[int], exposed: int
) -> Copies:
    """One group: ops of the same category, memory and place."""
    first, sizes = int(activity.row[chosen[0]]), trace.device_ops.bytes[activity.row[chosen]]
    return Copies(
        category=CATEGORIES[int(activity.category[chosen[0]])],
        source_memory=MemoryKind(int(trace.device_ops.source_memory[first])).name.lower(),
        target_memory=MemoryKind(int(trace.device_ops.target_memory[first])).name.lower(),
        op=where.op,
        where=where,
        count=chosen.size,
        steps=steps,
        bytes=None if (sizes < 0).any() else sum(sizes.tolist()),
        total_ns=int((activity.end[chosen] - activity.start[chosen]).sum()),
        exposed_ns=exposed,
        launch_recorded=bool(activity.launched[chosen[0]]),
        slices=tuple(activity.slice[chosen].tolist()),
    )


def _exposed(activity: DeviceActivity, chosen: Rows) -> I64:
    """Per copy, the time in which the busy partition belongs to a copy. Copies that overlap share it in order."""
    start, end, category = activity.busy_pieces
    mine = among(category, [c.code for c in COPY_CATEGORIES])
    free: iv.Intervals = (start[mine], end[mine])
    # Where copies overlap each other the later one only counts from where the earlier ones ended.
    reach = np.maximum.accumulate(np.concatenate(([np.iinfo(np.int64).min], activity.end[chosen])))[:-1]
    begin = np.maximum(activity.start[chosen], reach)
    return iv.covered_between(free, begin, np.maximum(begin, activity.end[chosen]))
