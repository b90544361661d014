"""Steps that took much longer than usual for a cause that does not belong to every step: a recompilation, a
checkpoint, a collection of garbage.

Costs and shares are means over the usual steps: one step of ten that compiles must not read as "each step compiles".
Waiting for input, copies, launches and waits for the device are never set apart: they come in bursts (a loader with
four workers holds up every fourth step) and are what every step pays for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import CATEGORIES, Category
from stepscope.limits import FEW_STEPS, SLOW_STEP_SHARE
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


@dataclass(frozen=True, slots=True)
class SlowStep:
    """A step that is not like the others."""

    step: int
    excess_ns: int
    """How much more of the rare causes it holds than the median step, on the device where that is most."""
    cause: Category
    """The rare cause with most of the excess."""
    account: int
    """Position of that device's account."""


def slow_steps(
    accounts: list[Account], steps: tuple[int, ...], step_ns: I64, unused: frozenset[int] = frozenset()
) -> tuple[SlowStep, ...]:
    """The steps whose rare causes exceed the median's by ``SLOW_STEP_SHARE`` of the median step: fewer than half."""
    if len(steps) < FEW_STEPS:
        return ()
    limit = SLOW_STEP_SHARE * float(np.median(step_ns[list(steps)]))
    worst: dict[int, SlowStep] = {}
    codes = [cause.code for cause in RARE_CAUSES]
    for at, account in enumerate(accounts):
        rows = account.step_rows(steps)
        if len(rows) != len(steps) or account.rows.device in unused:
            continue
        parts = account.parts[np.ix_(rows, codes)]
        excess = parts - np.median(parts, axis=0).astype(np.int64)
        total = parts.sum(axis=1) - int(np.median(parts.sum(axis=1)))
        for k in np.flatnonzero(total > limit).tolist():
            found = SlowStep(steps[k], int(total[k]), CATEGORIES[codes[int(excess[k].argmax())]], at)
            if found.step not in worst or worst[found.step].excess_ns < found.excess_ns:
                worst[found.step] = found
    return tuple(worst[step] for step in sorted(worst)) if 2 * len(worst) < len(steps) else ()


def spacing(slow: tuple[SlowStep, ...]) -> int | None:
    """Every how many steps a slow one comes; None for fewer than three, or where they come irregularly."""
    apart = np.diff([found.step for found in slow])
    return int(apart[0]) if apart.size >= 2 and (apart == apart[0]).all() else None
