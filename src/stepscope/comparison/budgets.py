"""Budgets: what ``--fail-if`` and ``[tool.stepscope]`` in pyproject.toml say must not be.

``METRIC OP VALUE``: ``device_busy < 80%``, ``step_time > 20ms``, ``input > 5%``, ``peak_memory > 70GiB``. A value
with a sign is a change from the first of two profiles: ``step_time > +3%``, ``compute > +2ms``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Final

from stepscope.analysis.categories import CATEGORIES, Category
from stepscope.comparison.compare import Comparison, advice
from stepscope.comparison.limits import COMPARED_ITEM_SHARE
from stepscope.comparison.noise import Difference
from stepscope.comparison.side import Side
from stepscope.errors import UsageError
from stepscope.record import record
from stepscope.regex import regex
from stepscope.units import NS_PER_MS, NS_PER_S, NS_PER_US, format_bytes, format_ns, format_share

_TIME: Final = {"ns": 1, "us": NS_PER_US, "µs": NS_PER_US, "ms": NS_PER_MS, "s": NS_PER_S}
_SIZE: Final = {
    "b": 1,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
    "tib": 1 << 40,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
}
_OPERATORS: Final[dict[str, Callable[[float, float], bool]]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_FORM = regex(r"\s*(\w+)\s*(<=|>=|<|>)\s*([+-]?)\s*(\d+(?:\.\d+)?)\s*(%|[a-zA-Zµ]+)\s*")

_MANY = 10.0
"""A change of more times what there was is said as a time."""

TIMES = ("step_time", *(str(category) for category in CATEGORIES))
SHARES = ("device_busy", "device_busy_without_collectives")
SIZES = ("peak_memory",)
METRICS = (*TIMES, *SHARES, *SIZES)


@record
class Budget:
    """One condition that must not hold."""

    text: str
    metric: str
    holds: Callable[[float, float], bool]
    value: float
    """In ns, bytes or a share of one; with its sign where it is a change."""
    unit: str
    """``ns``, ``bytes`` or ``share``."""
    relative: bool
    """Whether it bounds a change."""


@record
class BudgetOutcome:
    """What became of a budget: whether it fired, and the sentence that says why."""

    budget: Budget
    fired: bool
    sentence: str


def parse(text: str) -> Budget:
    """Read a budget. Raises UsageError where it is none."""
    match = _FORM.fullmatch(text)
    if not match:
        raise UsageError(f"{text!r} is no condition; write one like 'step_time > +3%' or 'device_busy < 80%'")
    metric, sign, op, number, unit = match[1], match[3], match[2], float(match[4]), match[5]
    if metric not in METRICS:
        raise UsageError(f"{text!r}: there is no {metric}; there are {', '.join(METRICS)}")
    signed = -number if sign == "-" else number
    if unit == "%":
        kind, value = "share", signed / 100
    elif unit in _TIME and metric in TIMES:
        kind, value = "ns", signed * _TIME[unit]
    elif unit.lower() in _SIZE and metric in SIZES:
        kind, value = "bytes", signed * _SIZE[unit.lower()]
    else:
        raise UsageError(f"{text!r}: {unit} is no unit of {metric}")
    if kind == "share" and not sign and metric in ("step_time", *SIZES):
        raise UsageError(f"{text!r}: a share of what? Write +{number:g}% for a change, or a value with its unit")
    if sign and not number:
        raise UsageError(f"{text!r}: no two runs take exactly as long: write the change that counts, such as +3%")
    return Budget(text, metric, _OPERATORS[op], value, kind, bool(sign))


def check(budget: Budget, side: Side, comparison: Comparison | None = None) -> BudgetOutcome:
    """Hold a profile against a budget; a change needs the comparison that led to it.

    What cannot be told fires: a gate that lets through what it did not check is none. Raises UsageError where a change
    is asked of a single profile.
    """
    if budget.relative:
        return _change(budget, comparison)
    value = _value(budget, side)
    if value is None:
        return BudgetOutcome(budget, True, f"{budget.text}: cannot be checked: {budget.metric} is not recorded")
    fired = budget.holds(value, budget.value)
    return BudgetOutcome(budget, fired, f"{budget.text}: {budget.metric} is {_told(value, budget.unit)}")


def _value(budget: Budget, side: Side) -> float | None:
    single = {
        "step_time": side.median_step_ns,
        "device_busy": side.busy_share,
        "device_busy_without_collectives": side.busy_share_without_collectives,
        "peak_memory": side.peak_memory,
    }
    if budget.metric in single:
        return single[budget.metric]
    if not side.step_ns.size or side.lost:
        return None
    booked = float(side.parts[:, Category(budget.metric).code].mean())
    return booked / float(side.parts.sum(axis=1).mean()) if budget.unit == "share" else booked


def _change(budget: Budget, comparison: Comparison | None) -> BudgetOutcome:
    """A change counts by its measured size where what was measured tells changes as small as the limit, or shows this
    one; or where the whole interval is on one side of the limit. What runs of the same code are taken to differ by is
    not in it: a limit is its author's word on what differs on their machine."""
    if comparison is None:
        raise UsageError(f"{budget.text!r}: a change needs two profiles: stepscope compare BEFORE AFTER --fail-if ...")
    if budget.metric not in TIMES:
        raise UsageError(f"{budget.text!r}: changes can be bounded of times only: {', '.join(TIMES)}")
    if comparison.unfit:
        return BudgetOutcome(budget, True, f"{budget.text}: cannot be checked: {comparison.unfit}")
    of = {str(part.category): part.difference for part in comparison.parts}
    change = comparison.step if budget.metric == "step_time" else of.get(budget.metric, _NONE)
    limit, noise = _limit(budget, change, comparison.step), change.measured_noise_ns or 0.0
    ends = [budget.holds(change.ns + sign * noise, limit) for sign in (-1, 1)]
    checked = noise <= abs(limit) or abs(change.ns) > noise or ends[0] == ends[1]
    said = f"changed by {_signed(change.ns, change)} (±{_size(noise, change)})"
    if not checked:
        how = advice(change, comparison.before, comparison.after, abs(limit))
        return BudgetOutcome(budget, True, f"{budget.text}: cannot be checked: {budget.metric} {said}; {how}")
    return BudgetOutcome(budget, budget.holds(change.ns, limit), f"{budget.text}: {budget.metric} {said}")


_NONE = Difference(0.0, 0.0, 0.0, 0.0)


def _limit(budget: Budget, change: Difference, step: Difference) -> float:
    """In ns. A share of a cause is at least what counts of a step: half of next to nothing is nothing."""
    if budget.unit != "share":
        return budget.value
    least = 0.0 if change is step else COMPARED_ITEM_SHARE * max(step.before_ns, step.after_ns)
    return math.copysign(max(abs(budget.value) * change.before_ns, least), budget.value)


def _signed(ns: float, change: Difference) -> str:
    return f"{'+' if ns >= 0 else '−'}{_size(abs(ns), change)}"


def _size(ns: float, change: Difference) -> str:
    """As a share of before where that is something to be a share of."""
    share = ns / change.before_ns if change.before_ns else math.inf
    return format_share(share) if share < _MANY else format_ns(round(ns))


def _told(value: float, unit: str) -> str:
    if unit == "share":
        return format_share(value)
    return format_ns(round(value)) if unit == "ns" else format_bytes(round(value))
