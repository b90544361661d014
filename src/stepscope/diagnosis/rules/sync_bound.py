"""sync_bound: the host waits for the device, and the device then waits for the host.

Statement: the accounting books idle time to ``sync``: the host was blocked in a wait while the device worked, and
the lead it lost was missing when the device ran dry. All such waits of a device form one finding, because removing
one of a chain only moves the wait to the next. Evidence, not names, makes a sync: the blocking call inside the op.
"""

from __future__ import annotations

from functools import reduce
from operator import or_

from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.syncs import Sync
from stepscope.diagnosis.evidence import SHOWN, booked, slices_as_evidence
from stepscope.diagnosis.finding import Finding, FixPart, paragraphs
from stepscope.diagnosis.remedies import SYNC_CALL, remedy
from stepscope.limits import WAIT_SHARE
from stepscope.trace.tables import Rows
from stepscope.units import format_ns
from stepscope.whatif.changes import wait_sites, without_waits


def find(facts: Facts) -> list[Finding]:
    """One finding per device: its costly waits as one set."""
    found = []
    for account, syncs in zip(facts.accounts, facts.syncs, strict=False):
        cost = booked(facts, account, Category.SYNC)
        least = WAIT_SHARE * sum(sync.cost_ns for sync in syncs)
        guilty = [sync for sync in syncs if sync.cost_ns > 0 and sync.cost_ns >= least]
        if cost and guilty:
            found.append(_finding(facts, account.rows.device, cost, guilty))
    return found


def _finding(facts: Facts, device: int | None, cost: int, syncs: list[Sync]) -> Finding:
    first = syncs[0]
    sites = wait_sites(facts)
    parts = tuple(_part(facts, sync, sites) for sync in syncs)
    name = first.op or first.call
    others = f" and {len(syncs) - 1} more" if len(syncs) > 1 else ""
    verb = "make" if others else "makes"
    shown = [s for sync in syncs[:SHOWN] for s in sync.slices[:SHOWN]]
    return Finding(
        rule="sync_bound",
        device=device,
        title=f"`{name}`{others} {verb} the host wait for the device",
        cost_ns_per_step=cost,
        saving_ns_per_step=cost,
        change=reduce(or_, (part.change for part in parts)),
        fix_set=parts if len(parts) > 1 else (),
        why=_why(facts, syncs),
        fix=paragraphs(_fix(syncs, remedy(SYNC_CALL, facts.trace.info.framework))),
        where=tuple(sync.where for sync in syncs[:SHOWN] if sync.where),
        evidence=slices_as_evidence(facts, shown, device=device),
    )


def _part(facts: Facts, sync: Sync, sites: Rows) -> FixPart:
    name = f"`{sync.op}` waits in `{sync.call}`" if sync.op else f"`{sync.call}`"
    return FixPart(
        title=name,
        where=sync.where,
        fix="\n".join(sync.hint.alternatives) if sync.hint else remedy(SYNC_CALL, facts.trace.info.framework),
        cost_ns_per_step=facts.per_step(sync.cost_ns),
        change=without_waits(facts, sync.slices, sites),
    )


def _why(facts: Facts, syncs: list[Sync]) -> str:
    lines = []
    for sync in syncs[:3]:
        name = f"`{sync.op}`" if sync.op else "a bare call"
        lines.append(
            f"{name} waits in `{sync.call}` {_often(facts, sync)}: the host is blocked "
            f"{format_ns(facts.per_step(sync.blocked_ns))} per step, and the device then idles "
            f"{format_ns(facts.per_step(sync.cost_ns))} because nothing was queued behind it."
        )
    causes = dict.fromkeys(sync.hint.cause for sync in syncs if sync.hint is not None)
    text = " ".join([*lines, *(f"{cause[:1].upper()}{cause[1:]}." for cause in causes)])
    if sum(sync.count for sync in syncs) > len(facts.used):
        text += " Fix them together: removing one alone moves the wait to the next."
    return text


def _often(facts: Facts, sync: Sync) -> str:
    if len(sync.steps) == len(facts.used) and sync.count == len(facts.used):
        return "once in every step"
    return f"{sync.count} times in {len(sync.steps)} of {len(facts.used)} steps"


def _fix(syncs: list[Sync], remove: str) -> str:
    hints = dict.fromkeys(line for sync in syncs if sync.hint is not None for line in sync.hint.alternatives)
    fixes = [f"- {line}" for line in hints]
    if any(sync.op is None for sync in syncs):
        fixes.append(remove)
    return "\n".join(fixes) or remove
