"""What a profile of a plain Python program holds: its functions, by the time spent in their own code."""

from __future__ import annotations

import numpy as np

from stepscope.record import record
from stepscope.trace.codes import among, distinct
from stepscope.trace.self_time import self_time
from stepscope.trace.tables import Kind
from stepscope.trace.trace import ANY_EVENTS, Trace

_FUNCTION_KINDS = (Kind.PYTHON_FRAME, Kind.ANNOTATION, Kind.STEP)


@record
class FunctionUse:
    """All calls of one function, or all ranges of one name, in the whole profile."""

    name: str
    count: int
    self_ns: int
    """Time in which nothing recorded ran inside."""


def only_functions(trace: Trace) -> bool:
    """Whether nothing but functions and named ranges was recorded: no op, no call, no device.

    Ranges alone are functions only in a format that has no other kind of slice.
    """
    kinds = set(distinct(trace.slices.kind))
    named = Kind.PYTHON_FRAME in kinds or (bool(kinds) and trace.info.format == ANY_EVENTS)
    return named and kinds <= {*_FUNCTION_KINDS, Kind.OTHER}


def functions_by_self_time(trace: Trace) -> list[FunctionUse]:
    """The functions and ranges of all threads, those with most time of their own first."""
    slices = trace.slices
    if not len(slices):
        return []
    own = self_time(slices, int(slices.start_ns.min()), int((slices.start_ns + slices.dur_ns).max()))
    rows = np.flatnonzero(among(slices.kind, _FUNCTION_KINDS))
    codes, dense, counts = np.unique(slices.name[rows], return_inverse=True, return_counts=True)
    total = np.zeros(codes.size, np.int64)
    np.add.at(total, dense, own[rows])
    order = np.argsort(-total, kind="stable").tolist()
    return [FunctionUse(trace.strings[int(codes[at])], int(counts[at]), int(total[at])) for at in order]
