"""What a job's ranks say together: who holds up whom, what many of them have, and what must be known of the job."""

from __future__ import annotations

from dataclasses import replace

from stepscope.analysis.categories import Category
from stepscope.cluster.intake import weight
from stepscope.cluster.job import JobFacts
from stepscope.cluster.notices import notices
from stepscope.cluster.one_cause import folded
from stepscope.cluster.rules import DECLARED, JOB_RULES, straggler
from stepscope.diagnosis.finding import Diagnosis, Finding, WhatIf
from stepscope.diagnosis.left_on_host import left_by_job
from stepscope.diagnosis.ranking import Scale, bounded, merged, ranked, size
from stepscope.diagnosis.verdict import verdict_over_ranks
from stepscope.units import format_ns

_ONE_BY_ONE = "ranks are simulated one by one; a job is not"
_UNDIVIDED = (
    "What the other ranks wait for those that have it is not known, so neither is what a step gains: read the profiles "
    "of all ranks, of whole steps in which they meet in collectives."
)


def diagnose(facts: JobFacts) -> Diagnosis:
    """Put what is known of a job into words."""
    of_job = [_told(facts, finding) for rule in JOB_RULES for finding in rule.find(facts)]
    findings = folded(facts, of_job, _of_ranks(facts))
    framework = next((partial.framework for partial in facts.partials), None)
    scale = Scale(DECLARED, facts.mean_step_ns, _ONE_BY_ONE, framework=framework)
    worth, minor, plan = ranked(findings, scale)
    sentence, bottleneck = _verdict(facts)
    whatif = WhatIf(None, None, _ONE_BY_ONE, None)
    return Diagnosis(worth, minor, tuple(notices(facts)), sentence, bottleneck, whatif, _ONE_BY_ONE, plan)


def _told(facts: JobFacts, finding: Finding) -> Finding:
    """A finding on the job, of the step as it is when nobody records; those of ranks are so already."""
    finding = bounded(finding, facts.mean_step_ns)
    if facts.told_step_ns is None:
        return finding
    return left_by_job(finding, facts.told_step_ns, facts.unrecorded_share, on_host=facts.on_host)


def _verdict(facts: JobFacts) -> tuple[str, str]:
    step, parts = facts.mean_step_ns, facts.mean_parts
    if not step or not sum(parts.values()):
        return "Nothing in these profiles says how long a step takes.", "unknown"
    if (late := straggler.sets_pace(facts)) is not None:
        return late, straggler.RULE.id
    on_devices = any(partial.devices for partial in facts.partials)
    return verdict_over_ranks(parts, step, len(facts.partials), on_devices=on_devices)


# --- what ranks have each for themselves ----------------------------------------------------------------------------


def _of_ranks(facts: JobFacts) -> list[Finding]:
    """One finding per rule and title: the rank where its fix saves most speaks for all that have it."""
    findings = (
        replace(finding, rank=rank)
        for rank, partial in zip(facts.ranks, facts.partials, strict=True)
        for finding in (*partial.findings, *partial.minor)
    )
    return merged(findings, DECLARED, weight, lambda group, worst: _over_ranks(facts, group, worst))


def _over_ranks(facts: JobFacts, group: list[Finding], worst: Finding) -> Finding:
    # Ranks that have much less of it are no reason to call it small where it is not.
    group = [one for one in group if 2 * size(one) >= size(worst)]
    finding, count, all_ = worst, len({one.rank for one in group}), len(facts.partials)
    own, saving = finding.saving_ns_per_step, _saving(facts, group, worst)
    cost = finding.cost_ns_per_step
    if DECLARED[finding.rule].holds_waiting and cost is not None and facts.blame is not None:
        parts, share = facts.mean_parts, _share_of_rule(facts, worst)
        cost = round(share * sum(parts.get(c, 0.0) for c in (Category.COLLECTIVE, Category.COLLECTIVE_TRANSFER)))
        # What has no saving on any rank has none in the job.
        saving = None if own is None else min(max(one.saving_ns_per_step or 0 for one in group), cost)
        told = _divided(facts, share)
        why = told.join(finding.around) if finding.around else finding.why + told
        finding = replace(finding, why=why, around=None)
    told = f" {count} of {all_} ranks have it; the figures are those of rank {worst.rank}." if count > 1 else ""
    few = f"{count} of {all_} ranks" if count > 1 else f"rank {worst.rank}"
    finding = replace(
        finding,
        title=f"{finding.title} ({few})" if count < all_ else finding.title,
        ranks=count,
        cost_ns_per_step=cost,
        saving_ns_per_step=saving,
        saving_after_ns_per_step=None,  # behind what ranks above it in its own rank's report
        predicted_step_ns=None,
        best_step_ns=finding.best_step_ns if saving == own else None,
        prediction_basis=finding.prediction_basis if saving == own else None if saving is None else "first_order",
        why=finding.why + told,
        not_determined=_UNDIVIDED if saving is None and own is not None else finding.not_determined,
    )
    return bounded(finding, facts.told_step_ns)


def _saving(facts: JobFacts, group: list[Finding], worst: Finding) -> int | None:
    """What a fix on all ranks that have a finding gains: a step ends when its last rank does, so no more than those
    without it wait. None where their waiting is not told."""
    if worst.saving_ns_per_step is None:
        return None
    savings = {one.rank: one.saving_ns_per_step or 0 for one in group}
    talking = any(len(partial.collectives) for partial in facts.partials)
    if len(savings) == len(facts.partials) or not talking:
        return min(savings.values()) if len(savings) == len(facts.partials) else max(savings.values())
    if facts.blame is None:
        return None
    lane = next((lane for lane in facts.blame.lanes if facts.ranks[lane.partial] == worst.rank), None)
    if lane is None:
        return None
    together = facts.blame.with_(lane)
    others = [other for other in together if facts.ranks[other.partial] not in savings]
    if not others:
        return min(savings[rank] for other in together if (rank := facts.ranks[other.partial]) in savings)
    waited = facts.blame.waited_by(others)
    return None if waited is None else min(savings[worst.rank], waited)


def _share_of_rule(facts: JobFacts, one: Finding) -> float:
    """How much of what a rule says costs a device of a rank is one finding's: collectives are told by kind."""
    partial = facts.partials[facts.ranks.index(one.rank)] if one.rank in facts.ranks else None
    told = (*partial.findings, *partial.minor) if partial is not None else ()
    key = one.rule, one.device
    total = sum(other.cost_ns_per_step or 0 for other in told if (other.rule, other.device) == key)
    return (one.cost_ns_per_step or 0) / total if total else 1.0


def _divided(facts: JobFacts, share: float) -> str:
    parts = facts.mean_parts
    waits = format_ns(round(parts.get(Category.COLLECTIVE_WAIT, 0.0)))
    transfers = format_ns(round(parts.get(Category.COLLECTIVE_TRANSFER, 0.0)))
    it = "it" if share >= 1 else "what nothing hides of all collectives"
    return f" On average over ranks {waits} of {it} per step is waiting for the last rank, {transfers} transfer."
