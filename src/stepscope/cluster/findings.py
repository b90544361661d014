"""What a job's ranks say together: who holds up whom, what many of them have, and what must be known of the job."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

from stepscope.analysis.categories import Category
from stepscope.cluster.intake import kind_of, weight
from stepscope.cluster.job import JobFacts
from stepscope.cluster.notices import notices
from stepscope.cluster.one_cause import folded
from stepscope.cluster.rules import DECLARED, JOB_RULES
from stepscope.cluster.rules.straggler import TITLES, who_waits
from stepscope.cluster.rules.told import RankFinding
from stepscope.diagnosis.finding import Notice
from stepscope.diagnosis.left_on_host import left_by_job
from stepscope.diagnosis.ranking import bounded, ids, least_told, order, size, tells
from stepscope.diagnosis.verdict import GROUPS, HOST_WORDS, largest
from stepscope.limits import BOTTLENECK_SHARE
from stepscope.units import format_ns, format_share

__all__ = ["JobDiagnosis", "RankFinding", "diagnose"]

_UNDIVIDED = (
    "What the other ranks wait for those that have it is not known, so neither is what a step gains: read the profiles "
    "of all ranks, of whole steps in which they meet in collectives."
)


@dataclass(frozen=True, slots=True)
class JobDiagnosis:
    """What is said of a job."""

    findings: tuple[RankFinding, ...]
    minor: tuple[RankFinding, ...]
    notices: tuple[Notice, ...]
    verdict: str
    bottleneck: str
    plan: tuple[str, ...]


def diagnose(facts: JobFacts) -> JobDiagnosis:
    """Put what is known of a job into words."""
    of_job = [_told(facts, one) for rule in JOB_RULES for one in rule.find(facts)]
    found = folded(facts, of_job, _of_ranks(facts))
    found = [found[at] for at in order([one.finding for one in found], DECLARED)]
    names = ids([one.finding for one in found])
    found = [replace(one, finding=replace(one.finding, id=id_)) for one, id_ in zip(found, names, strict=True)]
    least = least_told(facts.mean_step_ns)
    worth = tuple(one for one in found if tells(one.finding, least))
    minor = tuple(one for one in found if not tells(one.finding, least))
    sentence, bottleneck = _verdict(facts)
    plan = tuple(one.finding.id for one in worth if one.finding.saving_ns_per_step is not None)
    return JobDiagnosis(worth, minor, tuple(notices(facts)), sentence, bottleneck, plan)


def _told(facts: JobFacts, one: RankFinding) -> RankFinding:
    """A finding on the job, of the step as it is when nobody records; those of ranks are so already."""
    finding = bounded(one.finding, facts.mean_step_ns)
    if facts.told_step_ns is not None:
        finding = left_by_job(finding, facts.told_step_ns, facts.unrecorded_share, on_host=facts.on_host)
    return replace(one, finding=finding)


# --- what ranks have each for themselves ----------------------------------------------------------------------------


def _of_ranks(facts: JobFacts) -> list[RankFinding]:
    """One finding per rule and title: the rank where its fix saves most speaks for all that have it."""
    groups: dict[tuple[str, str], list[RankFinding]] = defaultdict(list)
    for rank, partial in zip(facts.ranks, facts.partials, strict=True):
        for finding in (*partial.findings, *partial.minor):
            groups[kind_of(finding)].append(RankFinding(finding, rank))
    return [_merged(facts, group) for group in groups.values()]


def _merged(facts: JobFacts, group: list[RankFinding]) -> RankFinding:
    worst = max(group, key=lambda one: weight(one.finding))
    # Ranks that have much less of it are no reason to call it small where it is not.
    group = [one for one in group if 2 * size(one.finding) >= size(worst.finding)]
    having = {one.rank for one in group}
    finding, count, all_ = worst.finding, len(having), len(facts.partials)
    own, saving = finding.saving_ns_per_step, _saving(facts, group, worst)
    cost = finding.cost_ns_per_step
    if DECLARED[finding.rule].holds_waiting and cost is not None and facts.blame is not None:
        parts, share = facts.mean_parts, _share_of_rule(facts, worst)
        cost = round(share * sum(parts.get(c, 0.0) for c in (Category.COLLECTIVE, Category.COLLECTIVE_TRANSFER)))
        # What has no saving on any rank has none in the job.
        saving = None if own is None else min(max(one.finding.saving_ns_per_step or 0 for one in group), cost)
        told = _divided(facts, share)
        why = finding.why.replace(finding.alone, told) if finding.alone else finding.why + told
        finding = replace(finding, why=why, alone="")
    told = f" {count} of {all_} ranks have it; the figures are those of rank {worst.rank}." if count > 1 else ""
    few = f"{count} of {all_} ranks" if count > 1 else f"rank {worst.rank}"
    finding = replace(
        finding,
        title=f"{finding.title} ({few})" if count < all_ else finding.title,
        cost_ns_per_step=cost,
        saving_ns_per_step=saving,
        saving_after_ns_per_step=None,  # behind what ranks above it in its own rank's report
        predicted_step_ns=None,
        best_step_ns=finding.best_step_ns if saving == own else None,
        prediction_basis=finding.prediction_basis if saving == own else None if saving is None else "first_order",
        why=finding.why + told,
        not_determined=_UNDIVIDED if saving is None and own is not None else finding.not_determined,
    )
    return RankFinding(bounded(finding, facts.told_step_ns), worst.rank, count)


def _saving(facts: JobFacts, group: list[RankFinding], worst: RankFinding) -> int | None:
    """What a fix on all ranks that have a finding gains: a step ends when its last rank does, so no more than those
    without it wait. None where their waiting is not told."""
    if worst.finding.saving_ns_per_step is None:
        return None
    savings = {one.rank: one.finding.saving_ns_per_step or 0 for one in group}
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


def _share_of_rule(facts: JobFacts, one: RankFinding) -> float:
    """How much of what a rule says costs a device of a rank is one finding's: collectives are told by kind."""
    partial = facts.partials[facts.ranks.index(one.rank)] if one.rank in facts.ranks else None
    told = (*partial.findings, *partial.minor) if partial is not None else ()
    key = one.finding.rule, one.finding.device
    total = sum(other.cost_ns_per_step or 0 for other in told if (other.rule, other.device) == key)
    return (one.finding.cost_ns_per_step or 0) / total if total else 1.0


