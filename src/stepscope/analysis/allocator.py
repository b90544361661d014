"""Calls that take device memory from the driver and give it back, inside the steps: a cache avoids them."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.steps import Markers
from stepscope.names import calls
from stepscope.record import record
from stepscope.trace.codes import among, mapped
from stepscope.trace.tables import I32, Bools, Kind, Rows, TrackKind
from stepscope.trace.trace import Trace


@record
class AllocatorCalls:
    """Calls of the used steps, over all devices."""

    taken: int
    """Calls that take memory."""
    freed: int
    """Calls that give memory back."""
    retries: int | None
    """Requests that failed, so that the allocator gave back what it had cached and asked again: in one op, frees
    between two requests. None where no op was recorded around the calls."""
    retried_steps: int
    """Used steps with such a request."""
    slices: I32

    @property
    def recur(self) -> bool:
        """Whether requests are retried in more than one step: a library that sets up its handles (cuDNN's) makes the
        same calls once."""
        return self.retried_steps > 1


def allocator_calls(trace: Trace, markers: Markers, used: tuple[int, ...]) -> AllocatorCalls | None:
    """The calls of the used steps; None where there are none."""
    slices = trace.slices
    rows = np.flatnonzero(slices.kind == Kind.ALLOCATION)
    step = np.searchsorted(markers.start, slices.start_ns[rows], "right") - 1
    inside = among(step, used) & (slices.start_ns[rows] < markers.end[step])
    rows = rows[inside & (trace.tracks.kind[slices.track[rows]] == TrackKind.HOST_THREAD)]
    frees = mapped(slices.name[rows], trace.strings, calls.frees, np.bool_)
    if not rows.size:
        return None
    retried = rows[_retries(slices.parent[rows], frees)]
    return AllocatorCalls(
        taken=int((~frees).sum()),
        freed=int(frees.sum()),
        retries=retried.size if (slices.parent[rows] >= 0).any() else None,
        retried_steps=int(np.unique(np.searchsorted(markers.start, slices.start_ns[retried], "right")).size),
        slices=rows.astype(np.int32),
    )


def _retries(parent: I32, frees: Bools) -> Rows:
    """Requests that follow frees which follow a request, all in one slice; calls are in order of thread and time."""
    begins = np.append(True, (parent[1:] != parent[:-1]) | (frees[1:] != frees[:-1]))
    run: Rows = np.flatnonzero(begins)
    of, freeing = parent[run], frees[run]
    same = (of[2:] == of[1:-1]) & (of[1:-1] == of[:-2]) & (of[2:] >= 0)
    return np.asarray(run[2:][same & ~freeing[2:] & freeing[1:-1]], np.intp)


__all__ = ["AllocatorCalls", "allocator_calls"]
