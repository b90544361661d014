"""Steps: from one source of markers, else inferred, else the whole profile as one window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property

import numpy as np

from stepscope.analysis.callbacks import batch_ends
from stepscope.analysis.categories import Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.functions_called import calls_of_functions
from stepscope.analysis.limits import CYCLE_GAP_STEPS, ROUNDED_NS, START_UP_LEADS
from stepscope.analysis.once import Once, OneTimeWork, warm_up_ranges
from stepscope.analysis.repeated import repeated_steps
from stepscope.names.hosts import (
    RANK_MODULES,
    RANK_SESSION_RUNS,
    RANK_STEP_NUM,
    RANK_STEP_NUM_ALONE,
    RANK_TPU_STEPS,
    step_marker,
)
from stepscope.names.loop_phases import LoopPhase
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, distinct
from stepscope.trace.forest import rows_of_track
from stepscope.trace.shared import shared
from stepscope.trace.tables import I32, I64, NULL, Bools, Kind, MarkerSource, TrackKind
from stepscope.trace.trace import Trace

WHOLE = "whole profile"
"""The source of the one step of a profile that shows none."""


@record
class Aside:
    """A stretch in which the loop does something else than train (``analysis/loop_phases.py``)."""

    kind: LoopPhase
    slice: int
    start_ns: int
    end_ns: int


@record
class Markers:
    """Where steps begin and end on the host; arrays have one value per step."""

    start: I64
    end: I64
    numbers: tuple[int | None, ...]
    source: str
    inferred: bool
    slices: I32
    """The marker's slice, -1 for inferred steps."""
    on_device: bool = False
    """Whether the marks lie on a device's own line: they say when ops ran, not when they were launched."""
    apart: bool = False
    """Whether nothing is recorded between two steps: none may follow the other at once."""
    start_up_ns: int = 0
    """How much later the first step begins than its marker, as devices were set up until then."""
    own: Mapping[int, tuple[I64, I64]] = field(default_factory=dict)
    """Starts and ends of the same steps by the marks on a device's own line; empty where the host marks steps."""

    paused: Bools | None = None
    """After which steps the loop does something else than train; None for none."""
    aside: tuple[Aside, ...] = ()
    """What that is, in order of time; writing checkpoints is listed also where it lies in a step."""

    def __len__(self) -> int:
        """The number of steps."""
        return len(self.start)

    def on(self, device: int) -> tuple[I64, I64]:
        """Starts and ends of the steps as a device marks them, or those of all."""
        return self.own.get(device, (self.start, self.end))

    @property
    def instants(self) -> I64:
        """All that begins a step: what all devices share, then each device's own, by their numbers."""
        return np.concatenate([self.start, *(self.own[device][0] for device in sorted(self.own))])

    def instants_of(self, device: int) -> slice:
        """Which of the ``instants`` begin the steps of a device."""
        first = (1 + sorted(self.own).index(device)) * len(self) if device in self.own else 0
        return slice(first, first + len(self))

    @cached_property
    def gap_after(self) -> Bools:
        """After which steps the loop did something else, or the profiler paused: the numbers jump, or cannot tell, and
        the pause is at least a step long."""
        paused = np.zeros(len(self), np.bool_) if self.paused is None else self.paused.copy()
        if len(self) < 2:
            return paused
        median = float(np.median(self.end - self.start))
        for k in np.flatnonzero(self.start[1:] - self.end[:-1] >= CYCLE_GAP_STEPS * median).tolist():
            here, following = self.numbers[k], self.numbers[k + 1]
            paused[k] |= self.apart or (here is not None and following is not None and following != here + 1)
        return paused


@shared
def begun_in(trace: Trace, markers: Markers, used: tuple[int, ...]) -> Bools:
    """Which slices begin in some steps."""
    step = np.searchsorted(markers.start, trace.slices.start_ns, "right")
    step -= 1
    return among(step, used)


