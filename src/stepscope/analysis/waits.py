"""What device ops were made to wait for: events of other streams, and waits drawn on the device itself."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.device import DeviceActivity
from stepscope.trace import intervals as iv
from stepscope.trace.tables import I64, NULL, Kind
from stepscope.trace.trace import Trace

UNKNOWN_END = int(np.iinfo(np.int64).max)
"""The end of an awaited op that the profile does not identify."""


def awaited_ends(trace: Trace, activities: list[DeviceActivity]) -> list[I64]:
    """Per op of each device, the end of the op that a recorded wait made it wait for; NULL where none was recorded.

    CUDA profiles draw a stream's wait for an event at the time of the host's call: it holds up the first op launched
    on that stream afterwards, until the last op launched on the other stream before the event was recorded is done.
    """
    ends = [np.full(len(activity), NULL, np.int64) for activity in activities]
    waits, slices = trace.device_waits, trace.slices
    recorded = _times_of_calls(trace, waits.wait_on_correlation)
    for w in np.flatnonzero((waits.wait_on_correlation != NULL) & (waits.stream != NULL)).tolist():
        called = int(slices.start_ns[waits.slice[w]])
        for activity, of_op in zip(activities, ends, strict=True):
            if activity.device == waits.device[w]:
                op = _next_on_stream(activity, int(waits.stream[w]), called)
                if op is not None:
                    until = _awaited(
                        activities,
                        (activity.device, int(waits.stream[w])),
                        int(waits.wait_on_stream[w]),
                        int(recorded[w]),
                    )
                    of_op[op] = max(int(of_op[op]), until)
    return ends


def drawn_waits(trace: Trace, device: int, stream: int) -> iv.Intervals:
    """When a stream waited, where the device itself reports it (MTIA): such waits name no call."""
    waits = trace.device_waits
    chosen = waits.slice[
        (waits.device == device)
        & (waits.stream == stream)
        & (waits.wait_on_stream != NULL)
        & (waits.wait_on_correlation == NULL)
    ]
    start = trace.slices.start_ns[chosen]
    return iv.union(start, start + trace.slices.dur_ns[chosen])


def _times_of_calls(trace: Trace, correlations: I64) -> I64:
    """When the calls with these correlation ids began, NULL where not recorded."""
    slices = trace.slices
    calls = np.flatnonzero((slices.kind == Kind.RUNTIME_CALL) & (slices.correlation != NULL))
    calls = calls[np.argsort(slices.correlation[calls], kind="stable")]
    ids = slices.correlation[calls]
    if ids.size == 0:
        return np.full(correlations.size, NULL, np.int64)
    at = np.minimum(np.searchsorted(ids, correlations), ids.size - 1)
    return np.where(ids[at] == correlations, slices.start_ns[calls[at]], NULL)


def _next_on_stream(activity: DeviceActivity, stream: int, called: int) -> int | None:
    later = np.flatnonzero((activity.stream == stream) & activity.launched & (activity.launch >= called))
    return int(later[activity.launch[later].argmin()]) if later.size else None


def _awaited(activities: list[DeviceActivity], waiting: tuple[int, int], stream: int, recorded: int) -> int:
    """End of the op launched last on the awaited stream before the event was recorded, on whichever device."""
    best = (NULL, UNKNOWN_END)
    if recorded == NULL:
        return UNKNOWN_END
    for activity in activities:
        if (activity.device, stream) == waiting:
            continue
        ops = np.flatnonzero((activity.stream == stream) & activity.launched & (activity.launch <= recorded))
        if ops.size:
            last = ops[activity.launch[ops].argmax()]
            best = max(best, (int(activity.launch[last]), int(activity.end[last])))
    return best[1]
