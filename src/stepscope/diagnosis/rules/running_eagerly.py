"""running_eagerly: ops are dispatched one by one although the program has compiled parts, or its framework compiles.

Statement: what the device waits for ops that are launched outside compiled code, in at least ``LAUNCH_SHARE`` of the
step. Such ops are: with PyTorch those outside every region of ``torch.compile``, where the profile has one; with
TensorFlow those of eager ops; with JAX programs of one or two ops, of which a step starts ``EAGER_PROGRAMS`` or more.
Functions among the launches that launch nothing (``hot_python``) and ops that compute on the host are not part of it:
compiled code does not take them away. Where ``graph_breaks`` or ``launch_bound`` speak too, they speak of some of the
same time.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.dispatch import waited_for
from stepscope.diagnosis.evidence import placed, shares
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.remedies import COMPILE_ALL, JAX, PYTORCH, TENSORFLOW, remedy
from stepscope.limits import EAGER_PROGRAMS, LAUNCH_SHARE
from stepscope.names.compiled_code import is_compiled, is_eager_op
from stepscope.trace.codes import mapped
from stepscope.trace.forest import outermost
from stepscope.trace.tables import NULL, Bools
from stepscope.units import format_mean, format_share


def find(facts: Facts) -> list[Finding]:
    """One finding per device."""
    found = []
    for activity, account in facts.devices:
        eager = _eager(facts, activity)
        if eager is None or not eager.any() or not facts.used_ns:
            continue
        waited = waited_for(facts, account, activity, eager)
        if waited.cost_ns_per_step * len(facts.used) < LAUNCH_SHARE * facts.used_ns:
            continue
        rows = np.array(facts.used_rows(account), np.intp)
        row = np.searchsorted(account.rows.bounds, activity.start, "right") - 1
        mine = np.isin(row, rows)
        busy = activity.end - activity.start
        share = busy[mine & eager].sum() / max(int(busy[mine].sum()), 1)
        found.append(
            Finding(
                rule="running_eagerly",
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
                where=placed(waited.places),
            )
        )
    return found


def _eager(facts: Facts, activity: DeviceActivity) -> Bools | None:
    """Which ops of a device were launched outside compiled code; None where the profile does not tell."""
    trace, slices = facts.trace, facts.trace.slices
    framework = trace.info.framework
    if framework == JAX:
        return _single_programs(facts, activity)
    if framework not in (PYTORCH, TENSORFLOW):
        return None
    says = is_compiled if framework == PYTORCH else is_eager_op
    named = mapped(slices.name, trace.strings, says, np.bool_)
    if not named.any():
        return None
    inside = outermost(named, slices.parent)[activity.call] >= 0
    return activity.launched & (~inside if framework == PYTORCH else inside)


def _single_programs(facts: Facts, activity: DeviceActivity) -> Bools | None:
    """Ops of programs that ran one or two ops, where a step starts many of them."""
    compiled = facts.trace.xla_ops
    row_of = np.full(len(facts.trace.slices), -1, np.int64)
    row_of[compiled.slice] = np.arange(len(compiled))
    rows = row_of[activity.slice]
    known = (rows >= 0) & (activity.call >= 0)
    if not known.any():
        return None
    run = np.where(known, compiled.run[rows], NULL)
    key = np.stack((np.where(run == NULL, activity.call, -1), run, np.where(known, compiled.program[rows], -1)))
    _, program, size = np.unique(key[:, known], axis=1, return_inverse=True, return_counts=True)
    eager = np.zeros(len(activity), np.bool_)
    eager[known] = (size <= 2)[program.reshape(-1)]
    programs = int((size <= 2).sum()) / max(len(facts.markers), 1)
    return eager if programs >= EAGER_PROGRAMS else None
