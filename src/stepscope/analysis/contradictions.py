"""What no device can have done: where a profile says so, its clocks, units, numbers or events are wrong.

A device begins nothing before it is told to, a wait returns after what it waits for, a stream does one thing after
another, a call has a number of its own. Profiles that were converted, joined or written by mistaken exporters break
such rules without any sign of damage, and what is worked out from them is wrong.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.facts import Facts
from stepscope.analysis.late import LateWork, device_late
from stepscope.analysis.limits import (
    CLOCK_APART_NS,
    CONTRADICTED_SHARE,
    ELSEWHERE_TIMES,
    MARKED_INSIDE_SHARE,
    OVERLAP_NS,
    OVERLAPPING_SHARE,
    SHARED_NUMBERS_SHARE,
    UNMATCHED_SHARE,
)
from stepscope.analysis.marked import marked_inside
from stepscope.names.calls import CallRole, call_role
from stepscope.record import record
from stepscope.trace.codes import among, grouped, mapped
from stepscope.trace.forest import on_host_threads
from stepscope.trace.shared import shared
from stepscope.trace.tables import NULL, Direction, Kind, LaunchBasis, Rows, TrackKind
from stepscope.trace.trace import Trace

_WHOLE_DEVICE = ("cudaDeviceSynchronize", "hipDeviceSynchronize")
_OF_STREAM = ("cudaStreamSynchronize", "hipStreamSynchronize")


@record
class Contradictions:
    """Shares of the ops, waits or calls that are asked."""

    before_launch: float = 0.0
    """Ops that begin before the call that launched them."""
    after_wait: float = 0.0
    """Waits that return before what they wait for has ended."""
    overlapping: float = 0.0
    """Ops that begin before the one before them on their stream ends."""
    repeated: float = 0.0
    """Ops that are there a second time: same stream, name, start and end."""
    numbers_shared: float = 0.0
    """Launching calls whose number another one has."""
    elsewhere: float = 0.0
    """Ops that begin many times later than the host was recorded for."""
    in_vain: float = 0.0
    """Launches behind the last one of which there is an op: not wrong, but the device's end is missing."""

    in_used: bool = False
    """Whether used steps hold such launches."""
    marked: float = 0.0
    """Beginnings and ends of steps that lie where nothing can have marked them."""
    late: LateWork | None = None
    """A device that is late each time: not wrong if it worked on what was not recorded."""

    @property
    def clocks(self) -> bool:
        """Whether the times of host and device are not of one clock and unit, or ops not those of their calls."""
        return max(self.before_launch, self.after_wait) > CONTRADICTED_SHARE or self.elsewhere > 0.5

    @property
    def twice(self) -> bool:
        """Whether events are there twice."""
        return self.repeated > CONTRADICTED_SHARE

    @property
    def joined(self) -> bool:
        """Whether several processes are in one, or ops last longer than they can have."""
        return self.numbers_shared > SHARED_NUMBERS_SHARE or self.overlapping > OVERLAPPING_SHARE

    @property
    def any(self) -> bool:
        """Whether something is impossible."""
        return self.clocks or self.twice or self.joined or self.markers

    @property
    def markers(self) -> bool:
        """Whether the times of step markers are not of the clock of what they mark."""
        return self.marked > MARKED_INSIDE_SHARE

    @property
    def withholds(self) -> bool:
        """Whether nothing should be worked out from the profile."""
        return self.any or self.late is not None or (self.ends_early and self.in_used)

    @property
    def ends_early(self) -> bool:
        """Whether the device's end is missing."""
        return self.in_vain > UNMATCHED_SHARE


@shared
def contradictions(facts: Facts) -> Contradictions:
    """What is impossible in a profile whose ops name their launches by number; nothing is known of others."""
    trace, activities = facts.trace, facts.activities
    launched = [one.launched for one in activities]
    count = sum(int(rows.sum()) for rows in launched)
    if facts.device_lost or not facts.trace.completeness.complete:
        return Contradictions()  # damage is told by itself
    marked = marked_inside(facts)
    numbered = among(trace.launches.basis, (LaunchBasis.CORRELATION, LaunchBasis.GRAPH))
    if not count or not numbered.size or not numbered.all():
        return Contradictions(marked=marked)
    calls = _launching(facts)
    apart = 0 if _numbers_moved(facts, calls) else CLOCK_APART_NS
    early = sum(int((one.start[rows] < one.launch[rows] - apart).sum()) for one, rows in _each(facts))
    last = trace.slices.start_ns[trace.launches.call].max()
    overlapping, repeated = _on_streams(trace, activities)
    return Contradictions(
        before_launch=early / count,
        after_wait=_after_wait(facts),
        overlapping=overlapping,
        repeated=repeated,
        numbers_shared=_shared_numbers(trace, calls),
        elsewhere=_elsewhere(facts) / count,
        in_vain=float((trace.slices.start_ns[calls] > last).mean()) if calls.size else 0.0,
        in_used=bool((facts.markers.end[list(facts.used)] > last).any()),
        marked=marked,
        late=None if facts.sampling.sampled else device_late(facts),
    )


