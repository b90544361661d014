from __future__ import annotations

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import Category
from stepscope.analysis.copies import Copies
from stepscope.analysis.facts import Facts
from stepscope.analysis.limits import RECURS_SHARE
from stepscope.diagnosis.evidence import slices_as_evidence
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.many_copies import WITHIN_DEVICE, size_of_many
from stepscope.diagnosis.remedies import remedy
from stepscope.diagnosis.rule import Rule
from stepscope.units import format_bytes, format_mean, format_ns

RULE = Rule(
    id="repeated_copies",
    scope="device",
    pages=("ops",),
    finds="Copies of one size within the device, from one place, many times in every step.",
    statement="""\
One op makes `REPEATED_COPIES` or more copies within the device per step, all of the same size, in at least
`RECURS_SHARE` of the used steps. The cost is the time in which the device does nothing but these copies. That they
could be one copy, or none, is a heuristic: a profile does not show what was copied. Copies beside the launches of
graphs are told by `graph_copies`, copies between host and device, and between devices, by `exposed_copy`.""",
    shared_limits=("REPEATED_COPIES", "RECURS_SHARE"),
    needs="Copies of the device, and the ops that made them.",
    cure="A step with one such copy in place of many; to first order.",
    example="Writing a cache position by position in a loop.",
    tried_for=("PyTorch",),
)


def find(facts: Facts) -> list[Finding]:
    """One finding per device and place."""
    findings = []
    for (activity, account), groups, beside in zip(facts.devices, facts.copies, facts.graph_copies, strict=True):
        around = activity.slice[beside.ops]
        for copies in groups:
            if copies.category is not Category.COPY_D2D or np.isin(copies.slices, around).mean() > RECURS_SHARE:
                continue
            size = size_of_many(facts, copies)
            if size is not None and facts.per_step(copies.exposed_ns):
                findings.append(_finding(facts, account, copies, size))
    return findings


def _finding(facts: Facts, account: Account, copies: Copies, size: int) -> Finding:
    per_step, cost = copies.count / len(facts.used), facts.per_step(copies.exposed_ns)
    return Finding(
        rule=RULE.id,
        device=account.rows.device,
        title="Copies of one size within the device, again and again",
        why=(
            f"{format_mean(per_step)} copies of {format_bytes(size)} each per step come from "
            f"{f'`{copies.op}`' if copies.op else 'one place'}; for {format_ns(cost)} the device does "
            "nothing else. The saving is that of one copy in place of them."
        ),
        fix=paragraphs(remedy(WITHIN_DEVICE, facts.workload)),
        basis="heuristic",
        confidence="low",
        cost_ns_per_step=cost,
        saving_ns_per_step=round(cost * (1 - 1 / per_step)),
        where=(copies.where,) if copies.where else (),
        evidence=slices_as_evidence(facts, list(copies.slices), device=account.rows.device),
    )
