"""Whether a cure changed results: losses of the unchanged job and of one with a cure, step by step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

ROUNDING = 1e-4
"""Relative difference of losses that another order of sums makes in float32 over some dozen steps."""


@dataclass(frozen=True, slots=True)
class Compared:
    """``outcome``: ``equal``, ``rounding``, ``differs``, or ``unknown`` with the reason in ``why``."""

    outcome: str
    steps: int
    """Steps compared."""
    largest: float | None = None
    """The largest relative difference; None where one of two losses is no number."""
    since: int | None = None
    """The first step that differs by more than rounding."""
    why: str = ""


def compared(before: Sequence[Sequence[float | None]], after: Sequence[float | None]) -> Compared:
    """Losses of runs of the unchanged job, which show whether it repeats itself, and those of one run with a cure."""
    if not before or not any(value is not None for value in before[0]):
        return Compared("unknown", 0, why="the job's loss was not seen: --watch-value names a variable of its loop")
    itself = [_difference(before[0], other) for other in before[1:]]
    if any(one.outcome == "differs" for one in itself):
        return Compared("unknown", 0, why="the unchanged job's loss differs from run to run by itself")
    if not any(value is not None for value in after):
        return Compared("unknown", 0, why="no loss was seen with the cure")
    return _difference(before[0], after)


def _difference(one: Sequence[float | None], other: Sequence[float | None]) -> Compared:
    off = [_off(a, b) for a, b in zip(one, other, strict=False) if a is not None and b is not None]
    since = next((step for step, share in enumerate(off) if share > ROUNDING), None)
    outcome = "differs" if since is not None else "rounding" if any(off) else "equal"
    largest = max(off, default=None)
    return Compared(outcome, len(off), None if largest == math.inf else largest, since)


def _off(a: float, b: float) -> float:
    """The relative difference of two losses; without bound where only one is a number."""
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0
    share = abs(a - b) / max(abs(a), abs(b))
    return math.inf if math.isnan(share) else share
