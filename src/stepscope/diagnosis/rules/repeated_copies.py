"""repeated_copies: copies of one size, from one place in the program, many times in every step.

Statement: one op makes ``REPEATED_COPIES`` or more copies per step in one direction, all of the same size, in at least
``RECURS_SHARE`` of the used steps. The cost is the time in which the device does nothing but these copies. That they
could be one copy, or none, is a heuristic: a profile does not show what was copied. Copies beside the launches of
graphs are told by ``graph_copies``.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.copies import Copies
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.evidence import slices_as_evidence
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.remedies import PYTORCH, Remedies, remedy
from stepscope.limits import RECURS_SHARE, REPEATED_COPIES
from stepscope.units import format_bytes, format_mean, format_ns

_WORDS = {
    Category.COPY_H2D: "to the device",
    Category.COPY_D2H: "to the host",
    Category.COPY_D2D: "within the device",
    Category.COPY_P2P: "between devices",
}

_FIX: Remedies = {
    PYTORCH: """\
Copy once: concatenate the small tensors and send them together, keep what does not change on the device, create tensors
where they are used (`device=...`), and read all values of a step with one copy. Within the device, write in place or
keep one memory layout: `.contiguous()`, `.clone()` and changes of layout copy each time.""",
    None: """\
Copy once: concatenate the small arrays and send them together, keep what does not change on the device, create arrays
where they are used, and read all values of a step with one copy. Within the device, write in place or keep
one memory layout.""",
}


def find(facts: Facts) -> list[Finding]:
    """One finding per device and place."""
    found = []
    for (activity, account), groups, beside in zip(facts.devices, facts.copies, facts.graph_copies, strict=True):
        around = activity.slice[beside.ops]
        for copies in groups:
            if np.isin(copies.slices, around).mean() > RECURS_SHARE:
                continue
            size = _size(facts, copies)
            per_step = copies.count / max(len(facts.used), 1)
            if size is None or per_step < REPEATED_COPIES or len(copies.steps) < RECURS_SHARE * len(facts.used):
                continue
            cost = facts.per_step(copies.exposed_ns)
            if not cost:
                continue
            found.append(
                Finding(
                    rule="repeated_copies",
                    device=account.rows.device,
                    title=f"Copies of one size {_WORDS[copies.category]}, again and again",
                    why=(
                        f"{format_mean(per_step)} copies of {format_bytes(size)} each per step come from "
                        f"{f'`{copies.op}`' if copies.op else 'one place'}; for {format_ns(cost)} the device does "
                        "nothing else. The saving is that of one copy in place of them."
                    ),
                    fix=paragraphs(remedy(_FIX, facts.workload)),
                    basis="heuristic",
                    confidence="low",
                    cost_ns_per_step=cost,
                    saving_ns_per_step=round(cost * (1 - 1 / per_step)),
                    where=(copies.where,) if copies.where else (),
                    evidence=slices_as_evidence(facts, list(copies.slices), device=account.rows.device),
                )
            )
    return found


def _size(facts: Facts, copies: Copies) -> int | None:
    """The size all of them have; None where they differ or it was not recorded."""
    ops = facts.trace.device_ops
    sizes = np.unique(ops.bytes[np.isin(ops.slice, copies.slices)])
    return int(sizes[0]) if sizes.size == 1 and sizes[0] > 0 else None
