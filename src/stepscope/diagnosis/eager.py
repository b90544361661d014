"""Which ops run eagerly, outside of compiled code, and what a device waits for their launches."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.dispatch import Dispatch, waited_for
from stepscope.diagnosis.limits import EAGER_PROGRAMS, LAUNCH_SHARE
from stepscope.diagnosis.remedies import JAX, PYTORCH, TENSORFLOW
from stepscope.names.compiled_code import is_compiled, is_eager_op
from stepscope.trace.codes import mapped
from stepscope.trace.forest import outermost
from stepscope.trace.shared import shared
from stepscope.trace.tables import NULL, Bools


def eager_dispatch(facts: Facts, activity: DeviceActivity, account: Account) -> tuple[Bools, Dispatch] | None:
    """The ops of a device that run eagerly and what it waits for them; None where that is not worth telling."""
    eager = _eager(facts, activity)
    if eager is None or not eager.any() or not facts.used_ns:
        return None
    waited = waited_for(facts, account, activity, eager)
    worth = waited.cost_ns_per_step * len(facts.used) >= LAUNCH_SHARE * facts.used_ns
    return (eager, waited) if worth else None


def _eager(facts: Facts, activity: DeviceActivity) -> Bools | None:
    """Which ops of a device were launched outside compiled code; None where the profile does not tell."""
    framework = facts.trace.info.framework
    if framework == JAX:
        return _single_programs(facts, activity)
    says = _inside(facts)
    if says is None:
        return None
    inside = says[activity.call]
    return activity.launched & (~inside if framework == PYTORCH else inside)


@shared
def _inside(facts: Facts) -> Bools | None:
    """Which slices lie in compiled code, of TensorFlow in an op that runs eagerly; None where none is named so."""
    trace, slices = facts.trace, facts.trace.slices
    says = {PYTORCH: is_compiled, TENSORFLOW: is_eager_op}.get(trace.info.framework or "")
    named = None if says is None else mapped(slices.name, trace.strings, says, np.bool_)
    return None if named is None or not named.any() else outermost(named, slices.parent) >= 0


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
