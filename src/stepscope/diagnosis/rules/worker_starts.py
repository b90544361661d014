from __future__ import annotations

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.places import find_places
from stepscope.analysis.worker_starts import WorkerStarts
from stepscope.diagnosis.evidence import placed, slices_as_evidence
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.host_stretches import booked_in
from stepscope.diagnosis.remedies import remedy
from stepscope.diagnosis.remedies.input import RESTARTED
from stepscope.diagnosis.rule import Rule
from stepscope.units import format_count, format_ns, format_share
from stepscope.whatif.changes import without_host_time

RULE = Rule(
    id="worker_starts",
    scope="host",
    pages=("input",),
    finds="The loader's workers are started anew each time the loop over it begins.",
    statement="""\
The loop's thread is in a loader's frames that start worker processes, or wait for those of the epoch before to end, and
the accounting books that to `input`; so is as much of the wait for an epoch's first batch as it exceeds the usual one,
up to what starting one process takes. A first start is every job's: it is a finding where workers were at work before
it in the profile, ended before it, or are started twice.""",
    needs="Python frames (`with_stack=True`).",
    cure="A step without starting workers, and without waiting for the old ones to end.",
    example="`for epoch in range(n): for batch in DataLoader(data, num_workers=8)` without `persistent_workers=True`.",
    tried_for=("PyTorch",),
)


def find(facts: Facts) -> list[Finding]:
    """One finding per device that waits for them."""
    starts = facts.worker_starts
    if starts is None or not starts.again:
        return []
    costs = [(account, booked_in(facts, account, Category.INPUT, starts.time)) for account in facts.working]
    return [_finding(facts, account, cost, starts) for account, cost in costs if cost]


def _finding(facts: Facts, account: Account, cost: int, starts: WorkerStarts) -> Finding:
    device, slices = account.rows.device, facts.trace.slices
    rows = starts.starts.astype("int32")
    once = starts.apart is None
    change = without_host_time(facts, Category.INPUT).within(starts.time) if device is not None else None
    return Finding(
        rule=RULE.id,
        device=device,
        title=f"The loader's workers are started anew for every pass over the data{' (seen once)' if once else ''}",
        cost_ns_per_step=cost,
        saving_ns_per_step=cost,
        change=change,
        confidence="low" if once else "medium",
        seen_once=once,
        why=_why(facts, cost, starts),
        fix=paragraphs(remedy(RESTARTED, facts.workload)),
        where=placed(facts, find_places(facts.locator, rows, slices.dur_ns[rows])),
        evidence=slices_as_evidence(facts, [*starts.starts.tolist(), *starts.ends.tolist()], device=device),
    )


def _why(facts: Facts, cost: int, starts: WorkerStarts) -> str:
    slices, used = facts.trace.slices, facts.used_ns
    share = format_share(cost * len(facts.used) / used) if used else "part"
    begun, ended = (int(slices.dur_ns[rows].mean()) if rows.size else 0 for rows in (starts.starts, starts.ends))
    processes = "1 process" if starts.workers == 1 else f"{starts.workers} processes"
    text = f"Each time the loop over the data begins, the loader starts {processes}, {format_ns(begun)}"
    text += f", and waits for those of the time before to end, {format_ns(ended)}" if ended else ""
    text += f"; their first batch is late too. Together that is {format_ns(cost)} per step ({share})."
    if starts.apart is None:
        return (
            f"{text} One such start is in this profile, in {len(facts.markers)} recorded steps: it costs so much per "
            "step only if the loop begins anew that often. Divide what one start takes by the steps of such a pass."
        )
    return f"{text} It happens every {format_count(round(starts.apart))} steps."
