"""What device ops were made to wait for: events of other streams, and waits drawn on the device itself."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.limits import INFERRED_WAIT_NS
from stepscope.hlo.waits import is_feed
from stepscope.names.host_callbacks import HOST_CALLBACK, is_host_callback
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, mapped, united
from stepscope.trace.tables import I32, I64, NULL, Kind, Rows, TrackKind
from stepscope.trace.trace import Trace

BARRIER = "barrier-cores"
"""What a TPU's profiler calls the wait of a core for the others before a program that exchanges data."""
UNKNOWN_END = int(np.iinfo(np.int64).max)
"""The end of an awaited op that the profile does not identify."""


def awaited_ends(trace: Trace, activities: list[DeviceActivity]) -> list[I64]:
    """Per op of each device, the end of the op that a recorded wait made it wait for; NULL where none was recorded.

    CUDA profiles draw a stream's wait for an event at the time of the host's call: it holds up the first op launched
    on that stream afterwards, until the last op launched on the other stream before the event was recorded is done.
    A copy between devices takes what another one made: where it was queued and begins right after an op of another
    device ended (``INFERRED_WAIT_NS``), it waited for that.
    """
    ends = _of_copies_between(activities)
    waits = trace.device_waits
    rows = np.flatnonzero((waits.wait_on_correlation != NULL) & (waits.stream != NULL))
    if rows.size == 0:
        return ends
    queues = _Queues(activities)
    recorded = _times_of_calls(trace, waits.wait_on_correlation[rows])
    begun, awaited = trace.slices.start_ns[waits.slice[rows]], waits.wait_on_stream[rows]
    places = [np.flatnonzero(waits.device[rows] == activity.device) for activity in activities]
    for at, mine in enumerate(places):
        own = queues.numbers(at, waits.stream[rows[mine]])
        following = queues.first_from(own, begun[mine])
        launch, end = np.full(mine.size, NULL, np.int64), np.full(mine.size, UNKNOWN_END, np.int64)
        for other in range(len(activities)):
            queue = queues.numbers(other, awaited[mine])
            queue[queue == own] = -1
            later, until = queues.last_until(queue, recorded[mine])
            better = (later > launch) | ((later == launch) & (later != NULL) & (until > end))
            launch[better], end[better] = later[better], until[better]
        chosen = following >= 0
        np.maximum.at(ends[at], following[chosen], end[chosen])
    return ends


def _of_copies_between(activities: list[DeviceActivity]) -> list[I64]:
    """Per op of each device, the end of the op of another one that a copy between devices waited for, else NULL."""
    waited_for = [np.full(len(activity), NULL, np.int64) for activity in activities]
    for ends, activity in zip(waited_for, activities, strict=True):
        rows = np.flatnonzero((activity.category == Category.COPY_P2P.code) & activity.launched)
        others = [other.end for other in activities if other is not activity] if rows.size else []
        if not others:
            continue
        done = np.sort(np.concatenate(others))
        start, launch = activity.start[rows], activity.launch[rows]
        last = np.append(NULL, done)[np.searchsorted(done, start, "right")]
        waited = (last > launch) & (last >= start - INFERRED_WAIT_NS)
        ends[rows[waited]] = last[waited]
    return waited_for


class _Queues:
    """The launched ops of every stream of every device in order of their launch; a queue's number is -1 for none."""

    def __init__(self, activities: list[DeviceActivity]) -> None:
        """Sort the ops by device, stream and launch."""
        ops = [np.flatnonzero(activity.launched) for activity in activities]
        launch = [activity.launch[mine] for activity, mine in zip(activities, ops, strict=True)]
        stream = [activity.stream[mine] for activity, mine in zip(activities, ops, strict=True)]
        end = [activity.end[mine] for activity, mine in zip(activities, ops, strict=True)]
        nothing = np.empty(0, np.int64)
        self._streams = [united(mine) for mine in stream]
        self._first = np.cumsum([0, *(mine.size for mine in self._streams)])
        number = [self.numbers(at, mine) for at, mine in enumerate(stream)]
        launches, numbers = np.concatenate([nothing, *launch]), np.concatenate([nothing, *number])
        order = np.lexsort((launches, numbers))
        self._number, self._launch = numbers[order], launches[order]
        self._op, self._end = np.concatenate([nothing, *ops])[order], np.concatenate([nothing, *end])[order]
        self._times = united(launches)
        self._key = self._number * (self._times.size + 1) + np.searchsorted(self._times, self._launch)

    def numbers(self, device: int, streams: I64) -> I64:
        """The numbers of streams' queues on a device, given by its place in the list."""
        known = self._streams[device]
        at = np.minimum(np.searchsorted(known, streams), known.size - 1)
        return np.where(known[at] == streams, self._first[device] + at, -1) if known.size else np.full_like(streams, -1)

    def first_from(self, queue: I64, times_ns: I64) -> I64:
        """The op launched first at or after an instant on a queue, one of each per row; -1 for none."""
        at = self._place(queue, np.searchsorted(self._times, times_ns))
        is_queued = np.append(self._number, -2)[at] == queue
        return np.where(is_queued, np.append(self._op, -1)[at], -1)

    def last_until(self, queue: I64, times_ns: I64) -> tuple[I64, I64]:
        """Launch and end of the op launched last at or before an instant on a queue; NULL and UNKNOWN_END for none."""
        at = self._place(queue, np.searchsorted(self._times, times_ns, "right"))
        last = np.append(-2, self._number)[at] == queue
        return (
            np.where(last, np.append(NULL, self._launch)[at], NULL),
            np.where(last, np.append(UNKNOWN_END, self._end)[at], UNKNOWN_END),
        )

    def _place(self, queue: I64, rank: Rows) -> Rows:
        return np.searchsorted(self._key, queue * (self._times.size + 1) + rank)