def _divided(facts: JobFacts, share: float) -> str:
    parts = facts.mean_parts
    waits = format_ns(round(parts.get(Category.COLLECTIVE_WAIT, 0.0)))
    transfers = format_ns(round(parts.get(Category.COLLECTIVE_TRANSFER, 0.0)))
    it = "it" if share >= 1 else "what nothing hides of all collectives"
    return f" On average over ranks {waits} of {it} per step is waiting for the last rank, {transfers} transfer."


# --- in one sentence ------------------------------------------------------------------------------------------------


def _verdict(facts: JobFacts) -> tuple[str, str]:
    step, parts = facts.mean_step_ns, facts.mean_parts
    total = sum(parts.values())
    ranks = f"over {len(facts.partials)} ranks"
    if not step or not total:
        return "Nothing in these profiles says how long a step takes.", "unknown"
    waiting = parts.get(Category.COLLECTIVE_WAIT, 0.0)
    if facts.blame is not None and facts.blame.stragglers and not facts.sampled:
        one = facts.blame.stragglers[0]
        if one.waited_ns * len(one.others) >= BOTTLENECK_SHARE * step * (len(facts.blame.lanes) - 1):
            lane = facts.blame.lanes[one.lane]
            cause = TITLES[facts.cause_of(lane, one.waited_ns).cause]
            share = format_share(one.waited_ns / step)
            lost = f"{format_ns(one.waited_ns)} of {format_ns(step)}, mean over the ranks that wait"
            return (
                f"For {share} of each step ({lost}) {' '.join(who_waits(facts, one))} for {facts.name(lane)}: {cause}.",
                "straggler",
            )
    worst, shares = largest(parts)
    busy = sum(parts.get(c, 0.0) for c in (Category.COMPUTE, Category.HOST_COMPUTE, Category.MEMSET)) / total
    on_devices = any(partial.devices for partial in facts.partials)
    if shares[worst] < BOTTLENECK_SHARE:
        who = "devices" if on_devices else "processors"
        return f"The {who} set the pace: they compute {format_share(busy)} of each step on average {ranks}.", "device"
    lost = f"{format_ns(round(shares[worst] * step))} of {format_ns(step)}"
    words = GROUPS[worst][1] if on_devices else HOST_WORDS.get(worst, GROUPS[worst][1])
    what = f"a rank {words.removesuffix(',')}"
    if worst == "communication" and waiting > 0:
        what += f" (waiting for the last rank {format_share(waiting / total)})"
    return (
        f"For {format_share(shares[worst])} of each step ({lost}, on average {ranks}) {what}; it computes "
        f"{format_share(busy)}.",
        worst,
    )
