from __future__ import annotations

from collections import Counter

from stepscope.analysis.barriers import find_barriers, in_steps
from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.limits import FINDING_NS
from stepscope.diagnosis.evidence import slices_as_evidence
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.rule import Rule
from stepscope.units import format_ns

RULE = Rule(
    id="late_core",
    scope="process",
    pages=("ranks",),
    tells=(Category.PEER,),
    finds="Devices wait at a barrier for one that comes late (TPU).",
    statement="""\
Of the used steps, the time that devices spend in `barrier-cores`, the wait of a core for the others before a program
that exchanges data. The one that waits least came last and made the others wait. Predicted is a step in which it comes
no later than the others.""",
    needs="Ops of a TPU's cores.",
    cure="A step in which it comes no later than the others: to first order.",
    example="One core that runs a program more than the others.",
)

_FIX = """\
Look at what the late device does before the barrier: more work than the others (an uneven shard, padding on some), a
host that starts its program last, or input that comes late to it. Where hosts differ, compare their profiles."""


def find(facts: Facts) -> list[Finding]:
    """At most one finding."""
    barriers = [barrier for barrier in find_barriers(facts) if in_steps(facts, barrier)]
    cost = facts.per_step(sum(barrier.longest_ns for barrier in barriers))
    if cost < FINDING_NS:
        return []
    late = Counter(barrier.last for barrier in barriers).most_common(1)[0]
    worst = max(barriers, key=lambda barrier: barrier.longest_ns)
    device = max(worst.waited_ns, key=lambda one: worst.waited_ns[one])
    return [
        Finding(
            rule=RULE.id,
            device=device,
            title=f"Devices wait at a barrier for device {late[0]}",
            cost_ns_per_step=cost,
            saving_ns_per_step=cost,
            predicted_step_ns=max((facts.mean_step_ns or 0) - cost, 0),
            why=(
                f"At {len(barriers)} barriers in {len(facts.used)} steps the first device waits {format_ns(cost)} per "
                f"step for the last one, which is device {late[0]} {late[1]} times. The longest wait is that of device "
                f"{device}: {format_ns(worst.longest_ns)}, for device {worst.last}."
            ),
            fix=paragraphs(_FIX),
            basis="modelled",
            confidence="medium",
            evidence=slices_as_evidence(facts, [one.slices[device] for one in barriers if device in one.slices]),
        )
    ]
