"""How one process shares its work among several devices: how much each computes, how much at once, who launches it."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import HOST_CAUSES, Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.facts import Facts
from stepscope.analysis.limits import DISPATCH_GAP_NS, FINDING_NS, FINDING_SHARE
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, distinct
from stepscope.trace.shared import shared
from stepscope.trace.tables import I32, I64

_ONE_THREAD_SHARE = 0.9
_IN_TURN = [cause.code for cause in (Category.LAUNCH, Category.PYTHON, Category.UNKNOWN_HOST)]
"""What a thread that does not launch yet is booked to: what the main one shows, which may be waiting for them all."""
_HELD = [cause.code for cause in HOST_CAUSES if cause is not Category.LAUNCH]


@record
class Balance:
    """The accelerators that compute in the used steps of one process, in order of their numbers; ns per step."""

    devices: tuple[int, ...]
    compute_ns: tuple[int, ...]
    """What each computes."""
    others_ns: tuple[int, ...]
    """How long each waits for launches while the thread that owes them launches for others."""
    beside_ns: tuple[int, ...]
    """How long each waits for launches while another thread launches for others, too."""
    held_ns: tuple[int, ...]
    """How long each waits for the host to do something else: input, Python and so on."""
    any_ns: int
    """Time in which at least one computes."""
    together_ns: int
    """Time in which at least two do."""
    blocks: float
    """Runs of launches for one device, per step and device: 1 where each is given all its work before the next."""
    first: int
    """The device that is launched first, on average."""
    one_thread: bool
    """Whether one thread launches at least nine tenths of the work of them all."""
    turn_wait_ns: tuple[int, ...]
    """How long each waits for its own launches, or for what the host does not show, while another is launched."""
    exchange_ns: tuple[int, ...]
    """How long each exchanges data with nothing beside it, waiting for a late one included."""
    window_ns: tuple[int, ...]
    """How long a step takes on each."""


@shared
def balance(facts: Facts) -> Balance | None:
    """How devices share the work; None for fewer than two that compute in steps that they share, and
    for CPUs, which share their cores."""
    kinds = {device.id: device.kind for device in facts.trace.info.devices}
    pairs = [
        (activity, account)
        for activity, account in facts.devices
        if activity.device not in facts.unused and kinds.get(activity.device, "gpu") != "cpu"
    ]
    if len(pairs) < 2 or not facts.used or facts.steps_apart:
        return None
    compute, held, spans, exchange, window = [], [], [], [], []
    for activity, account in pairs:
        rows = facts.used_rows(account)
        windows = facts.used_windows(account)
        start, end, codes = activity.busy_pieces
        own = codes == Category.COMPUTE.code
        spans.append(iv.intersect((start[own], end[own]), iv.union(*windows)))
        compute.append(facts.per_step(int(account.parts[rows, Category.COMPUTE.code].sum())))
        exchange.append(facts.per_step(int(account.parts[rows, Category.COLLECTIVE.code].sum())))
        window.append(facts.per_step(int(account.duration_ns[rows].sum())))
        held.append(facts.per_step(int(account.parts[rows][:, _HELD].sum())))
    whole = iv.measure(iv.joined(spans))
    together = iv.measure(_at_least_two(spans))
    launches = _launches([activity for activity, _ in pairs])
    waits = [_launch_waits(facts, account, launches, at) for at, (_, account) in enumerate(pairs)]
    launched = _launching(facts, [activity for activity, _ in pairs])
    return Balance(
        tuple(activity.device for activity, _ in pairs),
        tuple(compute),
        tuple(others for others, _ in waits),
        tuple(beside for _, beside in waits),
        tuple(held),
        facts.per_step(whole),
        facts.per_step(together),
        launched.blocks,
        pairs[launched.first][0].device,
        launched.one_thread,
        tuple(_turn_wait(facts, account, launched.others(at)) for at, (_, account) in enumerate(pairs)),
        tuple(exchange),
        tuple(window),
    )


@record
class _Launches:
    """When threads worked on launches of several devices, by start: each is worked on from the one before. Those of one
    thread do not overlap."""

    thread: I32
    device: I64
    """Places in the list of devices."""
    start: I64
    end: I64
    threads: int


def _launches(activities: list[DeviceActivity]) -> _Launches:
    thread, launch, end = (
        np.concatenate([getattr(each, part)[each.launched] for each in activities])
        for part in ("thread", "launch", "launch_end")
    )
    device = np.concatenate([np.full(int(each.launched.sum()), at) for at, each in enumerate(activities)])
    order = np.lexsort((launch, thread))
    thread, end, device = thread[order], end[order], device[order]
    first = np.append(True, thread[1:] != thread[:-1])
    number = np.cumsum(first) - 1
    # Calls within calls: what the outer one covers is worked on once.
    since = end.min(initial=0)
    span = int(end.max(initial=0) - since) + 1
    until = np.maximum.accumulate(end - since + number * span) - number * span + since
    before = np.append(since, until[:-1])
    kept = np.flatnonzero(~first & (until > before))
    kept = kept[np.argsort(before[kept], kind="stable")]
    return _Launches(thread[kept], device[kept], before[kept], until[kept], int(first.sum()))


def _launch_waits(facts: Facts, account: Account, launches: _Launches, at: int) -> tuple[int, int]:
    """How long per step a device waits for launches while the thread that owes them launches for other devices, and
    while other threads do."""
    assert account.idle is not None
    gaps, pieces = account.idle.gaps, account.idle.pieces
    waiting = np.flatnonzero((pieces.category == Category.LAUNCH.code) & facts.in_used_steps(account, pieces.start))
    if not waiting.size:
        return 0, 0
    thread = gaps.thread[pieces.gap[waiting]]
    near = launches.start < pieces.end[waiting].max()
    near &= (launches.end > pieces.start[waiting].min()) & (launches.device != at)
    theirs, start, end = launches.thread[near], launches.start[near], launches.end[near]
    own = beside = 0
    for track in distinct(thread):
        mine = waiting[thread == track]
        spans = pieces.start[mine], pieces.end[mine]
        same = theirs == track
        own += iv.measure(iv.intersect(spans, (start[same], end[same])))
        if launches.threads > 1:
            beside += iv.measure(iv.intersect(spans, iv.union(start[~same], end[~same])))
    return facts.per_step(own), facts.per_step(beside)


def worth_telling(facts: Facts, cost_ns: int) -> bool:
    """Whether a cost is large enough to say how devices are used: below, it is how things happen to lie."""
    return cost_ns >= max(FINDING_NS, FINDING_SHARE * (facts.mean_step_ns or 0))


def _at_least_two(spans: list[iv.Intervals]) -> iv.Intervals:
    """Time that lies in two or more of some sets."""
    once, twice = spans[0], iv.EMPTY
    for other in spans[1:]:
        both = iv.intersect(once, other)
        twice = iv.union(np.concatenate((twice[0], both[0])), np.concatenate((twice[1], both[1])))
        once = iv.union(np.concatenate((once[0], other[0])), np.concatenate((once[1], other[1])))
    return twice


@record
class _Launching:
    """How several devices are launched in the used steps."""

    blocks: float
    """Runs of launches for one device per step and device."""
    first: int
    """The device (of the list) that is launched first on average."""
    one_thread: bool
    device: I64
    """Per run the device (of the list), when its first launch begins and its last one returns, or the next run of the
    step begins soon after."""
    start: I64
    end: I64

    def others(self, device: int) -> iv.Intervals:
        """When other devices were launched."""
        other = self.device != device
        return iv.union(self.start[other], self.end[other])


def _launching(facts: Facts, activities: list[DeviceActivity]) -> _Launching:
    parts = [np.flatnonzero((a.call >= 0) & (a.category == Category.COMPUTE.code)) for a in activities]
    launch = np.concatenate([a.launch[at] for a, at in zip(activities, parts, strict=True)])
    done = np.concatenate([a.launch_end[at] for a, at in zip(activities, parts, strict=True)])
    thread = np.concatenate([a.thread[at] for a, at in zip(activities, parts, strict=True)])
    device = np.concatenate([np.full(at.size, number) for number, at in enumerate(parts)])
    step = np.searchsorted(facts.markers.start, launch, "right") - 1
    inside = among(step, facts.used)
    launch, done, thread, device, step = launch[inside], done[inside], thread[inside], device[inside], step[inside]
    if not launch.size:
        return _Launching(0.0, 0, False, *(np.empty(0, np.int64) for _ in range(3)))
    order = np.argsort(launch, kind="stable")
    key: I64 = step[order] * len(activities) + device[order]
    begins = np.concatenate(([0], np.flatnonzero(np.diff(key)) + 1))
    start, end = launch[order][begins], np.maximum.reduceat(done[order], begins)
    next_start = np.append(start[1:], np.iinfo(np.int64).max)
    hands_on = (np.diff(step[order][begins], append=-1) == 0) & (next_start - end <= DISPATCH_GAP_NS)
    share = float(np.bincount(thread).max()) / thread.size
    since = launch - facts.markers.start[step]
    means = [float(since[device == d].mean()) if (device == d).any() else np.inf for d in range(len(activities))]
    return _Launching(
        begins.size / (len(facts.used) * len(activities)),
        int(np.argmin(means)),
        share >= _ONE_THREAD_SHARE,
        device[order][begins],
        start,
        np.where(hands_on, np.maximum(next_start, end), end),
    )


def _turn_wait(facts: Facts, account: Account, others: iv.Intervals) -> int:
    """What a device waits for its launches, or for what the host does not show, while others are launched."""
    assert account.idle is not None
    pieces = account.idle.pieces
    chosen = among(pieces.category, _IN_TURN) & facts.in_used_steps(account, pieces.start)
    return facts.per_step(iv.measure(iv.intersect((pieces.start[chosen], pieces.end[chosen]), others)))
