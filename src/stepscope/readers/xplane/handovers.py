"""Work handed from one event to another: equal type and id of a producer (``_pt``, ``_p``) and a consumer (``_ct``,
``_c``), as TraceMe's producer and consumer write them (tsl/profiler/lib/connected_traceme.h).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stepscope.readers.xplane.view import View
from stepscope.trace.tables import I64, NULL, Rows

REGION_START, REGION_STOP = "ThreadpoolListener::StartRegion", "ThreadpoolListener::StopRegion"
"""Instants between which a thread of a pool works on one task (tsl/profiler/backends/cpu/threadpool_listener.cc)."""

PJRT = 5
"""The context type whose ids are run ids (tsl/profiler/lib/context_types.h)."""


@dataclass(frozen=True, slots=True)
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
        return Ends(rows[known], type[known], id[known])

    @cached_property
    def pairs(self) -> tuple[Rows, Rows]:
        """Producer and consumer of each hand-over.

        A consumer belongs to the last producer that began before it, else to the first. In time order per type and
        id that is one pass, however often an id is used again.
        """
        out, into = self.producers, self.consumers
        rows = np.concatenate((out.rows, into.rows))
        type, id = np.concatenate((out.type, into.type)), np.concatenate((out.id, into.id))
        takes = np.arange(rows.size) >= out.rows.size
        order = np.lexsort((takes, self._view.events.start_ns[rows], type, id))
        rows, type, id, takes = rows[order], type[order], id[order], takes[order]
        position = np.arange(rows.size)
        opens = np.ones(rows.size, np.bool_)
        opens[1:] = (np.diff(type) != 0) | (np.diff(id) != 0)
        group_start = np.maximum.accumulate(np.where(opens, position, 0))
        before = np.maximum.accumulate(np.where(takes, -1, position))
        after = np.minimum.accumulate(np.where(takes, rows.size, position)[::-1])[::-1]
        group_end = np.append(np.flatnonzero(opens)[1:], rows.size)[np.cumsum(opens) - 1]
        source = np.where(before >= group_start, before, np.where(after < group_end, after, -1))
        paired = takes & (source >= 0)
        return rows[source[paired]], rows[paired]
