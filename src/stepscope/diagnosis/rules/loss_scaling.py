"""loss_scaling: dynamic loss scaling makes the host wait for the gradients in every step.

Statement: after PyTorch's check of the gradients (``_amp_foreach_non_finite_check_and_unscale_``) the next wait of the
same thread is an ``aten::item`` (in ``grad_scaler.py``, where frames were recorded) that the accounting makes pay for
idle time. These waits are among those of ``sync_bound``; here they have a cure of their own.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.facts import Facts
from stepscope.diagnosis.evidence import SHOWN, slices_as_evidence
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.remedies import Part, Remedies, remedy
from stepscope.trace.codes import mapped
from stepscope.units import format_ns
from stepscope.whatif.changes import wait_sites, without_waits

_FIX: Remedies = {
    None: (
        "Take one, first what needs no scale:\n- bfloat16 has fp32's range: no scaler, where the device takes it.",
        Part(
            "- An optimizer with `fused=True` reads on the device whether to skip: the scaler does not ask the host.",
            since=(2, 0),
        ),
        """\
- A fixed scale needs no check, but the right value: too large and gradients overflow, too small and they vanish. Take
what `scaler.get_scale()` settled at, and watch the loss:
    (loss * SCALE).backward()   # and divide the gradients by SCALE before the step""",
    ),
}
"""Only training scales a loss."""


def find(facts: Facts) -> list[Finding]:
    """One finding per device that idles for it."""
    waits = _waits_of_scaler(facts)
    found = []
    for account, syncs in zip(facts.accounts, facts.syncs, strict=False):
        guilty = [sync for sync in syncs if sync.cost_ns > 0 and waits.issuperset(sync.slices)]
        if guilty:
            slices = tuple(one for sync in guilty for one in sync.slices)
            cost = facts.per_step(sum(sync.cost_ns for sync in guilty))
            blocked = facts.per_step(sum(sync.blocked_ns for sync in guilty))
            found.append(
                Finding(
                    rule="loss_scaling",
                    device=account.rows.device,
                    title="Loss scaling makes the host wait for the gradients",
                    why=(
                        f"After the gradients are checked for overflow the host waits for the answer: it is blocked "
                        f"{format_ns(blocked)} per step, and the device then idles {format_ns(cost)}."
                    ),
                    fix=paragraphs(remedy(_FIX, facts.workload)),
                    confidence="high" if _in_scaler(facts, slices[0]) else "medium",
                    where=tuple(sync.where for sync in guilty[:SHOWN] if sync.where),
                    evidence=slices_as_evidence(facts, list(slices[:SHOWN]), device=account.rows.device),
                    cost_ns_per_step=cost,
                    saving_ns_per_step=cost,
                    change=without_waits(facts, slices, wait_sites(facts)),
                )
            )
    return found


def _waits_of_scaler(facts: Facts) -> set[int]:
    """Per check of the gradients, the next wait of its thread, if it is an item's."""
    slices, waits = facts.trace.slices, facts.host.waits
    named = mapped(slices.name, facts.trace.strings, lambda name: name.endswith(_CHECK), np.bool_)
    found = set()
    for check in np.flatnonzero(named).tolist():
        mine = waits.slice[slices.track[waits.slice] == slices.track[check]]
        later = mine[slices.start_ns[mine] >= facts.trace.end_ns(check)]
        if later.size:
            wait = int(later[np.argmin(slices.start_ns[later])])
            frames = _frames(facts, wait)
            if facts.locator.outermost_op(wait) == "aten::item" and (not frames or _in_scaler(facts, wait)):
                found.add(wait)
    return found


_CHECK = "_amp_foreach_non_finite_check_and_unscale_"


def _frames(facts: Facts, wait: int) -> list[str]:
    return [name for s in facts.locator.enclosing(wait) if ".py(" in (name := facts.trace.name_of(s))]


def _in_scaler(facts: Facts, wait: int) -> bool:
    return any("grad_scaler.py(" in name for name in _frames(facts, wait))
