"""When a device worked on something that the profile does not hold: it shows nothing then, and is not idle.

A stream works in order, so an op that was launched and does not start is behind something; and a host that is blocked
in a wait for the device waits for something. Where the profile holds nothing that either could be waiting for, it was
work that was not recorded: launched before the profile began, or filtered out of it. What a device does before its
first recorded op was launched before the profile, so it counts from the profile's beginning.

Taken as evidence only where nothing else may be behind it: no other device at work meanwhile, no wait of the stream
for an event, no copy whose data the host may be staging, no event missing inside the profile. Times under
``UNRECORDED_NS`` stay idle: devices owe answers of that length for reasons of their own.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.host import HostActivity
from stepscope.analysis.limits import STAGING_BYTES_PER_S, UNRECORDED_NS
from stepscope.analysis.sampling import sampling_of
from stepscope.analysis.staging import staged
from stepscope.analysis.steps import Markers
from stepscope.analysis.waits import awaited_ends
from stepscope.names.calls import CallRole, call_role
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, distinct, mapped, united
from stepscope.trace.shared import shared
from stepscope.trace.tables import I32, I64, NULL, Bools, Direction, Kind, LaunchBasis, TrackKind
from stepscope.trace.trace import Trace


def with_unrecorded(
    trace: Trace, activities: list[DeviceActivity], host: HostActivity, markers: Markers
) -> list[DeviceActivity]:
    """The activities, each with the time in which its device worked on what was not recorded."""
    by_call = bool(among(trace.launches.basis, (LaunchBasis.CORRELATION, LaunchBasis.GRAPH)).all())
    if not activities or not by_call or len(trace.xla_ops):
        return activities
    if sampling_of(trace, activities, host.once.captured).sampled:
        return activities
    awaited = awaited_ends(trace, activities)
    made, busy = [], iv.joined([activity.busy for activity in activities])
    for at, activity in enumerate(activities):
        origin = min(int(activity.start[0]), int(markers.start[0]))
        spans = _Device(trace, activity, host, awaited[at], busy).unrecorded(origin)
        made.append(replace(activity, unrecorded=spans))
    return made


class _Device:
    """One device, and what else may be behind its silence."""

    def __init__(
        self, trace: Trace, activity: DeviceActivity, host: HostActivity, awaited: I64, busy: iv.Intervals
    ) -> None:
        self.trace, self.activity, self.host = trace, activity, host
        self.awaited, self.busy = awaited, busy

    def unrecorded(self, origin: int) -> iv.Intervals:
        """When the device worked on what was not recorded, from an instant on."""
        activity = self.activity
        begin, end = iv.complement(activity.busy, origin, int(activity.end.max()))
        op = np.searchsorted(activity.start, end, "left").astype(np.int32)
        long = (end - begin >= UNRECORDED_NS) & activity.launched[op]
        begin, end, op = begin[long], end[long], op[long]
        queued = self._queued(begin, end, op)
        blocked = self._blocked(begin, end, op)
        spans = iv.joined([queued, blocked])
        first = int(activity.start[0])
        at_start = iv.clip(spans, origin, first)
        if len(at_start[0]):  # nothing was launched before it: it is older than the profile
            spans = iv.joined([spans, (np.array([origin], np.int64), at_start[1][-1:])])
        return spans

    def _queued(self, begin: I64, end: I64, op: I32) -> iv.Intervals:
        """From when an op was launched and its stream was free of what is recorded until it started."""
        activity = self.activity
        from_launch = np.where(self._waits_itself(op), activity.launch[op], activity.launch_end[op])
        since = np.maximum(np.maximum(begin, from_launch), self.awaited[op])
        since = since + self._staging_ns(op)
        chosen = (end - since >= UNRECORDED_NS) & ~self._told_to_wait(op)
        return self._alone((since[chosen], end[chosen]))

    def _blocked(self, begin: I64, end: I64, op: I32) -> iv.Intervals:
        """When the thread that then launches was blocked in a wait for the device."""
        waits = _waits(self.host)
        blocked = []
        for thread in distinct(self.activity.thread[op]):
            mine = self.activity.thread[op] == thread
            gaps: iv.Intervals = (begin[mine], np.minimum(end, self.activity.launch[op])[mine])
            kept = gaps[1] > gaps[0]
            own = waits[self.trace.slices.track[waits] == thread]
            spans = iv.of(self.trace.slices, own)
            blocked.append(iv.intersect((gaps[0][kept], gaps[1][kept]), spans))
        start, stop = iv.joined(blocked)
        long = stop - start >= UNRECORDED_NS
        return self._alone((start[long], stop[long]))

    def _alone(self, spans: iv.Intervals) -> iv.Intervals:
        """Spans, of time in which this device does nothing, in which no other was at work: it may be what was waited
        for."""
        kept = iv.covered_between(self.busy, *spans) == 0
        return iv.union(spans[0][kept], spans[1][kept])

    def _waits_itself(self, op: I32) -> Bools:
        """Whether the op's own call blocks: it then ends no sooner than the op, whenever the stream got to it."""
        calls = self.activity.call[op]
        return among(calls, self.host.waits.slice)

    def _staging_ns(self, op: I32) -> I64:
        """The most the host may take to stage what a copy to the device sends, inside the call."""
        ops, rows = self.trace.device_ops, self.activity.row[op]
        to_device = (ops.direction[rows] == Direction.H2D) & self._waits_itself(op)
        size = np.where(ops.bytes[rows] == NULL, 0, ops.bytes[rows])
        most = size * 1_000_000_000 // STAGING_BYTES_PER_S
        return np.where(to_device & staged(self.trace, rows), most, 0).astype(np.int64)

    def _told_to_wait(self, op: I32) -> Bools:
        """Whether a stream was told to wait, for an event or the host, between the op's launch and that of the op
        before it on its stream: the device's first op cannot know of anything else that is recorded."""
        activity = self.activity
        told = _times_told(self.trace)
        if not told.size:
            return np.zeros(op.size, np.bool_)
        previous = np.full(op.size, np.iinfo(np.int64).max)
        for stream in distinct(activity.stream[op]):
            mine = activity.launched & (activity.stream == stream)
            launches = np.sort(activity.launch[mine])
            rows = np.flatnonzero(activity.stream[op] == stream)
            at = np.searchsorted(launches, activity.launch[op[rows]]) - 1
            previous[rows] = np.where(at >= 0, launches[np.maximum(at, 0)], np.iinfo(np.int64).min)
        within = np.searchsorted(told, activity.launch[op]) > np.searchsorted(told, previous, "right")
        return np.asarray(within & (op != 0))


def _times_told(trace: Trace) -> I64:
    """When host threads told a stream to wait."""
    slices = trace.slices
    rows = np.flatnonzero(slices.kind == Kind.RUNTIME_CALL)
    rows = rows[trace.tracks.kind[slices.track[rows]] == TrackKind.HOST_THREAD]
    return np.sort(slices.start_ns[rows[mapped(slices.name[rows], trace.strings, _tells_to_wait, np.bool_)]])


def _tells_to_wait(name: str) -> bool:
    return call_role(name) is CallRole.STREAM_WAIT or "LaunchHostFunc" in name


@shared
def _waits(host: HostActivity) -> I32:
    """Calls that block until a device got somewhere, but for copies to it, whose data the host may be staging."""
    waits, ops = host.waits.slice, host.trace.device_ops
    runtime = among(host.trace.slices.kind[waits], (Kind.SYNC, Kind.RUNTIME_CALL))
    sends = united(ops.launch[(ops.direction != Direction.D2H) & (ops.launch >= 0)])
    return np.asarray(waits[runtime & ~among(waits, sends)])
