"""What one rank has for itself is told with what the others lose by it: one cause is one finding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stepscope.cluster.job import JobFacts
from stepscope.cluster.limits import CAUSE_SHARE
from stepscope.cluster.rules import DECLARED
from stepscope.cluster.rules.straggler import RULE as STRAGGLER
from stepscope.diagnosis.finding import Finding


def folded(facts: JobFacts, of_job: Sequence[Finding], of_ranks: Sequence[Finding]) -> list[Finding]:
    """All findings; one that a late rank alone has, and that explains why it is late, becomes part of the straggler."""
    findings, left = list(of_job), list(of_ranks)
    if facts.blame is None:
        return [*findings, *left]
    for straggler in facts.blame.stragglers:
        lane = facts.blame.lanes[straggler.lane]
        cause = facts.cause_of(lane, straggler.waited_ns).cause
        rank, device = facts.ranks[lane.partial], lane.device if lane.device >= 0 else None
        own = [
            one
            for one in left
            if (one.rank, one.ranks) == (rank, 1)
            and DECLARED[one.rule].makes_late == cause
            and (one.cost_ns_per_step or 0) >= CAUSE_SHARE * straggler.waited_ns
        ]
        for at, late in enumerate(findings):
            if own and (late.rule, late.rank, late.device) == (STRAGGLER.id, rank, device):
                dearest = max(own, key=lambda one: one.cost_ns_per_step or 0)
                findings[at] = _with(late, dearest)
                left.remove(dearest)
    return [*findings, *left]


def _with(late: Finding, own: Finding) -> Finding:
    return replace(
        late,
        why=f"{late.why} {own.why}",
        fix=f"{own.fix}\n{late.fix}".strip(),
        where=own.where,
        evidence=own.evidence,
        fix_set=own.fix_set,
    )
