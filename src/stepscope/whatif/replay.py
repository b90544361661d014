"""Replaying a profile's dependency graph, unchanged or with something taken out of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stepscope.analysis.facts import Facts
from stepscope.analysis.limits import DISPATCH_GAP_NS
from stepscope.analysis.step_rows import assigned, joint_windows, tiled_rows
from stepscope.compiled import kernel
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among
from stepscope.trace.tables import I32, I64, U8, Bools
from stepscope.whatif.change import Change
from stepscope.whatif.graph import Graph
from stepscope.whatif.records import Instant


def replay(facts: Facts, graph: Graph, change: Change) -> I64:
    """Duration of each step under a change, in ns, by the same windows as the measured ones."""
    start, end, marks = _times(graph, change)
    markers = facts.markers
    ends, at = [], 0
    for activity in facts.activities:
        mine = slice(at, at + len(activity))
        at += len(activity)
        if activity.device in facts.unused:
            continue
        begun = marks[markers.instants_of(activity.device)]
        origin = min(int(start[mine].min()), int(begun[0]))
        ops = assigned(activity, markers)
        ends.append(tiled_rows(activity.device, origin, (start[mine], end[mine]), ops, begun, markers.gap_after))
    begun, over = joint_windows(ends, len(markers))
    return over - begun


def _times(graph: Graph, change: Change) -> tuple[I64, I64, I64]:
    """Start and end of every op, and the instant of every mark."""
    ops, waits = graph.ops, graph.waits
    gone = among(waits.slice, list(change.waits))
    duration = ops.end - ops.start if change.op_ns is None else change.op_ns
    if change.charge_ns is not None:
        duration = np.where(duration < 0, duration, duration + change.charge_ns)
    late = ops.residual + (ops.called if change.called is None else np.where(change.called, 0, ops.called))
    return _run(
        _Records(graph.kind, graph.ref, graph.line),
        _host_time(graph, change),
        graph.clocks.copy(),  # They move on as the replay goes.
        _Waits(waits.own, waits.back, waits.op, waits.for_start, gone),
        _Ops(ops.stream, ops.call, ops.latency, ops.pause, ops.awaits, late, ops.floor, duration),
        (graph.calls.size, graph.marks),
    )


def _host_time(graph: Graph, change: Change) -> _HostTime:
    """Per record, the host time since the record before it on its own line and on the main line, less what goes;
    and whether a line that was idle goes on where the main one is."""
    time = graph.time
    size = time.size
    elapsed = np.zeros(size, np.int64)
    anchored = np.zeros(size, np.bool_)
    main = _removed(graph, change, 0)
    since_main = _kept(main, graph.main_before, time)
    for line, (rows, before) in enumerate(zip(graph.of_line, graph.before, strict=True)):
        if rows.size == 0:
            continue
        gone = main if line == 0 else _removed(graph, change, line)
        elapsed[rows] = _kept(gone, before, time[rows])
        if line:
            anchored[rows] = time[rows] - before > DISPATCH_GAP_NS
            anchored[rows[0]] = True
    return _HostTime(elapsed, since_main, anchored)


def _removed(graph: Graph, change: Change, line: int) -> iv.Intervals:
    sets = [change.host[track] for track in graph.tracks[line] if track in change.host]
    return iv.union(*(np.concatenate(part) for part in zip(iv.EMPTY, *sets, strict=True)))


def _kept(gone: iv.Intervals, start: I64, end: I64) -> I64:
    return end - start - iv.covered_between(gone, start, end) if len(gone[0]) else end - start


_LONG_AGO = np.iinfo(np.int64).min // 4
_WAIT_END, _MARK, _LAUNCH, _OP = (int(kind) for kind in (Instant.WAIT_END, Instant.MARK, Instant.LAUNCH, Instant.OP))


class _Records(NamedTuple):
    kind: U8
    ref: I32
    line: I32


class _HostTime(NamedTuple):
    elapsed: I64
    since_main: I64
    anchored: Bools


class _Waits(NamedTuple):
    own: I64
    back: I64
    op: I32
    for_start: Bools
    gone: Bools


class _Ops(NamedTuple):
    stream: I32
    call: I32
    latency: I64
    pause: I64
    awaits: I32
    late: I64
    floor: I64
    duration: I64
    """Below 0 of an op that is gone."""


@kernel
def _run(
    records: _Records, host: _HostTime, clock: I64, waits: _Waits, ops: _Ops, counts: tuple[int, int]
) -> tuple[I64, I64, I64]:
    """Walk the records; the clock of each host line and the free time of each stream move on as they are met."""
    kind, ref, line = records
    elapsed, since_main, anchored = host
    own, back, wait_op, for_start, gone = waits
    stream, call, latency, pause, awaits, residual, floor, duration = ops
    start = np.full(stream.size, _LONG_AGO, np.int64)
    end = np.full(stream.size, _LONG_AGO, np.int64)
    launch = np.full(counts[0], _LONG_AGO, np.int64)
    marks = np.zeros(counts[1], np.int64)
    begun = np.zeros(own.size, np.int64)
    free = np.full(stream.max() + 1, _LONG_AGO, np.int64)
    for r in range(kind.size):
        at, of = ref[r], line[r]
        if kind[r] == _OP:
            ready = max(floor[at], free[stream[at]] + pause[at])
            if call[at] >= 0:
                ready = max(ready, launch[call[at]] + latency[at])
            if awaits[at] >= 0:
                ready = max(ready, end[awaits[at]])
            if duration[at] < 0:  # gone: who waited for it waits for what it came behind
                begun_at = launch[call[at]] if call[at] >= 0 else ready
                behind = max(free[stream[at]], end[awaits[at]] if awaits[at] >= 0 else _LONG_AGO)
                start[at] = end[at] = max(begun_at, behind)
                continue
            start[at] = ready + residual[at]
            end[at] = start[at] + duration[at]
            free[stream[at]] = max(free[stream[at]], end[at])
            continue
        if kind[r] == _WAIT_END:
            until = begun[at] + own[at]
            if wait_op[at] >= 0:
                awaited = start[wait_op[at]] if for_start[at] else end[wait_op[at]]
                until = max(until, awaited + back[at])
            clock[of] = max(clock[of], begun[at] if gone[at] else until)
            continue
        if anchored[r]:
            clock[of] = max(clock[of], clock[0] + since_main[r])
        else:
            clock[of] += elapsed[r]
        if kind[r] == _MARK:
            marks[at] = clock[of]
        elif kind[r] == _LAUNCH:
            launch[at] = clock[of]
        else:
            begun[at] = clock[of]
    return start, end, marks
