"""Notices on what recording left out, and what it cost."""

from __future__ import annotations

from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.evidence import capture_slows_host, host_share
from stepscope.diagnosis.finding import Notice
from stepscope.diagnosis.limits import HOST_SHARE, PROFILER_SHARE
from stepscope.units import format_ns, format_share


def sampled(facts: Facts) -> Notice | None:
    """A part of the events is missing."""
    if not facts.sampling.sampled:
        return None
    return Notice(
        "profile_sampled",
        "Events are missing inside this profile (it was sampled or filtered): shares are "
        "those of what is left, and costs per step are not determined.",
    )


def slows_host(facts: Facts) -> Notice | None:
    """What was recorded slows a host that devices wait for."""
    recorded = capture_slows_host(facts)
    if recorded is None or host_share(facts) < HOST_SHARE:
        return None
    effect = "without it the device waits less for the host than shown here"
    if not facts.activities:
        effect = "steps are faster without it"
    known = facts.run.recorded_ns is not None and facts.run.unrecorded_ns is not None
    told = "" if known else " By how much was not timed: costs and savings are of the steps as recorded."
    return Notice("capture_slows_host", f"Recording {recorded} slows the host: {effect}.{told}")


def overhead(facts: Facts) -> Notice | None:
    """The profiler's own work takes a share of the steps."""
    if not facts.used_ns:
        return None
    code, steps = Category.PROFILER.code, facts.timed
    total = max((int(account.parts[account.step_rows(steps), code].sum()) for account in facts.accounts), default=0)
    own, share = round(total / len(steps)), total / int(facts.step_ns[list(steps)].sum())
    if share < PROFILER_SHARE:
        return None
    return Notice(
        "profile_overhead", f"The profiler's own work takes {format_ns(own)} per step ({format_share(share)})."
    )
