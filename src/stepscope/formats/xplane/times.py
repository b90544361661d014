"""When events happened: session clock, Unix clock, a TPU's own clock, and ends that stand in events of their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stepscope.formats.limits import FAR_NS
from stepscope.formats.xplane.device_clock import Aligned, use_device_clocks
from stepscope.formats.xplane.grouping import dense
from stepscope.formats.xplane.handovers import REGION_START, Handovers
from stepscope.formats.xplane.moments import OnLines, first_of_task
from stepscope.formats.xplane.view import View
from stepscope.hlo.instructions import is_control_flow
from stepscope.names.xla_hosts import is_wait_edge, runs_program
from stepscope.trace.codes import united
from stepscope.trace.tables import I64, NULL, Bools, Rows

_UNIX_NS = 10**17
"""A line that begins later counts from 1970 (this is March 1973); sessions do not last years."""
END_PREFIX = "end: "
"""What XLA:CPU calls the event at which an asynchronous op is done (xla/backends/cpu/runtime/thunk_executor.cc)."""


@dataclass(slots=True)
class EventTimes:
    """Start and duration of every event, in ns of the session's clock where the file has one; NULL where unusable."""

    start: I64
    dur: I64
    waits: Rows
    """Events that begin a wait: they now last until the event that ends it."""
    session_ns: int | None
    """Unix time at which the session's clock was zero; None where lines count from 1970 or nothing says it."""
    aligned: list[Aligned]
    """The devices whose own clocks were put on the session's."""


def times_of(view: View, handovers: Handovers, session_start: int | None) -> EventTimes:
    """The times of all events."""
    events, lines = view.events, view.lines
    start, dur = events.start_ns, events.dur_ns
    unix = lines.time_ns >= _UNIX_NS
    if session_start is not None and unix.any():
        start = start - view.of_lines(np.where(unix, session_start, 0))
    relative = session_start is not None or not unix.any()
    start, dur, aligned = use_device_clocks(view, start, dur)
    start, dur = _whole_actions(view, start, dur)
    times = EventTimes(start, dur, np.empty(0, np.intp), session_start if relative else 0, aligned)
    _extend(view, handovers, times)
    return times


def _whole_actions(view: View, start: I64, dur: I64) -> tuple[I64, I64]:
    """Actions of Megascale from their beginning.

    Those in progress together share a line: an event there is only as long as since the end of the one before it, and
    ``action_duration_ns`` is how long its action took up to that end (xprof/docs/megascale_viewer.md, TraceProcessor::
    AddGlobalCounters of xprof/convert/megascale_perfetto).
    """
    rows = view.space.stats.rows("action_duration_ns").astype(np.intp)
    beside = np.array([parts.kind == "beside" for parts in view.planes], np.bool_)
    rows = rows[beside[view.lines.plane[view.events.line[rows]]] & (dur[rows] != NULL)] if rows.size else rows
    took = view.space.stats.integers("action_duration_ns", rows)
    rows, took = rows[(took > 0) & (took < FAR_NS)], took[(took > 0) & (took < FAR_NS)]
    if not rows.size:
        return start, dur
    start, dur = start.copy(), dur.copy()
    start[rows] += dur[rows] - took
    dur[rows] = took
    return start, dur


def _extend(view: View, handovers: Handovers, times: EventTimes) -> None:
    """Ops of XLA:CPU last until they are done; waits are written as their two edges."""
    source, target = handovers.pairs
    if not source.size:
        return
    ops, waits = _told_by_names(view, source, target)
    ops = ops[view.having("hlo_op")[source[ops]]]
    done = _done(view, times, source[ops], target[ops])
    begun, over = source[waits], target[waits]
    waits = waits[(view.events.line[begun] == view.events.line[over]) & (times.start[over] >= times.start[begun])]
    if not ops.size + waits.size:
        return
    times.dur = times.dur.copy()
    for begun, end in ((source[ops], done), (source[waits], (times.start + times.dur)[target[waits]])):
        np.maximum.at(times.dur, begun, end - times.start[begun])
    times.waits = united(source[waits])


def _done(view: View, times: EventTimes, ops: Rows, ends: Rows) -> I64:
    """When asynchronous ops were done, by the events that say so: those are written late.

    What waits for an op is run by the thread that finished it, in the same task and before that event (AsyncValue runs
    its waiters in the reverse order of their coming): the op was done when the first of it began. Control flow runs
    ops before it is done, so its end stays where it is written.
    """
    line, start = view.events.line, times.start
    goes_on = view.having("hlo_op") | view.called(runs_program)
    begins = view.called(REGION_START.__eq__)
    marks, tasks = (OnLines.of(np.flatnonzero(chosen), line, start) for chosen in (goes_on, begins))
    returned = start[ops] + np.maximum(times.dur[ops], 1)
    then = first_of_task(marks, tasks, line[ends], returned, start[ends])
    runs_others = np.array([is_control_flow(name) for name in view.names] + [False])[view.name[ops]]
    return np.where((then >= 0) & ~runs_others, start[then], start[ends] + times.dur[ends])


def _told_by_names(view: View, source: Rows, target: Rows) -> tuple[Rows, Rows]:
    """Which hand-overs are begin and end of an op, and which of a wait, by their names: once per pair of names."""
    into, out = view.name[target], view.name[source]
    each, first = dense(out, into)
    pairs = [(view.names[a], view.names[b]) for a, b in zip(out[first].tolist(), into[first].tolist(), strict=True)]
    is_op = np.array([over == END_PREFIX + begun for begun, over in pairs], np.bool_)
    is_wait = np.array([begun == over and is_wait_edge(begun) for begun, over in pairs], np.bool_)
    return np.flatnonzero(is_op[each]), np.flatnonzero(is_wait[each])


def far_from_most(start: I64, chosen: Bools) -> Bools:
    """Which events stand a day or more from the median of the chosen ones: their time is no time of this session."""
    if not chosen.any():
        return np.zeros(start.size, np.bool_)
    any_start = int(start[int(chosen.argmax())])
    low, high = (int(of(start, where=chosen, initial=any_start)) for of in (np.min, np.max))
    if high - low < FAR_NS:
        return np.zeros(start.size, np.bool_)
    median = int(np.median(start[chosen]))
    return np.asarray(chosen & ((start <= median - FAR_NS) | (start >= median + FAR_NS)))
