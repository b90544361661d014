"""Host work that is done once, however long a job runs: graphs are captured, code is loaded, the device is set up.

What is launched while a stream is captured is recorded into a graph and does not run. A kernel's code is loaded when it
is first launched, in a call that takes far longer than later ones while no device works; a call of the runtime that
neither launches, copies, waits nor allocates and takes long all the same sets up a context or a library.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.limits import CAPTURE_SHARE, FIRST_ALLOCATION_NS, FIRST_LAUNCH_NS, FIRST_LAUNCH_TIMES, SET_UP_NS
from stepscope.names.calls import CallRole, call_role, is_runtime_call, sets_up
from stepscope.names.hosts import is_code_loading, is_warm_up
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, distinct, mapped, united, without
from stepscope.trace.forest import on_host_threads
from stepscope.trace.tables import I32, I64, U8, Bools, Kind, Rows
from stepscope.trace.trace import Trace

ANY_TRACK = -1
"""Track of what holds up whichever thread is in a call: the profiler draws it on a row of its own."""


class Once(StrEnum):
    """What a piece of one-time work is."""

    CAPTURE = "capture"
    LOADING = "loading"
    START_UP = "start_up"
    """It ends before any device has worked."""


@record
class OneTimeWork:
    """Stretches of one-time work in order of their start; arrays have one value per stretch."""

    kind: tuple[Once, ...]
    start: I64
    end: I64
    track: I32
    """The host thread, ``ANY_TRACK`` where that is not known."""
    slice: I32
    """The call, or the one that began the stretch."""
    captured: Bools
    """Per slice of the trace, whether it was recorded into a graph instead of run."""
    graphs: int
    """Captures that were begun or ended."""
    mostly_capture: bool
    """Whether the profile is of graphs that are captured, more than of work that runs."""

    def rows(self, *kinds: Once, track: int | None = None) -> Rows:
        """The stretches of some kinds (all, without any), and of a track."""
        chosen = np.array([not kinds or kind in kinds for kind in self.kind], np.bool_)
        if track is not None:
            chosen &= among(self.track, (track, ANY_TRACK))
        return np.flatnonzero(chosen)

    def spans(self, *kinds: Once, track: int | None = None) -> iv.Intervals:
        """When there is one-time work of some kinds (of any, without any)."""
        rows = self.rows(*kinds, track=track)
        return iv.union(self.start[rows], self.end[rows])


_ROLES = tuple(CallRole)
_STREAMED = (CallRole.LAUNCH, CallRole.GRAPH_LAUNCH, CallRole.COPY, CallRole.MEMSET)
"""Calls that a captured stream records; those of a blocking copy are an error there."""
_LAUNCHING = (CallRole.LAUNCH, CallRole.GRAPH_LAUNCH)
_SHORT_BY_NATURE = (CallRole.OTHER, CallRole.QUERY)


def one_time_work(trace: Trace, activities: list[DeviceActivity]) -> OneTimeWork:
    """Find it: from what calls are named, when they are made, and what devices did meanwhile."""
    slices = trace.slices
    on_host = on_host_threads(trace)
    kinds = (Kind.RUNTIME_CALL, Kind.ALLOCATION, Kind.COMPILE)
    calls = np.flatnonzero(among(slices.kind, kinds) & on_host).astype(np.int32)
    roles = mapped(slices.name[calls], trace.strings, _role, np.uint8)
    captures, graphs = _captures(trace, calls, roles)
    captured, launches = _captured(trace, calls, roles, captures)
    idle = _Idle(activities)
    begun = min((int(activity.start[0]) for activity in activities), default=None)
    pieces = [(Once.CAPTURE, *capture) for capture in captures]
    loading = [*_first_launches(trace, activities, idle), *_named_loading(trace, calls, roles)]
    setting_up = _set_up_calls(trace, calls[~captured[calls]], begun, idle)
    for row in [*loading, *setting_up]:
        end = trace.end_ns(row)
        early = begun is not None and end <= begun and row in setting_up
        kind = Once.START_UP if early else Once.LOADING
        track = int(slices.track[row]) if on_host[row] and slices.kind[row] != Kind.OVERHEAD else ANY_TRACK
        pieces.append((kind, int(slices.start_ns[row]), end, track, int(row)))
    pieces += [
        (Once.CAPTURE, int(slices.start_ns[row]), trace.end_ns(row), int(slices.track[row]), row)
        for row in calls[roles == _ROLES.index(CallRole.GRAPH_INSTANTIATE)].tolist()
    ]
    pieces.sort(key=lambda piece: piece[1:3])
    ran = sum(len(activity) for activity in activities)
    column = [[piece[at] for piece in pieces] for at in range(5)]
    return OneTimeWork(
        kind=tuple(piece[0] for piece in pieces),
        start=np.array(column[1], np.int64),
        end=np.array(column[2], np.int64),
        track=np.array(column[3], np.int32),
        slice=np.array(column[4], np.int32),
        captured=captured,
        graphs=graphs,
        mostly_capture=launches > 0 and launches >= CAPTURE_SHARE * (launches + ran),
    )


def _role(name: str) -> int:
    return _ROLES.index(call_role(name))


def _of(roles: U8, wanted: tuple[CallRole, ...]) -> Bools:
    return among(roles, [_ROLES.index(role) for role in wanted])


Capture = tuple[int, int, int, int]
"""Start, end, track and the slice of the call that began (or, where that was not recorded, ended) it."""


def _captures(trace: Trace, calls: I32, roles: U8) -> tuple[list[Capture], int]:
    """Stretches of a thread in which it captures, and how many captures there were.

    A capture that the profile does not show the begin (or end) of reaches to the thread's first (last) slice.
    """
    slices = trace.slices
    marks = calls[_of(roles, (CallRole.CAPTURE_BEGIN, CallRole.CAPTURE_END))]
    captures: list[Capture] = []
    graphs = 0
    for track in distinct(slices.track[marks]):
        mine = np.flatnonzero(slices.track == track)
        rows = sorted(marks[slices.track[marks] == track].tolist(), key=lambda row: int(slices.start_ns[row]))
        open_rows: list[int] = []
        for row in rows:
            if call_role(trace.name_of(row)) is CallRole.CAPTURE_BEGIN:
                open_rows.append(row)
                continue
            graphs += 1
            begin = open_rows.pop() if open_rows else row
            start = int(slices.start_ns[begin]) if begin != row else int(slices.start_ns[mine].min())
            captures.append((start, trace.end_ns(row), track, begin))
        last = int((slices.start_ns[mine] + slices.dur_ns[mine]).max())
        captures += [(int(slices.start_ns[row]), last, track, row) for row in open_rows]
        graphs += len(open_rows)
    return captures, graphs


def _captured(trace: Trace, calls: I32, roles: U8, captures: list[Capture]) -> tuple[Bools, int]:
    """Per slice, whether it is a call made while a stream was captured that nothing ran for; and how many of them
    launch. Autograd launches the backward pass of a captured step from threads of its own."""
    slices = trace.slices
    captured = np.zeros(len(slices), np.bool_)
    spans = iv.union(*(np.array([capture[at] for capture in captures], np.int64) for at in (0, 1)))
    streamed = calls[_of(roles, _STREAMED)]
    inside = streamed[iv.covered_between(spans, slices.start_ns[streamed], slices.start_ns[streamed] + 1) > 0]
    inside = inside[~among(inside, trace.launches.call)]
    captured[inside] = True
    launching = calls[_of(roles, _LAUNCHING)]
    return captured, int(captured[launching].sum())


def warm_up_ranges(trace: Trace) -> iv.Intervals:
    """When the program was in a range that it calls its warm-up."""
    slices = trace.slices
    rows = np.flatnonzero((slices.kind == Kind.ANNOTATION) & on_host_threads(trace))
    rows = rows[mapped(slices.name[rows], trace.strings, is_warm_up, np.bool_)]
    return iv.of(slices, rows)


class _Idle:
    """Whether devices stood still during a call, with nothing on its way to them."""

    def __init__(self, activities: list[DeviceActivity]) -> None:
        parts = [activity.busy for activity in activities]
        self.busy = iv.union(*(np.concatenate(part) for part in zip(iv.EMPTY, *parts, strict=True)))
        launch = np.concatenate([a.launch[a.launched] for a in activities] or [iv.EMPTY[0]])
        start = np.concatenate([a.start[a.launched] for a in activities] or [iv.EMPTY[0]])
        order = np.argsort(launch, kind="stable")
        self.launch, self.reach = launch[order], np.maximum.accumulate(start[order])

    def during(self, start: I64, end: I64) -> Bools:
        """Whether no device worked for most of each interval, nor had an op from before it that began after it: one
        that does not begin what it was given may be working on what was not recorded."""
        still = 2 * iv.covered_between(self.busy, start, end) <= end - start
        before = np.searchsorted(self.launch, start)
        reach = np.append(self.reach, np.iinfo(np.int64).min)[before - 1]
        return np.asarray(still & ~((before > 0) & (reach >= end)))


def _first_launches(trace: Trace, activities: list[DeviceActivity], idle: _Idle) -> list[int]:
    """Calls that launched a kernel for the first time on its device and took far longer than later launches."""
    slices, slow = trace.slices, np.empty(0, np.int32)
    for activity in activities:
        launched = np.flatnonzero(activity.launched)
        launched = launched[np.argsort(activity.launch[launched], kind="stable")]
        calls = activity.call[launched]
        launches = (slices.kind[calls] == Kind.RUNTIME_CALL) & _of(
            mapped(slices.name[calls], trace.strings, _role, np.uint8), _LAUNCHING
        )
        calls, names = calls[launches], slices.name[activity.slice[launched]][launches]
        first = np.unique(calls[np.unique(names, return_index=True)[1]])
        later = without(calls, first)
        usual = float(np.median(slices.dur_ns[later])) if later.size else 0.0
        first = first[slices.dur_ns[first] >= max(FIRST_LAUNCH_NS, FIRST_LAUNCH_TIMES * usual)]
        slow = np.append(slow, first[idle.during(slices.start_ns[first], (slices.start_ns + slices.dur_ns)[first])])
    return [int(call) for call in np.unique(slow)]


def _named_loading(trace: Trace, calls: I32, roles: U8) -> list[int]:
    """Calls that load code, and what the profiler says of code that is loaded."""
    slices = trace.slices
    overhead = np.flatnonzero(slices.kind == Kind.OVERHEAD)
    named = overhead[mapped(slices.name[overhead], trace.strings, is_code_loading, np.bool_)]
    return [*calls[_of(roles, (CallRole.MODULE_LOAD,))].tolist(), *named.tolist()]


def _set_up_calls(trace: Trace, calls: I32, begun: int | None, idle: _Idle) -> list[int]:
    """Calls of the runtime that take long without launching, copying or waiting, and ranges of libraries' set-up."""
    slices = trace.slices
    ranges = among(slices.kind, (Kind.ANNOTATION, Kind.HOST_OP, Kind.PYTHON_FRAME, Kind.RUNTIME_CALL))
    rows = np.flatnonzero(ranges & (slices.dur_ns >= SET_UP_NS))
    named = rows[mapped(slices.name[rows], trace.strings, sets_up, np.bool_)]
    long = calls[slices.dur_ns[calls] >= SET_UP_NS]
    long = long[mapped(slices.name[long], trace.strings, is_runtime_call, np.bool_)]
    long = without(long, trace.launches.call)
    chosen = [row for row in long.tolist() if _sets_up(trace, row, calls, begun)]
    candidates = united(named, np.array(chosen, np.int32)).astype(np.int32)
    still = idle.during(slices.start_ns[candidates], (slices.start_ns + slices.dur_ns)[candidates])
    return candidates[still].tolist() if begun is not None else []


def _sets_up(trace: Trace, row: int, calls: I32, begun: int | None) -> bool:
    """Whether a long call does; memory is taken and given back fast, but for the call that creates the context."""
    slices, name = trace.slices, trace.name_of(row)
    role = call_role(name)
    if role in _SHORT_BY_NATURE:
        return True
    if role not in (CallRole.ALLOCATION, CallRole.FREE):
        return False
    if (
        role is CallRole.ALLOCATION
        and (slices.start_ns[calls[slices.name[calls] == slices.name[row]]]).min() < (slices.start_ns[row])
    ):
        return False
    early = begun is not None and trace.end_ns(row) <= begun
    # Where later calls take as long, it is no set-up that the first one waits for.
    later = slices.dur_ns[calls[(slices.name[calls] == slices.name[row]) & (calls != row)]]
    once = not later.size or 2 * int(later.max()) < slices.dur_ns[row]
    return early or bool(slices.dur_ns[row] >= FIRST_ALLOCATION_NS and once)
