"""Which ops run eagerly, outside of compiled code, and what a device waits for their launches; where no device was
recorded, what TensorFlow's host does around them."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.accounting import Account, host_time
from stepscope.analysis.categories import Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.dispatch import Dispatch, waited_for
from stepscope.diagnosis.evidence import booked
from stepscope.diagnosis.limits import EAGER_PROGRAMS, HOST_LEFT_FASTER, LAUNCH_SHARE
from stepscope.diagnosis.remedies import JAX, PYTORCH, TENSORFLOW
from stepscope.names.compiled_code import is_compiled, is_eager_call, is_eager_op, stays_when_compiled
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, grouped, mapped
from stepscope.trace.forest import holding, outermost
from stepscope.trace.shared import shared
from stepscope.trace.tables import I32, I64, NULL, Bools


@record
class EagerDevice:
    """What a device runs op by op, in the used steps."""

    ops: Bools
    """Of its activity, which are such ops."""
    waited: Dispatch
    """What it waits for their launches."""
    most_ns_per_step: int | None
    """What compiled code takes away at most; None where that is the waiting."""


def eager_device(facts: Facts, activity: DeviceActivity, account: Account) -> EagerDevice | None:
    """What a device runs eagerly; None where that is not worth telling."""
    eager = _eager(facts, activity)
    if eager is None or not eager.any() or not facts.used_ns:
        return None
    waited = waited_for(facts, account, activity, eager)
    most = _most(facts, activity, account, eager) if facts.trace.info.framework == JAX else None
    worth = max(waited.cost_ns_per_step, most or 0) * len(facts.used) >= LAUNCH_SHARE * facts.used_ns
    return EagerDevice(eager, waited, most) if worth else None


_AROUND = (Category.LAUNCH, Category.LAUNCH_LATENCY, Category.PYTHON, Category.DEVICE_LATENCY, Category.UNKNOWN_DEVICE)
"""What passes between programs of one op each, and not within one of many."""


def _most(facts: Facts, activity: DeviceActivity, account: Account, eager: Bools) -> int:
    """Per step, what one program takes away of many at most: their ops but for those that compute as much in it, and
    all that passes between them."""
    mine = eager & facts.in_used_steps(account, activity.start)
    left = mine & mapped(facts.trace.slices.name[activity.slice], facts.trace.strings, stays_when_compiled, np.bool_)
    stays = iv.measure(iv.union(activity.start[left], activity.end[left]))
    device = facts.trace.info.device(activity.device)
    if device is not None and device.kind == "cpu":
        stays = round(stays * (1 - HOST_LEFT_FASTER))
    busy = iv.measure(iv.union(activity.start[mine], activity.end[mine])) - stays
    return booked(facts, account, *_AROUND) + facts.per_step(busy)


@record
class EagerHost:
    """What a host does to run ops one by one, in the used steps."""

    ops: I32
    """The ops: slices."""
    around: iv.Intervals
    """Time in which it starts them: handing over, looking for a kernel, wrapping results."""
    between: iv.Intervals
    """Time between the first and the last of a step, and about as long around them as between two, in which the profile
    says nothing of what it does."""
    computing: iv.Intervals
    """Time in which they compute."""
    stays: iv.Intervals
    """That of the ops which compute as much in compiled code."""

    @property
    def most_ns(self) -> int:
        """What compiled code takes away at most."""
        left = round((1 - HOST_LEFT_FASTER) * iv.measure(self.stays))
        return sum(map(iv.measure, (self.around, self.between, self.computing))) - left


@shared
def eager_host(facts: Facts) -> EagerHost | None:
    """Of a profile of TensorFlow without a device; None where that is not worth telling."""
    if facts.activities or facts.trace.info.framework != TENSORFLOW or not facts.used_ns:
        return None
    slices, strings, main = facts.trace.slices, facts.trace.strings, facts.host.main
    named = mapped(slices.name, strings, is_eager_op, np.bool_) & (slices.track == main)
    calls = named | (mapped(slices.name, strings, is_eager_call, np.bool_) & holding(named, slices.parent))
    step = np.searchsorted(facts.markers.start, slices.start_ns, "right") - 1
    mine = among(step, facts.used)
    ops = np.flatnonzero(named & mine).astype(np.int32)
    if ops.size < EAGER_PROGRAMS * len(facts.used):
        return None
    spans = iv.of(slices, np.flatnonzero(calls & mine))
    hulls = _hulls(slices.start_ns[ops], step[ops])
    windows = iv.joined(map(facts.used_windows, facts.working))
    around = iv.intersect(host_time(facts.trace, facts.host, Category.LAUNCH, windows), spans)
    between = iv.intersect(host_time(facts.trace, facts.host, Category.UNKNOWN_HOST, windows), hulls)
    if iv.measure(around) < LAUNCH_SHARE * facts.used_ns:
        return None
    inside = iv.of(slices, ops)
    stays = iv.of(slices, ops[mapped(slices.name[ops], strings, stays_when_compiled, np.bool_)])
    computing = iv.intersect(host_time(facts.trace, facts.host, Category.HOST_COMPUTE, windows), inside)
    return EagerHost(ops, around, between, computing, iv.intersect(computing, stays))


def _hulls(start: I64, step: I64) -> iv.Intervals:
    """From before the first op of each step until behind its last, by the longest time from one to the next: what comes
    before an op comes before the first, too."""
    first = np.unique(step, return_index=True)[1]
    last = np.append(first[1:], start.size) - 1
    following = np.diff(start, append=start[-1:])
    following[last] = 0
    longest = np.maximum.reduceat(following, first)
    return iv.union(start[first] - longest, start[last] + longest)


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
    row_of = np.full(len(facts.trace.slices), -1, np.int32)
    row_of[compiled.slice] = np.arange(len(compiled))
    rows = row_of[activity.slice]
    run = np.full(len(activity), NULL, np.int64)
    run[rows >= 0] = compiled.run[rows[rows >= 0]]
    known = (rows >= 0) & ((run != NULL) | (activity.call >= 0))
    if not known.any():
        return None
    rows, run = rows[known], run[known]
    _, program = grouped(np.where(run == NULL, activity.call[known], -1), run, compiled.program[rows])
    size = np.bincount(program)
    eager = np.zeros(len(activity), np.bool_)
    eager[known] = (size <= 2)[program]
    programs = int((size <= 2).sum()) / max(len(facts.markers), 1)
    return eager if programs >= EAGER_PROGRAMS else None
