"""Differences between two sides, each of one run or several, with their noise.

With one run of each side the noise is that of its steps and, as those do not show what makes runs of the same code
differ, ``RUN_TO_RUN_SHARE`` on top. The interval is Welch's (Biometrika 34, 1947) for a difference of means: it assumes
neither equal spread nor equal counts. Steps that follow each other are not independent: a run's count is reduced by
its lag-1 autocorrelation, n (1 - r) / (1 + r) (Bartlett 1935), with the estimate of r freed of its bias, (1 + 3 r) / n
(Marriott and Pope 1954). It is that of the steps' ranks, so that two bad steps side by side do not make it, and drawn
towards ``STEPS_FOLLOW`` as if that had been seen in ``STEPS_FOLLOW_SEEN`` steps: few steps cannot tell it.

With several runs it is Student's interval over the means of the runs, their spread taken as that of both sides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from stepscope.comparison.limits import COMPARED_RUNS, COMPARED_STEPS, RUN_TO_RUN_SHARE, STEPS_FOLLOW, STEPS_FOLLOW_SEEN
from stepscope.record import record
from stepscope.trace.tables import F64, I64

Runs = Sequence[I64 | F64]
"""One array per run, with one value per step."""

_T_975 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""97.5 % points of Student's t with 1 to 30 degrees of freedom (any table of it)."""
_Z_975, _BEYOND_TABLE = 1.960, 2.4
"""With more degrees of freedom ν it is 1.960 + 2.4 / ν, to three digits."""


@record
class Difference:
    """Means of two sides in ns per step, and how well their difference is known (95 %)."""

    before_ns: float
    after_ns: float
    noise_ns: float | None
    """The true difference lies within so much of the measured one; None where a run has too few steps to tell."""
    measured_noise_ns: float | None
    """As much of that as was measured: without what runs of the same code are taken to differ by."""

    @property
    def ns(self) -> float:
        """After less before."""
        return self.after_ns - self.before_ns

    @property
    def share(self) -> float | None:
        """The difference as a share of before; None where that is nothing."""
        return self.ns / self.before_ns if self.before_ns else None

    @property
    def low_ns(self) -> float | None:
        """The lower end of the interval."""
        return None if self.noise_ns is None else self.ns - self.noise_ns

    @property
    def high_ns(self) -> float | None:
        """The upper end of the interval."""
        return None if self.noise_ns is None else self.ns + self.noise_ns

    @property
    def determined(self) -> bool:
        """Whether the noise is known."""
        return self.noise_ns is not None

    @property
    def beyond_noise(self) -> bool:
        """Whether zero lies outside the interval."""
        return self.noise_ns is not None and abs(self.ns) > self.noise_ns

    def within(self, share: float) -> bool:
        """Whether the whole interval lies within a share of before."""
        return self.noise_ns is not None and abs(self.ns) + self.noise_ns <= share * self.before_ns


def difference(before: Runs, after: Runs) -> Difference:
    """The difference of two sides' means; a side's is the mean of its runs' means."""
    means = [np.array([run.mean() if run.size else 0.0 for run in side]) for side in (before, after)]
    one, two = (float(side.mean()) if side.size else 0.0 for side in means)
    if min((run.size for run in (*before, *after)), default=0) < COMPARED_STEPS:
        return Difference(one, two, None, None)
    if len(before) + len(after) >= COMPARED_RUNS:
        freedom = len(before) + len(after) - 2
        spread = sum(float(((side - side.mean()) ** 2).sum()) for side in means) / freedom
        noise = _t(freedom) * math.sqrt(spread / len(before) + spread / len(after))
        return Difference(one, two, noise, noise)
    errors = [_errors(side) for side in (before, after)]
    between = (RUN_TO_RUN_SHARE * one) ** 2 / len(before) + (RUN_TO_RUN_SHARE * two) ** 2 / len(after)
    return Difference(one, two, _half(errors, between), _half(errors, 0.0))


def _errors(side: Runs) -> list[tuple[float, float]]:
    """Of each run: what its steps add to the variance of the side's mean, and with how many degrees of freedom."""
    made = []
    for run in side:
        count = _independent(run)
        made.append((float(run.var(ddof=1)) / count / len(side) ** 2, run.size - 1.0))
    return made


def _half(sides: Sequence[Sequence[tuple[float, float]]], known: float) -> float:
    """Half of Welch's interval; ``known`` is variance without doubt."""
    errors = [error for side in sides for error in side]
    total = sum(variance for variance, _ in errors) + known
    doubt = sum(variance**2 / freedom for variance, freedom in errors)
    return (_t(total**2 / doubt) if doubt else _Z_975) * math.sqrt(total)


def _independent(run: I64 | F64) -> float:
    """How many independent steps tell as much as these."""
    _, value, count = np.unique(run, return_inverse=True, return_counts=True)
    around = (np.cumsum(count) - (count + 1) / 2)[value] - (run.size - 1) / 2  # equal steps share a rank
    spread = float((around**2).sum())
    follows = float((around[1:] * around[:-1]).sum()) / spread if spread else 0.0
    follows += (1 + 3 * follows) / run.size
    follows = (follows * run.size + STEPS_FOLLOW * STEPS_FOLLOW_SEEN) / (run.size + STEPS_FOLLOW_SEEN)
    follows = min(max(follows, 0.0), 0.99)
    return max(run.size * (1 - follows) / (1 + follows), 1.0)


def _t(freedom: float) -> float:
    # Between two rows of the table the smaller number of degrees holds, which is the wider interval.
    whole = max(int(min(freedom, 1e9)), 1)
    return _T_975[whole - 1] if whole <= len(_T_975) else _Z_975 + _BEYOND_TABLE / whole
