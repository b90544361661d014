"""The dependency graph of a profile: what each device op and each host instant has to wait for.

Host threads are instants (launches, beginnings and ends of waits, step markers) in program order, with the measured
time between them. The main thread and those that it waits for while they launch (autograd's, workers
of the program's own) take turns and are one line; another thread that was idle goes on
where the main line then is. A device op starts when its stream's op before it is done, its launch has reached the
device, and the op it was made to wait for has ended. Each of these takes one latency per kind of op and device, the
mean of this profile; whatever delay above ``LATENCY_CAP_NS`` that leaves is kept as measured and called residual.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cached_property
from itertools import pairwise

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.facts import Facts
from stepscope.analysis.host import NO_CAUSE
from stepscope.analysis.limits import GRAPH_PAUSE_NS, INFERRED_WAIT_NS, LATENCY_CAP_NS
from stepscope.analysis.waits import awaited_ends, called_before
from stepscope.compiled import kernel
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, distinct, grouped
from stepscope.trace.tables import I32, I64, NULL, U8, Bools, Direction, Kind, Rows, TrackKind

NONE = -1
LONG_AGO = int(np.iinfo(np.int64).min // 4)
"""The end of what never was: earlier than anything, and safe to add to."""


class Instant(IntEnum):
    """What a record is; of records at the same time the smaller comes first."""

    WAIT_END = 0
    MARK = 1
    LAUNCH = 2
    WAIT_BEGIN = 3
    OP = 4


@record
class ReplayedOps:
    """Device ops of all devices, one device after another as in ``Facts.activities``; one value per op."""

    stream: I32
    """Dense number of device and stream."""
    start: I64
    end: I64
    call: I32
    """Position among ``Graph.calls`` of the call that launched the op, ``NONE`` where not recorded."""
    launch: I64
    """When it was launched, NULL where not recorded: the start of the call or, in a long one, right before the op."""
    latency: I64
    """From launch to start on an idle stream."""
    pause: I64
    """From the end of the stream's op before it to its start; negative where the two overlap."""
    awaits: I32
    """Op of another stream that it waits for, ``NONE`` where nothing says so."""
    residual: I64
    """Delay that none of these explains, kept as measured."""
    called: I64
    """Delay for Python functions that the program called before it."""
    floor: I64
    """When an op started that nothing recorded held up, or work of before the profile was done; else ``LONG_AGO``."""


@record
class ReplayedWaits:
    """Host waits for the device, one value per wait."""

    slice: I32
    """The waiting call, -1 where the wait is inferred: nothing was recorded until an op ended."""
    start: I64
    end: I64
    line: I32
    own: I64
    """What the call takes where it has nothing to wait for."""
    back: I64
    """From the end of what it waits for to its return."""
    op: I32
    """The op it waits for, ``NONE`` where the profile shows none."""
    for_start: Bools
    """Whether it waits for that op's start only: a copy from pageable memory that is staged next."""


@record
class Graph:
    """Records in time order, and what they refer to."""

    time: I64
    kind: U8
    ref: I32
    """Which wait, mark, launch (among ``calls``) or op."""
    line: I32
    """Host line of the record, ``NONE`` for ops."""
    tracks: tuple[tuple[int, ...], ...]
    """Host tracks of each line, the main one first."""
    calls: I32
    """Slices of the calls that launched something, ascending."""
    ops: ReplayedOps
    waits: ReplayedWaits

    @cached_property
    def of_line(self) -> list[Rows]:
        """The records of each host line."""
        return [np.flatnonzero(self.line == line) for line in range(len(self.tracks))]

    @cached_property
    def before(self) -> list[I64]:
        """When the record before each of a line was, by line; the first has none before it but itself."""
        return [np.concatenate((self.time[rows[:1]], self.time[rows[:-1]])) for rows in self.of_line]

    @cached_property
    def main_before(self) -> I64:
        """When the main line's last record up to each was, of the first ones the first of all."""
        at = np.arange(self.time.size)
        return self.time[np.maximum.accumulate(np.where(self.line == 0, at, 0))]

    @cached_property
    def clocks(self) -> I64:
        """When each host line's first record is, 0 where it has none."""
        return np.array([int(self.time[rows[0]]) if rows.size else 0 for rows in self.of_line], np.int64)

    @cached_property
    def marks(self) -> int:
        """How many records are marks."""
        return int((self.kind == Instant.MARK).sum())