def find_markers(trace: Trace, activities: list[DeviceActivity], once: OneTimeWork) -> Markers:
    """The steps of a trace: those of the profile it is a part of, where they had to be inferred, else the best marker
    source, else the frames of a training loop, else what repeats in the launches, else calls of one function, else one
    window. What repeats while graphs are captured is no step."""
    markers = _inferred_before(trace) or _recorded(trace) or _batches(trace)
    if markers is None and not once.mostly_capture:
        markers = _repeated(trace, activities) or _calls(trace)
    return _after_start_up(markers or _whole(trace), once, *_warming(trace, activities, markers))


def _warming(trace: Trace, activities: list[DeviceActivity], markers: Markers | None) -> tuple[iv.Intervals, int]:
    """What else is start-up of a profile that shows no steps: ranges that the program calls its warm-up; and until when
    that can be, as a device is given something to compute behind it."""
    if markers is not None or not activities:
        return iv.EMPTY, 0
    computes = [a.launch[a.launched & (a.category == Category.COMPUTE.code)] for a in activities]
    last = max((int(launch.max()) for launch in computes if launch.size), default=0)
    return warm_up_ranges(trace), last


def _after_start_up(markers: Markers, once: OneTimeWork, warming: iv.Intervals, until: int) -> Markers:
    """A first step whose beginning is the devices' start-up begins when that is over: no other step has any."""
    begin, spans = int(markers.start[0]), once.spans(Once.START_UP)
    if len(warming[0]):
        spans = iv.joined([spans, (warming[0][warming[1] <= until], warming[1][warming[1] <= until])])
    ends = spans[1][(spans[0] >= begin) & (spans[1] < markers.end[0])]
    share = iv.covered_between(spans, np.full(ends.size, begin), ends) / np.maximum(ends - begin, 1)
    over = ends[share >= START_UP_LEADS]
    if markers.on_device or not over.size:
        return markers
    start = np.append(over[-1:], markers.start[1:])
    return replace(markers, start=start, start_up_ns=int(over[-1]) - begin)


_SOURCE_RANKS = {
    MarkerSource.STEP_NUM_ROOT: RANK_STEP_NUM,
    MarkerSource.STEP_NUM: RANK_STEP_NUM_ALONE,
    MarkerSource.STEPS_LINE: RANK_TPU_STEPS,
    MarkerSource.MODULES_LINE: RANK_MODULES,
}
Mark = tuple[int, int | None]
"""The slice of a marker, and the number of its step."""
_MARKING_TRACKS = (TrackKind.HOST_THREAD, TrackKind.DEVICE_LINE)


def _recorded(trace: Trace) -> Markers | None:
    """The first source of the marker table with two occurrences, else the first with one."""
    by_source = _by_source(trace)
    explicit = {rank: marks for rank, marks in sorted(by_source.items()) if not _ends_step(trace, marks)}
    ranked = [_one_thread(trace, marks) for marks in explicit.values()]
    every = list(explicit.values())
    for at, marks in enumerate(ranked):
        if len(marks) >= 2:
            return _from_slices(trace, marks, every[at])
    if ranked:
        return _from_slices(trace, ranked[0], every[0])
    ends = [marks for marks in by_source.values() if len(marks) >= 2]
    return _from_ends(trace, ends[0]) if ends else None


def _by_source(trace: Trace) -> dict[int, list[Mark]]:
    """Rank of the source -> its markers as (slice, step number): what the profile says outright, else the names."""
    slices, marks = trace.slices, trace.step_marks
    by_source: dict[int, list[Mark]] = {}
    for row, source, number in zip(marks.slice.tolist(), marks.source.tolist(), marks.number.tolist(), strict=True):
        rank, named = _SOURCE_RANKS[MarkerSource(source)], step_marker(trace.name_of(row))
        rank = rank if named is None or named.ends_step else min(rank, named.rank)
        by_source.setdefault(rank, []).append((row, None if number == NULL else number))
    is_step = (slices.kind == Kind.STEP) & among(trace.tracks.kind[slices.track], _MARKING_TRACKS)
    is_step[marks.slice] = False
    rows = np.flatnonzero(is_step)
    known = {code: step_marker(trace.strings[code]) for code in distinct(slices.name[rows])}
    for row, code in zip(rows.tolist(), slices.name[rows].tolist(), strict=True):
        marker = known[code]
        if marker is not None:
            by_source.setdefault(marker.rank, []).append((row, marker.number))
    return by_source


