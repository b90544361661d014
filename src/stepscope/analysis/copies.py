"""Copies: which op asks for them, whether they recur in every step, and how much of their time nothing hides."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import CATEGORIES, Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.steps import Markers
from stepscope.analysis.where import Locator, Where
from stepscope.trace import intervals as iv
from stepscope.trace.tables import I64, NULL, MemoryKind, Rows
from stepscope.trace.trace import Trace

COPY_CATEGORIES = (Category.COPY_H2D, Category.COPY_D2H, Category.COPY_D2D, Category.COPY_P2P)


@dataclass(frozen=True, slots=True)
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
    trace: Trace, activity: DeviceActivity, account: Account, markers: Markers, used: tuple[int, ...], main: int
) -> list[Copies]:
    """The copies of the used steps, grouped by place, most exposed first."""
    codes = [category.code for category in COPY_CATEGORIES]
    of_row = np.searchsorted(account.rows.bounds, activity.start, "right") - 1
    chosen = np.flatnonzero(np.isin(activity.category, codes) & np.isin(of_row, account.step_rows(used)))
    exposed = _exposed(activity, chosen)
    locator = Locator(trace)
    groups: dict[tuple[int, int, int, str | None, Where, bool], list[int]] = {}
    for at, i in enumerate(chosen.tolist()):
        groups.setdefault(_place(trace, activity, i, main, locator), []).append(at)
    found = []
    for (code, source, target, op, where, recorded), members in groups.items():
        ops = chosen[members]
        sizes = trace.device_ops.bytes[activity.row[ops]]
        found.append(
            Copies(
                category=CATEGORIES[code],
                source_memory=MemoryKind(source).name.lower(),
                target_memory=MemoryKind(target).name.lower(),
                op=op,
                where=where,
                count=len(members),
                steps=frozenset(account.rows.steps[r] for r in of_row[ops].tolist()),
                bytes=None if (sizes == NULL).any() else int(sizes.sum()),
                total_ns=int((activity.end[ops] - activity.start[ops]).sum()),
                exposed_ns=int(exposed[members].sum()),
                launch_recorded=recorded,
                slices=tuple(activity.slice[ops].tolist()),
            )
        )
    return sorted(found, key=lambda copies: -copies.exposed_ns)


def _exposed(activity: DeviceActivity, chosen: Rows) -> I64:
    """Per copy, the time in which the busy partition belongs to a copy. Copies that overlap share it in order."""
    start, end, category = activity.busy_pieces
    mine = np.isin(category, [c.code for c in COPY_CATEGORIES])
    free: iv.Intervals = (start[mine], end[mine])
    # Where copies overlap each other the later one only counts from where the earlier ones ended.
    reach = np.maximum.accumulate(np.concatenate(([np.iinfo(np.int64).min], activity.end[chosen])))[:-1]
    begin = np.maximum(activity.start[chosen], reach)
    return iv.covered_between(free, begin, np.maximum(begin, activity.end[chosen]))


def _place(
    trace: Trace, activity: DeviceActivity, i: int, main: int, locator: Locator
) -> tuple[int, int, int, str | None, Where, bool]:
    row = activity.row[i]
    recorded = bool(activity.call[i] >= 0)
    if recorded:
        where = locator.where(int(activity.call[i]))
    elif main >= 0:
        where = locator.where_at(main, int(activity.start[i]))
    else:
        where = Where()
    return (
        int(activity.category[i]),
        int(trace.device_ops.source_memory[row]),
        int(trace.device_ops.target_memory[row]),
        where.op,
        where,
        recorded,
    )
