"""How long a thread that was ready to run had no core, as Linux counts it and looks at the thread wrote it down.

Of a machine that has more to run than cores this is time that no line of the program explains.
"""

from __future__ import annotations

import numpy as np

from stepscope.record import record
from stepscope.trace.tables import I64, NULL
from stepscope.trace.trace import Trace


@record
class CoreWaits:
    """The count at each look, in order of time."""

    time_ns: I64
    waited_ns: I64

    def between(self, start: I64, end: I64) -> I64:
        """What it grew by from each start to each end, where looks surround it; between two looks evenly."""
        grown = np.interp(end, self.time_ns, self.waited_ns) - np.interp(start, self.time_ns, self.waited_ns)
        return np.rint(grown).astype(np.int64)

    def most(self, start: I64, end: I64) -> I64:
        """The most that it can have grown by from each start to each end: all between two looks may lie there, as far
        as that is long."""
        grown = np.diff(self.waited_ns)
        start, end = (np.clip(times, self.time_ns[0], self.time_ns[-1]) for times in (start, end))
        upto = np.concatenate((np.zeros(1, np.int64), np.cumsum(grown)))
        first = np.clip(np.searchsorted(self.time_ns, start, "right"), 1, grown.size)
        last = np.clip(np.searchsorted(self.time_ns, end, "left") - 1, 0, grown.size - 1)
        head = np.clip(self.time_ns[first] - np.maximum(start, self.time_ns[first - 1]), 0, grown[first - 1])
        tail = np.clip(np.minimum(end, self.time_ns[last + 1]) - self.time_ns[last], 0, grown[last])
        within = head + tail + upto[last] - upto[np.minimum(first, last)]
        return np.asarray(np.where(first > last, np.clip(end - start, 0, grown[last]), within))


def most_without_core(trace: Trace, track: int, windows: tuple[I64, I64]) -> I64:
    """The most that a thread can have waited for a core in some windows; nothing where the profile does not tell."""
    waits = core_waits(trace, track)
    return np.zeros_like(windows[0]) if waits is None else waits.most(*windows)


def share_without_core(trace: Trace, track: int, windows: tuple[I64, I64]) -> float:
    """Of some windows the share in which a thread was ready to run and had no core; 0 where that is not told."""
    waits, total = core_waits(trace, track), int((windows[1] - windows[0]).sum())
    return 0.0 if waits is None or not total else int(waits.between(*windows).sum()) / total


def core_waits(trace: Trace, track: int) -> CoreWaits | None:
    """Those of a thread; None where the profile does not tell."""
    looks = trace.looks
    mine = (looks.track == track) & (looks.core_wait_ns != NULL)
    if mine.sum() < 2:
        return None
    time, waited = looks.time_ns[mine], np.maximum.accumulate(looks.core_wait_ns[mine])
    return CoreWaits(time, _when_it_passed(time, waited))


def _when_it_passed(time: I64, waited: I64) -> I64:
    """The count, which the system takes up when a wait ends, grown no faster than time: the rest passed before."""
    grown, over = np.diff(waited), 0
    for k in range(grown.size - 1, -1, -1):
        all_of_it = int(grown[k]) + over
        grown[k] = min(all_of_it, int(time[k + 1] - time[k]))
        over = all_of_it - int(grown[k])
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(grown)))
