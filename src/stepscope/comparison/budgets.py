"""Budgets: what ``--fail-if`` and ``[tool.stepscope]`` in pyproject.toml say must not be.

``METRIC OP VALUE``: ``device_busy < 80%``, ``step_time > 20ms``, ``input > 5%``, ``peak_memory > 70GiB``. A value
with a sign is a change from the first of two profiles: ``step_time > +3%``, ``compute > +2ms``.
"""

from __future__ import annotations

import operator
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from stepscope.analysis.categories import CATEGORIES, Category
from stepscope.comparison.compare import Comparison
from stepscope.comparison.noise import Difference
from stepscope.comparison.side import Side
from stepscope.errors import UsageError
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
_FORM = re.compile(r"\s*(\w+)\s*(<=|>=|<|>)\s*([+-]?)\s*(\d+(?:\.\d+)?)\s*(%|[a-zA-Zµ]+)\s*")

TIMES = ("step_time", *(str(category) for category in CATEGORIES))
SHARES = ("device_busy", "device_busy_without_collectives")
SIZES = ("peak_memory",)
METRICS = (*TIMES, *SHARES, *SIZES)


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a budget: whether it fired, and the sentence that says why."""

    budget: Budget
    fired: bool
    sentence: str


def parse(text: str) -> Budget:
    """Read a budget. Raises UsageError where it is none."""
    found = _FORM.fullmatch(text)
    if not found:
        raise UsageError(f"{text!r} is no condition; write one like 'step_time > +3%' or 'device_busy < 80%'")
    metric, sign, op, number, unit = found[1], found[3], found[2], float(found[4]), found[5]
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
    return Budget(text, metric, _OPERATORS[op], value, kind, bool(sign))


def of_project(folder: Path) -> list[Budget]:
    """``fail-if`` of ``[tool.stepscope]`` in the pyproject.toml of a folder or the nearest above it; none without.

    Raises UsageError where it is not a list of budgets.
    """
    for place in (folder, *folder.parents):
        path = place / "pyproject.toml"
        if path.is_file():
            try:
                table: Any = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {}).get("stepscope", {})
            except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
                raise UsageError(f"{path}: cannot be read: {error}") from error
            budgets = table.get("fail-if", []) if isinstance(table, dict) else None
            if not isinstance(budgets, list) or not all(isinstance(text, str) for text in budgets):
                raise UsageError(f"{path}: fail-if in [tool.stepscope] must be a list of conditions")
            return [parse(text) for text in budgets]
    return []


def check(budget: Budget, side: Side, comparison: Comparison | None = None) -> Outcome:
    """Hold a profile against a budget; a change needs the comparison that led to it.

    What cannot be told fires: a gate that lets through what it did not check is none. A change within the noise does
    not fire. Raises UsageError where a change is asked of a single profile.
    """
    if budget.relative:
        return _change(budget, side, comparison)
    value = _value(budget, side)
    if value is None:
        return Outcome(budget, True, f"{budget.text}: cannot be checked: {budget.metric} is not recorded")
    fired = budget.holds(value, budget.value)
    return Outcome(budget, fired, f"{budget.text}: {budget.metric} is {_told(value, budget.unit)}")


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


def _change(budget: Budget, side: Side, comparison: Comparison | None) -> Outcome:
    if comparison is None:
        raise UsageError(f"{budget.text!r}: a change needs two profiles: stepscope compare BEFORE AFTER --fail-if ...")
    if budget.metric not in TIMES:
        raise UsageError(f"{budget.text!r}: changes can be bounded of times only: {', '.join(TIMES)}")
    if comparison.not_determined:
        return Outcome(budget, True, f"{budget.text}: cannot be checked: {comparison.not_determined}")
    of = {str(part.category): part.difference for part in comparison.parts}
    change = comparison.step if budget.metric == "step_time" else of.get(budget.metric, Difference(0, 0, 0, 0))
    value = change.share if budget.unit == "share" else change.ns
    if value is None:
        value = float("inf") if change.ns > 0 else 0.0
    sign = "+" if value >= 0 else "−"
    noise = "" if change.beyond_noise else ", which is within the noise"
    fired = change.beyond_noise and budget.holds(value, budget.value)
    amount = f"{format_ns(round(change.ns))} from nothing" if value == float("inf") else _told(abs(value), budget.unit)
    return Outcome(budget, fired, f"{budget.text}: {budget.metric} changed by {sign}{amount}{noise}")


def _told(value: float, unit: str) -> str:
    if unit == "share":
        return format_share(value)
    return format_ns(round(value)) if unit == "ns" else format_bytes(round(value))