def dependency_graph(facts: Facts) -> Graph:
    """The graph of a profile. It needs a device with recorded launches (``replay.why_not``)."""
    activities = facts.activities
    calls = np.unique(np.concatenate([a.call[a.launched] for a in activities])).astype(np.int32)
    ops = _ops(facts, calls)
    tracks = _lines(facts, calls)
    lines = _line_of(facts, tracks)
    waits = _waits(facts, ops, calls, lines)
    return _records(facts, ops, waits, calls, lines, tracks)


def _ops(facts: Facts, calls: I32) -> ReplayedOps:
    activities = facts.activities
    start, end, launch = (np.concatenate([getattr(a, part) for a in activities]) for part in ("start", "end", "launch"))
    call = np.concatenate([np.where(a.launched, np.searchsorted(calls, a.call), NONE) for a in activities])
    place = np.repeat(np.arange(len(activities)), [len(a) for a in activities])
    stream = grouped(place, np.concatenate([a.stream for a in activities]))[1].astype(np.int32)
    kinds = np.concatenate([_kinds(a) for a in activities]) + place * _KINDS
    order = np.argsort(start, kind="stable")
    before = _ends_before(order, stream, start, end)
    awaits = np.concatenate(_awaited_ops(facts, end)).astype(np.int32)
    known = launch != NULL
    awaited = np.where(awaits >= 0, end[awaits], LONG_AGO)
    reached, freed = np.where(known, start - launch, LONG_AGO), start - before
    # What bound the op's start: the last of the things it had to wait for.
    by_launch = known & (((launch >= before) & (launch >= awaited)) | _arrived(facts))
    by_stream = ~by_launch & (before >= awaited)
    latency = _mean(reached, by_launch & (reached <= LATENCY_CAP_NS), kinds, 0)
    # In a long call the host first stages data or loads code: that is its own time, and the launch comes at the end.
    launch_end = np.concatenate([a.launch_end for a in activities])
    ready = _ready(known, launch, before, awaited)
    in_call = known & (launch_end > ready) & (start - launch_end <= LATENCY_CAP_NS)
    called = np.concatenate(called_before(facts.trace, activities))
    held = in_call & (start - ready > LATENCY_CAP_NS) & (called == 0)
    launch = np.where(held, np.minimum(start - latency, launch_end), launch)
    close = by_stream & (freed >= 0) & (freed <= LATENCY_CAP_NS)
    pause = np.where(freed < 0, freed, _mean(freed, close, kinds, GRAPH_PAUSE_NS))
    late = start - _ready(known, launch + latency, before + pause, awaited)
    seen = np.flatnonzero(late > LATENCY_CAP_NS)
    awaits[seen] = _ended_just_before(seen, place, stream, start, end)
    awaits = _after_exchanges(activities, awaits, stream, start, end)
    awaited = np.where(awaits >= 0, end[awaits], LONG_AGO)
    opened = _opened(activities)
    late = start - np.maximum(_ready(known, launch + latency, before + pause, awaited), opened)
    alone = ~known & (before == LONG_AGO) & (awaits < 0)
    late = np.where((late > LATENCY_CAP_NS) & ~alone, late, 0)
    called = np.minimum(called, late)
    floor = np.where(alone, start, opened)
    return ReplayedOps(
        stream, start, end, call.astype(np.int32), launch, latency, pause, awaits, late - called, called, floor
    )


def _arrived(facts: Facts) -> Bools:
    """Which ops began when their launch arrived, though it was under way before their stream was free."""
    arrived = [np.zeros(len(activity), np.bool_) for activity in facts.activities]
    for chosen, (_, account) in zip(arrived, facts.devices, strict=True):
        assert account.idle is not None
        chosen[account.idle.gaps.op[account.idle.under_way]] = True
    return np.concatenate(arrived)


def _opened(activities: list[DeviceActivity]) -> I64:
    """Per op, when its device had done the work of before the profile that was not recorded; for ops launched while it
    did, else ``LONG_AGO``."""
    return np.concatenate([
        np.where(a.launch < a.start[0], a.start[0], LONG_AGO) if a.begins_occupied else np.full(len(a), LONG_AGO)
        for a in activities
    ])  # fmt: skip


def _ready(known: Bools, launched: I64, freed: I64, awaited: I64) -> I64:
    return np.maximum(np.where(known, launched, LONG_AGO), np.maximum(freed, awaited))


