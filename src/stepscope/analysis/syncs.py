"""Host waits for the device: who waited, for how long, and how much idle time each wait is to blame for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.host import HostActivity
from stepscope.analysis.steps import Markers
from stepscope.analysis.where import Locator, Where
from stepscope.limits import SHORT_WAIT_NS, WAIT_COST_NS
from stepscope.names.hosts import SyncHint, sync_hint
from stepscope.trace import intervals as iv
from stepscope.trace.tables import I32, I64, Kind
from stepscope.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class Sync:
    """All waits from one place in the program."""

    op: str | None
    """The outermost op that waits (``aten::item``), None for a bare synchronise call."""
    call: str
    where: Where
    count: int
    steps: frozenset[int]
    """Steps in which the place waited."""
    blocked_ns: int
    """Time the host was blocked while the device still worked, over the used steps."""
    cost_ns: int
    """Idle time these waits are to blame for, over the used steps."""
    hint: SyncHint | None
    slices: tuple[int, ...]


def find_syncs(
    trace: Trace,
    activity: DeviceActivity,
    account: Account,
    host: HostActivity,
    locator: Locator,
    spans: tuple[Markers, tuple[int, ...]],
) -> list[Sync]:
    """The waits of the used steps (``spans``: markers and used steps), grouped by place, costliest first."""
    markers, used = spans
    waits = host.waits
    step = np.searchsorted(markers.start, waits.start, "right") - 1
    blocked = iv.covered_between(activity.busy, waits.start, waits.end)
    cost = _cost_per_wait(trace, account, used)[waits.slice]
    inside = np.isin(step, used) & ((step < len(markers) - 1) | (waits.start < markers.end[-1]))
    # The first used step may pay for a wait of the step before.
    chosen = np.flatnonzero((inside & (blocked >= SHORT_WAIT_NS)) | (cost > 0))
    slices = waits.slice[chosen]
    keys = np.stack((trace.slices.name[slices], locator.group(slices)), axis=1)
    group = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    found = []
    for members in np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group))[:-1]):
        rows = chosen[members]
        if rows.size:
            own = rows[inside[rows]]
            sums = int(blocked[own].sum()), int(cost[rows].sum())
            if sums[1] < WAIT_COST_NS * len(used) and not (blocked[own] >= SHORT_WAIT_NS).any():
                continue
            places = waits.slice[own if own.size else rows]
            found.append(_sync(trace, locator, places, frozenset(step[own].tolist()), sums))
    return sorted(found, key=lambda sync: (-sync.cost_ns, -sync.blocked_ns))


def _cost_per_wait(trace: Trace, account: Account, used: tuple[int, ...]) -> I64:
    """Per slice, the idle time in the used steps' rows it is to blame for as a wait."""
    cost = np.zeros(len(trace.slices), np.int64)
    if account.idle is not None:
        blame = account.idle.blame
        row = np.searchsorted(account.rows.bounds, account.idle.gaps.start[blame.gap], "right") - 1
        counted = np.isin(row, account.step_rows(used))
        np.add.at(cost, blame.wait[counted], blame.ns[counted])
    return cost


def _sync(trace: Trace, locator: Locator, slices: I32, steps: frozenset[int], sums: tuple[int, int]) -> Sync:
    first = int(slices[0])
    ops = [trace.name_of(s) for s in locator.enclosing(first) if trace.slices.kind[s] == Kind.HOST_OP]
    hints = (sync_hint(name) for name in reversed(ops))
    return Sync(
        op=locator.outermost_op(first),
        call=trace.name_of(first),
        where=locator.where(first),
        count=slices.size,
        steps=steps,
        blocked_ns=sums[0],
        cost_ns=sums[1],
        hint=next((hint for hint in hints if hint is not None), None),
        slices=tuple(slices.tolist()),
    )
