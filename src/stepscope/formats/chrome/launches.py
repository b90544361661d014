"""Which call launched which device op, by the correlation id that the two share."""

from __future__ import annotations

import numpy as np

from stepscope.formats.chrome.conversion import Conversion
from stepscope.names.calls import is_graph_launch
from stepscope.trace import tables as t

CALLS = (t.Kind.RUNTIME_CALL, t.Kind.SYNC, t.Kind.ALLOCATION, t.Kind.COMPILE)
"""Kinds of slices that may launch device work."""


def by_correlation(conversion: Conversion, ops: t.Rows) -> tuple[t.I64, t.U8]:
    """The event of the call behind each device op (-1 where none is recorded), and how it was found."""
    e = conversion.events
    calls = conversion.rows_of(*CALLS)
    ids = conversion.columns.correlations(calls)
    calls, ids = calls[ids != t.NULL], ids[ids != t.NULL]
    # Where two calls share an id (a driver call inside a runtime call) the outer, earlier one is the launch.
    order = np.lexsort((-e.dur_ns[calls], e.ts_ns[calls], ids))
    ids, first = np.unique(ids[order], return_index=True)
    calls = calls[order][first]
    wanted = conversion.columns.correlations(ops)
    call = np.full(ops.size, -1, np.int64)
    if ids.size:
        at = np.minimum(np.searchsorted(ids, wanted), ids.size - 1)
        call = np.where(ids[at] == wanted, calls[at], -1)
    is_graph = np.array([is_graph_launch(name) for name in e.strings] + [False])
    basis = np.where(is_graph[e.name[call]], t.LaunchBasis.GRAPH, t.LaunchBasis.CORRELATION)
    return call, basis.astype(np.uint8)


def set_launches(conversion: Conversion, ops: t.Rows, call: t.I64, basis: t.U8) -> t.I32:
    """Make the table of launches; returns the slice of each op's call, -1 for none."""
    launched = call >= 0
    of = np.where(launched, conversion.slice_id[call], -1).astype(np.int32)
    op = conversion.slice_id[ops[launched]]
    conversion.builder.table(t.Launches(call=of[launched], op=op, basis=basis[launched]))
    return of