def drawn_waits(trace: Trace, device: int, stream: int) -> iv.Intervals:
    """When a stream waited, where the device itself reports it (MTIA): such waits name no call."""
    waits = trace.device_waits
    chosen = waits.slice[
        (waits.device == device)
        & (waits.stream == stream)
        & (waits.wait_on_stream != NULL)
        & (waits.wait_on_correlation == NULL)
    ]
    return iv.of(trace.slices, chosen)


def told_waits(trace: Trace, device: int) -> dict[Category, iv.Intervals]:
    """When a device says itself that it waits, and for what: in ops of its program for the host to bring or take data
    or for another core of its chip, and at barriers (TPU) for the last of the devices that run the program."""
    slices, waits, compiled = trace.slices, trace.device_waits, trace.xla_ops
    told = (waits.device == device) & (waits.wait_on_stream == NULL) & (waits.wait_on_correlation == NULL)
    told[callback_waits(trace, device)] = False
    mine = waits.slice[told]
    category = np.full(mine.size, -1, np.int32)
    if mine.size:
        of_slice = np.full(len(slices), -1, np.int32)
        of_slice[compiled.slice] = compiled.category
        category = of_slice[mine]
    fed = mapped(slices.name[mine], trace.strings, is_feed, np.bool_)
    fed |= mapped(category, trace.strings, is_feed, np.bool_)
    of_program = category >= 0
    rows_of = {
        Category.INFEED: mine[fed],
        Category.PEER: np.concatenate((mine[~fed & of_program], barriers(trace, device))),
    }
    return {cause: iv.of(slices, rows) for cause, rows in rows_of.items() if rows.size}


def barriers(trace: Trace, device: int) -> I32:
    """The slices in which a device waits at a barrier for others that run the same program, in order of start."""
    on_device = (trace.tracks.device == device) & (trace.tracks.kind == TrackKind.DEVICE_LINE)
    codes = [code for code, name in enumerate(trace.strings) if name == BARRIER] if on_device.any() else []
    if not codes:
        return np.empty(0, np.int32)
    rows = np.flatnonzero(among(trace.slices.name, codes) & on_device[trace.slices.track])
    return rows[np.argsort(trace.slices.start_ns[rows], kind="stable")].astype(np.int32)


def callback_waits(trace: Trace, device: int) -> Rows:
    """The waits (rows of ``device_waits``) in which a device waits for a Python function that its program calls."""
    compiled, waits = trace.xla_ops, trace.device_waits
    rows = np.flatnonzero(waits.device == device)
    asked = waits.slice[rows]
    if not asked.size:
        return rows
    calling = mapped(trace.slices.name[asked], trace.strings, _calls_python, np.bool_)
    programs = np.flatnonzero(among(compiled.slice, asked))
    told = mapped(compiled.category[programs], trace.strings, _calls_python, np.bool_)
    return rows[calling | among(asked, compiled.slice[programs[told]])]


def _calls_python(name: str) -> bool:
    return name == HOST_CALLBACK or is_host_callback(name)


def called_before(trace: Trace, activities: list[DeviceActivity]) -> list[I64]:
    """Per op of each device, how long its program called Python before it: since the op before it on its stream, or on
    the device where no op follows on the stream of the call."""
    called_for = []
    for activity in activities:
        rows = callback_waits(trace, activity.device)
        called = np.zeros(len(activity), np.int64)
        calls = trace.device_waits.slice[rows]
        for stream, begun, dur in zip(
            trace.device_waits.stream[rows].tolist(),
            trace.slices.start_ns[calls].tolist(),
            trace.slices.dur_ns[calls].tolist(),
            strict=True,
        ):
            after = np.flatnonzero(activity.start >= begun + dur)
            own = after[activity.stream[after] == stream]
            if after.size:
                called[own[0] if own.size else after[0]] += dur
        called_for.append(called)
    return called_for


def _times_of_calls(trace: Trace, correlations: I64) -> I64:
    """When the calls with these correlation ids began, NULL where not recorded."""
    slices = trace.slices
    calls = np.flatnonzero((slices.kind == Kind.RUNTIME_CALL) & (slices.correlation != NULL))
    calls = calls[np.argsort(slices.correlation[calls], kind="stable")]
    ids = slices.correlation[calls]
    if ids.size == 0:
        return np.full(correlations.size, NULL, np.int64)
    at = np.minimum(np.searchsorted(ids, correlations), ids.size - 1)
    return np.where(ids[at] == correlations, slices.start_ns[calls[at]], NULL)
