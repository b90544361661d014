from __future__ import annotations

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.limits import RECURS_SHARE
from stepscope.analysis.places import find_places
from stepscope.diagnosis.evidence import SHOWN, placed, shares, slices_as_evidence
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.remedies import ON_DEVICE, remedy
from stepscope.diagnosis.rule import Rule
from stepscope.trace import intervals as iv
from stepscope.trace.tables import I32, I64
from stepscope.units import format_mean, format_ns
from stepscope.whatif.change import Change

RULE = Rule(
    id="ops_on_host",
    scope="device",
    pages=("ops",),
    tells=(Category.LAUNCH,),
    finds="Ops compute on the host, and the device has nothing to do meanwhile.",
    statement="""\
Idle time that the accounting books to `launch` while a launching thread was in an op that launches nothing and calls no
runtime of a device, each at least `HOST_OP_NS` long (what dispatching an op takes is less), in at least `RECURS_SHARE`
of the used steps and in more than one. The saving is that of steps without these ops: what they would take on the
device, and whether they can run there, the profile does not say; of TensorFlow a log of device placement that lies
beside it says where such ops were placed, and whether others of their type are on a device.""",
    shared_limits=("HOST_OP_NS", "RECURS_SHARE"),
    needs="Ops and launches.",
    cure="A step without these ops on the host.",
    example="`torch.nonzero` of a tensor on the CPU in the middle of a step on a GPU.",
    makes_late="host",
)


def find(facts: Facts) -> list[Finding]:
    """One finding per device."""
    accounts = facts.working if facts.activities and facts.host_ops.size else []
    return [finding for account in accounts if (finding := _finding(facts, account))]


def _finding(facts: Facts, account: Account) -> Finding | None:
    assert account.idle is not None
    ops, pieces, slices = facts.host_ops, account.idle.pieces, facts.trace.slices
    counted = (pieces.category == Category.LAUNCH.code) & facts.in_used_steps(account, pieces.start)
    waits = iv.union(pieces.start[counted], pieces.end[counted])
    waited = iv.covered_between(waits, slices.start_ns[ops], slices.start_ns[ops] + slices.dur_ns[ops])
    ops, waited = ops[waited > 0], waited[waited > 0]
    length = slices.dur_ns[ops]
    spans = iv.union(slices.start_ns[ops], slices.start_ns[ops] + length)
    steps = np.unique(account.rows.at(slices.start_ns[ops])).size
    cost = facts.per_step(iv.measure(iv.intersect(spans, waits)))
    if not cost or steps < max(2, RECURS_SHARE * len(facts.used)):
        return None
    names, places = _names(facts, ops, waited), find_places(facts.locator, ops, waited)
    others = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return Finding(
        rule=RULE.id,
        device=account.rows.device,
        title=f"Ops that run on the host hold up the device: `{names[0]}`{others}",
        why=(
            f"{format_mean(ops.size / len(facts.used))} ops per step compute on the host "
            f"({_listed(facts, ops, length)}); for {format_ns(cost)} of that the device has nothing to do. "
            "The saving leaves out what they take on the device instead."
            + shares(facts, places, "The waiting")
            + _logged(facts, names)
        ),
        fix=paragraphs(remedy(ON_DEVICE, facts.workload)),
        basis="measured",
        confidence="medium",
        cost_ns_per_step=cost,
        saving_ns_per_step=cost,
        change=Change(host=dict.fromkeys(facts.launching_tracks, spans)),
        where=placed(facts, places),
        evidence=slices_as_evidence(facts, ops[np.argsort(-waited, kind="stable")[:SHOWN]].tolist()),
    )


def _logged(facts: Facts, names: list[str]) -> str:
    """What the log of device placement says of them, in a sentence per kind; empty without one."""
    known = {one.name: one for one in facts.logged_ops}
    logged = [known[name] for name in names if name in known][:SHOWN]
    elsewhere = [f"`{one.op}` ({one.also_on})" for one in logged if one.also_on]
    if not logged:
        return ""
    listed = ", ".join(f"`{one.name}`" for one in logged)
    text = f" The log of device placement beside the profile has them on {logged[0].device}: {listed}."
    if elsewhere:
        return f"{text} It has others of the same type on a device: {', '.join(dict.fromkeys(elsewhere))}."
    return f"{text} It has none of their type on a device: look for ops that can run there."


def _names(facts: Facts, ops: I32, waited: I64) -> list[str]:
    """Names of the ops, those first for which the device waits most."""
    order = np.argsort(-np.bincount(facts.trace.slices.name[ops], waited), kind="stable")
    known = set(facts.trace.slices.name[ops].tolist())
    return [facts.trace.strings[code] for code in order.tolist() if code in known]


def _listed(facts: Facts, ops: I32, length: I64) -> str:
    total = np.bincount(facts.trace.slices.name[ops], length)
    longest = [code for code in np.argsort(-total, kind="stable").tolist() if total[code]][:SHOWN]
    return ", ".join(f"`{facts.trace.strings[code]}` {format_ns(facts.per_step(int(total[code])))}" for code in longest)
