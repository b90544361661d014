"""Events that only say when something began or ended, as events with a duration.

``B`` and ``E`` pair per thread; ``b`` and ``e`` (older: ``S`` and ``F``) per process, category and id, wherever they
happen. An end closes the innermost open begin of its name, or of any name where it has none. Source of the phases:
"Trace Event Format" (Google). An end written before the begin of the same instant closes that one.

A begin that nothing ends lasts until the last event of its thread.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np

from stepscope.compiled import kernel
from stepscope.formats.chrome.events import RawEvents
from stepscope.formats.limits import FAR_NS
from stepscope.record import record
from stepscope.trace import tables as t
from stepscope.trace.codes import marked
from stepscope.trace.lanes import lanes_of

BEGIN, END = (ord("B"),), (ord("E"),)
ASYNC_BEGIN, ASYNC_END = (ord("b"), ord("S")), (ord("e"), ord("F"))


@record
class Paired:
    """Events of which every begin is a complete event (``X``), asynchronous ones on lanes of their own."""

    events: RawEvents
    ends: t.I32
    """Events that end a begin."""
    begins: t.I32
    """The begin that each of them ends."""
    unclosed: t.I32
    """Begins that nothing ends."""


def paired(events: RawEvents) -> Paired:
    """Pair what begins with what ends. Without such events nothing is copied."""
    made = Paired(events, *(np.empty(0, np.int32) for _ in range(3)))
    present = np.bincount(events.phase, minlength=128)
    if present[[*BEGIN, *END]].any():
        rows = _timed(events, BEGIN + END)
        made = _matched(made, rows, events.lane[rows])
    if present[[*ASYNC_BEGIN, *ASYNC_END]].any():
        rows = _timed(events, ASYNC_BEGIN + ASYNC_END)
        process = ranks_of_processes(events)[events.lane[rows]]
        keys = ranks(id_values(events, rows), events.category[rows], process)
        begins = np.isin(events.phase[rows], ASYNC_BEGIN)
        made = _matched(made, rows, keys)
        made = dataclasses.replace(made, events=_on_own_lanes(made.events, rows[begins], keys[begins]))
    return made


def is_phase(events: RawEvents, phases: Iterable[int]) -> t.Bools:
    """Which events are of some phases."""
    wanted = marked(list(phases), 256)
    return wanted[events.phase]


def _timed(events: RawEvents, phases: Iterable[int]) -> t.Rows:
    return np.flatnonzero(is_phase(events, phases) & (events.ts_ns != t.NULL))


def ranks(*columns: t.I64 | t.I32) -> t.I32:
    """Equal numbers for equal tuples of columns: 0, 1, … in the order of the last column, then the one before it."""
    order = np.lexsort(columns)
    new = np.zeros(order.size, np.bool_)
    for column in columns:
        new[1:] |= np.diff(column[order]) != 0
    rank_of = np.empty(order.size, np.int32)
    rank_of[order] = np.cumsum(new, dtype=np.int32)
    return rank_of


def id_values(events: RawEvents, rows: t.Rows | t.I32) -> t.I64:
    """The ``id`` (else ``id2``) of events as numbers that differ where the ids do, NULL where there is none."""
    values = np.full(len(events), t.NULL, np.int64)
    for key in ("id2", "id"):
        argument = events.argument(key)
        # Texts take the lowest integers, which no profiler uses for ids.
        texts = argument.texts.astype(np.int64)
        values[argument.rows] = np.where(texts < 0, argument.ints, t.NULL + 1 + texts)
    return values[rows]


def id_text(events: RawEvents, row: int) -> str | None:
    """The ``id`` (else ``id2``) of one event as the file writes it."""
    for key in ("id", "id2"):
        argument = events.argument(key)
        at = int(np.searchsorted(argument.rows, row))
        if at < len(argument.rows) and argument.rows[at] == row:
            raw = int(argument.texts[at])
            return str(int(argument.ints[at])) if raw < 0 else events.raws[raw].strip('"')
    return None


def ranks_of_processes(events: RawEvents) -> t.I32:
    """A number per lane, equal for lanes of the same process."""
    known: dict[object, int] = {}
    return np.array([known.setdefault(pid, len(known)) for pid, _ in events.lanes], np.int32)


def _matched(before: Paired, rows: t.Rows, place: t.I32) -> Paired:
    """Make the begins among ``rows`` complete; ``place`` says which begins and ends can meet."""
    events = before.events
    # Ties keep the file's order, which is the only hint at what closes what.
    order = np.lexsort((events.ts_ns[rows], place))
    rows, place = rows[order], place[order]
    name, stamps = events.name[rows], events.ts_ns[rows]
    is_end = np.isin(events.phase[rows], END + ASYNC_END)
    end_of = _match(place, ranks(name, place), stamps, is_end, is_end & (name < 0))
    begins = np.flatnonzero(~is_end)
    closed, unclosed = begins[end_of[begins] >= 0], rows[begins[end_of[begins] < 0]]
    dur, phase = events.dur_ns.copy(), events.phase.copy()
    dur[rows[closed]] = stamps[end_of[closed]] - stamps[closed]
    if unclosed.size:
        dur[unclosed] = np.maximum(_last_on_lane(events)[events.lane[unclosed]] - events.ts_ns[unclosed], 0)
    phase[rows[begins]] = ord("X")
    return Paired(
        dataclasses.replace(events, phase=phase, dur_ns=dur),
        np.append(before.ends, rows[end_of[closed]].astype(np.int32)),
        np.append(before.begins, rows[closed].astype(np.int32)),
        np.append(before.unclosed, unclosed.astype(np.int32)),
    )


@kernel
def _match(place: t.I32, group: t.I32, ts: t.I64, is_end: t.Bools, any_name: t.Bools) -> t.I32:
    """Per begin, the position of its end; -1 for none. Events sorted by place, then time.

    Open begins form a doubly linked stack per place (``under``, ``over``) and a stack per name (``before``).
    """
    n = place.size
    end_of = np.full(n, -1, np.int32)
    groups = group.max() + 1 if n else 0
    latest = np.full(groups, -1, np.int32)
    owed = np.full(groups, -1, np.int32)
    under, over, before = np.full(n, -1, np.int32), np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    top = owed_by_any = -1
    for i in range(n):
        if i > 0 and place[i] != place[i - 1]:
            top = owed_by_any = -1
        g = group[i]
        if not is_end[i]:
            early = owed[g] if owed[g] >= 0 and ts[owed[g]] == ts[i] else -1
            if early >= 0:
                owed[g] = -1
            elif owed_by_any >= 0 and ts[owed_by_any] == ts[i]:
                early, owed_by_any = owed_by_any, -1
            if early >= 0:
                end_of[i] = early
                continue
            under[i], before[i] = top, latest[g]
            if top >= 0:
                over[top] = i
            top = latest[g] = i
            continue
        j = top if any_name[i] else latest[g]
        if j < 0:
            if any_name[i]:
                owed_by_any = i
            else:
                owed[g] = i
            continue
        end_of[j] = i
        latest[group[j]] = before[j]
        if over[j] >= 0:
            under[over[j]] = under[j]
        else:
            top = under[j]
        if under[j] >= 0:
            over[under[j]] = over[j]
    return end_of


def _last_on_lane(events: RawEvents) -> t.I64:
    """When the last event of each lane ends, leaving out times far from all others."""
    timed = np.flatnonzero(events.ts_ns != t.NULL)
    stamps = events.ts_ns[timed]
    timed = timed[np.abs(stamps - int(np.median(stamps))) < FAR_NS]
    ends = events.ts_ns[timed] + np.where(events.phase[timed] == ord("X"), np.maximum(events.dur_ns[timed], 0), 0)
    last = np.full(len(events.lanes), t.NULL, np.int64)
    np.maximum.at(last, events.lane[timed], ends)
    return last


def _on_own_lanes(events: RawEvents, rows: t.Rows, operation: t.I32) -> RawEvents:
    """Move asynchronous slices to lanes per process and category, where operations that overlap do not nest."""
    group = ranks(events.category[rows], ranks_of_processes(events)[events.lane[rows]])
    order = np.lexsort((-events.dur_ns[rows], events.ts_ns[rows], operation))
    rows, group, operation = rows[order], group[order], operation[order]
    start = events.ts_ns[rows]
    unit = _outermost(operation, start, start + events.dur_ns[rows])
    first = np.flatnonzero(np.diff(unit, prepend=-1))
    by_group = np.lexsort((start[first], group[first]))
    chosen = first[by_group]
    number = np.empty(first.size, np.int32)
    number[by_group] = lanes_of(group[chosen], start[chosen], events.dur_ns[rows[chosen]], nesting=False)
    place = ranks(number[unit], group)
    lanes, lane = list(events.lanes), events.lane.copy()
    lane[rows] = place + len(lanes)
    for at in np.unique(place, return_index=True)[1].tolist():
        category = int(events.category[rows[at]])
        name = f"{events.strings[category]} (async)" if category >= 0 else "async"
        copy = int(number[unit[at]]) + 1
        lanes.append((lanes[events.lane[rows[at]]][0], name if copy == 1 else f"{name} ({copy})"))
    return dataclasses.replace(events, lane=lane, lanes=lanes)


@kernel
def _outermost(operation: t.I32, start: t.I64, end: t.I64) -> t.I32:
    """Numbers 0, 1, … of the outermost slices of each operation, given to all that lies in them."""
    unit = np.empty(operation.size, np.int32)
    current, reach = -1, 0
    for i in range(operation.size):
        if i == 0 or operation[i] != operation[i - 1] or start[i] >= reach or end[i] > reach:
            current += 1
            reach = end[i]
        unit[i] = current
    return unit
