"""How likely values are that lie above 0 on average, where only chance makes them differ."""

from __future__ import annotations

import math

import numpy as np

from stepscope.cluster.limits import EXCEPTIONAL_SPREADS
from stepscope.trace.tables import F64


def p_of_mean(values: F64) -> float:
    """How likely values as far above 0 on average are by chance: one-sided, Student's t.

    Of five steps one may be exceptional: those far from the median (``EXCEPTIONAL_SPREADS``) do not count.
    """
    values = _without_exceptions(values)
    count = values.size
    mean, spread = float(values.mean()), float(values.std(ddof=1)) if count > 1 else math.inf
    if mean <= 0 or count < 2:
        return 1.0
    if spread <= 1e-9 * mean:
        return 0.0
    return _t_tail(mean / (spread / math.sqrt(count)), count - 1)


def _without_exceptions(values: F64) -> F64:
    """Values without those far from the median, at most one of five."""
    apart = np.abs(values - np.median(values))
    most = values.size // 5
    far = np.argsort(-apart, kind="stable")[:most]
    return np.delete(values, far[apart[far] > EXCEPTIONAL_SPREADS * np.median(apart)])


def _t_tail(t: float, freedom: int) -> float:
    """P(T > t) of Student's distribution with a whole number of degrees of freedom (Abramowitz and Stegun 26.7.3-4)."""
    angle = math.atan2(t, math.sqrt(freedom))
    cosine2 = math.cos(angle) ** 2
    term = total = math.cos(angle) if freedom % 2 else 1.0
    for k in range(3 if freedom % 2 else 2, freedom, 2):
        term *= cosine2 * (k - 1) / k
        total += term
    if freedom == 1:
        inside = 2 * angle / math.pi
    elif freedom % 2:
        inside = 2 / math.pi * (angle + math.sin(angle) * total)
    else:
        inside = math.sin(angle) * total
    return max((1 - inside) / 2, 0.0)
