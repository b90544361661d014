"""The stretches of time that an account books to a cause, of which rules say where in the program they pass."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.accounting import Account, host_time
from stepscope.analysis.categories import Category
from stepscope.analysis.core_waits import most_without_core
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.facts import Facts
from stepscope.analysis.gaps import crosses_step
from stepscope.analysis.limits import BATCH_BYTES, DISPATCH_GAP_NS
from stepscope.analysis.silent import busy_thread, helping_thread
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.shared import shared
from stepscope.trace.tables import I32, I64, Bools


@record
class HostStretches:
    """Stretches of host time, in order: the thread whose time it is, whether a step begins in its gap, and whether a
    copy to the device ends that."""

    start: I64
    end: I64
    track: I32
    between: Bools
    sends: Bools


_NONE = HostStretches(*iv.EMPTY, np.empty(0, np.int32), np.empty(0, np.bool_), np.empty(0, np.bool_))


def stretches_of(facts: Facts, account: Account, cause: Category) -> HostStretches:
    """What an account books to a cause in the used steps."""
    windows = facts.used_windows(account)
    if account.idle is None:
        start, end = host_time(facts.trace, facts.host, cause, windows)
        if cause is Category.PYTHON:  # between two ops of a host that computes there always is some
            long = end - start >= DISPATCH_GAP_NS
            # A thread without a core does no work, however long that takes.
            long &= end - start - most_without_core(facts.trace, facts.host.main, (start, end)) >= DISPATCH_GAP_NS
            start, end = start[long], end[long]
        main, no = np.full(start.size, facts.host.main, np.int32), np.zeros(start.size, np.bool_)
        return HostStretches(start, end, main, no, no)
    pieces, gaps = account.idle.pieces, account.idle.gaps
    chosen = np.flatnonzero(pieces.category == cause.code)
    chosen = chosen[facts.in_used_steps(account, pieces.start[chosen])]
    if not chosen.size:
        return _NONE
    thread = gaps.thread[pieces.gap[chosen]]
    start, end = pieces.start[chosen], pieces.end[chosen]
    between = crosses_step(account)[pieces.gap[chosen]]
    track = helping_thread(facts.host, cause, busy_thread(facts.host, thread, start, end), start, end)
    sends = _sends(facts, account)[gaps.op[pieces.gap[chosen]]]
    return HostStretches(start, end, track, between, sends)


def _sends(facts: Facts, account: Account) -> Bools:
    """Which ops of a device copy to it what may be a batch."""
    activity = _activities(facts)[account.rows.device]
    copies = activity.category == Category.COPY_H2D.code
    return np.asarray(copies & (facts.trace.device_ops.bytes[activity.row] >= BATCH_BYTES))


@shared
def _activities(facts: Facts) -> dict[int | None, DeviceActivity]:
    return {own.rows.device: each for each, own in facts.devices}


def less(stretches: HostStretches, but: iv.Intervals, least_ns: int) -> HostStretches:
    """Without some time, and without what is shorter then."""
    if not len(but[0]):
        return stretches
    start, end = iv.subtract((stretches.start, stretches.end), but)
    long = end - start >= least_ns
    start, end = start[long], end[long]
    of = np.searchsorted(stretches.start, start, "right") - 1
    return HostStretches(start, end, stretches.track[of], stretches.between[of], stretches.sends[of])


def booked_in(facts: Facts, account: Account, cause: Category, time: iv.Intervals) -> int:
    """What an account books to a cause in some time, per used step in ns."""
    stretches = stretches_of(facts, account, cause)
    return facts.per_step(iv.measure(iv.intersect(iv.union(stretches.start, stretches.end), time)))
