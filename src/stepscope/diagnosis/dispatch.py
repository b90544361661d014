"""What a device waited for the host to dispatch, for some of its ops only."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.facts import Facts
from stepscope.analysis.idle_pieces import Pieces
from stepscope.analysis.places import Place, find_places
from stepscope.analysis.silent import busy_thread
from stepscope.diagnosis.limits import LAUNCH_SHARE
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, distinct, united
from stepscope.trace.tables import I32, I64, Bools
from stepscope.whatif.change import Change
from stepscope.whatif.changes import without_dispatch_of

_CAUSES = (Category.LAUNCH, Category.LAUNCH_LATENCY)
"""What compiled code does without: handing ops over one by one, with the framework's own Python between them. A stretch
of Python that launches nothing runs all the same, as do building graphs and sending batches."""


@record
class Dispatch:
    """Idle time that ended with some ops and was spent dispatching them."""

    cost_ns_per_step: int
    calls: I32
    """The calls that launch the ops."""
    places: tuple[Place, ...]
    """Where the ops are launched, by the time they were waited for."""

    def change(self, facts: Facts) -> Change:
        """Nothing is dispatched for these calls."""
        return without_dispatch_of(facts, self.calls, self.cost_ns_per_step)


def waited_for(
    facts: Facts, account: Account, activity: DeviceActivity, chosen: Bools, *, ending: bool = False
) -> Dispatch:
    """What a device waited for the launches of some of its ops (a mask over its activity) in the used steps. Ops that
    compute on the host, and functions among the launches that launch nothing, are no dispatching. A gap counts for the
    op that explains it (a copy hands that on to the compute behind it), with ``ending`` for the one that ended it."""
    assert account.idle is not None
    gaps, pieces = account.idle.gaps, account.idle.pieces
    counted = among(pieces.category, [cause.code for cause in _CAUSES]) & facts.in_used_steps(account, pieces.start)
    op_of = (gaps.op if ending else gaps.cause_op)[pieces.gap]
    counted &= chosen[op_of]
    start, end = pieces.start[counted], pieces.end[counted]
    length = dispatching(facts, start, end)
    calls = activity.call[op_of[counted]].astype(np.int32)
    launching = united(activity.call[chosen & activity.launched]).astype(np.int32)
    return Dispatch(facts.per_step(int(length.sum())), launching, find_places(facts.locator, calls, length))


def waiting_for_launches(facts: Facts, account: Account, pieces: Pieces) -> tuple[I64, I64, I32, I32]:
    """When, in the used steps, a device waits for something to be launched: start, end, the thread that was to launch
    and the gap of each stretch. ``pieces`` are the idle time as it is booked, or its causes: also where a wait before
    is to blame, since without that wait there were still all this to do."""
    assert account.idle is not None
    gaps = account.idle.gaps
    chosen = (pieces.category == Category.LAUNCH.code) & facts.in_used_steps(account, pieces.start)
    start, end, gap = pieces.start[chosen], pieces.end[chosen], pieces.gap[chosen]
    return start, end, busy_thread(facts.host, gaps.thread[gap], start, end), gap


def prologue_time(facts: Facts, account: Account) -> dict[int, iv.Intervals]:
    """Per thread, when a device waits for the first launch of a region of compiled code, in the used steps; nothing
    where that is too little to tell."""
    assert account.idle is not None
    start, end, track, _ = waiting_for_launches(facts, account, account.idle.causes)
    prologues, spans = facts.prologues, {}
    for thread in distinct(prologues.track):
        idle = iv.subtract((start[track == thread], end[track == thread]), not_dispatching(facts))
        mine = prologues.track == thread
        spans[thread] = iv.intersect(idle, (prologues.start[mine], prologues.end[mine]))
    return spans if sum(map(iv.measure, spans.values())) >= LAUNCH_SHARE * facts.used_ns else {}


def dispatching(facts: Facts, start: I64, end: I64) -> I64:
    """Per stretch that is booked to launching, the part of it that is."""
    return np.asarray(end - start - iv.covered_between(not_dispatching(facts), start, end))


def not_dispatching(facts: Facts) -> iv.Intervals:
    """When threads that launch ran ops that compute on the host, or functions that launch nothing."""
    parts = facts.host_op_time, facts.silent_time
    return iv.joined(parts)


def launched_at(facts: Facts, activity: DeviceActivity, ops: I32, weight: I64) -> tuple[Place, ...]:
    """The places from which some ops are launched, by a weight of each."""
    return find_places(facts.locator, activity.call[ops].astype(np.int32), weight)
