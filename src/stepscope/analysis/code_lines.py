"""Which line of a function a thread was at.

A function's time is in the functions that it calls and between them. In a call it is at the line that called, which
profiles of ``stepscope run`` hold. Everywhere else looks tell: one at the thread in that very stretch, or one in a
stretch between the same two neighbours that was about as far from its beginning or its end; else all in such stretches,
where they agree. What nothing tells stays unknown.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from stepscope.analysis.climbing import nearest_chosen, outermost_call_in
from stepscope.analysis.limits import LINE_AGREED, LINE_CONTESTED, LINE_NEAR_NS, LINE_OTHERS
from stepscope.names.callbacks import named_callback
from stepscope.names.frames import names_function
from stepscope.record import record
from stepscope.trace.codes import among, distinct, grouped, mapped
from stepscope.trace.forest import inherit, innermost_at, outermost, rows_of_track
from stepscope.trace.sparse import ValuesOfFew, told
from stepscope.trace.tables import I32, I64, NULL, Begun, Bools, Kind, Rows
from stepscope.trace.trace import Trace

_PYTHON = (Kind.PYTHON_FRAME, Kind.MODULE)
_FAR = np.iinfo(np.int64).max
_UNSEEN = (Kind.STEP, Kind.ANNOTATION)
"""Ranges that are drawn around what a function does and are no part of it."""


@record
class _Cells:
    """What functions hold, directly: stretches of each, the calls and ops in it and the time between them."""

    keys: I64
    """Members, sorted by holder and start: the holder in the upper half, the member (a slice) in the lower. The holder
    is the function's slice; behind all slices, one per track, what is in no function."""

    def holder(self, at: Rows) -> I64:
        return self.keys[at] >> 32

    def member(self, at: Rows) -> I64:
        return self.keys[at] & 0xFFFFFFFF


