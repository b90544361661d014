"""The longest idle intervals with their evidence, for people to look at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import CATEGORIES, Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.facts import Facts
from stepscope.analysis.where import Where
from stepscope.trace.forest import innermost_at
from stepscope.trace.tables import Bools
from stepscope.trace.trace import Trace

SHOWN = 30


@dataclass(frozen=True, slots=True)
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


def longest_gaps(facts: Facts, count: int = SHOWN) -> list[Gap]:
    """The longest idle intervals over the devices that are used, longest first."""
    found = []
    for activity, account in facts.devices:
        if activity.device in facts.unused:
            continue
        assert account.idle is not None
        gaps = account.idle.gaps
        length = gaps.end - gaps.start
        for g in np.argsort(-length, kind="stable")[:count].tolist():
            found.append(_gap(facts, activity, account, g))
    return sorted(found, key=lambda gap: -gap.dur_ns)[:count]


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
    doing = _doing(trace, thread if thread >= 0 else facts.host.main, start, end)
    locator = facts.locator
    blamed = account.idle.blame.wait[account.idle.blame.gap == g]
    waited = blamed.size > 0 and max(parts, key=lambda cause: parts[cause]) is Category.SYNC
    source = int(blamed[0]) if waited else doing if doing >= 0 else call
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
        where=locator.where(source) if source >= 0 else Where(),
    )


def _doing(trace: Trace, track: int, start: int, end: int) -> int:
    """The innermost slice of a thread that covers half the interval or more, as seen from its middle; -1 for none."""
    if track < 0:
        return -1
    middle = (start + end) // 2
    found = int(innermost_at(trace.slices, np.array([track], np.int32), np.array([middle], np.int64))[0])
    while found >= 0:
        covered = min(trace.end_ns(found), end) - max(int(trace.slices.start_ns[found]), start)
        if 2 * covered >= end - start:
            return found
        found = int(trace.slices.parent[found])
    return -1


def _label(trace: Trace, track: int) -> str | None:
    if track < 0:
        return None
    codes = (int(trace.tracks.label[track]), int(trace.tracks.thread[track]))
    return next((trace.strings[code] for code in codes if code >= 0), None)
