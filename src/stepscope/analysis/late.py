"""A device that begins what it was told to the same time late, again and again, while nothing recorded keeps it.

Its clock is behind the host's then (a constant time, or one that grows where it drifts), or it works each time, and as
long, on something that was not recorded. A profile looks the same either way, but idle time does not: the first leaves
a device idle as long as it waited for the host, the second makes it busy. One op that begins soon after its launch
tells them apart, and delays of work that is queued differ from op to op.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.facts import Facts
from stepscope.analysis.limits import (
    CLOCK_APART_NS,
    CLOCK_DRIFT,
    CONTRADICTED_SHARE,
    LATE_AGREE,
    LATE_LEAST,
    UNTOLD_SHARE,
)
from stepscope.analysis.waits import awaited_ends
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.tables import I64, Rows

_OWN = (Category.UNRECORDED, Category.UNKNOWN_DEVICE, Category.DEVICE_LATENCY)


@record
class LateWork:
    """How late a device begins the first and the last work that it was free for."""

    first_ns: int
    last_ns: int
    times: int
    """How often."""


def device_late(facts: Facts) -> LateWork | None:
    """Of the first device that is late, if one is."""
    awaited = awaited_ends(facts.trace, facts.activities)
    busy = iv.joined(activity.busy for activity in facts.activities)
    by_device = (_late(facts, *each, busy) for each in zip(facts.activities, facts.accounts, awaited, strict=False))
    return next((late for late in by_device if late is not None), None)


def _late(
    facts: Facts, activity: DeviceActivity, account: Account, awaited: I64, any_busy: iv.Intervals
) -> LateWork | None:
    parts = account.parts[facts.used_rows(account)].sum(axis=0)
    if sum(int(parts[one.code]) for one in _OWN) <= UNTOLD_SHARE * int(parts.sum()):
        return None
    heads, own = _heads(activity, awaited, any_busy)
    if heads.size < LATE_LEAST:
        return None
    told, delay = activity.launch[heads], activity.start[heads] - activity.launch[heads]
    half = heads.size // 2
    (early, later), (least, most) = (
        (float(np.median(of[:half])), float(np.median(of[half:]))) for of in (told - told[0], delay)
    )
    drift = (most - least) / max(later - early, 1.0)
    at = least + drift * (told - told[0] - early)
    agrees = own[np.abs(delay - at) <= CLOCK_APART_NS].sum() >= LATE_AGREE * own.sum()
    if not agrees or abs(drift) > CLOCK_DRIFT or max(least, most) <= CLOCK_APART_NS:
        return None
    rows = np.flatnonzero(activity.launched)
    line = least + drift * (activity.launch[rows] - told[0] - early)
    sooner = activity.start[rows] - activity.launch[rows] < line - CLOCK_APART_NS
    if sooner.mean() > CONTRADICTED_SHARE:
        return None
    return LateWork(round(max(at[0], 0)), round(at[-1]), heads.size)


def _heads(activity: DeviceActivity, awaited: I64, any_busy: iv.Intervals) -> tuple[Rows, I64]:
    """Computing ops that the device was free for, and for how long it had been when they began: those of nearly all
    that time. Queued ops follow each other after pauses, of which there are many, and short ones. While other devices
    work it may wait for what they compute, of which profiles say nothing."""
    begin, end = iv.complement(activity.busy, int(activity.start.min()), int(activity.end.max()))
    heads = np.searchsorted(activity.start, end, "left")
    own = end - np.maximum(np.maximum(begin, activity.launch_end[heads]), awaited[heads])
    alone = iv.covered_between(any_busy, end - np.maximum(own, 0), end) == 0
    chosen = alone & activity.launched[heads] & (activity.category[heads] == Category.COMPUTE.code) & (own > 0)
    heads, own = heads[chosen], own[chosen]
    longest = np.argsort(own)[::-1]
    most = np.sort(longest[: int(np.searchsorted(np.cumsum(own[longest]), LATE_AGREE * own.sum())) + 1])
    return np.asarray(heads[most]), np.asarray(own[most])