def _ends_step(trace: Trace, marks: list[Mark]) -> bool:
    marker = step_marker(trace.name_of(marks[0][0]))
    return marker is not None and marker.ends_step


def _one_thread(trace: Trace, marks: list[Mark]) -> list[Mark]:
    """Markers of the thread that has most of them, outermost where they nest, in time order. One that begins shortly
    before the one before it ends, and ends after it, follows it: times were rounded."""
    tracks = trace.slices.track[[row for row, _ in marks]]
    values, counts = np.unique(tracks, return_counts=True)
    main = values[counts.argmax()]
    kept: list[Mark] = []
    reach = np.iinfo(np.int64).min
    for row, number in sorted(
        (f for f, track in zip(marks, tracks, strict=True) if track == main),
        key=lambda f: (int(trace.slices.start_ns[f[0]]), -int(trace.slices.dur_ns[f[0]]), f[1] or 0),
    ):
        start, end = int(trace.slices.start_ns[row]), trace.end_ns(row)
        if start >= reach or (start >= reach - ROUNDED_NS and end > reach):
            kept.append((row, number))
            reach = end
    return kept


def _from_slices(trace: Trace, marks: list[Mark], every: list[Mark]) -> Markers:
    """The steps of some markers; ``every`` are those of all tracks."""
    marks, every = _marked_by_all(trace, marks, every)
    rows = np.array([row for row, _ in marks], np.int32)
    start, end = _bounds(trace, rows)
    return Markers(
        start=start,
        end=end,
        numbers=tuple(number for _, number in marks),
        source=trace.name_of(int(rows[0])).split("#")[0].split("(")[0],
        inferred=False,
        slices=rows,
        on_device=bool(trace.tracks.kind[trace.slices.track[rows[0]]] == TrackKind.DEVICE_LINE),
        own=_own_marks(trace, marks, every),
        apart=(named := step_marker(trace.name_of(int(rows[0])))) is not None and named.rank == RANK_SESSION_RUNS,
    )


def _bounds(trace: Trace, rows: I32) -> tuple[I64, I64]:
    start = trace.slices.start_ns[rows]
    end = start + trace.slices.dur_ns[rows]
    return start, np.minimum(end, np.append(start[1:], end[-1:]))


def _marked_by_all(trace: Trace, marks: list[Mark], every: list[Mark]) -> tuple[list[Mark], list[Mark]]:
    """Of steps that devices mark by number, those that all of them mark, where that is most of them: one that only
    some mark was begun before the profile, or cut off where it ended, and no step of the others."""
    by_device: dict[int, list[int | None]] = {}
    for row, number in every:
        track = trace.slices.track[row]
        if trace.tracks.kind[track] == TrackKind.DEVICE_LINE:
            by_device.setdefault(int(trace.tracks.device[track]), []).append(number)
    numbers = [number for _, number in marks]
    if len(by_device) < 2 or None in numbers or any(len({*each}) < len(each) for each in by_device.values()):
        return marks, every
    shared = {*numbers}.intersection(*by_device.values())
    if 2 * len(shared) < len(numbers):
        return marks, every
    return [mark for mark in marks if mark[1] in shared], [mark for mark in every if mark[1] in shared]


