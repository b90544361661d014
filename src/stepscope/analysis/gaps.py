"""The longest idle intervals with their evidence, for people to look at."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import CATEGORIES, Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.facts import Facts
from stepscope.analysis.idle import Idle
from stepscope.analysis.where import Where
from stepscope.record import record
from stepscope.trace.codes import among
from stepscope.trace.forest import innermost_at
from stepscope.trace.shared import shared
from stepscope.trace.tables import I32, I64, Bools, Rows
from stepscope.trace.trace import Trace

SHOWN = 30


@record
class Gap:
    """One idle interval of a device."""

    device: int
    step: int | None
    start_ns: int
    dur_ns: int
    crosses_step: bool
    parts: dict[Category, int]
    thread: str | None
    op: str | None
    """The device op that ended the gap."""
    launch: str | None
    """The call that launched it."""
    blocking: str | None
    """The slice the launching thread was in for most of the gap."""
    where: Where


def longest_gaps(facts: Facts) -> list[Gap]:
    """The longest idle intervals over the devices that are used, longest first."""
    longest = []
    for activity, account in facts.devices:
        if activity.device in facts.unused:
            continue
        assert account.idle is not None
        gaps = account.idle.gaps
        length = gaps.end - gaps.start
        for g in np.argsort(-length, kind="stable")[:SHOWN].tolist():
            longest.append(_gap(facts, activity, account, g))
    return sorted(longest, key=lambda gap: -gap.dur_ns)[:SHOWN]


def gap_at(facts: Facts, at: int, window: tuple[int, int], cause: Category) -> Gap | None:
    """The gap of the account at a position with most of a cause inside a window; None where it has none."""
    idle = facts.accounts[at].idle
    if idle is None:
        return None
    pieces = idle.pieces
    inside = (pieces.category == cause.code) & (pieces.start >= window[0]) & (pieces.end <= window[1])
    rows = np.flatnonzero(inside)
    if rows.size == 0:
        return None
    longest = int(pieces.gap[rows[(pieces.end - pieces.start)[rows].argmax()]])
    return _gap(facts, facts.activities[at], facts.accounts[at], longest)


@shared
def crosses_step(account: Account) -> Bools:
    """Per gap, whether a step begins or ends in it: rows end where an op ends, so it then starts the next row."""
    assert account.idle is not None
    gaps, bounds = account.idle.gaps, account.rows.bounds[1:-1]
    at = np.searchsorted(bounds, gaps.start)
    inside = np.append(bounds, np.iinfo(np.int64).max)[at] < gaps.end
    return np.asarray(inside)


def _gap(facts: Facts, activity: DeviceActivity, account: Account, g: int) -> Gap:
    assert account.idle is not None
    trace, gaps, pieces = facts.trace, account.idle.gaps, account.idle.pieces
    low, high = np.searchsorted(pieces.gap, [g, g + 1])
    parts: dict[Category, int] = {}
    for at in range(low, high):
        category = CATEGORIES[pieces.category[at]]
        parts[category] = parts.get(category, 0) + int(pieces.end[at] - pieces.start[at])
    start, end = int(gaps.start[g]), int(gaps.end[g])
    row = int(np.searchsorted(account.rows.bounds, start, "right")) - 1
    call, thread = int(activity.call[gaps.cause_op[g]]), int(gaps.thread[g])
    locator = facts.locator
    source = int(gap_sources(facts, activity, account, np.array([g]))[0])
    return Gap(
        device=activity.device,
        step=account.rows.steps[row],
        start_ns=start,
        dur_ns=end - start,
        crosses_step=bool(crosses_step(account)[g]),
        parts=parts,
        thread=_label(trace, thread),
        op=trace.name_of(int(activity.slice[gaps.op[g]])),
        launch=trace.name_of(call) if call >= 0 else None,
        blocking=trace.name_of(source) if source >= 0 else None,
        where=locator.where(source, (start + end) // 2) if source >= 0 else Where(),
    )


def gap_sources(facts: Facts, activity: DeviceActivity, account: Account, chosen: Rows | None = None) -> I32:
    """Per gap (of some), the slice that tells most of it: the wait to blame where most of it is ``sync``, else what
    the launching thread was in for half of it or more, else the call that ended it; -1 for none."""
    assert account.idle is not None
    idle, gaps = account.idle, account.idle.gaps
    chosen = np.arange(len(gaps)) if chosen is None else chosen
    thread = gaps.thread[chosen]
    threads = np.where(thread >= 0, thread, facts.host.main).astype(np.int32)
    threads = facts.host.busiest(threads, gaps.start[chosen], gaps.end[chosen])
    doing = _doing(facts.trace, threads, gaps.start[chosen], gaps.end[chosen])
    source = np.where(doing >= 0, doing, activity.call[gaps.cause_op[chosen]]).astype(np.int32)
    rows = np.flatnonzero(among(idle.blame.gap, chosen))
    blamed, first = np.unique(idle.blame.gap[rows], return_index=True)
    wait = np.full(len(gaps), -1, np.int32)
    wait[blamed] = idle.blame.wait[rows[first]]
    waited = (wait >= 0) & (_largest_parts(idle, blamed) == Category.SYNC.code)
    return np.where(waited[chosen], wait[chosen], source)


def _largest_parts(idle: Idle, chosen: I32) -> I64:
    """The category (code) with most time of some gaps, of equal ones the one that came first; -1 for all others."""
    rows, size = np.flatnonzero(among(idle.pieces.gap, chosen)), len(CATEGORIES)
    keys = idle.pieces.gap[rows].astype(np.int64) * size + idle.pieces.category[rows]
    groups, first, group = np.unique(keys, return_index=True, return_inverse=True)
    total = np.bincount(group, (idle.pieces.end - idle.pieces.start)[rows], groups.size)
    order = np.lexsort((first, -total, groups // size))
    gap, at = np.unique((groups // size)[order], return_index=True)
    largest = np.full(len(idle.gaps), -1, np.int64)
    largest[gap] = (groups % size)[order][at]
    return largest


def _doing(trace: Trace, tracks: I32, starts: I64, ends: I64) -> I32:
    """Per interval, the innermost slice of a thread that covers half of it or more, as seen from its middle; -1 for
    none."""
    slices = trace.slices
    doing = innermost_at(slices, tracks, (starts + ends) // 2)
    unsettled = np.flatnonzero(doing >= 0)
    while unsettled.size:
        at = doing[unsettled]
        covered = np.minimum(slices.start_ns[at] + slices.dur_ns[at], ends[unsettled])
        covered -= np.maximum(slices.start_ns[at], starts[unsettled])
        unsettled = unsettled[2 * covered < (ends - starts)[unsettled]]
        doing[unsettled] = slices.parent[doing[unsettled]]
        unsettled = unsettled[doing[unsettled] >= 0]
    return doing


def _label(trace: Trace, track: int) -> str | None:
    if track < 0:
        return None
    codes = (int(trace.tracks.label[track]), int(trace.tracks.thread[track]))
    return next((trace.strings[code] for code in codes if code >= 0), None)
