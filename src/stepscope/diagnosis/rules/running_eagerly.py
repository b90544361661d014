from __future__ import annotations

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.eager import eager_dispatch
from stepscope.diagnosis.evidence import placed, shares
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.remedies import COMPILE_ALL, remedy
from stepscope.diagnosis.rule import Rule
from stepscope.units import format_mean, format_share

RULE = Rule(
    id="running_eagerly",
    scope="device",
    pages=("ops",),
    tells=(Category.LAUNCH,),
    tells_beside=True,
    finds="Ops are dispatched one by one although the program has compiled parts, or its framework compiles.",
    statement="""\
What the device waits for ops that are launched outside compiled code, in at least `LAUNCH_SHARE` of the step. Such ops
are: with PyTorch those outside every region of `torch.compile`, where the profile has one; with TensorFlow those of
eager ops; with JAX programs of one or two ops, of which a step starts `EAGER_PROGRAMS` or more. Functions among the
launches that launch nothing (`hot_python`) and ops that compute on the host are not part of it: compiled code does not
take them away. Where `graph_breaks` or `launch_bound` speak too, they speak of some of the same time.""",
    shared_limits=("LAUNCH_SHARE", "EAGER_PROGRAMS"),
    needs="Launches, and marks of compiled code.",
    cure="A step without dispatching these ops.",
    example="`jax.numpy` ops outside of `jax.jit`.",
    makes_late="host",
    tried_for=("PyTorch", "JAX", "TensorFlow"),
)


def find(facts: Facts) -> list[Finding]:
    """One finding per device."""
    found = []
    for activity, account in facts.devices:
        told = eager_dispatch(facts, activity, account)
        if told is None:
            continue
        eager, waited = told
        rows = np.array(facts.used_rows(account), np.intp)
        row = np.searchsorted(account.rows.bounds, activity.start, "right") - 1
        mine = np.isin(row, rows)
        busy = activity.end - activity.start
        share = busy[mine & eager].sum() / max(int(busy[mine].sum()), 1)
        found.append(
            Finding(
                rule=RULE.id,
                device=activity.device,
                title="Ops run one by one, outside of compiled code",
                why=(
                    f"{format_mean((mine & eager).sum() / len(facts.used))} of "
                    f"{format_mean(mine.sum() / len(facts.used))} device ops per step, {format_share(share)} of their "
                    "time, are launched outside of compiled code, and the device waits for those launches."
                    + shares(facts, waited.places, "The waiting")
                ),
                fix=paragraphs(remedy(COMPILE_ALL, facts.workload)),
                basis="modelled",
                confidence="medium",
                cost_ns_per_step=waited.cost_ns_per_step,
                saving_ns_per_step=waited.cost_ns_per_step,
                change=waited.change(facts),
                where=placed(facts, waited.places),
            )
        )
    return found
