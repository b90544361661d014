"""Work handed from one event to another: equal type and id of a producer (``_pt``, ``_p``) and a consumer (``_ct``,
``_c``), as TraceMe's producer and consumer write them (tsl/profiler/lib/connected_traceme.h).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from stepscope.compiled import filling
from stepscope.formats.xplane.view import View
from stepscope.record import record
from stepscope.trace.tables import I64, NULL, Rows

REGION_START, REGION_STOP = "ThreadpoolListener::StartRegion", "ThreadpoolListener::StopRegion"
"""Instants between which a thread of a pool works on one task (tsl/profiler/backends/cpu/threadpool_listener.cc)."""

PJRT = 5
"""The context type whose ids are run ids (tsl/profiler/lib/context_types.h)."""


@record
class Ends:
    """One side of all hand-overs: rows of events, type and id (64 raw bits) of each."""

    rows: Rows
    type: I64
    id: I64


class Handovers:
    """The pairs of one file."""

    def __init__(self, view: View) -> None:
        self._view = view

    @cached_property
    def producers(self) -> Ends:
        """Events that hand over."""
        return self._ends("_p", "_pt")

    @cached_property
    def consumers(self) -> Ends:
        """Events that take over."""
        return self._ends("_c", "_ct")

    def _ends(self, id_key: str, type_key: str) -> Ends:
        stats = self._view.space.stats
        rows = stats.rows(id_key).astype(np.intp)
        id, type = stats.integers(id_key, rows), stats.integers(type_key, rows)
        known = (id != NULL) & (type != NULL)
        return Ends(rows, type, id) if known.all() else Ends(rows[known], type[known], id[known])

    @cached_property
    def pairs(self) -> tuple[Rows, Rows]:
        """Producer and consumer of each hand-over.

        A consumer belongs to the last producer that began before it, else to the first. In time order per type and
        id that is one pass, however often an id is used again.
        """
        out, into = self._sorted(self.producers), self._sorted(self.consumers)
        source = np.empty(into.rows.size, np.intp)
        start = self._view.events.start_ns
        _pair((out.id, out.type, start[out.rows]), (into.id, into.type, start[into.rows]), source)
        paired = source >= 0
        return out.rows[source[paired]], into.rows[paired]

    def _sorted(self, ends: Ends) -> Ends:
        order = np.lexsort((self._view.events.start_ns[ends.rows], ends.type, ends.id))
        if (order[1:] > order[:-1]).all():
            return ends
        return Ends(ends.rows[order], ends.type[order], ends.id[order])


@filling
def _pair(out: tuple[I64, I64, I64], into: tuple[I64, I64, I64], source: Rows) -> None:
    """The place of each consumer's producer, -1 for none; both sides are id, type and start, sorted by them."""
    place = 0
    for k in range(source.size):
        id, type, start = into[0][k], into[1][k], into[2][k]
        while place < out[0].size and (
            out[0][place] < id
            or (out[0][place] == id and (out[1][place] < type or (out[1][place] == type and out[2][place] <= start)))
        ):
            place += 1
        source[k] = -1
        if place > 0 and out[0][place - 1] == id and out[1][place - 1] == type:
            source[k] = place - 1
        elif place < out[0].size and out[0][place] == id and out[1][place] == type:
            source[k] = place