def _each(facts: Facts) -> list[tuple[DeviceActivity, Rows]]:
    """Each device and which of its ops have a launch."""
    return [(one, np.flatnonzero(one.launched)) for one in facts.activities]


def _launching(facts: Facts) -> Rows:
    """Calls that launch kernels or graphs, and do not only record them into one."""
    slices = facts.trace.slices
    calls = np.flatnonzero((slices.kind == Kind.RUNTIME_CALL) & (slices.correlation != NULL) & ~facts.once.captured)
    return np.asarray(calls[mapped(slices.name[calls], facts.trace.strings, _launches, np.bool_)])


def _launches(name: str) -> bool:
    return call_role(name) in (CallRole.LAUNCH, CallRole.GRAPH_LAUNCH)


def _numbers_moved(facts: Facts, calls: Rows) -> bool:
    """Whether the first launch has no op, and an op that was launched since has no call: a profile that begins or stops
    amid work has it the other way round. Such ops have the numbers of later calls, and clocks need not be blamed."""
    ops = facts.activities
    first = min(int(one.launch[one.launched].min()) for one in ops if one.launched.any())
    if not calls.size or int(facts.trace.slices.start_ns[calls].min()) >= first:
        return False
    return any(bool((~one.launched & ~one.before_profile & ~one.unnumbered).any()) for one in ops)


def _after_wait(facts: Facts) -> float:
    """Of waits for the one device, and of those for a copy to the host that follow it in the same op."""
    trace, slices = facts.trace, facts.trace.slices
    asked = broken = 0
    kinds = np.flatnonzero(among(slices.kind, (Kind.SYNC, Kind.RUNTIME_CALL)))
    kinds = kinds[trace.tracks.kind[slices.track[kinds]] == TrackKind.HOST_THREAD]
    whole = kinds[mapped(slices.name[kinds], trace.strings, _WHOLE_DEVICE.__contains__, np.bool_)]
    copying = kinds[mapped(slices.name[kinds], trace.strings, _OF_STREAM.__contains__, np.bool_)]
    for one, rows in _each(facts):
        if len(facts.activities) == 1:
            order = rows[np.argsort(one.launch[rows], kind="stable")]
            until = np.maximum.accumulate(one.end[order])
            last = np.searchsorted(one.launch[order], slices.start_ns[whole]) - 1
            known = last >= 0
            asked += int(known.sum())
            broken += int((until[last[known]] > _ends(trace, whole[known]) + CLOCK_APART_NS).sum())
        copies = rows[trace.device_ops.direction[one.row[rows]] == Direction.D2H]
        follows = np.searchsorted(copying, one.call[copies], "right")
        wait = np.append(copying, -1)[follows]
        same = (wait >= 0) & (slices.parent[wait] >= 0) & (slices.parent[wait] == slices.parent[one.call[copies]])
        asked += int(same.sum())
        broken += int((one.end[copies[same]] > _ends(trace, wait[same]) + CLOCK_APART_NS).sum())
    return broken / max(asked, 1)


def _ends(trace: Trace, rows: Rows) -> Rows:
    return np.asarray(trace.slices.start_ns[rows] + trace.slices.dur_ns[rows])


def _on_streams(trace: Trace, activities: list[DeviceActivity]) -> tuple[float, float]:
    """Shares of the ops that overlap the one before on their stream, and that are that one once more."""
    overlapping = repeated = 0
    grain = max(trace.info.resolution_ns, OVERLAP_NS)
    for one in activities:
        order = np.lexsort((one.end, one.start, one.stream))
        stream, start, end = one.stream[order], one.start[order], one.end[order]
        name, one_stream = trace.slices.name[one.slice[order]], stream[1:] == stream[:-1]
        same = one_stream & (start[1:] == start[:-1]) & (end[1:] == end[:-1]) & (name[1:] == name[:-1])
        same &= end[1:] > start[1:]
        repeated += int(same.sum())
        overlapping += int((one_stream & ~same & (start[1:] + grain < end[:-1])).sum())
    ops = max(sum(map(len, activities)), 1)
    return overlapping / ops, repeated / ops


def _shared_numbers(trace: Trace, calls: Rows) -> float:
    of_thread = trace.slices.track[calls], trace.slices.correlation[calls]  # processes number theirs on their own
    counts = np.bincount(grouped(*of_thread)[1])
    return float(counts[counts > 1].sum() / counts.sum()) if calls.size else 0.0


def _elsewhere(facts: Facts) -> int:
    slices = facts.trace.slices
    on_host = on_host_threads(facts.trace)
    if not on_host.any():
        return 0
    held = np.iinfo(np.int64)
    first = int(slices.start_ns.min(where=on_host, initial=held.max))
    last = int((slices.start_ns + slices.dur_ns).max(where=on_host, initial=held.min))
    latest = last + ELSEWHERE_TIMES * (last - first)
    return sum(int((one.start[at] > latest).sum()) for one, at in _each(facts))
