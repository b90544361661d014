"""What PyTorch/XLA counted in the recorded window, in words: beside what the profile shows of the same."""

from __future__ import annotations

from stepscope.analysis.facts import Facts
from stepscope.analysis.lazy_metrics import Counted, LazyMetrics
from stepscope.analysis.limits import RECURS_SHARE
from stepscope.units import format_bytes, format_mean, format_ns


def recurs(counted: LazyMetrics, one: Counted) -> bool:
    """Whether something belongs to the steps of the window, and did not happen in one of them."""
    return counted.steps is not None and one.count >= max(2, RECURS_SHARE * counted.steps)


def per_step(counted: LazyMetrics, one: Counted) -> str:
    """How often, and the sum of it, per step; of the whole window where its steps are not known."""
    steps = counted.steps or 1
    often = f"{format_mean(one.count / steps)} {'per step' if counted.steps else 'in the window'}"
    total = None if one.total is None else one.total / steps
    if total is None or one.unit is None:
        return often
    return f"{often}, {format_ns(round(total)) if one.unit == 'ns' else format_bytes(round(total))}"


def compiled(facts: Facts) -> str:
    """A sentence on the graphs that were compiled; empty where none was, or that was not recorded."""
    counted = facts.lazy_metrics
    one = counted.compiled if counted else None
    return f" PyTorch/XLA counted {_graphs(one)} compiled ({per_step(counted, one)})." if counted and one else ""


def sent(facts: Facts) -> str:
    """A sentence on what was sent to the device; likewise."""
    counted = facts.lazy_metrics
    one = counted.to_device if counted else None
    return f" PyTorch/XLA counted the transfers to the device: {per_step(counted, one)}." if counted and one else ""


def read_back(facts: Facts) -> str:
    """A sentence on the values that were read back; likewise."""
    counted = facts.lazy_metrics
    one = counted.from_device if counted else None
    return f" PyTorch/XLA counted the values read back: {per_step(counted, one)}." if counted and one else ""


def _graphs(one: Counted) -> str:
    return "one graph" if one.count == 1 else f"{one.count:,} graphs"
