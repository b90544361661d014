"""Which lines of the host are one thread although their ids differ.

A line's id is that of its thread, but a GPU's collector may number threads otherwise than the host's does: ROCm's
takes the operating system's number (rocprofiler-sdk), TraceMe the handle of the threads library. The range in which a
thread begins a kernel names the kernel's op, and so does the call made inside it: a thread whose ranges hold all calls
of a line is the one that made them.
"""

from __future__ import annotations

import numpy as np

from stepscope.formats.xplane.grouping import grouped
from stepscope.formats.xplane.moments import EventStretches, OnLines, outermost_around
from stepscope.formats.xplane.planes import LineRole
from stepscope.formats.xplane.times import EventTimes
from stepscope.formats.xplane.view import View
from stepscope.trace.tables import I32, NULL, Rows

_NAMED_BY = ("hlo_op", "tf_op")
"""What a call says of the range that it was made in: the profiler's own annotation of the range."""


def threads_of_lines(view: View, times: EventTimes) -> list[int]:
    """Per line the line of the same thread that stands for it: itself but where another one made all its calls."""
    stands_for = list(range(len(view.lines)))
    calls, named = _named_calls(view)
    if not calls.size:
        return stands_for
    around = _ranges(view, np.unique(named))
    by_thread = grouped(view.events.line[around])
    for line, places in grouped(view.events.line[calls]):
        makers = [
            thread
            for thread, at in by_thread
            if thread != line and _hold(view, times, around[at], calls[places], named[places])
        ]
        if len(makers) == 1:
            stands_for[line] = makers[0]
    return stands_for


def _named_calls(view: View) -> tuple[Rows, I32]:
    """Calls of a runtime on lines that hold nothing else, and the name of the range that each was made in."""
    stats = view.space.stats
    calls = stats.rows("correlation_id").astype(np.intp)
    calls = calls[view.on(LineRole.HOST)[calls]]
    if not calls.size:
        return calls, np.empty(0, np.int32)
    lines = view.events.line
    others = np.bincount(lines, minlength=len(view.lines)) - np.bincount(lines[calls], minlength=len(view.lines))
    calls = calls[(others[lines[calls]] == 0) & (stats.integers("correlation_id", calls) != NULL)]
    known = {name: code for code, name in enumerate(view.names)}
    named = np.full(calls.size, -1, np.int32)
    for key in _NAMED_BY:
        words, places = stats.texts(key, calls)
        codes = np.array([known.get(word, -1) for word in words] + [-1], np.int32)[places]
        named = np.where(named < 0, codes, named)
    return calls[named >= 0], named[named >= 0]


def _ranges(view: View, wanted: I32) -> Rows:
    """The events of the host that have one of some names and are no calls."""
    chosen = np.zeros(len(view.names) + 1, np.bool_)
    chosen[wanted] = True
    rows = chosen[view.name] & view.on(LineRole.HOST)
    rows[view.space.stats.rows("correlation_id")] = False
    return np.flatnonzero(rows)


def _hold(view: View, times: EventTimes, ranges: Rows, calls: Rows, named: I32) -> bool:
    """Whether each call lies in a range of its name among those of one thread."""
    begun = times.start[calls]
    among = OnLines.of(ranges, view.name, times.start)
    stretches = EventStretches(among, among.start + times.dur[among.rows], among.rows)
    return bool((outermost_around(stretches, named, begun, begun + times.dur[calls]) >= 0).all())
