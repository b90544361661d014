"""long_launch: the host takes more than a millisecond to hand the device its next op.

Statement: gaps of which the accounting books more than ``LAUNCH_GAP_NS`` to ``launch``: dispatching one op, several
that launch nothing, or handing work to another thread. What other rules tell of the same time is not part of it: ops
that compute on the host, functions that launch nothing, the way of compiled code to its first launch, and ops outside
of compiled code where there is some.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.facts import Facts
from stepscope.analysis.gaps import crosses_step
from stepscope.diagnosis.dispatch import not_dispatching, prologue_time, waiting_for_launches
from stepscope.diagnosis.eager import eager_dispatch
from stepscope.diagnosis.evidence import placed
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.host_work import Stretches, in_words, work_in
from stepscope.diagnosis.remedies import PYTORCH, Remedies, remedy
from stepscope.limits import LAUNCH_GAP_NS
from stepscope.trace import intervals as iv
from stepscope.whatif.change import Change

_CURE: Remedies = {
    PYTORCH: """\
Look at what runs there, the longest first: the first use of a library or of a new shape (run one step of each shape
before it counts), a search for the fastest kernel (`torch.backends.cudnn.benchmark` with shapes that change), many ops
that launch nothing (views, checks of arguments), work for another thread that it begins late. What need not run there
can run behind the launches of the step, or once before the loop.""",
    None: """\
Look at what runs there, the longest first: the first use of a library or of a new shape (run one step of each shape
before it counts), many ops that launch nothing, work for another thread that it begins late. What need not run there
can run behind the launches of the step, or once before the loop.""",
}


def find(facts: Facts) -> list[Finding]:
    """One finding per device."""
    devices = [] if facts.sampling.sampled else facts.devices  # there any launch may be missing
    return [made for activity, account in devices if (made := _finding(facts, activity, account))]


def _finding(facts: Facts, activity: DeviceActivity, account: Account) -> Finding | None:
    found = _stretches(facts, activity, account)
    work = work_in(facts, account, Category.LAUNCH, found)
    if work is None:
        return None
    spans: iv.Intervals = (found.start, found.end)
    return Finding(
        rule="long_launch",
        device=account.rows.device,
        title="The device waits more than a millisecond for its next op",
        why=in_words(facts, work, "the host takes more than a millisecond to launch the next op"),
        fix=paragraphs(remedy(_CURE, facts.workload)),
        confidence="medium",
        cost_ns_per_step=work.cost_ns_per_step,
        saving_ns_per_step=work.cost_ns_per_step,
        change=Change(host=dict.fromkeys(facts.launching_tracks, spans)),
        where=placed(work.places),
        evidence=work.evidence,
    )


def _stretches(facts: Facts, activity: DeviceActivity, account: Account) -> Stretches:
    """What no other rule tells of the waiting for launches in long gaps."""
    assert account.idle is not None
    gaps = account.idle.gaps
    start, end, track, gap = waiting_for_launches(facts, account)
    told = np.zeros(len(activity), np.bool_)
    eager = eager_dispatch(facts, activity, account)
    if eager is not None:
        told = eager[0]
    free = ~told[gaps.cause_op[gap]]
    start, end, track, gap = start[free], end[free], track[free], gap[free]
    others = [not_dispatching(facts), *prologue_time(facts, account).values()]
    left = reduce(iv.subtract, others, (start, end))
    at = np.searchsorted(start, left[0], "right") - 1
    kept = (np.bincount(gap[at], left[1] - left[0], len(gaps)) > LAUNCH_GAP_NS)[gap[at]]
    return Stretches(left[0][kept], left[1][kept], track[at][kept], crosses_step(account)[gap[at][kept]])
