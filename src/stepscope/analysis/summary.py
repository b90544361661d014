"""The few numbers people look at first."""

from __future__ import annotations

import statistics
from collections.abc import Hashable
from typing import TypeVar

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import BUSY, CATEGORIES, Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.limits import AHEAD_OF_DEVICE, FINDING_SHARE, LONGEST_STEPS, P95_STEPS
from stepscope.analysis.phases import Phase
from stepscope.trace.shared import shared
from stepscope.trace.tables import I64

_Part = TypeVar("_Part", bound=Hashable)

COLLECTIVES = (Category.COLLECTIVE, Category.COLLECTIVE_WAIT, Category.COLLECTIVE_TRANSFER)


def account_parts(facts: Facts, account: Account) -> dict[Category, int]:
    """One account's categories over the used steps, in ns."""
    totals = account.parts[facts.used_rows(account)].sum(axis=0)
    return {CATEGORIES[code]: int(totals[code]) for code in np.flatnonzero(totals).tolist()}


def total_parts(facts: Facts) -> dict[Category, int]:
    """The used devices' categories over the used steps, in ns."""
    total: dict[Category, int] = {}
    for account in facts.working:
        for category, ns in account_parts(facts, account).items():
            total[category] = total.get(category, 0) + ns
    return total


def mean_parts(facts: Facts) -> dict[Category, int]:
    """Mean ns per used step and device by category; whole numbers that sum to the rounded mean of the rows."""
    rows = sum(len(facts.used_rows(account)) for account in facts.working)
    return apportion(total_parts(facts), rows)


