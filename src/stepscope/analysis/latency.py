"""How long a launch takes to reach a device that has nothing to do, and which gaps are no more than that.

A device that is launched to more slowly than it computes runs dry before every op. Where launches take longer to
reach it than lies between two of them, the next one is on its way already when the gap begins. The gap is the host's
all the same: the op begins as soon as its launch arrives, and an earlier launch would have arrived earlier.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.device_gaps import Gaps
from stepscope.analysis.limits import GRAPH_PAUSE_NS, LATENCY_CAP_NS, LATENCY_LEAST, LATENCY_QUANTILE, LATENCY_SPREAD
from stepscope.trace.tables import I64, NULL, Bools


def latency_cap(activity: DeviceActivity, gaps: Gaps) -> int:
    """This trace's own p95 of launch-to-start on an idle device, at most ``LATENCY_CAP_NS``; it covers the call too."""
    delays = _on_idle_device(activity, gaps)
    if delays.size == 0:
        return LATENCY_CAP_NS
    return min(int(np.quantile(delays, LATENCY_QUANTILE, method="higher")), LATENCY_CAP_NS)


def _on_idle_device(activity: DeviceActivity, gaps: Gaps) -> I64:
    inside = (gaps.launch != NULL) & (gaps.launch >= gaps.start) & (gaps.cause_op == gaps.op)
    inside &= gaps.end == activity.start[gaps.op]  # not where work that was not recorded began
    return np.asarray(np.maximum(activity.start[gaps.op[inside]] - gaps.launch[inside], 0))


def under_way(activity: DeviceActivity, gaps: Gaps) -> Bools:
    """Gaps that began after the launch of the op that ended them, and ended because it arrived: no later after it than
    launches take to an idle device, and later than queued ops follow each other."""
    launch = activity.launch[gaps.op]
    delay = gaps.end - launch
    launched = (launch != NULL) & (gaps.end == activity.start[gaps.op])
    launched &= (delay > 0) & ~_follows_in_call(activity)[gaps.op]
    if not launched.any():
        return np.asarray(launched)
    alone = _on_idle_device(activity, gaps)
    least = [np.quantile(delays, LATENCY_LEAST) for delays in (delay[launched], alone[alone > 0]) if delays.size]
    most = min(LATENCY_SPREAD * min(least), LATENCY_CAP_NS)
    queued = launched & (launch < gaps.start) & (gaps.cause_op == gaps.op)
    length = gaps.end - gaps.start
    deep = length[queued & (delay > most)]
    pause = np.median(deep) if deep.size else GRAPH_PAUSE_NS
    return np.asarray(queued & (delay <= most) & (length > pause))


def _follows_in_call(activity: DeviceActivity) -> Bools:
    """Ops that another op of the same call (of a graph or program) came before."""
    follows = np.zeros(len(activity), np.bool_)
    order = np.lexsort((activity.start, activity.call))
    call = activity.call[order]
    follows[order[1:]] = (call[1:] == call[:-1]) & (call[1:] >= 0)
    return follows


def time_between_launches(activity: DeviceActivity, gaps: Gaps, chosen: Bools) -> tuple[I64, I64]:
    """Per gap, how long the launch of its op came after the one before it, as much as the gap is long, and how long it
    then took to arrive: host time that ends at the launch, and what to add to see it where the device felt it."""
    launches = np.sort(activity.launch[activity.launched])
    own = gaps.launch[chosen]
    at = np.searchsorted(launches, own) - 1
    before = np.where(at >= 0, launches[np.maximum(at, 0)], np.iinfo(np.int64).min // 2)
    length = np.minimum(gaps.end[chosen] - gaps.start[chosen], own - before)
    return length, gaps.end[chosen] - own
