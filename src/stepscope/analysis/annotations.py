"""Time per annotation: what a range that the program named takes on the host, what devices do for it, and for how long
they have nothing to do because of it.

Every instant of a thread, of a device's busy and of its idle time belongs to the innermost annotation alone, so that
the annotations' own times and the time in none of them sum to the steps; the other times are with all annotations
inside. Busy time goes to the annotation in which the op was launched. Idle time goes to the one that the host was in at
the time, but for what only the device knows the cause of: that goes with the op that ended it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.annotation_ranges import Ranges, annotation_ranges
from stepscope.analysis.categories import RECORDED, Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.facts import Facts
from stepscope.analysis.functions import only_functions
from stepscope.compiled import kernel
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, distinct
from stepscope.trace.forest import summed
from stepscope.trace.tables import I64, NULL

_DEVICE_TOLD = tuple(
    category.code
    for category in (
        Category.DEPENDENCY,
        Category.DEVICE_LATENCY,
        Category.LAUNCH_LATENCY,
        Category.UNKNOWN_DEVICE,
    )
)
"""Idle time in which the host had already launched what the device was to do next."""


@record
class UsedStepTimes:
    """Times over the used steps, in ns: of the host's threads and of all used devices together."""

    host_ns: int
    device_ns: int | None
    """None where no device, or no op's launch, was recorded."""
    idle_ns: int | None
    """None where no device was recorded."""


@record
class AnnotationUse:
    """All ranges of one name."""

    name: str
    count: int
    """Those that begin in the used steps."""
    whole: UsedStepTimes
    """With the annotations inside it; where it lies in another one of its name it counts once."""
    own: UsedStepTimes
    """In no annotation further inside."""


@record
class Annotations:
    """The annotations of the used steps, those with most time on the host first."""

    uses: tuple[AnnotationUse, ...]
    outside: UsedStepTimes
    """In none: of the host its main thread's, so that this and what that thread's annotations have of their own sum to
    the steps; of devices also what no launch was recorded of."""
    devices: int
    """How many devices the times of devices are of."""


def annotation_times(facts: Facts) -> Annotations | None:
    """The annotations of the used steps; None where there is none, and where they are all that was recorded."""
    if not facts.used or facts.is_capture or only_functions(facts.trace):
        return None
    ranges = ranges_of(facts)
    if not len(ranges):
        return None
    steps = list(facts.used)
    window = iv.union(facts.markers.start[steps], facts.markers.start[steps] + facts.host_step_ns[steps])
    count = iv.covered_between(window, ranges.start, ranges.start + 1)
    if not count.any():
        return None
    host, alone = _host(ranges, window)
    used = [pair for pair in facts.devices if pair[0].device not in facts.unused]
    busy, idle = (np.zeros(len(ranges) + 1, np.int64) for _ in range(2))
    for activity, account in used:
        busy += _busy(facts, ranges, activity, account)
        idle += _idle(facts, ranges, activity, account)
    launched = any(activity.launched.any() for activity, _ in used)
    columns = _Columns(host, busy if launched else None, idle if used else None)
    on_main = _on_main(ranges, alone)
    outside = UsedStepTimes(iv.measure(window) - on_main, *columns.last())
    return Annotations(_uses(ranges, count, columns, alone), outside, len(used))


def ranges_of(facts: Facts) -> Ranges:
    """The annotations of a profile."""
    return annotation_ranges(facts.trace, facts.host, facts.markers.slices, facts.activities)


@record
class _Columns:
    """Per range: what it covers on its thread that no other of its name does, and busy and idle time of its own, each
    with what is in none behind the last."""

    host: I64
    busy: I64 | None
    idle: I64 | None

    def last(self) -> tuple[int | None, int | None]:
        return (None if self.busy is None else int(self.busy[-1]), None if self.idle is None else int(self.idle[-1]))


def _host(ranges: Ranges, window: iv.Intervals) -> tuple[I64, I64]:
    """Per range, the time inside the window that no earlier range of its name on its thread covers, and that in which
    it is innermost."""
    track = ranges.trace.slices.track[ranges.slice].astype(np.int64)
    key = track * len(ranges.names) + ranges.name
    order = np.argsort(key, kind="stable")
    begin = ranges.start.copy()
    begin[order] = _uncovered(key[order], ranges.start[order], ranges.end[order])
    alone = np.zeros(len(ranges), np.int64)
    for start, end, owner in ranges.by_track.values():
        np.add.at(alone, owner, iv.covered_between(window, start, end))
    return iv.covered_between(window, begin, ranges.end), alone