def apportion(parts: dict[_Part, int], count: int) -> dict[_Part, int]:
    """Divide parts by a count so that the whole numbers still sum to the divided total (largest remainder)."""
    if not count:
        return {}
    whole = {part: ns // count for part, ns in parts.items()}
    missing = sum(parts.values()) // count - sum(whole.values())
    for part in sorted(parts, key=lambda one: -(parts[one] % count))[:missing]:
        whole[part] += 1
    return whole


def shares(parts: dict[Category, int]) -> dict[Category, float]:
    """Parts as fractions of their sum."""
    total = sum(parts.values())
    return {category: ns / total for category, ns in parts.items()} if total else {}


def busy_share(facts: Facts, *, collectives: bool) -> float | None:
    """Share of the used steps' rows in which devices worked; None without a device, or where activity of it is lost."""
    if not facts.activities or facts.device_lost:
        return None
    of = shares(total_parts(facts))
    return min(1.0, sum(of.get(c, 0.0) for c in BUSY if collectives or c not in COLLECTIVES))


def duty_cycle_share(facts: Facts) -> float | None:
    """Share of the used steps in which devices that execute compiled modules did; None where XLA did not run, or where
    nothing tells one execution from the next."""
    duties = facts.xla.duty if facts.xla else ()
    duty = [(d.executing_ns, d.window_ns) for d in duties if d.executing_ns and d.device not in facts.beside]
    window = sum(of for _, of in duty)
    return sum(executing for executing, _ in duty) / window if window else None


def behind_ns(facts: Facts, account: Account) -> int | None:
    """How long, on average, a device ends a used step after the first one that does; None where it is no step of its,
    there is one device alone, or each has steps at times of its own."""
    if len(facts.working) < 2 or not facts.used or account.rows.device in facts.unused or facts.steps_apart:
        return None
    return round(float((_step_ends(facts, account) - _first_ends(facts)).mean()))


def _step_ends(facts: Facts, account: Account) -> I64:
    return facts.used_windows(account)[1]


@shared
def _first_ends(facts: Facts) -> I64:
    """When the first of the devices that work ends each used step."""
    ends: I64 = np.minimum.reduce([_step_ends(facts, one) for one in facts.working])
    return ends


def step_time(facts: Facts) -> tuple[int | None, int | None]:
    """Median and p95 of the timed steps; no p95 under ``P95_STEPS`` steps."""
    times = facts.step_ns[list(facts.timed)]
    p95 = int(np.quantile(times, 0.95, method="nearest")) if times.size >= P95_STEPS else None
    return facts.median_step_ns, p95


def unrecorded_step_ns(facts: Facts) -> int | None:
    """The mean used step as it would be unrecorded; None where that is not known, or recording cost nothing that the
    steps show, or the host was timed as it ran ahead of a device, which works for longer."""
    mean, (recorded, unrecorded) = facts.mean_step_ns, _timed_means(facts)
    if mean is None or recorded is None or unrecorded is None or unrecorded >= recorded:
        return None
    if unrecorded < AHEAD_OF_DEVICE * _busiest_ns(facts):
        return None
    return min(round(mean * unrecorded / recorded), round(unrecorded))


def _busiest_ns(facts: Facts) -> float:
    """What the busiest device works in a used step, in the mean; 0 without one."""
    codes = [category.code for category in BUSY]
    accounts = [account for activity, account in facts.devices if activity.device not in facts.unused]
    used = [account.parts[rows][:, codes].sum(axis=1) for account in accounts if (rows := facts.used_rows(account))]
    return max((float(times.mean()) for times in used), default=0.0)


def _timed_means(facts: Facts) -> tuple[float | None, float | None]:
    """The mean step while recorded, and right before or after, as the recording tool timed them. Validation and saving
    are no part of the used steps, but they are of steps that are timed from end to end: such are left out."""
    run = facts.run
    timed = (run.each_recorded_ns, run.each_unrecorded_ns)
    if not facts.used or not all(timed):
        return run.recorded_ns, run.unrecorded_ns
    begun, over = (bounds[list(facts.used)] for bounds in facts.step_bounds)
    most = LONGEST_STEPS * int((over - begun).max())
    recorded, unrecorded = ([ns for ns in each if ns <= most] for each in timed)
    all_count = [*map(len, timed)] == [len(recorded), len(unrecorded)]
    if all_count or not recorded or not unrecorded:
        return run.recorded_ns, run.unrecorded_ns
    return statistics.fmean(recorded), statistics.fmean(unrecorded)


def idle_per_step(facts: Facts) -> tuple[int, int] | None:
    """Median idle time between and within the used steps, over devices; None without a device."""
    if not facts.activities or not facts.used:
        return None
    idle_codes = [c.code for c in CATEGORIES if c not in BUSY and c is not Category.HOST_COMPUTE]
    rows = [facts.used_rows(account) for account in facts.working]
    parts = (account.parts[of][:, idle_codes].sum(axis=1) for account, of in zip(facts.working, rows, strict=True))
    idle = np.concatenate(list(parts))
    between = np.concatenate([each.between_steps_ns[of] for each, of in zip(facts.working, rows, strict=True)])
    return round(float(np.median(between))), round(float(np.median(idle - between)))


def phases_per_step(facts: Facts) -> dict[str, int] | None:
    """Mean busy time per step by phase over devices, and idle time between steps; None where no phase is known."""
    used = [times for a, times in zip(facts.activities, facts.phases, strict=True) if a.device not in facts.unused]
    told = {phase: sum(times[phase] for times in used) for phase in Phase} if used else {}
    if not any(ns for phase, ns in told.items() if phase is not Phase.UNKNOWN):
        return None
    count = len(facts.used) * len(used)
    between = sum(int(account.between_steps_ns[facts.used_rows(account)].sum()) for account in facts.working)
    return {**{str(phase): round(ns / count) for phase, ns in told.items()}, "between_steps": round(between / count)}


def launch_wait_share(facts: Facts) -> float | None:
    """Share of the used steps in which devices waited for launches; None without a device, activity of it, or steps."""
    if not facts.activities or facts.device_lost or facts.is_capture:
        return None
    of = shares(total_parts(facts))
    return of.get(Category.LAUNCH, 0.0) + of.get(Category.LAUNCH_LATENCY, 0.0)


def feeds_devices(facts: Facts) -> float | None:
    """How many devices of this speed the loader threads would keep busy; None where they were not recorded.

    A device takes its steps less what it waits for input; the batches of a step are shared by all that work. Where
    they wait for input, it feeds as many as it does: threads that pause meanwhile wait for something themselves.
    """
    stages, count = facts.input_stages, len(facts.working)
    if stages is None or stages.producers is None or not facts.activities or not count:
        return None
    waits = total_parts(facts).get(Category.INPUT, 0) // count
    fed = stages.producers.feeds(facts.used_ns - waits)
    if fed is not None and waits >= FINDING_SHARE * facts.used_ns > 0:
        fed = min(fed, 1 - waits / facts.used_ns)
    return None if fed is None else fed * count