def _own_marks(trace: Trace, marks: list[Mark], every: list[Mark]) -> dict[int, tuple[I64, I64]]:
    """Of steps that devices mark: what each marks itself, where it marks as many. Devices run the same step at times of
    their own: chips of one program a little apart, those of other processes far from each other."""
    tracks = trace.slices.track[[row for row, _ in every]]
    own = {}
    for track in distinct(tracks):
        mine = _one_thread(trace, [f for f, of in zip(every, tracks.tolist(), strict=True) if of == track])
        device = int(trace.tracks.device[track])
        if trace.tracks.kind[track] == TrackKind.DEVICE_LINE and device >= 0 and len(mine) == len(marks):
            own[device] = _bounds(trace, np.array([row for row, _ in mine], np.int32))
    return own


def _from_ends(trace: Trace, marks: list[Mark]) -> Markers | None:
    """Steps that end where an optimizer step ends; the last optimizer of an iteration counts."""
    names = trace.slices.name[[row for row, _ in marks]]
    values, counts = np.unique(names, return_counts=True)
    rows = [row for row, _ in marks if trace.slices.name[row] in values[counts == counts.max()]]
    last = trace.slices.name[max(rows, key=trace.end_ns)]
    ends = np.array(sorted(trace.end_ns(row) for row in rows if trace.slices.name[row] == last), np.int64)
    if ends.size < 2:
        return None
    start = np.concatenate(([_first_host_start(trace)], ends[:-1]))
    return _inferred((start, ends), trace.strings[int(last)])


def _inferred_before(trace: Trace) -> Markers | None:
    """The steps of the profile that this one was cut out of."""
    steps = trace.info.steps
    if steps is None:
        return None
    bounds = np.array(steps.start_ns, np.int64), np.array(steps.end_ns, np.int64)
    return replace(_inferred(bounds, steps.source), numbers=steps.number)


def _batches(trace: Trace) -> Markers | None:
    """Steps that end where a training loop has told its callbacks of the end of a batch."""
    ends = batch_ends(trace)
    if ends is None:
        return None
    end = trace.slices.start_ns[ends.slice] + trace.slices.dur_ns[ends.slice]
    low, _ = rows_of_track(trace.slices, int(trace.slices.track[ends.slice[0]]))
    start = np.concatenate((trace.slices.start_ns[low : low + 1], end[:-1]))
    return _inferred((start, end), f"calls of {ends.function}")


def _calls(trace: Trace) -> Markers | None:
    """Steps that begin where one compiled function is called."""
    calls = calls_of_functions(trace)
    if calls is None:
        return None
    start = trace.slices.start_ns[calls.slice]
    low, high = rows_of_track(trace.slices, int(trace.slices.track[calls.slice[0]]))
    last = int((trace.slices.start_ns[low:high] + trace.slices.dur_ns[low:high]).max())
    return _inferred((start, np.append(start[1:], last)), f"calls of {calls.function}")


def _repeated(trace: Trace, activities: list[DeviceActivity]) -> Markers | None:
    repeated = repeated_steps(trace, activities)
    return None if repeated is None else _inferred(repeated, "repetition of the launches")


def _inferred(bounds: tuple[I64, I64], source: str) -> Markers:
    start, end = bounds
    return Markers(
        start=start,
        end=end,
        numbers=(None,) * start.size,
        source=source,
        inferred=True,
        slices=np.full(start.size, -1, np.int32),
    )


def _whole(trace: Trace) -> Markers:
    """The whole profile as one window, from the first host activity (or device op) to the end."""
    busy = ~among(trace.slices.kind, (Kind.OTHER, Kind.OVERHEAD))
    start = trace.slices.start_ns[busy]
    begin = int(start.min()) if start.size else 0
    end = int((start + trace.slices.dur_ns[busy]).max()) if start.size else 0
    return _inferred((np.array([begin], np.int64), np.array([end], np.int64)), WHOLE)


def _first_host_start(trace: Trace) -> int:
    kinds = (Kind.HOST_OP, Kind.ANNOTATION, Kind.STEP, Kind.RUNTIME_CALL)
    start = trace.slices.start_ns[among(trace.slices.kind, kinds)]
    return int(start.min()) if start.size else 0
