from __future__ import annotations

from functools import reduce
from operator import or_

from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.syncs import Owner, Sync
from stepscope.diagnosis.evidence import SHOWN, slices_as_evidence, timed
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.remedies import LOOP_SYNC, remedy
from stepscope.diagnosis.rule import Rule
from stepscope.units import format_ns
from stepscope.whatif.changes import wait_sites, without_waits

RULE = Rule(
    id="loop_sync",
    scope="device",
    pages=("ops",),
    tells=(Category.SYNC,),
    finds="The loop around the steps waits for the device each time, and the device then for the next step.",
    statement="""\
The accounting books idle time to `sync`, and the wait is a bare synchronise call (outside of any op) with no launch
between it and the beginning or the end of its step. It hands over no value, so it mostly serves a timer: the cost is
then the measurement's, which is told apart from the program's own waits (`sync_bound`). The saving is that of a loop
without it, in which those stay. Waits that a timer, a benchmark or a profiler asks for by its own recorded frame are no
finding: the notice `wait_measures` tells of them.""",
    needs="Launches and the host's waits.",
    cure="A loop without these waits; those of the program stay.",
    example="`torch.cuda.synchronize()` at the end of each step, to time it.",
    host_bound=True,
    at_most_its_cost=True,
    tried_for=("TensorFlow",),
)


def find(facts: Facts) -> list[Finding]:
    """One finding per device."""
    findings = []
    for account, syncs in zip(facts.accounts, facts.syncs, strict=False):
        own = [sync for sync in syncs if sync.owner is Owner.LOOP and sync.cost_ns > 0]
        if own and account.rows.device is not None:
            findings.append(_finding(facts, account.rows.device, own))
    return findings


def _finding(facts: Facts, device: int, syncs: list[Sync]) -> Finding:
    cost = facts.per_step(sum(sync.cost_ns for sync in syncs))
    blocked = facts.per_step(sum(sync.blocked_ns for sync in syncs))
    sites = wait_sites(facts)
    return Finding(
        rule=RULE.id,
        device=device,
        title=f"The loop waits for the device between steps: `{syncs[0].call}`",
        cost_ns_per_step=cost,
        saving_ns_per_step=cost,
        change=reduce(or_, (without_waits(facts, sync.slices, sites) for sync in syncs)),
        why=(
            f"`{syncs[0].call}` is called where steps begin or end, outside of any op: the host is blocked "
            f"{format_ns(blocked)} per step, and the device then idles {format_ns(cost)} until the next step's work "
            "arrives. If it is there to time the steps, this is what timing them costs."
        ),
        fix=paragraphs(remedy(LOOP_SYNC, facts.workload)),
        where=tuple(timed(facts, sync.where, sync.cost_ns) for sync in syncs[:SHOWN] if sync.where),
        evidence=slices_as_evidence(facts, [s for sync in syncs for s in sync.slices[:SHOWN]], device=device),
    )
