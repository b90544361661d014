"""The dependency graph of a profile: what each device op and each host instant has to wait for.

Host threads are instants (launches, beginnings and ends of waits, step markers) in program order, with the measured
time between them. The main thread and those that it waits for while they launch (autograd's, workers
of the program's own) take turns and are one line; another thread that was idle goes on
where the main line then is. A device op starts when its stream's op before it is done, its launch has reached the
device, and the op it was made to wait for has ended. Each of these takes one latency per kind of op and device, the
mean of this profile; whatever delay above ``LATENCY_CAP_NS`` that leaves is kept as measured and called residual.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.facts import Facts
from stepscope.analysis.limits import GRAPH_PAUSE_NS, INFERRED_WAIT_NS, LATENCY_CAP_NS
from stepscope.analysis.waits import awaited_ends, called_before
from stepscope.compiled import kernel
from stepscope.record import record
from stepscope.trace.codes import among, distinct, grouped, united
from stepscope.trace.tables import I32, I64, NULL, U8, Bools, Rows
from stepscope.whatif.host_waits import host_waits
from stepscope.whatif.records import LONG_AGO, NONE, Instant, ReplayedOps, ReplayedWaits, mean_by_kind


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
    calls = united(np.concatenate([a.call[a.launched] for a in activities])).astype(np.int32)
    ops = _ops(facts, calls)
    tracks = _lines(facts, calls)
    lines = _line_of(facts, tracks)
    waits = host_waits(facts, ops, calls, lines)
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
    latency = mean_by_kind(reached, by_launch & (reached <= LATENCY_CAP_NS), kinds, 0)
    # In a long call the host first stages data or loads code: that is its own time, and the launch comes at the end.
    launch_end = np.concatenate([a.launch_end for a in activities])
    ready = _ready(known, launch, before, awaited)
    in_call = known & (launch_end > ready) & (start - launch_end <= LATENCY_CAP_NS)
    called = np.concatenate(called_before(facts.trace, activities))
    held = in_call & (start - ready > LATENCY_CAP_NS) & (called == 0)
    launch = np.where(held, np.minimum(start - latency, launch_end), launch)
    close = by_stream & (freed >= 0) & (freed <= LATENCY_CAP_NS)
    pause = np.where(freed < 0, freed, mean_by_kind(freed, close, kinds, GRAPH_PAUSE_NS))
    late = start - _ready(known, launch + latency, before + pause, awaited)
    seen = np.flatnonzero(late > LATENCY_CAP_NS)
    awaits[seen] = _ended_just_before(seen, place, stream, start, end)
    awaits = _after_exchanges(activities, awaits, stream, start, end)
    awaits = _one_program_at_a_time(facts, awaits, start, end)
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


def _one_program_at_a_time(facts: Facts, awaits: I32, start: I64, end: I64) -> I32:
    """With the waits of a CPU's ops for the program that ran before theirs, where that had ended.

    XLA runs a program's ops on the threads of a pool, which stand for streams here: that those are free says nothing of
    what the next step takes from this one.
    """
    awaits, low = awaits.copy(), 0
    runs = np.full(len(facts.trace.slices), NULL, np.int64)
    runs[facts.trace.xla_ops.slice] = facts.trace.xla_ops.run
    for activity in facts.activities:
        mine = low + np.flatnonzero(runs[activity.slice] != NULL)
        device = facts.trace.info.device(activity.device)
        if mine.size and device is not None and device.kind == "cpu":
            _, run = np.unique(runs[activity.slice[mine - low]], return_inverse=True)
            before = _longest_before(run, start[mine], end[mine])
            known = (before >= 0) & (end[mine[before]] <= start[mine]) & (awaits[mine] == NONE)
            awaits[mine[known]] = mine[before[known]]
        low += len(activity)
    return awaits


def _longest_before(run: I64, start: I64, end: I64) -> I64:
    """Per op, the one that ended last of all programs that began before its own; -1 in the first."""
    begun = np.full(int(run.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(begun, run, start)
    order = np.lexsort((end, run))
    last = order[np.searchsorted(run[order], np.arange(begun.size), "right") - 1]  # Of each program, the last to end.
    by_time = np.argsort(begun, kind="stable")
    ends = end[last[by_time]]
    longest = np.maximum.accumulate(ends)
    holder = np.maximum.accumulate(np.where(ends == longest, np.arange(ends.size), 0))
    before = np.full(begun.size, -1, np.int64)
    before[by_time[1:]] = last[by_time[holder[:-1]]]
    return before[run]


_KINDS = 4


def _kinds(activity: DeviceActivity) -> I64:
    """Kinds of ops with a latency of their own: kernels, copies, collectives, and the ops of a program or graph."""
    copies = among(activity.category, [c.code for c in Category if c.startswith("copy")])
    collective = activity.category == Category.COLLECTIVE.code
    return np.where(copies, 1, np.where(collective, 2, 0)).astype(np.int64)


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


def _line_of(facts: Facts, tracks: tuple[tuple[int, ...], ...]) -> I32:
    """Line of each track, ``NONE`` for tracks without launches and waits."""
    lines = np.full(len(facts.trace.tracks) + 1, NONE, np.int32)
    for line, members in enumerate(tracks):
        lines[list(members)] = line
    return lines


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
