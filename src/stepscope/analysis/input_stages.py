"""The input pipeline as a whole: what each stage takes, how much of it the device works through, and what the threads
that prepare batches do while the training thread waits for one.

A wait for input is followed to its producers: where they are busy all the while there are too few of them or a stage is
too heavy; where they are idle too, what they read from is what everything waits for. Worker processes are not part of a
profile: of them nothing is said.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.host import HostActivity
from stepscope.analysis.inputs import STAGES, WAITING, Taking, stage_of, takings
from stepscope.analysis.iterators import PipelineIterators, iterators_of
from stepscope.analysis.steps import Markers, begun_in
from stepscope.names.tf_data import is_iterator_thread
from stepscope.names.tf_graph import QUEUE_TAG
from stepscope.names.xla_hosts import XlaRole
from stepscope.record import record
from stepscope.regex import regex
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, distinct, used_codes
from stepscope.trace.forest import inherit, on_host_threads
from stepscope.trace.tables import Rows
from stepscope.trace.trace import Trace

TRAINING, LOADER, DEVICE = "training thread", "loader threads", "device"
_ENQUEUE = regex(r"(?:^|[:/])QueueEnqueue")
_OTHER = "other"


@record
class Stage:
    """One stage of the pipeline in the used steps."""

    name: str
    side: str
    """Who does it: the training thread, loader threads, or the device (copies)."""
    ns: int
    """Time it takes, all threads together."""
    overlapped_ns: int | None
    """The part in which a device worked on something else; None where no device was recorded."""


@record
class Producers:
    """The threads that prepare batches, while the training thread waits for one."""

    threads: int
    busy_share: float
    """Share of the waiting in which they worked, a mean over the threads."""
    any_busy_share: float
    """Share of the waiting in which one of them or more worked."""
    heaviest: str | None
    """The stage that takes most of their time; None where no name tells one."""
    load_ns: float
    """Time in which each of them worked, whether or not anybody waited, where they do the same work in parallel; of
    threads that do different work that of the busiest."""

    def feeds(self, device_ns: int) -> float | None:
        """How many devices they keep up with, each of which takes ``device_ns`` for as many batches as these threads
        made in ``load_ns``, at their number and with cores for all; None where they did nothing."""
        return device_ns / self.load_ns if self.load_ns else None


@record
class Queue:
    """How full an input queue was, as summaries beside the profile say."""

    name: str
    readings: int
    mean: float
    """Share of its capacity, over the readings."""
    least: float


@record
class InputStages:
    """The pipeline over the used steps."""

    wait_ns: int
    """Time in which the training thread was in the loader, whatever it did there."""
    stages: tuple[Stage, ...]
    producers: Producers | None
    """None where no thread that prepares batches was recorded."""
    queues: tuple[Queue, ...] = ()
    """Those whose fill was recorded."""
    iterators: PipelineIterators | None = None
    """Those of tf.data; None where none was recorded."""
    taken_on: str | None = None
    """The thread on which batches are waited for, where it has a name and is not the main one."""


def input_stages(
    trace: Trace, host: HostActivity, markers: Markers, used: tuple[int, ...], activities: list[DeviceActivity]
) -> InputStages | None:
    """What is known of the pipeline; None where nothing of it was recorded."""
    taken = takings(host, markers, used)
    taking, preparing = np.flatnonzero(taken.taking), np.flatnonzero(taken.preparing)
    over = iv.joined([a.busy for a in activities]) if activities else None
    mine = by_stage(trace, taken, taking)
    theirs = by_stage(trace, taken, preparing)
    stages = [*_stages(mine, TRAINING, over), *_stages(theirs, LOADER, over)]
    stages += _named(trace, host, markers, used, over)
    stages += _copies(activities, markers, used)
    if not stages:
        return None
    waited = iv.of(trace.slices, taken.taking)
    iterators = iterators_of(trace, begun_in(trace, markers, used), waited)
    return InputStages(
        iv.measure(waited),
        tuple(stages),
        _producers(trace, theirs, waited),
        _queues(trace),
        iterators,
        _taken_on(trace, host, taking),
    )


def _taken_on(trace: Trace, host: HostActivity, taking: Rows) -> str | None:
    """The name of the thread that waits longest for batches, where that is not the main one."""
    tracks = trace.slices.track[taking]
    track = int(np.bincount(tracks, trace.slices.dur_ns[taking]).argmax()) if tracks.size else host.main
    if track == host.main:
        return None
    codes = int(trace.tracks.label[track]), int(trace.tracks.thread[track])
    name = next((trace.strings[code] for code in codes if code >= 0), None)
    return name.split("/")[0] if name else None


def _queues(trace: Trace) -> tuple[Queue, ...]:
    counters = trace.counters
    tags = [code for code in distinct(counters.name) if QUEUE_TAG.search(trace.strings[code])]
    fills = {trace.strings[code]: counters.value[counters.name == code] for code in tags}
    known = {name: values[(values >= 0) & (values <= 1)] for name, values in fills.items()}
    return tuple(
        Queue(name, values.size, float(values.mean()), float(values.min()))
        for name, values in known.items()
        if values.size
    )


Spans = dict[tuple[int, str], iv.Intervals]
"""By track and stage."""


def by_stage(trace: Trace, taking: Taking, ranges: Rows) -> Spans:
    """When each thread was in each stage inside some of the ranges found; the innermost stage counts."""
    slices = trace.slices
    chosen = np.full(len(slices), -1, np.int32)
    chosen[ranges] = ranges
    inside = np.flatnonzero(inherit(chosen, slices.parent) >= 0)
    stage = stage_of(trace, taking)[inside]
    outer = among(inside, ranges)
    around = np.where(outer, -2, stage[np.searchsorted(inside, np.where(outer, inside[:1], slices.parent[inside]))])
    start, end = slices.start_ns[inside], (slices.start_ns + slices.dur_ns)[inside]
    track = slices.track[inside]
    spans: Spans = {}
    for thread in distinct(track):
        for number in distinct(stage[track == thread]):
            of = (track == thread) & (stage == number)
            others = (track == thread) & (stage != number) & (around == number)
            rest = iv.subtract(iv.union(start[of], end[of]), iv.union(start[others], end[others]))
            spans[thread, STAGES[number][0] if number >= 0 else _OTHER] = rest
    return spans


def _stages(spans: Spans, side: str, busy: iv.Intervals | None) -> list[Stage]:
    names = dict.fromkeys(name for _, name in spans)
    made = []
    for name in names:
        of = [part for (_, own), part in spans.items() if own == name]
        overlapped = None if busy is None else sum(iv.measure(iv.intersect(part, busy)) for part in of)
        made.append(Stage(name, side, sum(map(iv.measure, of)), overlapped))
    return sorted((stage for stage in made if stage.ns), key=lambda stage: -stage.ns)


def _named(
    trace: Trace, host: HostActivity, markers: Markers, used: tuple[int, ...], busy: iv.Intervals | None
) -> list[Stage]:
    """Queues filled, and batches sent by the host: told by names, on whichever thread."""
    slices = trace.slices
    counted = begun_in(trace, markers, used) & on_host_threads(trace)
    used_names = used_codes(slices.name, len(trace.strings)).tolist()
    enqueues = [code for code in used_names if _ENQUEUE.search(trace.strings[code])]
    kinds = {
        "enqueue": among(slices.name, enqueues),
        "transfer": host.in_role(XlaRole.TRANSFER),
        "infeed": host.in_role(XlaRole.INFEED),
    }
    made = []
    for name, chosen in kinds.items():
        spans = iv.of(trace.slices, chosen & counted)
        if spans[0].size:
            overlapped = None if busy is None else iv.measure(iv.intersect(spans, busy))
            made.append(Stage(name, LOADER, iv.measure(spans), overlapped))
    return made


def _copies(activities: list[DeviceActivity], markers: Markers, used: tuple[int, ...]) -> list[Stage]:
    """Copies to the devices that begin in the used steps, and what of them something else hides."""
    total = exposed = 0
    for activity in activities:
        step = np.searchsorted(markers.start, activity.start, "right") - 1
        mine = (activity.category == Category.COPY_H2D.code) & among(step, used)
        start, end, category = activity.busy_pieces
        alone = category == Category.COPY_H2D.code
        copies = iv.union(activity.start[mine], activity.end[mine])
        total += iv.measure(copies)
        exposed += iv.measure(iv.intersect(copies, (start[alone], end[alone])))
    return [Stage("h2d", DEVICE, total, total - exposed)] if total else []


def _producers(trace: Trace, spans: Spans, waited: iv.Intervals) -> Producers | None:
    threads = list(dict.fromkeys(thread for thread, _ in spans))
    length = iv.measure(waited)
    if not threads or not length:
        return None
    working = {key: part for key, part in spans.items() if key[1] != WAITING}
    each = [iv.joined([part for (of, _), part in working.items() if of == thread]) for thread in threads]
    busy = sum(iv.measure(iv.intersect(worked, waited)) for worked in each)
    together = iv.measure(iv.intersect(iv.joined(each), waited)) / length
    totals: dict[str, int] = {}
    for (_, name), part in working.items():
        totals[name] = totals.get(name, 0) + iv.measure(part)
    told = {name: ns for name, ns in totals.items() if name != _OTHER}
    most = max(told, key=lambda name: told[name], default=None)
    known = most is not None and 2 * told[most] >= sum(totals.values())
    share = busy / (length * len(threads))
    load = _load(trace, spans, dict(zip(threads, each, strict=True)))
    return Producers(len(threads), share, together, most if known else None, load)


def _load(trace: Trace, spans: Spans, working: dict[int, iv.Intervals]) -> float:
    """How long each thread of those that share one work did it, and of tf.data's iterators, each of which does its
    own, how long the busiest; the longest of all. An iterator is busy too while it waits for what was not recorded."""
    tracks, strings = trace.tracks, trace.strings
    names = {track: [int(tracks.label[track]), int(tracks.thread[track])] for track in working}
    alone = [
        track
        for track, codes in names.items()
        if any(code >= 0 and is_iterator_thread(strings[code]) for code in codes)
    ]
    anyone = iv.joined(working.values())
    waits = {track: iv.subtract(spans.get((track, WAITING), iv.EMPTY), anyone) for track in alone}
    shared = [iv.measure(of) for track, of in working.items() if track not in alone]
    busy = [iv.measure(working[track]) + iv.measure(waits[track]) for track in alone]
    return max([*busy, sum(shared) / max(len(shared), 1)])
