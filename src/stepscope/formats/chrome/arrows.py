"""Flow events (``s``, ``t``, ``f``) as arrows from event to event."""

from __future__ import annotations

import numpy as np

from stepscope.formats.chrome.events import RawEvents
from stepscope.formats.chrome.pairs import id_values, ranks
from stepscope.trace import tables as t

LAUNCH = -1
"""In :data:`FLOW_KINDS`: arrows from a launch to what it launched."""

FLOW_KINDS: dict[str, int] = {
    "ac2g": LAUNCH,
    "async": LAUNCH,
    "async_cpu_to_gpu": LAUNCH,
    "async_gpu": LAUNCH,
    "fwdbwd": t.FlowKind.FORWARD_BACKWARD,
    "forward_backward": t.FlowKind.FORWARD_BACKWARD,
    "event_wait": t.FlowKind.EVENT_WAIT,
    "producer_consumer": t.FlowKind.PRODUCER_CONSUMER,
    "dataflow": t.FlowKind.DATAFLOW,
}
"""Lower-case category of flow events to what their arrows mean; any other category is just an arrow."""


def arrows(events: RawEvents, rows: t.Rows, slices: t.Rows) -> tuple[t.Rows, t.Rows, t.I64]:
    """Pairs of flow events (source, target) among ``rows``, and the time at which each target touches its thread.

    Events of one category, name and id are one chain in time: each step and each end comes from the last start or
    step before it. An end touches the next slice (of ``slices``) of its thread, or with ``"bp": "e"`` the one around
    it; source: "Trace Event Format" (Google).
    """
    ids = id_values(events, rows)
    rows = rows[(events.ts_ns[rows] != t.NULL) & (ids != t.NULL)]
    chain = ranks(id_values(events, rows), events.name[rows], events.category[rows])
    phase = events.phase[rows]
    place = np.select([phase == ord("s"), phase == ord("t")], [0, 1], 2)
    order = np.lexsort((place, events.ts_ns[rows], chain))
    rows, chain, place = rows[order], chain[order], place[order]
    position = np.arange(rows.size)
    latest = np.maximum.accumulate(np.where(place < 2, position, -1))
    # The last start or step before each event, itself not counted.
    before = np.concatenate(([-1], latest))[: rows.size]
    ends = np.flatnonzero((place > 0) & (before >= 0) & (chain[before] == chain))
    source, target = rows[before[ends]], rows[ends]
    return source, target, _touched(events, target, slices)


def _touched(events: RawEvents, targets: t.Rows, slices: t.Rows) -> t.I64:
    times = events.ts_ns[targets].copy()
    bound = np.zeros(targets.size, np.bool_) if events.bound is None else events.bound[targets]
    loose = np.flatnonzero((events.phase[targets] == ord("f")) & ~bound)
    if loose.size == 0:
        return times
    # Arrow ends and slices in one order per thread; behind each end the next slice.
    rows = np.concatenate((targets[loose], slices))
    is_slice = np.arange(rows.size) >= loose.size
    order = np.lexsort((is_slice, events.ts_ns[rows], events.lane[rows]))
    position = np.where(is_slice[order], np.arange(rows.size), rows.size)
    following = np.empty(rows.size, np.intp)
    following[order] = np.minimum.accumulate(position[::-1])[::-1]
    following = following[: loose.size]
    touches = following < rows.size
    chosen = rows[order][np.minimum(following, rows.size - 1)]
    touches &= events.lane[chosen] == events.lane[targets[loose]]
    times[loose[touches]] = events.ts_ns[chosen[touches]]
    return times
