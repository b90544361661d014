"""Which steps stand for a run when it is compared.

A profile sets slow steps of rare causes apart (``analysis.slow_steps``). A comparison sets more apart, at most a fifth:
steps so far beyond the others that a mean with them tells of the machine's bad moment. What is left keeps its mean, not
a median, because the causes of a step sum to it only as means over the same steps. Steps that waited for input stay: a
loader that holds up some steps is what the run pays for.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.categories import CATEGORIES, Category
from stepscope.analysis.limits import SLOW_STEP_SHARE
from stepscope.comparison.limits import APART_SPREADS, APART_STEPS, APART_STEPS_SHARE
from stepscope.trace.tables import F64, I64, Bools

_INPUT = (Category.INPUT, Category.INFEED, Category.TRANSFER, Category.COPY_H2D, Category.COPY_STAGING)
_OF_OTHERS = [Category.COLLECTIVE.code, Category.COLLECTIVE_WAIT.code]
_NORMAL = 1.4826
"""A normal distribution's standard deviation over its median absolute deviation."""


def usual(step_ns: I64, parts: I64 | F64) -> Bools:
    """Which of a run's steps stand for it: all but those far slower. ``parts`` has a row per step, a column per
    category."""
    everyone = np.ones(step_ns.size, np.bool_)
    if step_ns.size < APART_STEPS:
        return everyone
    median = float(np.median(step_ns))
    spread = _NORMAL * float(np.median(np.abs(step_ns - median)))
    far = step_ns > median + max(SLOW_STEP_SHARE * median, APART_SPREADS * spread)
    excess = parts - np.median(parts, axis=0)
    excess[:, _OF_OTHERS] = 0  # a rank that waited says nothing of why another was late
    inputs = [CATEGORIES.index(category) for category in _INPUT]
    far &= ~np.isin(excess.argmax(axis=1), inputs) | ~parts.any(axis=1)
    rare = far.sum() <= APART_STEPS_SHARE * step_ns.size
    return ~far if rare else everyone