def _ended_just_before(chosen: I64, place: I64, stream: I32, start: I64, end: I64) -> I64:
    """For ops that nothing recorded held up: the op of another stream of the device that ended right before they began.

    Not every profile records what a stream waits for (``INFERRED_WAIT_NS``).
    """
    ended = np.full(chosen.size, NONE, np.int64)
    order = np.lexsort((end, place))
    bounds = np.searchsorted(place[order], np.arange(int(place.max(initial=-1)) + 2))
    for device, (low, high) in enumerate(pairwise(bounds.tolist())):
        asked, ends = np.flatnonzero(place[chosen] == device), order[low:high]
        ops = chosen[asked]
        at = np.searchsorted(end[ends], start[ops], "right") - 1
        while asked.size:  # Back from the last to end, all ops at once, until one of another stream is met.
            near = (at >= 0) & (end[ends[at]] >= start[ops] - INFERRED_WAIT_NS)
            asked, ops, at = asked[near], ops[near], at[near]
            other = stream[ends[at]] != stream[ops]
            ended[asked[other]] = ends[at[other]]
            asked, ops, at = asked[~other], ops[~other], at[~other] - 1
    return ended


def _after_exchanges(activities: list[DeviceActivity], awaits: I32, stream: I32, start: I64, end: I64) -> I32:
    """With the waits for collectives beside which nothing ran that was launched later: what comes next takes their
    result. On each stream its first op waits, where nothing is known of what it waits for."""
    awaits, low = awaits.copy(), 0
    for activity in activities:
        known = activity.launched
        exchange = np.flatnonzero(known & (activity.category == Category.COLLECTIVE.code))
        compute = np.flatnonzero(known & (activity.category == Category.COMPUTE.code))
        compute = compute[np.argsort(activity.launch[compute], kind="stable")]
        launch = activity.launch[compute]
        # Of what is launched from each op on, when the first begins.
        soonest = np.append(np.minimum.accumulate(activity.start[compute][::-1])[::-1], np.iinfo(np.int64).max)
        alone = soonest[np.searchsorted(launch, activity.launch[exchange], "right")] >= activity.end[exchange]
        exchange = exchange[alone]
        exchange = exchange[np.argsort(activity.end[exchange], kind="stable")]
        for number in distinct(activity.stream[compute]):
            queue = compute[activity.stream[compute] == number]
            after = np.searchsorted(activity.launch[queue], activity.launch[exchange], "right")
            first, last = queue[after[after < queue.size]], exchange[after < queue.size]
            free = (awaits[low + first] == NONE) & (activity.stream[last] != number)
            awaits[low + first[free]] = low + last[free]
        low += len(activity)
    return awaits


_KINDS = 4


def _kinds(activity: DeviceActivity) -> I64:
    """Kinds of ops with a latency of their own: kernels, copies, collectives, and the ops of a program or graph."""
    copies = among(activity.category, [c.code for c in Category if c.startswith("copy")])
    collective = activity.category == Category.COLLECTIVE.code
    return np.where(copies, 1, np.where(collective, 2, 0)).astype(np.int64)


def _mean(values: I64, chosen: Bools, kinds: I64, default: int) -> I64:
    """Per value, the mean of the chosen ones of its kind, else the default."""
    size = int(kinds.max(initial=0)) + 1
    count = np.bincount(kinds[chosen], minlength=size)
    total = np.bincount(kinds[chosen], values[chosen], size)
    return np.where(count > 0, np.rint(total / np.maximum(count, 1)), default).astype(np.int64)[kinds]


