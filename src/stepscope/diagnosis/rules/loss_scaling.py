from __future__ import annotations

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.facts import Facts
from stepscope.analysis.phases import loss_scale_branch
from stepscope.diagnosis.evidence import SHOWN, slices_as_evidence
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.remedies import TENSORFLOW, Remedies, RemedyPart, remedy
from stepscope.diagnosis.rule import Rule
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, mapped
from stepscope.trace.forest import inherit, on_host_threads
from stepscope.trace.tables import Bools
from stepscope.units import format_ns
from stepscope.whatif.change import Change
from stepscope.whatif.changes import wait_sites, without_waits

RULE = Rule(
    id="loss_scaling",
    scope="device",
    pages=("ops",),
    tells=(Category.SYNC,),
    tells_beside=True,
    finds="Dynamic loss scaling makes the host wait for the gradients in every step.",
    statement="""\
After PyTorch's check of the gradients (`_amp_foreach_non_finite_check_and_unscale_`) the next wait of the same thread
is an `aten::item` (in `grad_scaler.py`, where frames were recorded) that the accounting makes pay for idle time. These
waits are among those of `sync_bound`; here they have a cure of their own. Of TensorFlow: idle time while a host thread
is in the branch of a `LossScaleOptimizer` (`LossScaleOptimizer/cond`; of Keras 3 a bare `cond` that updates in an
optimizer's scope, beside ops that ask whether values are finite), or right behind a copy to the host that belongs to
it.""",
    needs="Launches and the host's waits; Python frames tell whose.",
    cure="A step without the wait for the check of the gradients.",
    example="`scaler.step(optimizer)` of `torch.amp.GradScaler`, in fp16 on a device that has bf16.",
    cures_part_of=("sync_bound", "launch_bound", "long_launch"),
)

_FIX: Remedies = {
    TENSORFLOW: (
        """\
Take one, first what needs no scale:
- bfloat16 has fp32's range and needs no scale, where the device takes it: the policy `mixed_bfloat16`.""",
        """\
- A fixed scale asks the host nothing, but must be right: too large and gradients overflow, too small and they vanish.
Take what the dynamic one settled at, and watch the loss:""",
        RemedyPart("    keras.optimizers.Adam(..., loss_scale_factor=SCALE)  # Keras 3", since=(2, 16)),
        RemedyPart(
            "    tf.keras.mixed_precision.LossScaleOptimizer(optimizer, dynamic=False, initial_scale=SCALE)  # Keras 2",
            since=(2, 4),
        ),
        RemedyPart(
            "    tf.train.experimental.enable_mixed_precision_graph_rewrite(optimizer, loss_scale=SCALE)",
            before=(2, 4),
        ),
    ),
    None: (
        "Take one, first what needs no scale:\n- bfloat16 has fp32's range: no scaler, where the device takes it.",
        RemedyPart(
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
    if facts.trace.info.framework == "TensorFlow":
        branch = loss_scale_branch(facts.trace)
        found_there = (_branching(facts, *device, branch) for device in facts.devices) if branch.any() else ()
        return [finding for finding in found_there if finding is not None]
    waits = _waits_of_scaler(facts)
    findings = []
    for account, syncs in zip(facts.accounts, facts.syncs, strict=False):
        guilty = [sync for sync in syncs if sync.cost_ns > 0 and waits.issuperset(sync.slices)]
        if guilty:
            slices = tuple(one for sync in guilty for one in sync.slices)
            cost = facts.per_step(sum(sync.cost_ns for sync in guilty))
            blocked = facts.per_step(sum(sync.blocked_ns for sync in guilty))
            findings.append(
                Finding(
                    rule=RULE.id,
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
    return findings


def _branching(facts: Facts, activity: DeviceActivity, account: Account, branch: Bools) -> Finding | None:
    """The idle time for which a device waits for TensorFlow's branch."""
    if account.idle is None or not facts.used:
        return None
    slices, used = facts.trace.slices, iv.union(*facts.used_windows(account))
    on_host = np.flatnonzero(branch & on_host_threads(facts.trace))
    inside = iv.of(slices, on_host)
    idle = iv.union(account.idle.gaps.start, account.idle.gaps.end)
    asked = np.flatnonzero(
        (activity.category == Category.COPY_D2H.code)
        & (branch[activity.slice] | ((activity.call >= 0) & branch[activity.call]))
    )
    behind = among(account.idle.gaps.start, activity.end[asked])
    waiting = iv.joined([iv.intersect(idle, inside), (account.idle.gaps.start[behind], account.idle.gaps.end[behind])])
    cost = facts.per_step(iv.measure(iv.intersect(waiting, used)))
    if not cost:
        return None
    called = facts.host.waits.slice
    waits = tuple(called[inherit(np.where(branch, 0, -1).astype(np.int32), slices.parent)[called] == 0].tolist())
    held = iv.intersect(idle, inside)
    seen = on_host[np.argsort(-slices.dur_ns[on_host], kind="stable")][:SHOWN].tolist()
    return Finding(
        rule=RULE.id,
        device=account.rows.device,
        title="Dynamic loss scaling makes the host wait for the gradients",
        why=(
            "Whether all gradients are finite is known on the device, and the host waits for it before it goes on with "
            f"the update: the device idles {format_ns(cost)} per step."
        ),
        fix=paragraphs(remedy(_FIX, facts.workload)),
        confidence="medium",
        where=tuple(dict.fromkeys(place for s in seen if (place := facts.locator.where(s)))),
        evidence=slices_as_evidence(facts, seen or activity.slice[asked[:SHOWN]].tolist(), device=account.rows.device),
        cost_ns_per_step=cost,
        saving_ns_per_step=cost,
        # What passes on the host between a copy's end and the update was not recorded: no replay can leave it out.
        change=None
        if not on_host.size
        else Change(host=dict.fromkeys(facts.launching_tracks, held), waits=frozenset(waits)),
    )


def _waits_of_scaler(facts: Facts) -> set[int]:
    """Per check of the gradients, the next wait of its thread, if it is an item's."""
    slices, waits = facts.trace.slices, facts.host.waits
    named = mapped(slices.name, facts.trace.strings, lambda name: name.endswith(_CHECK), np.bool_)
    of_scaler = set()
    for check in np.flatnonzero(named).tolist():
        mine = waits.slice[slices.track[waits.slice] == slices.track[check]]
        later = mine[slices.start_ns[mine] >= facts.trace.end_ns(check)]
        if later.size:
            wait = int(later[np.argmin(slices.start_ns[later])])
            frames = _frames(facts, wait)
            if facts.locator.outermost_op(wait) == "aten::item" and (not frames or _in_scaler(facts, wait)):
                of_scaler.add(wait)
    return of_scaler


_CHECK = "_amp_foreach_non_finite_check_and_unscale_"


def _frames(facts: Facts, wait: int) -> list[str]:
    return [name for s in facts.locator.enclosing(wait) if ".py(" in (name := facts.trace.name_of(s))]


def _in_scaler(facts: Facts, wait: int) -> bool:
    return any("grad_scaler.py(" in name for name in _frames(facts, wait))
