"""Host waits for the device: who waited, for how long, and how much idle time each wait is to blame for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.host import HostActivity
from stepscope.analysis.steps import Markers
from stepscope.analysis.where import Locator, Where
from stepscope.limits import SHORT_WAIT_NS
from stepscope.names.hosts import SyncHint, sync_hint
from stepscope.trace import intervals as iv
from stepscope.trace.tables import Kind
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
    markers: Markers,
    used: tuple[int, ...],
) -> list[Sync]:
    """The waits of the used steps, grouped by place, costliest first."""
    waits = host.waits
    step = np.searchsorted(markers.start, waits.start, "right") - 1
    inside = np.flatnonzero(np.isin(step, used) & (waits.start < markers.end[np.maximum(step, 0)]))
    blocked = iv.covered_between(activity.busy, waits.start, waits.end)
    cost = _cost_per_wait(account, used)
    locator = Locator(trace)
    groups: dict[tuple[str | None, str, Where], list[_Wait]] = {}
    for i in inside.tolist():
        wait = _Wait(int(waits.slice[i]), int(step[i]), int(blocked[i]), cost.get(int(waits.slice[i]), 0))
        if wait.blocked_ns >= SHORT_WAIT_NS or wait.cost_ns:
            outer = locator.outermost_op(wait.slice)
            key = (
                None if outer is None else trace.name_of(outer),
                trace.name_of(wait.slice),
                locator.where(wait.slice),
            )
            groups.setdefault(key, []).append(wait)
    found = [_sync(trace, key, members) for key, members in groups.items()]
    return sorted(found, key=lambda sync: (-sync.cost_ns, -sync.blocked_ns))


@dataclass(frozen=True, slots=True)
class _Wait:
    slice: int
    step: int
    blocked_ns: int
    cost_ns: int


def _cost_per_wait(account: Account, used: tuple[int, ...]) -> dict[int, int]:
    """Idle time in the used steps' rows that each wait is to blame for, by the wait's slice."""
    if account.idle is None:
        return {}
    blame = account.idle.blame
    row = np.searchsorted(account.rows.bounds, account.idle.gaps.start[blame.gap], "right") - 1
    counted = np.isin(row, account.step_rows(used))
    cost: dict[int, int] = {}
    for slice_id, ns in zip(blame.wait[counted].tolist(), blame.ns[counted].tolist(), strict=True):
        cost[slice_id] = cost.get(slice_id, 0) + ns
    return cost


def _sync(trace: Trace, key: tuple[str | None, str, Where], waits: list[_Wait]) -> Sync:
    op, call, where = key
    ops = [trace.name_of(s) for s in Locator(trace).enclosing(waits[0].slice) if trace.slices.kind[s] == Kind.HOST_OP]
    hints = (sync_hint(name) for name in reversed(ops))
    return Sync(
        op=op,
        call=call,
        where=where,
        count=len(waits),
        steps=frozenset(w.step for w in waits),
        blocked_ns=sum(w.blocked_ns for w in waits),
        cost_ns=sum(w.cost_ns for w in waits),
        hint=next((hint for hint in hints if hint is not None), None),
        slices=tuple(w.slice for w in waits),
    )
