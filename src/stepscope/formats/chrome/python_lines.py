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
from stepscope.formats.chrome.events import RawEvents
from stepscope.formats.chrome.kineto_schema import LINES
from stepscope.formats.chrome.own import BEGUN, CALL_LINE
from stepscope.names.frames import of_the_profiler
from stepscope.regex import regex
from stepscope.trace import tables as t
from stepscope.trace.codes import mapped

_FIRST_FRAMES = 1 << 10
"""Of a thread's frames so many are sorted first: stacks are seldom deeper."""
_LINE = regex(r"\((\d{1,9})\): ")


def frames_of(conversion: Conversion) -> t.Frames:
    """The frames of which more is known than their name."""
    rows = conversion.rows_of(t.Kind.PYTHON_FRAME, t.Kind.MODULE)
    columns = conversion.columns
    if conversion.rows_with(CALL_LINE, BEGUN).size:
        line, before = columns.at(CALL_LINE, rows), columns.at(BEGUN, rows) == t.Begun.BEFORE
    else:
        ids = columns.last_at("Python id", rows)
        line = _given(conversion, ids)
        before = _before(conversion, rows, ids)
        _told_by_callers(conversion, rows, before, line)
    known = (line != t.NULL) | before
    return t.Frames(
        slice=conversion.slice_id[rows[known]],
        call_line=line[known],
        begun=np.where(before[known], np.uint8(t.Begun.BEFORE), np.uint8(t.Begun.CALLED)),
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


def _given(conversion: Conversion, ids: t.I64) -> t.I64:
    """The lines that PyTorch recorded, by the numbers of the calls."""
    line = np.full(ids.size, t.NULL, np.int64)
    column = conversion.events.header.get(LINES)
    calls = column.get("calls") if isinstance(column, dict) else None
    try:
        lines = np.array(msgspec.convert(calls, list[int]), np.int64)
    except (msgspec.ValidationError, OverflowError):
        return line
    known = (ids >= 1) & (ids <= lines.size)
    line[known] = lines[ids[known] - 1]
    line[(line <= 0) | (line >= 1 << 31)] = t.NULL
    return line


def _before(conversion: Conversion, rows: t.Rows, ids: t.I64) -> t.Bools:
    """Which frames ran when recording began: on the thread that began it all around the profiler's own, down to the
    innermost of these; on any other those that began before anything else did there, as threads stand still
    meanwhile."""
    e = conversion.events
    none = np.zeros(rows.size, np.bool_)
    starts = mapped(e.name[rows], e.strings, of_the_profiler, np.bool_)
    if not starts.any():
        return none
    lane = e.lane[rows]
    for first in dict.fromkeys(lane[_in_order(e, rows, ids, np.flatnonzero(starts))].tolist()):
        mine, chain = _begun(e, rows, ids, (starts, np.flatnonzero(lane == first)))
        if chain:
            begun = none.copy()
            begun[mine[:chain]] = True
            after = mine[chain : chain + 1]
            last = mine[chain - 1]
            until = int(e.ts_ns[rows[last]] + e.dur_ns[rows[last]])
            until = min([until, *e.ts_ns[rows[after]].tolist()])
            begun |= (lane != first) & (e.ts_ns[rows] < until)
            return begun
    return none


def _in_order(e: RawEvents, rows: t.Rows, ids: t.I64, chosen: t.Rows) -> t.Rows:
    """Frames (places in ``rows``) as they began, those that hold others first."""
    of = rows[chosen]
    return chosen[np.lexsort((ids[chosen], -e.dur_ns[of], e.ts_ns[of]))]


def _begun(e: RawEvents, rows: t.Rows, ids: t.I64, of_thread: tuple[t.Bools, t.Rows]) -> tuple[t.Rows, int]:
    """A thread's frames in order, as many as tell how many of them ran when recording began; and that number."""
    starts, frames = of_thread
    stamps = e.ts_ns[rows[frames]]
    many = _FIRST_FRAMES
    while True:
        early = frames if many >= frames.size else frames[stamps <= np.partition(stamps, many)[many]]
        mine = _in_order(e, rows, ids, early)
        count, chain = _chain(starts[mine], e.ts_ns[rows[mine]], e.dur_ns[rows[mine]])
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
