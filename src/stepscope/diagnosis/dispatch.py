"""What a device waited for the host to dispatch, for some of its ops only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.facts import Facts
from stepscope.analysis.where import Where
from stepscope.diagnosis.evidence import SHOWN
from stepscope.trace import intervals as iv
from stepscope.trace.tables import Bools
from stepscope.whatif.change import Change

_CAUSES = (Category.LAUNCH, Category.LAUNCH_LATENCY, Category.PYTHON, Category.GRAPH_BUILD, Category.TRANSFER)


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Idle time that ended with some ops and was spent dispatching them."""

    cost_ns_per_step: int
    spans: iv.Intervals

    def change(self, facts: Facts) -> Change:
        """The launching threads do not spend that time."""
        return Change(host=dict.fromkeys(facts.launching_tracks, self.spans))


def waited_for(facts: Facts, account: Account, chosen: Bools) -> Dispatch:
    """What a device waited for the launches of some of its ops (a mask over its activity) in the used steps."""
    assert account.idle is not None
    gaps, pieces = account.idle.gaps, account.idle.pieces
    row = np.searchsorted(account.rows.bounds, pieces.start, "right") - 1
    counted = np.isin(pieces.category, [cause.code for cause in _CAUSES]) & np.isin(row, facts.used_rows(account))
    counted &= chosen[gaps.cause_op[pieces.gap]]
    spans = pieces.start[counted], pieces.end[counted]
    return Dispatch(facts.per_step(int((spans[1] - spans[0]).sum())), iv.union(*spans))


def launched_at(facts: Facts, activity: DeviceActivity, chosen: Bools) -> tuple[Where, ...]:
    """The places most of some ops are launched from, most often first."""
    calls = activity.call[chosen & activity.launched]
    if calls.size == 0:
        return ()
    groups = facts.locator.group(calls)
    count = np.bincount(groups)
    first = {int(group): int(call) for group, call in zip(groups[::-1], calls[::-1], strict=True)}
    often = np.argsort(-count, kind="stable")[:SHOWN].tolist()
    return tuple(dict.fromkeys(place for group in often if (place := facts.locator.where(first[group]))))
