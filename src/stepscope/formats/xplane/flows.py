"""Hand-overs between threads as flows between slices."""

from __future__ import annotations

import numpy as np

from stepscope.formats.xplane.handovers import REGION_START, REGION_STOP, Handovers
from stepscope.formats.xplane.moments import OnLines, first_from
from stepscope.formats.xplane.stats import FIRST_FLOW_TYPE
from stepscope.formats.xplane.view import View
from stepscope.trace import tables as t
from stepscope.trace.codes import marked


def add_flows(view: View, handovers: Handovers, times: tuple[t.I64, int], track: t.I32, slice_id: t.I32) -> None:
    """Give the builder a flow per hand-over; ``times`` are the starts of all events and the trace's origin.

    An instant stands for the slice around it; one at which a thread of a pool begins a task, for the first slice of
    the task, if one begins before the task ends. A flow whose end is in no slice is left out.
    """
    (start, origin), (source, target) = times, handovers.pairs
    kind = _kinds(view, target)
    target = _tasks(view, target, start, track, slice_id)
    both = (slice_id[source] >= 0) & (slice_id[target] >= 0)
    view.builder.table(t.Flows(kind[both], slice_id[source[both]], slice_id[target[both]]))
    rest = ~both & (track[source] >= 0) & (track[target] >= 0)
    source, target = source[rest], target[rest]
    view.builder.flow_points(
        t.FlowKind.PRODUCER_CONSUMER,
        (track[source], start[source] - origin),
        (track[target], start[target] - origin),
    )


def _kinds(view: View, consumers: t.Rows) -> t.U8:
    """The kind of each flow: that which stepscope's own files write into its type."""
    if not view.is_own:
        return np.full(consumers.size, t.FlowKind.PRODUCER_CONSUMER, np.uint8)
    own = view.integers("_ct", consumers) - FIRST_FLOW_TYPE
    known = (own >= 0) & (own < len(t.FlowKind))
    return np.where(known, own, t.FlowKind.PRODUCER_CONSUMER).astype(np.uint8)


def _tasks(view: View, rows: t.Rows, start: t.I64, track: t.I32, slice_id: t.I32) -> t.Rows:
    """For instants that begin a task of a thread pool the event that became the task's first slice; others as given."""
    mine = np.flatnonzero(view.called(REGION_START.__eq__)[rows] & (track[rows] >= 0))
    if not mine.size:
        return rows
    mine = mine[np.lexsort((start[rows[mine]], track[rows[mine]]))]
    moments = OnLines.in_order(rows[mine], track, start)
    pools = marked(track[moments.rows], int(track.max()) + 2)  # The last one is that of -1.
    on_pool = pools[track]
    begun = first_from(np.flatnonzero(on_pool & (slice_id >= 0)), moments, track, start)
    ended = first_from(np.flatnonzero(on_pool & view.called(REGION_STOP.__eq__)), moments, track, start)
    inside = (begun >= 0) & ((ended < 0) | (start[begun] <= start[ended]))
    tasks = rows.copy()
    tasks[mine[inside]] = begun[inside]
    return tasks
