"""The lines of Python code in Kineto's profiles: where frames were called, and where a thread was looked at.

A frame that ran when recording began is named after the line that it was at in that moment, and not after the one at
which its function begins. Where the frame that it had called by then ran too, that line is where it was as long as
that one runs.
"""

from __future__ import annotations

import msgspec
import numpy as np

from stepscope.formats.beside.looks import looked_of
from stepscope.formats.chrome.conversion import Conversion
from stepscope.formats.chrome.kineto_schema import LINES
from stepscope.formats.chrome.own import BEGUN, CALL_LINE
from stepscope.names.frames import of_the_profiler
from stepscope.regex import regex
from stepscope.trace import tables as t
from stepscope.trace.codes import among, mapped, marked, united

_FRAMES = (t.Kind.PYTHON_FRAME, t.Kind.MODULE)
_ID = "Python id"
_FIRST_FRAMES = 1 << 10
"""Of a thread's frames so many are sorted first: stacks are seldom deeper."""
_LINE = regex(r"\((\d{1,9})\): ")


def frames_of(conversion: Conversion) -> t.Frames:
    """The frames of which more is known than their name."""
    rows, columns = conversion.rows_of(*_FRAMES), conversion.columns
    if conversion.rows_with(CALL_LINE, BEGUN).size:
        line, before = columns.at(CALL_LINE, rows), columns.at(BEGUN, rows) == t.Begun.BEFORE
        known = (line != t.NULL) | before
        rows, line, before = rows[known], line[known], before[known]
    else:
        rows, line, before = _told(conversion, rows)
    return t.Frames(
        slice=conversion.slice_id[rows],
        call_line=line,
        begun=np.where(before, np.uint8(t.Begun.BEFORE), np.uint8(t.Begun.CALLED)),
    )


def looks_of(conversion: Conversion, epoch_ns: int | None) -> t.Looks:
    """The looks at a thread that the file holds; ``epoch_ns`` is the Unix time of the trace's origin."""
    given = conversion.events.header.get(LINES)
    looked = looked_of(given.get("looks") if isinstance(given, dict) else None)
    threads = [tid for _, tid in conversion.events.lanes]
    rows: list[tuple[int, int, str, int, str, int]] = []
    if looked is not None and epoch_ns is not None:
        lanes = [lane for lane, thread in enumerate(threads) if str(thread) == str(looked.thread)]
        rows = looked.rows(int(conversion.track_of_lane[lanes[0]]), epoch_ns) if lanes else []
    time, track, file, line, function, waited = zip(*rows, strict=True) if rows else ((),) * 6
    text = conversion.builder.text
    return t.Looks(
        np.array(time, np.int64),
        np.array(track, np.int32),
        np.array([text(each) for each in file], np.int32),
        np.array(line, np.int64),
        np.array([text(each) for each in function], np.int32),
        np.array(waited, np.int64),
    )


def _told(conversion: Conversion, rows: t.Rows) -> tuple[t.Rows, t.I64, t.Bools]:
    """The frames that PyTorch tells more of: the lines of their calls, and which ran when recording began."""
    calls, lines = _given(conversion)
    begun = _before(conversion, rows)
    conversion.events.arguments.pop(_ID, None)  # Of every frame, and nothing asks again.
    chosen = united(calls, begun)
    line = np.full(chosen.size, t.NULL, np.int64)
    line[np.searchsorted(chosen, calls)] = lines
    before = marked(np.searchsorted(chosen, begun), chosen.size)
    _told_by_callers(conversion, chosen, before, line)
    return chosen, line, before


def _given(conversion: Conversion) -> tuple[t.Rows, t.I64]:
    """The frames of which PyTorch recorded the line of the call, by the numbers of the calls."""
    none = np.empty(0, np.intp), np.empty(0, np.int64)
    column = conversion.events.header.get(LINES)
    calls = column.get("calls") if isinstance(column, dict) else None
    try:
        lines = np.array(msgspec.convert(calls, list[int]), np.int64)
    except (msgspec.ValidationError, OverflowError):
        return none
    argument = conversion.events.argument(_ID)
    known = np.flatnonzero((argument.ints >= 1) & (argument.ints <= lines.size))
    events, line = argument.rows[known], lines[argument.ints[known] - 1]
    told = (line > 0) & (line < 1 << 31) & (conversion.slice_id[events] >= 0) & among(conversion.kinds[events], _FRAMES)
    return events[told].astype(np.intp), line[told]


def _before(conversion: Conversion, rows: t.Rows) -> t.Rows:
    """Which frames ran when recording began: on the thread that began it all around the profiler's own, down to the
    innermost of these; on any other those that began before anything else did there, as threads stand still
    meanwhile."""
    e = conversion.events
    starts: t.Rows = rows[mapped(e.name[rows], e.strings, of_the_profiler, np.bool_)]
    if not starts.size:
        return starts
    lane = e.lane[rows]
    for first in dict.fromkeys(e.lane[_in_order(conversion, starts)].tolist()):
        mine, chain = _begun(conversion, rows[lane == first])
        if chain:
            after, last = mine[chain : chain + 1], mine[chain - 1]
            until = min([int(e.ts_ns[last] + e.dur_ns[last]), *e.ts_ns[after].tolist()])
            others = rows[lane != first]
            begun: t.Rows = united(mine[:chain], others[e.ts_ns[others] < until])
            return begun
    return starts[:0]


def _in_order(conversion: Conversion, frames: t.Rows) -> t.Rows:
    """Frames as they began, those that hold others first."""
    e, ids = conversion.events, conversion.columns.at(_ID, frames)
    ordered: t.Rows = frames[np.lexsort((ids, -e.dur_ns[frames], e.ts_ns[frames]))]
    return ordered


def _begun(conversion: Conversion, frames: t.Rows) -> tuple[t.Rows, int]:
    """A thread's frames in order, as many as tell how many of them ran when recording began; and that number."""
    e = conversion.events
    many = _FIRST_FRAMES
    while True:
        early = frames
        if many < frames.size:
            stamps = e.ts_ns[frames]
            early = frames[stamps <= np.partition(stamps, many)[many]]
        mine = _in_order(conversion, early)
        of_profiler = mapped(e.name[mine], e.strings, of_the_profiler, np.bool_)
        count, chain = _chain(of_profiler, e.ts_ns[mine], e.dur_ns[mine])
        if count < mine.size or early is frames:
            return mine, chain
        many *= many


def _chain(of_profiler: t.Bools, start: t.I64, dur: t.I64) -> tuple[int, int]:
    """How many of a thread's frames, in order, lie in each other; and how many of them ran when recording began, 0
    where none tells."""
    end = start + dur
    count = 1
    while count < start.size and start[count] < end[count - 1]:
        if of_profiler[count - 1] and not of_profiler[count]:
            break
        count += 1
    return count, count if of_profiler[:count].any() and of_profiler[count - 1] else 0


def _told_by_callers(conversion: Conversion, rows: t.Rows, before: t.Bools, line: t.I64) -> None:
    """Set the line of calls that were under way when recording began: the caller's name has it."""
    e = conversion.events
    chosen = np.flatnonzero(before)
    chosen = chosen[np.lexsort((-e.dur_ns[rows[chosen]], e.ts_ns[rows[chosen]], e.lane[rows[chosen]]))]
    for caller, called in zip(chosen[:-1].tolist(), chosen[1:].tolist(), strict=True):
        same = e.lane[rows[caller]] == e.lane[rows[called]]
        match = _LINE.search(e.strings[int(e.name[rows[caller]])])
        if same and line[called] == t.NULL and match:
            line[called] = int(match[1])