class CodeLines:
    """Answers at which line of a function something happened."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.knows = bool(len(trace.looks) or (trace.frames.call_line != NULL).any())
        """Whether the profile says anything of lines but where functions begin."""

    @cached_property
    def before(self) -> Bools:
        """Which slices are functions that ran when recording began: the line in their name says nothing."""
        begun_before = np.zeros(len(self._trace.slices), np.bool_)
        frames = self._trace.frames
        begun_before[frames.slice[frames.begun == Begun.BEFORE]] = True
        return begun_before

    def lines(self, functions: I32, slices: I32, times: I64) -> I64:
        """Per slice and instant, the line of the function (a slice around it, or itself) that it was at; NULL where
        nothing tells."""
        if not self.knows:
            return np.full(functions.size, NULL, np.int64)
        called = outermost_call_in(slices, functions, self._is_python, self._trace.slices.parent)
        line = self._call_line(called)
        open_ = np.flatnonzero((line == NULL) & (functions >= 0))
        if not len(self._trace.looks):
            open_ = open_[among(functions[open_], self._cells.keys >> 32)]
        if not open_.size:
            return line
        line[open_] = self._at(functions[open_], times[open_])
        return line

    def places(self, slices: I32, times: I64) -> I32:
        """Per slice in no function, the look (a row of the table) that tells where its thread was; -1 for none."""
        table = self._trace.looks
        if not len(table):
            return np.full(slices.size, -1, np.int32)
        holders = self._around(slices, self._trace.slices.track[slices])
        looks = self._look_for(holders, times)
        return np.where(looks >= 0, looks, self._between_ranges(holders, times)).astype(np.int32)

    @cached_property
    def same_place(self) -> I32:
        """Per look the first one at the same line, and at the end -1 for none."""
        looks = self._trace.looks
        if not len(looks):
            return np.full(1, -1, np.int32)
        places = _numbered(looks.file.astype(np.int64), looks.line, looks.function.astype(np.int64))
        first = np.unique(places, return_index=True)[1]
        return np.append(first[places], -1).astype(np.int32)

    # --- calls ----------------------------------------------------------------------------------------------------

    @cached_property
    def _is_python(self) -> Bools:
        return among(self._trace.slices.kind, _PYTHON)

    def _call_line(self, slices: I32 | I64) -> I64:
        """Per slice the line that called it, NULL where it is not known."""
        row = self._frame[slices]
        lines = np.full(slices.size, NULL, np.int64)
        lines[row >= 0] = self._trace.frames.call_line[row[row >= 0]]
        return lines

    @cached_property
    def _frame(self) -> ValuesOfFew:
        frames = self._trace.frames
        return told(frames.slice, np.arange(len(frames), dtype=np.int32))

    def _at(self, functions: I32, times: I64) -> I64:
        """The line that a function was at at an instant, by the call that it was in, else by looks."""
        cells = self._cells
        at, inside = self._cell(functions, times)
        member = cells.member(at)
        line = np.where(inside & self._is_python[member], self._call_line(member), NULL)
        rest = np.flatnonzero(line == NULL)
        look = self._look_for(functions[rest], times[rest])
        line[rest] = np.where(look >= 0, self._trace.looks.line[look] if len(self._trace.looks) else NULL, NULL)
        return np.asarray(line, np.int64)

    # --- ranges ---------------------------------------------------------------------------------------------------

    @cached_property
    def _is_range(self) -> Bools:
        """Which slices are ranges that are the time of one function (a callback of Keras), where the profile has no
        Python code around them that tells more."""
        slices, strings = self._trace.slices, self._trace.strings
        ranges: Bools = mapped(slices.name, strings, lambda name: named_callback(name) is not None, np.bool_)
        ranges &= slices.kind == Kind.ANNOTATION
        if ranges.any():
            ranges &= outermost(self._is_python, slices.parent) < 0
        return ranges

    def _around(self, slices: I32, tracks: I32) -> I32:
        """Per slice in no function (-1: none), the range around it; a number behind all slices that stands for its
        track where there is none."""
        count, rows = len(self._trace.slices), np.flatnonzero(self._is_range).astype(np.int32)
        if not rows.size:
            return (count + tracks).astype(np.int32)
        ranges = np.full(count, -1, np.int32)
        ranges[rows] = rows
        held = np.append(inherit(ranges, self._trace.slices.parent), np.int32(-1))[slices]
        return np.where(held >= 0, held, count + tracks).astype(np.int32)

    def _between_ranges(self, holders: I32, times: I64) -> I32:
        """Per instant between two ranges of its track, and in none, the look before it, if the one behind it was at the
        same line: what calls callbacks (``fit``) is called once for all of them. -1 for none."""
        slices, seen = self._trace.slices, np.full(holders.size, -1, np.int32)
        ranges = np.flatnonzero(self._is_range)
        for track in distinct(slices.track[ranges]):
            its, looked = ranges[slices.track[ranges] == track], np.flatnonzero(self._looked[0] == len(slices) + track)
            first, last = slices.start_ns[its[0]], slices.start_ns[its[-1]]
            asked = np.flatnonzero((holders == len(slices) + track) & (times > first) & (times < last))
            behind = np.searchsorted(self._trace.looks.time_ns[looked], times[asked])
            asked, behind = (each[(behind > 0) & (behind < looked.size)] for each in (asked, behind))
            before, after = looked[behind - 1], looked[behind]
            seen[asked] = np.where(self.same_place[before] == self.same_place[after], before, -1)
        return seen

    # --- stretches ------------------------------------------------------------------------------------------------

    @cached_property
    def _is_seen(self) -> Bools:
        return ~among(self._trace.slices.kind, _UNSEEN) | self._is_range

    @cached_property
    def _cells(self) -> _Cells:
        if not len(self._trace.looks):
            return self._known_calls()
        slices = self._trace.slices
        rows = np.arange(len(slices), dtype=np.int32)
        seen = self._is_seen
        holds = self._is_python | self._is_range
        around = np.append(inherit(np.where(seen, rows, np.int32(-1)), slices.parent), np.int32(-1))[slices.parent]
        around[slices.parent < 0] = -1
        top = seen & (around < 0)
        member = np.flatnonzero(top | (seen & (around >= 0) & holds[around])).astype(np.int32)
        holder = np.where(top[member], len(slices) + slices.track[member], around[member]).astype(np.int32)
        order = np.argsort(holder, kind="stable")
        return _Cells(holder[order].astype(np.int64) << 32 | member[order])

    def _known_calls(self) -> _Cells:
        """The calls alone whose line is known: without looks nothing else tells."""
        frames, parent = self._trace.frames, self._trace.slices.parent
        called = np.sort(frames.slice[frames.call_line != NULL])
        holder = nearest_chosen(parent[called], self._is_seen, parent)
        return _Cells(np.sort(holder[holder >= 0].astype(np.int64) << 32 | called[holder >= 0]))

    def _cell(self, holders: I32, times: I64) -> tuple[Rows, Bools]:
        """The last member of each holder that began by a time (a place in the cells; the first one where none did), and
        whether the time lies in it."""
        slices, cells = self._trace.slices, self._cells
        count = len(slices)
        tracks = np.where(holders < count, slices.track[np.minimum(holders, count - 1)], holders - count)
        last = np.full(holders.size, -1, np.int64)
        for track in distinct(tracks):
            low, high = rows_of_track(slices, track)
            mine = np.flatnonzero(tracks == track)
            last[mine] = low + np.searchsorted(slices.start_ns[low:high], times[mine], "right") - 1
        at = np.searchsorted(cells.keys, (holders.astype(np.int64) << 32) | np.maximum(last, 0), "right") - 1
        at = np.clip(at, 0, cells.keys.size - 1)
        member = cells.member(at)
        inside = (cells.holder(at) == holders) & (slices.start_ns[member] <= times)
        inside &= slices.start_ns[member] + slices.dur_ns[member] > times
        return at, np.asarray(inside)

    def _signature(self, holders: I32, at: Rows, inside: Bools) -> tuple[I64, ...]:
        """Columns that are equal for stretches of one function between the same neighbours."""
        slices, cells = self._trace.slices, self._cells
        count = len(slices)
        name = np.where(holders < count, slices.name[np.minimum(holders, count - 1)], -1 - (holders - count))
        parts = [name, np.where(inside, slices.name[cells.member(at)], -1)]
        for near in (np.where(inside, at - 1, at), at + 1):
            place = np.clip(near, 0, cells.keys.size - 1)
            its = (cells.holder(place) == holders) & (near == place)
            member = cells.member(place)
            parts += [np.where(its, slices.name[member], -1), np.where(its, self._call_line(member), NULL)]
        return tuple(part.astype(np.int64) for part in parts)

    def _offsets(self, holders: I32, at: Rows, inside: Bools, times: I64) -> tuple[I64, I64]:
        """How long the stretch that a time lies in had gone on by then, and how long it still went on."""
        slices, cells = self._trace.slices, self._cells
        start, end = slices.start_ns, slices.start_ns + slices.dur_ns
        count, member = len(slices), cells.member(at)
        behind = (cells.holder(at) == holders) & (start[member] <= times)
        after = np.clip(at + behind, 0, cells.keys.size - 1)
        follows = (cells.holder(after) == holders) & (start[cells.member(after)] > times)
        around = np.minimum(holders, count - 1)
        first, last = (
            np.where(holders < count, bound[around], of_track) for bound, of_track in ((start, 0), (end, _FAR))
        )
        since = np.where(inside, start[member], np.where(behind, end[member], first))
        until = np.where(inside, end[member], np.where(follows, start[cells.member(after)], last))
        return times - since, until - times

    # --- looks ----------------------------------------------------------------------------------------------------

    @cached_property
    def _looked(self) -> tuple[I32, Rows, Bools]:
        """Per look the function that it met (a slice; behind all slices what is in none), and its stretch there."""
        slices, looks = self._trace.slices, self._trace.looks
        inner = innermost_at(slices, looks.track, looks.time_ns)
        functions = _functions(self._trace, inner)
        holders = np.where(functions >= 0, functions, self._around(inner, looks.track)).astype(np.int32)
        at, inside = self._cell(holders, looks.time_ns)
        return holders, at, inside

    def _look_for(self, holders: I32, times: I64) -> I32:
        """The look that tells of an instant in a function, -1 for none."""
        seen, looked = self._looked, self._trace.looks.time_ns
        if not len(looked) or not holders.size:
            return np.full(holders.size, -1, np.int32)
        asked = holders, *self._cell(holders, times)
        stretches = _numbered(np.concatenate((_stretch(*seen), _stretch(*asked))))
        groups = _numbered(
            *(np.concatenate(both) for both in zip(self._signature(*seen), self._signature(*asked), strict=True))
        )
        count = len(looked)
        near, away = _nearest(stretches[:count], looked, stretches[count:], times)
        lines, own = _best(near, away)
        offsets = zip(self._offsets(*seen, looked), self._offsets(*asked, times), strict=True)
        of_others = [_nearest(groups[:count], theirs, groups[count:], mine) for theirs, mine in offsets]
        near, away = (np.concatenate(each) for each in zip(*of_others, strict=True))
        other, apart = _best(near, away)
        sure = apart < LINE_NEAR_NS
        apart = np.where(sure, apart, LINE_NEAR_NS)
        also = self.same_place[near] != self.same_place[other]
        sure &= ~(also & (away < LINE_CONTESTED * apart)).any(axis=0)
        lines = np.where(sure & (LINE_OTHERS * apart < own), other, lines)
        rest = np.flatnonzero(lines < 0)
        lines[rest] = self._agreed(groups[:count], int(groups.max()) + 1)[groups[count:][rest]]
        return lines.astype(np.int32)

    def _agreed(self, groups: I64, size: int) -> I32:
        """Per group of looks the one that stands for it where nearly all were at one line, else -1."""
        looks = self._trace.looks
        lines = _numbered(groups, looks.file.astype(np.int64), looks.line, looks.function.astype(np.int64))
        _, first, counts = np.unique(lines, return_index=True, return_counts=True)
        most = counts >= LINE_AGREED * np.bincount(groups, minlength=size)[groups[first]]
        agreed = np.full(size, -1, np.int32)
        agreed[groups[first[most]]] = first[most]
        return agreed


def _stretch(holders: I32, at: Rows, inside: Bools) -> I64:
    return (holders.astype(np.int64) << 32) | (at.astype(np.int64) << 1) | inside


def _numbered(*columns: I64) -> I64:
    """Per row a number that is equal for rows of equal values."""
    return grouped(*columns)[1].astype(np.int64)


def _nearest(groups: I64, times: I64, wanted: I64, instants: I64) -> tuple[I32, I64]:
    """Per instant the two members of its group before it and the two behind (rows), and how far in time each is."""
    rank = np.unique(np.concatenate((times, instants)), return_inverse=True)[1].reshape(-1).astype(np.int64)
    keys = (groups << 32) | rank[: times.size]
    order = np.argsort(keys, kind="stable")
    at = np.searchsorted(keys[order], (wanted << 32) | rank[times.size :])
    near = order[np.clip(at + np.arange(-2, 2)[:, None], 0, order.size - 1)].astype(np.int32)
    return near, np.where(groups[near] == wanted, np.abs(times[near] - instants), _FAR)


def _best(near: I32, away: I64) -> tuple[I32, I64]:
    """Of those rows the nearest, -1 for none, and how far it is."""
    best = np.argmin(away, axis=0)[None]
    apart = np.take_along_axis(away, best, axis=0)[0]
    return np.where(apart < _FAR, np.take_along_axis(near, best, axis=0)[0], -1).astype(np.int32), apart


def _functions(trace: Trace, inner: I32) -> I32:
    """Per look, that is in a slice, the innermost one around it that is the function it names; -1 for none."""
    slices, looks = trace.slices, trace.looks
    first, of = grouped(looks.file, looks.function)
    functions = np.full(len(looks), -1, np.int32)
    is_frame = slices.kind == Kind.PYTHON_FRAME
    used = distinct(slices.name[is_frame])
    for number, look in enumerate(first.tolist()):
        path, name = trace.strings[looks.file[look]], trace.strings[looks.function[look]]
        codes = [code for code in used if names_function(trace.strings[code], path, name)]
        if not codes:
            continue
        mine = np.flatnonzero(of == number)
        functions[mine] = nearest_chosen(inner[mine], is_frame & among(slices.name, codes), slices.parent)
    return functions