@kernel
def _ends_before(order: I64, stream: I32, start: I64, end: I64) -> I64:
    """Per op, the largest end among the ops of its stream that start before it."""
    reach = np.full(stream.max() + 1 if stream.size else 0, np.iinfo(np.int64).min // 4, np.int64)
    ended = np.empty(start.size, np.int64)
    for i in order:
        ended[i] = reach[stream[i]]
        reach[stream[i]] = max(reach[stream[i]], end[i])
    return ended


def _awaited_ops(facts: Facts, end: I64) -> list[I64]:
    """Per device, the op each of its ops was made to wait for by a recorded wait."""
    by_end = np.argsort(end, kind="stable")
    awaited = []
    for ends in awaited_ends(facts.trace, facts.activities):
        at = np.minimum(np.searchsorted(end[by_end], ends), end.size - 1)
        awaited.append(np.where((ends != NULL) & (end[by_end][at] == ends), by_end[at], NONE))
    return awaited


def _lines(facts: Facts, calls: I32) -> tuple[tuple[int, ...], ...]:
    slices, host = facts.trace.slices, facts.host
    main = (host.main, *dict.fromkeys(t for t in (*host.turns, *host.loop) if t != host.main))
    others = np.unique(np.concatenate((slices.track[calls], host.waits.track)))
    return (main, *((int(track),) for track in others.tolist() if track not in main))


_SHOWN = (Kind.HOST_OP, Kind.RUNTIME_CALL, Kind.SYNC, Kind.ALLOCATION, Kind.COMPILE)
"""Slices that show that a thread did something; frames and annotations may just as well cover a wait."""


def _line_of(facts: Facts, tracks: tuple[tuple[int, ...], ...]) -> I32:
    """Line of each track, ``NONE`` for tracks without launches and waits."""
    lines = np.full(len(facts.trace.tracks) + 1, NONE, np.int32)
    for line, members in enumerate(tracks):
        lines[list(members)] = line
    return lines


def _waits(facts: Facts, ops: ReplayedOps, calls: I32, lines: I32) -> ReplayedWaits:
    """Each host wait with the op it waited for: that of its own call, else the last to end before it returned."""
    trace, waits = facts.trace, facts.host.waits
    launch = np.where(ops.call >= 0, trace.slices.start_ns[calls[ops.call]], LONG_AGO)
    queued, usual = _queue_waits(facts)
    silent = _silent_waits(facts, ops, calls, launch, lines)
    size, none = waits.slice.size, np.full(silent[0].size, -1, np.int32)
    callers = np.concatenate((waits.slice, queued, none))
    begun, took = trace.slices.start_ns[queued], trace.slices.dur_ns[queued]
    start = np.concatenate((waits.start, begun, silent[0]))
    end = np.concatenate((waits.end, begun + took, silent[1]))
    line = np.concatenate((lines[waits.track], lines[trace.slices.track[queued]], np.zeros(none.size, np.int32)))
    op = _last_launched(np.argsort(ops.end, kind="stable"), ops.end, launch, start, end)
    own_op, for_start = _own_ops(facts, ops, calls, np.concatenate((waits.slice, np.full(queued.size, -1), none)))
    op = np.where(own_op >= 0, own_op, op)
    # A copy that found its stream idle was held up by nothing but its own staging.
    op = np.where(for_start & (ops.launch[own_op] > start), NONE, op)
    until = np.where(for_start, ops.start[op], ops.end[op])
    blocked, duration, after = (op >= 0) & (until > start), end - start, end - until
    names = np.where(callers >= 0, trace.slices.name[callers], -1)
    kinds = np.unique(names, return_inverse=True)[1].reshape(-1).astype(np.int64)
    back = _mean(after, blocked & (after >= 0) & (after <= LATENCY_CAP_NS), kinds, 0)
    back = np.where(blocked & (after > LATENCY_CAP_NS), after, back)
    idle = _mean(duration, ~blocked & (duration <= LATENCY_CAP_NS), kinds, 0)
    idle[size : size + queued.size] = usual
    own = np.where(blocked, np.minimum(idle, duration), duration)
    slices = np.where(_lasts(facts, callers, size), -1, callers).astype(np.int32)
    return ReplayedWaits(slices, start, end, line, own, back, np.where(op >= 0, op, NONE).astype(np.int32), for_start)


def _queue_waits(facts: Facts) -> tuple[I32, I64]:
    """Launches that waited for room in a device's queue, and what they take where there is some."""
    queues = [(queue.slice, queue.usual_ns) for queue in facts.full_queues]
    slices, usual = (np.concatenate(part) for part in zip((np.empty(0, np.int32), iv.EMPTY[0]), *queues, strict=True))
    slices, first = np.unique(slices, return_index=True)
    other = ~among(slices, facts.host.waits.slice)
    return slices[other].astype(np.int32), usual[first][other]


def _lasts(facts: Facts, callers: I32, waits: int) -> Bools:
    """Which waits no change of the program takes away: those for work that was not recorded, and for room in a queue.
    The first ``waits`` are the host's own."""
    lasts = np.arange(callers.size) >= waits
    for activity in facts.activities:
        hidden = iv.covered_between(activity.unrecorded, facts.host.waits.start, facts.host.waits.end)
        lasts[:waits] |= hidden > 0
    return lasts


def _silent_waits(facts: Facts, ops: ReplayedOps, calls: I32, launch: I64, lines: I32) -> iv.Intervals:
    """Stretches in which nothing of the main line is recorded and which end right when its device work is done: it
    waited in something the profile does not show."""
    slices = facts.trace.slices
    on_line = (facts.trace.tracks.kind[slices.track] == TrackKind.HOST_THREAD) & (lines[slices.track] == 0)
    rows = np.flatnonzero(on_line & (among(slices.kind, _SHOWN) | (facts.host.causes != NO_CAUSE)))
    start, end, track = slices.start_ns[rows], (slices.start_ns + slices.dur_ns)[rows], slices.track[rows]
    own = [facts.host.alone(of, iv.union(start[track == of], end[track == of])) for of in distinct(track)]
    # A call that waited for executors shows when it returns that its thread goes on.
    over = facts.host.executors.waits[1] if facts.host.executors else iv.EMPTY[1]
    covered = iv.joined([*own, (over - 1, over)])
    if not len(covered[0]):
        return iv.EMPTY
    start, end = covered[1][:-1], covered[0][1:]
    long = end - start > LATENCY_CAP_NS
    start, end = start[long], end[long]
    op = _last_launched(np.argsort(ops.end, kind="stable"), ops.end, launch, start, end)
    done = np.where(op >= 0, ops.end[op], LONG_AGO)
    chosen = (done > start) & (end - done <= INFERRED_WAIT_NS)
    return start[chosen], end[chosen]


def _own_ops(facts: Facts, ops: ReplayedOps, calls: I32, slices: I32) -> tuple[I64, Bools]:
    """Per wait, the op that its own call launched, and whether that op's start is what is waited for."""
    device_ops = facts.trace.device_ops
    rows = np.concatenate([a.row for a in facts.activities])
    first = np.full(calls.size + 1, NONE, np.int64)
    launched = np.flatnonzero(ops.call >= 0)[::-1]
    first[ops.call[launched]] = launched
    at = np.searchsorted(calls, slices)
    mine = (at < calls.size) & (calls[np.minimum(at, calls.size - 1)] == slices)
    own = np.where(mine, first[at], NONE)
    to_host = device_ops.direction[rows[own]] == Direction.D2H
    return own, (own >= 0) & ~to_host


@kernel
def _last_launched(by_end: I64, end: I64, launch: I64, begun: I64, done: I64) -> I64:
    """Per wait, the op that ends last before the wait returns, of those launched before it began; -1 for none."""
    launched = np.full(begun.size, -1, np.int64)
    for w in range(begun.size):
        low, high = 0, by_end.size
        while low < high:
            middle = (low + high) // 2
            if end[by_end[middle]] <= done[w]:
                low = middle + 1
            else:
                high = middle
        k = low - 1
        # What ended before the wait began did not hold it up: whichever of those ops it is does not matter.
        while k >= 0 and end[by_end[k]] > begun[w] and launch[by_end[k]] >= begun[w]:
            k -= 1
        if k >= 0:
            launched[w] = by_end[k]
    return launched


def _records(
    facts: Facts, ops: ReplayedOps, waits: ReplayedWaits, calls: I32, lines: I32, tracks: tuple[tuple[int, ...], ...]
) -> Graph:
    slices, marks = facts.trace.slices, facts.markers.instants
    # The first op of a call says when it was launched. A device clock may run ahead of the host's.
    launched = slices.start_ns[calls]
    first = np.argsort(-ops.start, kind="stable")
    first = first[ops.call[first] >= 0]
    launched[ops.call[first]] = np.minimum(ops.launch, ops.start)[first]
    parts = (
        (Instant.WAIT_END, waits.end, waits.line),
        (Instant.MARK, marks, np.zeros(marks.size, np.int32)),
        (Instant.LAUNCH, launched, lines[slices.track[calls]]),
        (Instant.WAIT_BEGIN, waits.start, waits.line),
        (Instant.OP, ops.start, np.full(ops.start.size, NONE, np.int32)),
    )
    time = np.concatenate([times for _, times, _ in parts])
    kind = np.concatenate([np.full(times.size, what, np.uint8) for what, times, _ in parts])
    ref = np.concatenate([np.arange(times.size, dtype=np.int32) for _, times, _ in parts])
    line = np.concatenate([lines for _, _, lines in parts])
    order = np.lexsort((kind, time))
    return Graph(time[order], kind[order], ref[order], line[order].astype(np.int32), tracks, calls, ops, waits)
