"""Whether what repeats all through a run has changed: the same number from an earlier and a later stretch of it."""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Sequence

from stepscope.diagnosis.limits import (
    CATEGORY_DRIFT_CHANCE,
    DRIFT_EXPLAINED_SHARE,
    STEP_DRIFT_CHANCE,
    STEP_DRIFT_PERIODS,
    STEP_DRIFT_SHARE,
    STEP_DRIFT_WINDOWS,
)
from stepscope.record import record

PROFILER = "profiler"
"""The category that no run without a profiler has."""


@record
class Drift:
    """Medians before and after, in ns."""

    before_ns: int
    after_ns: int

    @property
    def ns(self) -> int:
        """After less before."""
        return self.after_ns - self.before_ns


def drift(before: Sequence[int], after: Sequence[int], step_ns: float, chance: float) -> Drift | None:
    """The change from one stretch to another, each given in parts, which tell how much it varies; None without one.

    The medians differ by a share of a step, and chance orders the parts no more often than this (rank sum test of Mann
    and Whitney, 1947, in its normal approximation: it asks for no distribution, and one odd part changes little).
    """
    if not before or not after:
        return None
    change = Drift(int(statistics.median(before)), int(statistics.median(after)))
    if abs(change.ns) < STEP_DRIFT_SHARE * step_ns:
        return None
    return change if _chance(before, after) <= chance else None


def _chance(before: Sequence[int], after: Sequence[int]) -> float:
    """The probability (one-sided) that parts of equal origin are ordered at least so much."""
    pairs = len(before) * len(after)
    above = sum((late > early) + (late == early) / 2 for late in after for early in before)
    spread = math.sqrt(pairs * (len(before) + len(after) + 1) / 12)
    return math.erfc(abs(above - pairs / 2) / spread / math.sqrt(2)) / 2


@record
class DriftChange:
    """A drift that was confirmed: of the step time, or of one category."""

    category: str | None
    """None is the step time."""
    drift: Drift
    first_step: int
    """The change was found in the steps from this one on."""
    causes: dict[str, int]
    """Categories that recorded steps show to have changed alike, most first, with the difference in ns per step."""


@record
class RecordedWindow:
    """Recorded steps."""

    first_step: int
    step_ns: int
    parts: dict[str, int]
    """Category -> ns per step."""


@record
class UnrecordedPeriod:
    """Steps that were not recorded."""

    first_step: int
    block_ns: tuple[int, ...]
    """The median step of each part of the period, in order."""


class RunCourse:
    """The course of a run, window by window and period by period, in bounded memory.

    Each period is compared with the first ones; once a change has been found (two periods in a row must show it), with
    the one that confirmed it and those that follow. So what creeps is found too, and what was said is not said again.
    """

    def __init__(self) -> None:
        self._baseline: list[UnrecordedPeriod] = []
        self._suspect: tuple[UnrecordedPeriod, Drift] | None = None
        self._early: list[RecordedWindow] = []
        self._late: deque[RecordedWindow] = deque(maxlen=STEP_DRIFT_WINDOWS)

    def period(self, period: UnrecordedPeriod) -> DriftChange | None:
        """Take the next period; the change of the step time that it confirms."""
        if not period.block_ns:
            return None
        before = [ns for each in self._baseline for ns in each.block_ns]
        moved = drift(before, period.block_ns, statistics.median(before or [0]), STEP_DRIFT_CHANCE)
        if moved is None:
            self._suspect = None
            if len(self._baseline) < STEP_DRIFT_PERIODS:
                self._baseline.append(period)
            return None
        if self._suspect is None or self._suspect[1].ns * moved.ns < 0:
            self._suspect = period, moved
            return None
        first_step = self._suspect[0].first_step
        change = DriftChange(None, moved, first_step, self._causes(first_step, moved.ns))
        self._baseline, self._suspect = [period], None
        self._early, self._late = [], deque(maxlen=STEP_DRIFT_WINDOWS)
        return change

    def window(self, window: RecordedWindow) -> list[DriftChange]:
        """Take the next window; categories that have changed, where the step time has not."""
        if len(self._early) < STEP_DRIFT_WINDOWS:
            self._early.append(window)
            return []
        self._late.append(window)
        if len(self._late) < STEP_DRIFT_WINDOWS or self._suspect is not None:
            return []
        step_ns = statistics.median(each.step_ns for each in self._early)
        names = sorted({name for each in (*self._early, *self._late) for name in each.parts} - {PROFILER})
        changes = [
            DriftChange(name, change, self._late[0].first_step, {})
            for name in names
            if (change := drift(_of(self._early, name), _of(self._late, name), step_ns, CATEGORY_DRIFT_CHANCE))
        ]
        if changes:
            self._early, self._late = list(self._late), deque(maxlen=STEP_DRIFT_WINDOWS)
        return changes

    def _causes(self, first_step: int, ns: int) -> dict[str, int]:
        windows = [*self._early, *self._late]
        before = [each for each in windows if each.first_step < first_step]
        after = [each for each in windows if each.first_step >= first_step]
        if not before or not after:
            return {}
        names = {name for each in windows for name in each.parts} - {PROFILER}
        differences = {
            name: int(statistics.median(_of(after, name)) - statistics.median(_of(before, name))) for name in names
        }
        least = DRIFT_EXPLAINED_SHARE * abs(ns)
        alike = [(name, diff) for name, diff in differences.items() if diff * ns > 0 and abs(diff) >= least]
        return dict(sorted(alike, key=lambda pair: -abs(pair[1])))


def _of(windows: Sequence[RecordedWindow], name: str) -> list[int]:
    return [each.parts.get(name, 0) for each in windows]
