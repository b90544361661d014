"""Transfers of compiled programs between host memory and a device's own: what each moves, how long it is waited for."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.facts import Facts
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.codes import distinct, grouped
from stepscope.trace.tables import Direction, MemoryKind, Rows

_CODE = Category.HOST_MEMORY.code


@record
class Transfer:
    """What one op of a program moves in every step; ns and counts per step are means over the used steps."""

    name: str
    direction: Direction
    source: MemoryKind
    target: MemoryKind
    bytes: int | None
    """Of one transfer; None where not recorded."""
    count: int
    """In all used steps."""
    waited_ns: int
    """In all used steps."""
    ops: Rows
    """Places in the device's activity of all such ops, those of other steps among them."""
    slices: tuple[int, ...]


def transfers(facts: Facts, activity: DeviceActivity, account: Account) -> list[Transfer]:
    """The transfers of the used steps, those first that are waited for longest."""
    waits = np.flatnonzero(activity.category == _CODE)
    used = facts.in_used_steps(account, activity.start[waits])
    if not used.any():
        return []
    start, end, codes = activity.busy_pieces
    alone: iv.Intervals = (start[codes == _CODE], end[codes == _CODE])
    waited = iv.covered_between(alone, activity.start[waits], activity.end[waits])
    ops = facts.trace.device_ops
    size, way = ops.bytes[activity.row[waits]], ops.direction[activity.row[waits]]
    group = grouped(facts.trace.slices.name[activity.slice[waits]], size, way)[1]
    moved = []
    for number in distinct(group[used]):
        every, mine = waits[group == number], waits[(group == number) & used]
        first = int(activity.row[mine[0]])
        moved.append(
            Transfer(
                name=facts.trace.name_of(int(activity.slice[mine[0]])),
                direction=Direction(int(ops.direction[first])),
                source=MemoryKind(int(ops.source_memory[first])),
                target=MemoryKind(int(ops.target_memory[first])),
                bytes=None if ops.bytes[first] < 0 else int(ops.bytes[first]),
                count=mine.size,
                waited_ns=int(waited[(group == number) & used].sum()),
                ops=every,
                slices=tuple(activity.slice[mine].tolist()),
            )
        )
    return sorted(moved, key=lambda one: -one.waited_ns)


def in_flight_ns(facts: Facts, activity: DeviceActivity, account: Account, chosen: list[Transfer]) -> int | None:
    """How long per used step any of some transfers was on its way, from its start to where it was waited for; None
    where the program's starts were not recorded."""
    names = facts.trace.slices.name[activity.slice]
    codes = {name: code for code, name in enumerate(facts.trace.strings)}
    spans = [iv.EMPTY]
    for one in chosen:
        begins = np.flatnonzero(names == codes.get(one.name.replace("-done", "-start"), -1))
        at = np.searchsorted(begins, one.ops) - 1
        if not begins.size or (at < 0).all():
            return None
        known = at >= 0
        spans.append(iv.union(activity.start[begins[at[known]]], activity.end[one.ops[known]]))
    return int(iv.covered_between(iv.joined(spans), *facts.used_windows(account)).sum())
