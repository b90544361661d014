"""Notices on waits for a device that look long and cost nothing."""

from __future__ import annotations

from stepscope.analysis.facts import Facts
from stepscope.analysis.syncs import Owner, Sync
from stepscope.diagnosis.finding import Notice
from stepscope.limits import FREE_WAIT_SHARE, WAIT_SHARE
from stepscope.units import format_ns, format_share


def cost_nothing(facts: Facts) -> Notice | None:
    """An op keeps the host waiting for much of the step, and the device has work all the while."""
    if not facts.used_ns or facts.sampling.sampled or facts.device_lost:
        return None
    free = [sync for syncs in facts.syncs for sync in syncs if _is_free(facts, sync)]
    if not free:
        return None
    longest = max(free, key=lambda sync: sync.blocked_ns)
    at = f" ({longest.where.file}:{longest.where.line})" if longest.where.file else ""
    others = f", and {len(free) - 1} more do," if len(free) > 1 else ""
    share = format_share(longest.blocked_ns / facts.used_ns)
    return Notice(
        "wait_costs_nothing",
        f"`{longest.op}`{at} keeps the host waiting for {format_ns(facts.per_step(longest.blocked_ns))} per step "
        f"({share}){others} and that costs nothing: the device is at work meanwhile on what was launched before, and "
        "gets its next work in time. Without the wait the step would take as long: make the device's work shorter.",
        len(free),
    )


def _is_free(facts: Facts, sync: Sync) -> bool:
    long = sync.op is not None and sync.blocked_ns >= FREE_WAIT_SHARE * facts.used_ns
    return long and sync.owner is Owner.PROGRAM and sync.cost_ns <= WAIT_SHARE * sync.blocked_ns
