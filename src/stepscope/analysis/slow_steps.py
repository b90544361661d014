"""Steps that took much longer than usual for a cause that does not belong to every step: a recompilation, a
checkpoint, a collection of garbage.

Costs and shares are means over the usual steps: one step of ten that compiles must not read as "each step compiles".
Waiting for input, copies, launches and waits for the device are never set apart: they come in bursts (a loader with
four workers holds up every fourth step) and are what every step pays for. Set apart are also steps that took longer
because their thread had no core: that tells of the machine, and nothing of the program.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.accounting import Account, one_time_ns
from stepscope.analysis.categories import CATEGORIES, Category
from stepscope.analysis.limits import FEW_STEPS, SLOW_STEP_SHARE
from stepscope.analysis.once import OneTimeWork
from stepscope.record import record
from stepscope.trace.tables import I64

RARE_CAUSES = (
    Category.COMPILE,
    Category.GRAPH_BUILD,
    Category.CHECKPOINT_IO,
    Category.GC,
    Category.PROFILER,
    Category.ALLOCATOR,
    Category.PYTHON,
    Category.UNKNOWN_HOST,
)


@record
class SlowStep:
    """A step that is not like the others."""

    step: int
    excess_ns: int
    """How much more of the rare causes it holds than the median step, on the device where that is most."""
    cause: Category
    """The rare cause with most of the excess."""
    account: int
    """Position of that device's account."""
    once: bool = False
    """Whether it is slow for work that is done once: it tells nothing of steps to come."""
    no_core: bool = False
    """Whether it is slow as its thread was ready and had no core; the cause is none then."""


def slow_steps(
    accounts: list[Account],
    steps: tuple[int, ...],
    bounds: tuple[I64, I64],
    no_core: I64,
    once: OneTimeWork,
    unused: frozenset[int],
) -> tuple[SlowStep, ...]:
    """The steps that take much longer than the others: for work that is done once, for want of a core, or for a rare
    cause; ``no_core`` is what of each its thread may have waited for one."""
    step_ns = bounds[1] - bounds[0]
    slow = _with_one_time_work(accounts, steps, step_ns, once, unused)
    slow += _without_core(_others(steps, slow), step_ns, no_core)
    slow += _rarely_slow(accounts, _others(steps, slow), step_ns, no_core, unused)
    return tuple(sorted(slow, key=lambda each: each.step))


def _others(steps: tuple[int, ...], slow: tuple[SlowStep, ...]) -> tuple[int, ...]:
    return tuple(step for step in steps if step not in {each.step for each in slow})


def _without_core(steps: tuple[int, ...], step_ns: I64, no_core_ns: I64) -> tuple[SlowStep, ...]:
    """The steps that take longer by ``SLOW_STEP_SHARE`` of the median step, and may not without what they waited longer
    for a core: fewer than half."""
    if len(steps) < FEW_STEPS:
        return ()
    rows = list(steps)
    longer = step_ns[rows] - float(np.median(step_ns[rows]))
    without = no_core_ns[rows] - float(np.median(no_core_ns[rows]))
    limit = SLOW_STEP_SHARE * float(np.median(step_ns[rows]))
    slow = np.flatnonzero((longer > limit) & (longer - without <= limit))
    starved = tuple(SlowStep(steps[k], int(longer[k]), Category.UNKNOWN_HOST, 0, no_core=True) for k in slow.tolist())
    return starved if 2 * len(starved) < len(steps) else ()


def _with_one_time_work(
    accounts: list[Account], steps: tuple[int, ...], step_ns: I64, once: OneTimeWork, unused: frozenset[int]
) -> tuple[SlowStep, ...]:
    """The steps whose one-time work takes ``SLOW_STEP_SHARE`` of a usual step without it: the first ones, or one later,
    and not all. In others what is loaded or captured comes back."""
    if len(steps) < 2 or not once.kind:
        return ()
    most = dict.fromkeys(steps, (0, 0))
    for at, account in enumerate(accounts):
        if account.rows.device not in unused:
            ns = one_time_ns(account, once)
            for step in steps:
                row = account.step_row(step)
                most[step] = max(most[step], (0 if row is None else int(ns[row]), -at))
    usual = float(np.median([max(step_ns[step] - ns, 0) for step, (ns, _) in most.items()]))
    slow = [step for step, (ns, _) in most.items() if ns > SLOW_STEP_SHARE * usual]
    apart = tuple(SlowStep(step, most[step][0], Category.COMPILE, -most[step][1], once=True) for step in slow)
    at_once = len(slow) <= 1 or slow == list(steps[: len(slow)])
    return apart if at_once and len(apart) < len(steps) else ()


def _rarely_slow(
    accounts: list[Account], steps: tuple[int, ...], step_ns: I64, no_core_ns: I64, unused: frozenset[int]
) -> tuple[SlowStep, ...]:
    """The steps whose rare causes exceed the median's by ``SLOW_STEP_SHARE`` of the median step, also without what was
    waited for a core, and are most of what they take longer: fewer than half."""
    if len(steps) < FEW_STEPS:
        return ()
    usual = float(np.median(step_ns[list(steps)]))
    limit, longer = SLOW_STEP_SHARE * usual, step_ns[list(steps)] - usual
    worst: dict[int, SlowStep] = {}
    codes = [cause.code for cause in RARE_CAUSES]
    for at, account in enumerate(accounts):
        rows = account.step_rows(steps)
        if len(rows) != len(steps) or account.rows.device in unused:
            continue
        parts = account.parts[np.ix_(rows, codes)]
        excess = parts - np.median(parts, axis=0).astype(np.int64)
        total = parts.sum(axis=1) - int(np.median(parts.sum(axis=1)))
        least = total - no_core_ns[list(steps)]
        for k in np.flatnonzero((least > limit) & (2 * total >= longer)).tolist():
            step = SlowStep(steps[k], int(total[k]), CATEGORIES[codes[int(excess[k].argmax())]], at)
            if step.step not in worst or worst[step.step].excess_ns < step.excess_ns:
                worst[step.step] = step
    return tuple(worst[step] for step in sorted(worst)) if 2 * len(worst) < len(steps) else ()


def spacing(slow: tuple[SlowStep, ...]) -> int | None:
    """Every how many steps a slow one comes; None for fewer than three, or where they come irregularly."""
    apart = np.diff([each.step for each in slow])
    return int(apart[0]) if apart.size >= 2 and (apart == apart[0]).all() else None
