"""How long a device takes to answer a launch, and how much of the step it waits for launches."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import Category
from stepscope.analysis.device import DeviceActivity
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.tables import I64

QUEUE_CALLS = (Category.LAUNCH, Category.LAUNCH_LATENCY)


@record
class LaunchDelay:
    """Launch-to-start delays of one device, over ops launched while nothing was queued.

    The first op does not count: what it may have waited for was launched before anything recorded (not so in a run of
    TensorFlow 1's session).
    """

    device: int
    count: int
    median_ns: int | None
    p95_ns: int | None
    waiting_ns: int
    """Time of the used steps in which the device waited for launches."""


def launch_delay(activity: DeviceActivity, account: Account, used_rows: list[int]) -> LaunchDelay:
    """The delays from the start of the launch call to the start of the op."""
    known = np.flatnonzero(activity.launched)
    known = known[np.argsort(activity.launch[known], kind="stable")]
    launch = activity.launch[known]
    # Uncontended: everything launched earlier was over when the call began.
    earlier = np.maximum.accumulate(np.concatenate(([np.iinfo(np.int64).min], activity.end[known])))[:-1]
    early = activity.end[activity.before_profile]
    alone = (earlier <= launch) & (launch >= early.max(initial=np.iinfo(np.int64).min))
    alone[:1] &= activity.by_node
    alone &= iv.covered_between(activity.unrecorded, launch, activity.start[known]) == 0
    delay = (activity.start[known] - launch)[alone]
    delay = delay[delay >= 0]
    waiting = sum(int(account.parts[used_rows, cause.code].sum()) for cause in QUEUE_CALLS)
    return LaunchDelay(activity.device, delay.size, _quantile(delay, 0.5), _quantile(delay, 0.95), waiting)


def _quantile(values: I64, share: float) -> int | None:
    return int(np.quantile(values, share, method="nearest")) if values.size else None
