"""Notices on profiles of XLA: what its ranges mean, and what it compiled."""

from __future__ import annotations

from stepscope.analysis.facts import Facts
from stepscope.diagnosis.finding import Notice
from stepscope.diagnosis.remedies import TORCH_XLA
from stepscope.names.xla_hosts import XlaRole
from stepscope.units import format_ns


def lazy_phases(facts: Facts) -> Notice | None:
    """In a lazy framework the ranges people call forward and backward hold the building of the graph."""
    if facts.trace.info.framework != TORCH_XLA:
        return None
    count = int(facts.host.in_role(XlaRole.LAZY_PHASE).sum())
    if not count:
        return None
    return Notice(
        "lazy_phases",
        "Host ranges called forward or backward measure how long PyTorch/XLA built the graph, not how long the device "
        "computed: do not compare them with device time.",
        count,
    )


def no_scopes(facts: Facts) -> Notice | None:
    """Without name scopes device ops cannot be traced to layers; nothing is inferred from the order of ops."""
    if facts.trace.info.framework != TORCH_XLA or not len(facts.trace.xla_ops):
        return None
    if (facts.trace.xla_ops.scope >= 0).any():
        return None
    return Notice(
        "profile_no_scopes",
        "No name scopes were recorded, so device ops cannot be told apart by layer. Run with XLA_HLO_DEBUG=1 "
        "(and XLA_IR_DEBUG=1) set.",
    )


def recompiled(facts: Facts) -> Notice | None:
    """A module that ran before was compiled once more because a shape changed; a new function of an old one's name and
    shapes is compiled too, and is another one."""
    again = [
        compilation
        for compilation in (facts.xla.compilations if facts.xla else ())
        if compilation.again and compilation.changed
    ]
    if not again:
        return None
    first = again[0]
    step = None if first.step is None else facts.markers.numbers[first.step]
    where = "" if first.step is None else f" in step {first.step if step is None else step}"
    return Notice(
        "recompiled",
        f"`{first.module}` was compiled again{where} because its inputs changed ({first.changed}): "
        f"{format_ns(first.ns)}. Pad or bucket inputs to a few fixed shapes, and run one step of each "
        "before the profile begins.",
        len(again),
    )