def _on_main(ranges: Ranges, alone: I64) -> int:
    return int(alone[ranges.trace.slices.track[ranges.slice] == ranges.host.main].sum())


def _busy(facts: Facts, ranges: Ranges, activity: DeviceActivity, account: Account) -> I64:
    """A device's busy time by the range it was launched in; the last is what was launched in none, or is not known."""
    window = iv.union(*facts.used_windows(account))
    order = np.lexsort((activity.start, activity.category))
    category, end = activity.category[order], activity.end[order]
    begin = _uncovered(category.astype(np.int64), activity.start[order], end)
    ns, taken = np.zeros(order.size, np.int64), iv.EMPTY
    for code in range(len(RECORDED)):
        rows = np.flatnonzero(category == code)
        free = iv.subtract(window, taken)
        ns[rows] = iv.covered_between(free, begin[rows], end[rows])
        taken = iv.union(np.append(taken[0], begin[rows]), np.append(taken[1], end[rows]))
    busy = np.zeros(len(ranges) + 1, np.int64)
    np.add.at(busy, ranges.of_calls(activity.call[order]), ns)  # -1 is the last
    busy[-1] += iv.measure(iv.intersect(activity.unrecorded, window))
    return busy


def _idle(facts: Facts, ranges: Ranges, activity: DeviceActivity, account: Account) -> I64:
    """A device's idle time by the range it is due to; the last is what is due to none."""
    assert account.idle is not None
    gaps, pieces = account.idle.gaps, account.idle.pieces
    start, end = iv.intersect((pieces.start, pieces.end), iv.union(*facts.used_windows(account)))
    at = np.searchsorted(pieces.start, start, "right") - 1
    gap, category = pieces.gap[at], pieces.category[at]
    idle = np.zeros(len(ranges) + 1, np.int64)
    by_device = among(category, _DEVICE_TOLD) & (gaps.launch[gap] != NULL)
    owner = ranges.of_calls(activity.call[gaps.cause_op])
    np.add.at(idle, owner[gap[by_device]], (end - start)[by_device])
    rows = np.flatnonzero(~by_device)
    for thread in distinct(gaps.thread[gap[rows]]):
        mine = rows[gaps.thread[gap[rows]] == thread]
        begin, until, owners = ranges.of_spans((start[mine], end[mine]), thread)
        np.add.at(idle, owners, until - begin)
    idle[-1] = int((end - start).sum()) - int(idle[:-1].sum())
    return idle


def _uses(ranges: Ranges, count: I64, columns: _Columns, alone: I64) -> tuple[AnnotationUse, ...]:
    def by_name(values: I64) -> list[int]:
        sums = np.zeros(len(ranges.names), np.int64)
        np.add.at(sums, ranges.name, values)
        return [int(value) for value in sums.tolist()]

    def own(values: I64 | None) -> Sequence[int | None]:
        return [None] * len(ranges.names) if values is None else by_name(values[:-1])

    def whole(values: I64 | None) -> Sequence[int | None]:
        if values is None:
            return [None] * len(ranges.names)
        return by_name(summed(values[:-1], ranges.parent) * ranges.outermost_of_name)

    wholes = zip(by_name(columns.host), whole(columns.busy), whole(columns.idle), strict=True)
    owns = zip(by_name(alone), own(columns.busy), own(columns.idle), strict=True)
    made = [
        AnnotationUse(name, times, UsedStepTimes(*all_), UsedStepTimes(*alone_))
        for name, times, all_, alone_ in zip(ranges.names, by_name(count), wholes, owns, strict=True)
    ]
    seen = [use for use in made if use.count or any((use.whole.host_ns, use.whole.device_ns, use.whole.idle_ns))]
    return tuple(sorted(seen, key=lambda use: (-use.whole.host_ns, use.name)))


@kernel
def _uncovered(group: I64, start: I64, end: I64) -> I64:
    """When each interval reaches beyond the earlier ones of its group (its end where none of it does); sorted by group
    and start."""
    begin = np.empty_like(start)
    reach = np.int64(0)
    for i in range(start.size):
        if i == 0 or group[i] != group[i - 1]:
            reach = start[i]
        begin[i] = min(max(start[i], reach), end[i])
        reach = max(reach, end[i])
    return begin
