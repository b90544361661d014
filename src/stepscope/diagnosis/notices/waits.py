"""Notices on waits for a device that nobody needs to fix: they cost nothing, or serve a measurement."""

from __future__ import annotations

from stepscope.analysis.facts import Facts
from stepscope.analysis.frame import parse_frame
from stepscope.analysis.limits import FINDING_NS, FINDING_SHARE
from stepscope.analysis.syncs import Owner, Sync
from stepscope.diagnosis.finding import Notice
from stepscope.diagnosis.limits import FREE_WAIT_SHARE, WAIT_SHARE
from stepscope.names.sync_hints import takes_time
from stepscope.trace.tables import Kind
from stepscope.units import format_ns, format_share


def cost_nothing(facts: Facts) -> Notice | None:
    """An op keeps the host waiting for much of the step, and the device has work all the while."""
    if not facts.used_ns or facts.sampling.sampled or facts.device_lost:
        return None
    waits = [sync for syncs in facts.syncs for sync in syncs]
    # A wait that one device does not mind another may run dry behind.
    dear = {(sync.op, sync.call, sync.where) for sync in waits if not _costs_little(sync)}
    free = [sync for sync in waits if _is_long(facts, sync) and (sync.op, sync.call, sync.where) not in dear]
    if not free:
        return None
    longest = max(free, key=lambda sync: sync.blocked_ns)
    place = longest.where
    begins = f"in `{place.function}`, which begins at " if place.defined else ""
    at = f" ({begins}{place.at})" if place.file else ""
    others = f", and {len(free) - 1} more do," if len(free) > 1 else ""
    share = format_share(longest.blocked_ns / facts.used_ns)
    return Notice(
        "wait_costs_nothing",
        f"`{longest.op}`{at} keeps the host waiting for {format_ns(facts.per_step(longest.blocked_ns))} per step "
        f"({share}){others} and that costs nothing: the device is at work meanwhile on what was launched before, and "
        "gets its next work in time. Without the wait the step would take as long: make the device's work shorter.",
        len(free),
    )


def _is_long(facts: Facts, sync: Sync) -> bool:
    long = sync.op is not None and sync.blocked_ns >= FREE_WAIT_SHARE * facts.used_ns
    return long and sync.owner is Owner.PROGRAM


def _costs_little(sync: Sync) -> bool:
    return sync.cost_ns <= WAIT_SHARE * sync.blocked_ns


def measures(facts: Facts) -> Notice | None:
    """A timer, a benchmark or a profiler waits for the device, and the device then for the host."""
    if not facts.used_ns or facts.sampling.sampled or facts.device_lost:
        return None
    own = [sync for syncs in facts.syncs for sync in syncs if sync.owner is Owner.TIMER and sync.cost_ns > 0]
    cost = max((timer_cost(syncs) for syncs in facts.syncs), default=0)
    if cost < max(FINDING_SHARE * facts.used_ns, FINDING_NS * len(facts.used)):
        return None
    most = max(own, key=lambda sync: sync.cost_ns)
    asking = _asking(facts, most.slices[0])
    return Notice(
        "wait_measures",
        f"`{most.call}`, called by {asking}, waits for the device so that a time can be taken; the device then idles "
        f"{format_ns(facts.per_step(cost))} per step ({format_share(cost / facts.used_ns)}). That is the "
        "measurement's own and no part of the program: no finding counts it.",
        len(own),
    )


def timer_cost(syncs: list[Sync]) -> int:
    """Idle time in the used steps that waits of timers are to blame for."""
    return sum(sync.cost_ns for sync in syncs if sync.owner is Owner.TIMER)


def _asking(facts: Facts, wait: int) -> str:
    """The timer's function, with file and line."""
    around = facts.locator.enclosing(wait)
    names = [facts.trace.name_of(at) for at in around if facts.trace.slices.kind[at] == Kind.PYTHON_FRAME]
    name = next(name for name in names if takes_time(name))
    frame = parse_frame(name)
    return frame.told if frame else f"`{name}`"
