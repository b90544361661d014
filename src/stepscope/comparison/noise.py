"""Differences between two runs with the noise of their steps.

The interval is Welch's (Biometrika 34, 1947) for a difference of means: it assumes neither equal spread nor equal
counts. Steps that follow each other are not independent: a run's count is reduced by its lag-1 autocorrelation,
n (1 - r) / (1 + r) (Bartlett 1935), with the estimate of r freed of its bias, (1 + 3 r) / n (Marriott and Pope 1954).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stepscope.limits import COMPARED_STEPS, CORRELATED_STEPS, RUN_TO_RUN_SHARE
from stepscope.trace.tables import F64, I64

_T_975 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""97.5 % points of Student's t with 1 to 30 degrees of freedom (any table of it)."""
_Z_975, _BEYOND_TABLE = 1.960, 2.4
"""With more degrees of freedom ν it is 1.960 + 2.4 / ν, to three digits."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Means of two runs in ns per step, and between which bounds the true difference lies (95 %)."""

    before_ns: float
    after_ns: float
    low_ns: float | None
    """None where a run has too few steps to tell its noise."""
    high_ns: float | None

    @property
    def ns(self) -> float:
        """After less before."""
        return self.after_ns - self.before_ns

    @property
    def share(self) -> float | None:
        """The difference as a share of before; None where that is nothing."""
        return self.ns / self.before_ns if self.before_ns else None

    @property
    def determined(self) -> bool:
        """Whether the noise is known."""
        return self.low_ns is not None

    @property
    def beyond_noise(self) -> bool:
        """Whether zero lies outside the interval."""
        return self.low_ns is not None and self.high_ns is not None and (self.low_ns > 0 or self.high_ns < 0)

    def changed(self, step_ns: float) -> bool:
        """Whether it is more than noise, and more than runs of the same code differ by: a share of a step."""
        return self.beyond_noise and abs(self.ns) >= RUN_TO_RUN_SHARE * step_ns


def difference(before: I64 | F64, after: I64 | F64) -> Difference:
    """The difference of two runs' means from one value per step each."""
    means = float(before.mean()) if before.size else 0.0, float(after.mean()) if after.size else 0.0
    if min(before.size, after.size) < COMPARED_STEPS:
        return Difference(*means, None, None)
    counts = _independent(before), _independent(after)
    errors = [float(run.var(ddof=1)) / count for run, count in zip((before, after), counts, strict=True)]
    if not sum(errors):
        return Difference(*means, means[1] - means[0], means[1] - means[0])
    freedom = sum(errors) ** 2 / sum(e**2 / max(n - 1, 1.0) for e, n in zip(errors, counts, strict=True))
    half = _t(freedom) * sum(errors) ** 0.5
    return Difference(*means, means[1] - means[0] - half, means[1] - means[0] + half)


def _independent(run: I64 | F64) -> float:
    """How many independent steps tell as much as these."""
    if run.size < CORRELATED_STEPS:
        return float(run.size)
    around = run - run.mean()
    spread = float((around**2).sum())
    follows = float((around[1:] * around[:-1]).sum()) / spread if spread else 0.0
    follows = min(max(follows + (1 + 3 * follows) / run.size, 0.0), 0.99)
    return max(run.size * (1 - follows) / (1 + follows), 2.0)


def _t(freedom: float) -> float:
    # Between two rows of the table the smaller number of degrees holds, which is the wider interval.
    whole = max(int(np.floor(freedom)), 1)
    return _T_975[whole - 1] if whole <= len(_T_975) else _Z_975 + _BEYOND_TABLE / whole
