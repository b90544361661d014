"""The waits of the host that a replay holds to: each with the device op that ends it, recorded or inferred."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.facts import Facts
from stepscope.analysis.host import NO_CAUSE
from stepscope.analysis.limits import INFERRED_WAIT_NS, LATENCY_CAP_NS
from stepscope.compiled import kernel
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, distinct
from stepscope.trace.forest import on_host_threads
from stepscope.trace.tables import I32, I64, Bools, Direction, Kind
from stepscope.whatif.records import LONG_AGO, NONE, ReplayedOps, ReplayedWaits, mean_by_kind

_SHOWN = (Kind.HOST_OP, Kind.RUNTIME_CALL, Kind.SYNC, Kind.ALLOCATION, Kind.COMPILE)
"""Slices that show that a thread did something; frames and annotations may just as well cover a wait."""


def host_waits(facts: Facts, ops: ReplayedOps, calls: I32, lines: I32) -> ReplayedWaits:
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
    back = mean_by_kind(after, blocked & (after >= 0) & (after <= LATENCY_CAP_NS), kinds, 0)
    back = np.where(blocked & (after > LATENCY_CAP_NS), after, back)
    idle = mean_by_kind(duration, ~blocked & (duration <= LATENCY_CAP_NS), kinds, 0)
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
    on_line = on_host_threads(facts.trace) & (lines[slices.track] == 0)
    rows = np.flatnonzero(on_line & (among(slices.kind, _SHOWN) | (facts.host.causes != NO_CAUSE)))
    start, track = slices.start_ns[rows], slices.track[rows]
    end = start + slices.dur_ns[rows]
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
