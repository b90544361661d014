"""Was the trace sampled or filtered? Then costs per step cannot be told from it."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.limits import CORRELATION_HOLE, CORRELATION_HOLE_SHARE, FEWEST_CALLS, UNMATCHED_SHARE
from stepscope.names.calls import CallRole, call_role
from stepscope.record import record
from stepscope.trace.codes import among, mapped, marked, united
from stepscope.trace.tables import NULL, Bools, Kind
from stepscope.trace.trace import Trace

# Not copies and sets: those of no bytes leave no device op behind.
_LAUNCHING = (CallRole.LAUNCH, CallRole.GRAPH_LAUNCH)


@record
class Sampling:
    """What is missing inside the profile; shares are of the ops or launches that should have a partner."""

    ops_without_launch: float
    launches_without_op: float
    correlation_holes: float
    launches_unnumbered: float
    """Ops whose launch was not recorded (``DeviceActivity.unnumbered``), which are not among ``ops_without_launch``."""

    @property
    def sampled(self) -> bool:
        """Whether enough is missing to distrust sums."""
        return (
            self.ops_without_launch > UNMATCHED_SHARE
            or self.launches_without_op > UNMATCHED_SHARE
            or self.correlation_holes > CORRELATION_HOLE_SHARE
        )


def sampling_of(trace: Trace, activities: list[DeviceActivity], captured: Bools) -> Sampling:
    """Measure what has no partner between the first and the last matched launch; what was ``captured`` into a graph did
    not run."""
    ops = unmatched = unnumbered = 0
    for activity in activities:
        if activity.launched.any() and not activity.by_node:
            inside = np.arange(len(activity)) >= int(activity.launched.argmax())
            missing = inside & ~activity.launched
            ops += int(inside.sum())
            unmatched += int((missing & ~activity.unnumbered).sum())
            unnumbered += int((missing & activity.unnumbered).sum())
    ops = max(ops, 1)
    return Sampling(unmatched / ops, _launches_without_op(trace, captured), _holes(trace), unnumbered / ops)


def _launches_without_op(trace: Trace, captured: Bools) -> float:
    slices, calls = trace.slices, trace.launches.call
    if len(calls) == 0:
        return 0.0
    times = slices.start_ns[calls]
    inside = (slices.kind == Kind.RUNTIME_CALL) & (slices.correlation != NULL)
    inside &= ~captured
    inside &= (slices.start_ns >= times.min()) & (slices.start_ns <= times.max())
    rows = np.flatnonzero(inside)
    launching = rows[mapped(slices.name[rows], trace.strings, _launches, np.bool_)]
    matched = marked(calls, len(slices))
    return float((~matched[launching]).mean()) if launching.size else 0.0


def _launches(name: str) -> bool:
    return call_role(name) in _LAUNCHING


def _holes(trace: Trace) -> float:
    """Share of calls whose correlation id lies far from the previous one: the calls between were taken out.

    CUDA numbers every API call; the cheap queries that Kineto leaves out make holes of up to a few dozen ids.
    """
    slices = trace.slices
    ids = united(slices.correlation[among(slices.kind, (Kind.RUNTIME_CALL, Kind.SYNC, Kind.ALLOCATION))])
    steps = np.diff(ids[ids != NULL])
    return float((steps > CORRELATION_HOLE).mean()) if steps.size >= FEWEST_CALLS else 0.0
