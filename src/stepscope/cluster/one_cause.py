"""What one rank has for itself is told with what the others lose by it: one cause is one finding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stepscope.cluster.job import JobFacts
from stepscope.cluster.rules import DECLARED
from stepscope.cluster.rules.straggler import RULE as STRAGGLER
from stepscope.cluster.rules.told import RankFinding
from stepscope.limits import CAUSE_SHARE


def folded(facts: JobFacts, of_job: Sequence[RankFinding], of_ranks: Sequence[RankFinding]) -> list[RankFinding]:
    """All findings; one that a late rank alone has, and that explains why it is late, becomes part of the straggler."""
    found, left = list(of_job), list(of_ranks)
    if facts.blame is None:
        return [*found, *left]
    for straggler in facts.blame.stragglers:
        lane = facts.blame.lanes[straggler.lane]
        cause = facts.cause_of(lane, straggler.waited_ns).cause
        rank, device = facts.ranks[lane.partial], lane.device if lane.device >= 0 else None
        own = [
            one
            for one in left
            if (one.rank, one.ranks) == (rank, 1)
            and DECLARED[one.finding.rule].makes_late == cause
            and (one.finding.cost_ns_per_step or 0) >= CAUSE_SHARE * straggler.waited_ns
        ]
        for at, late in enumerate(found):
            if own and (late.finding.rule, late.rank, late.finding.device) == (STRAGGLER.id, rank, device):
                dearest = max(own, key=lambda one: one.finding.cost_ns_per_step or 0)
                found[at] = _with(late, dearest)
                left.remove(dearest)
    return [*found, *left]


def _with(late: RankFinding, own: RankFinding) -> RankFinding:
    finding = replace(
        late.finding,
        why=f"{late.finding.why} {own.finding.why}",
        fix=f"{own.finding.fix}\n{late.finding.fix}".strip(),
        where=own.finding.where,
        evidence=own.finding.evidence,
        fix_set=own.finding.fix_set,
    )
    return replace(late, finding=finding)
