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
from stepscope.record import record
from stepscope.trace.codes import among, marked
from stepscope.trace.tables import I32, I64, NULL, Rows

_NAMED_BY = ("hlo_op", "tf_op")
"""What a call says of the range that it was made in: the profiler's own annotation of the range."""


def threads_of_lines(view: View, times: EventTimes) -> list[int]:
    """Per line the line of the same thread that stands for it: itself but where another one made all its calls."""
    stands_for = list(range(len(view.lines)))
    calls, named = _named_calls(view)
    if not calls.size:
        return stands_for
    around = _ranges(view, np.unique(named))
    threads = [_Ranges.of(thread, view.name[rows], times, rows) for thread, rows in _by_line(view, around)]
    begin, end = (np.array([getattr(thread, side) for thread in threads], np.int64) for side in ("begin", "end"))
    for line, places in grouped(view.events.line[calls]):
        begun = times.start[calls[places]]
        ended = begun + times.dur[calls[places]]
        near = np.flatnonzero((begin <= begun.min()) & (end >= ended.max())).tolist()
        makers = [
            threads[at].line
            for at in near
            if threads[at].line != line and threads[at].hold(named[places], begun, ended)
        ]
        if len(makers) == 1:
            stands_for[line] = makers[0]
    return stands_for


@record
class _Ranges:
    """The ranges of one line, name by name; when they begin, and are over."""

    line: int
    begin: int
    end: int
    by_name: EventStretches

    @classmethod
    def of(cls, line: int, name: I32, times: EventTimes, rows: Rows) -> _Ranges:
        """Those that stand in some rows."""
        start = times.start[rows]
        end = start + times.dur[rows]
        lines = OnLines.of(np.arange(rows.size), name, start)
        return cls(line, int(start.min()), int(end.max()), EventStretches(lines, end[lines.rows], lines.rows))

    def hold(self, named: I32, begun: I64, ended: I64) -> bool:
        """Whether each call lies in a range of its name."""
        known = named + 1 < self.by_name.among.first.size
        return bool(known.all() and (outermost_around(self.by_name, named, begun, ended) >= 0).all())


def _by_line(view: View, rows: Rows) -> list[tuple[int, Rows]]:
    return [(line, rows[at]) for line, at in grouped(view.events.line[rows])]


def _named_calls(view: View) -> tuple[Rows, I32]:
    """Calls of a runtime on lines that hold nothing else, and the name of the range that each was made in."""
    stats = view.space.stats
    calls = stats.rows("correlation_id").astype(np.intp)
    calls = calls[view.on(LineRole.HOST)[calls]]
    if not calls.size:
        return calls, np.empty(0, np.int32)
    lines = view.events.line  # In rising order.
    first = np.searchsorted(lines, np.arange(len(view.lines) + 1, dtype=lines.dtype))
    others = np.diff(first) - np.bincount(lines[calls], minlength=len(view.lines))
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
    names = np.flatnonzero(marked(wanted, len(view.names)))
    rows = among(view.name, names) & view.on(LineRole.HOST)
    rows[view.space.stats.rows("correlation_id")] = False
    return np.flatnonzero(rows)
