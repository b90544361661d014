"""How well the difference of two means of runs is known.

Every run of a job is one value, the mean of its timed steps; steps of one run share what made that run fast or slow, so
that their number says nothing of how runs differ. The interval is Student's, with the spread of both sides pooled. As
trials are looked at several times, and end as soon as they tell, each look asks for more than 95 %: by Bonferroni the
chance of a false word over all looks is at most that of one (Dunn, JASA 56, 1961).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean

CHANCE = 0.05
"""A cure that does nothing is said to do something in at most so many of one, over all looks."""
LOOKS = 4
"""Times that an arm is looked at, at most."""
NOTHING = 0.03
"""A cure whose whole interval lies within this share of the step does nothing."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Means of the runs of the unchanged job and of one with a cure, ns per step, and the interval of what it saves."""

    before_ns: float
    after_ns: float
    half_ns: float | None
    """None where there are too few runs."""
    runs: tuple[int, int]

    @property
    def saving_ns(self) -> float:
        """What the cure saves; negative where it costs."""
        return self.before_ns - self.after_ns

    @property
    def low_ns(self) -> float | None:
        """It saves at least this."""
        return None if self.half_ns is None else self.saving_ns - self.half_ns

    @property
    def high_ns(self) -> float | None:
        """It saves at most this."""
        return None if self.half_ns is None else self.saving_ns + self.half_ns

    @property
    def verdict(self) -> str:
        """``helps``, ``hurts``, ``nothing`` or ``unknown``."""
        if self.half_ns is None:
            return "unknown"
        if abs(self.saving_ns) > self.half_ns:
            return "helps" if self.saving_ns > 0 else "hurts"
        within = abs(self.saving_ns) + self.half_ns <= NOTHING * self.before_ns
        return "nothing" if within else "unknown"

    @property
    def runs_needed(self) -> int | None:
        """Runs of each side that would tell, if all stays as it is, one more where nothing is known of how they differ;
        None where it is told already."""
        if self.verdict != "unknown":
            return None
        if self.half_ns is None:
            return min(self.runs) + 1
        wanted = max(abs(self.saving_ns), NOTHING * self.before_ns)
        return max(min(self.runs) + 1, math.ceil(min(self.runs) * (self.half_ns / wanted) ** 2))


def measured(before: Sequence[float], after: Sequence[float], looks: int = LOOKS) -> Measured:
    """Of means of runs, ns per step. At least one run of each side."""
    one, two = fmean(before), fmean(after)
    freedom = len(before) + len(after) - 2
    if min(len(before), len(after)) < 2:
        return Measured(one, two, None, (len(before), len(after)))
    squares = sum((run - one) ** 2 for run in before) + sum((run - two) ** 2 for run in after)
    error = math.sqrt(squares / freedom * (1 / len(before) + 1 / len(after)))
    return Measured(one, two, student(freedom, 1 - CHANCE / looks) * error, (len(before), len(after)))


@cache
def student(freedom: int, confidence: float) -> float:
    """The t beyond which, on either side, a Student-distributed value lies with a chance of 1 - ``confidence``."""
    low, high = 0.0, 1.0
    while _within(high, freedom) < confidence:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < confidence else (low, middle)
    return high


def _within(t: float, freedom: int) -> float:
    """The chance of a value between -t and t (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    is_odd = freedom % 2
    term = total = cosine if is_odd else 1.0
    for at in range(2 + is_odd, freedom - 1, 2):
        term *= (at - 1) / at * cosine**2
        total += term
    if is_odd:
        return 2 / math.pi * (angle + (sine * total if freedom > 1 else 0.0))
    return sine * total
