"""What device ops were made to wait for: events of other streams, and waits drawn on the device itself."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from stepscope.analysis.device import DeviceActivity
from stepscope.trace import intervals as iv
from stepscope.trace.tables import I64, NULL, Kind
from stepscope.trace.trace import Trace

_INFEED = re.compile(r"%?infeed(?:[.\-]|$)", re.IGNORECASE)
"""HLO instructions of the opcode infeed."""
UNKNOWN_END = int(np.iinfo(np.int64).max)
"""The end of an awaited op that the profile does not identify."""


def awaited_ends(trace: Trace, activities: list[DeviceActivity]) -> list[I64]:
    """Per op of each device, the end of the op that a recorded wait made it wait for; NULL where none was recorded.

    CUDA profiles draw a stream's wait for an event at the time of the host's call: it holds up the first op launched
    on that stream afterwards, until the last op launched on the other stream before the event was recorded is done.
    """
    ends = [np.full(len(activity), NULL, np.int64) for activity in activities]
    waits, slices = trace.device_waits, trace.slices
    rows = np.flatnonzero((waits.wait_on_correlation != NULL) & (waits.stream != NULL))
    if rows.size == 0:
        return ends
    recorded = _times_of_calls(trace, waits.wait_on_correlation)
    queues = [_queues(activity) for activity in activities]
    place = {activity.device: at for at, activity in enumerate(activities)}
    for w in rows.tolist():
        at = place.get(int(waits.device[w]))
        stream = int(waits.stream[w])
        queue = None if at is None else queues[at].get(stream)
        following = None if queue is None else queue.first_from(int(slices.start_ns[waits.slice[w]]))
        if at is None or following is None:
            continue
        others = [
            of
            for k, of_device in enumerate(queues)
            for s, of in of_device.items()
            if s == int(waits.wait_on_stream[w]) and (k, s) != (at, stream)
        ]
        until = _awaited(others, int(recorded[w]))
        ends[at][following] = max(int(ends[at][following]), until)
    return ends


@dataclass(frozen=True, slots=True)
class _Queue:
    """The launched ops of one stream in order of their launch."""

    op: I64
    launch: I64
    end: I64

    def first_from(self, time_ns: int) -> int | None:
        """The op launched first at or after an instant."""
        k = int(np.searchsorted(self.launch, time_ns))
        return int(self.op[k]) if k < self.op.size else None

    def last_until(self, time_ns: int) -> tuple[int, int] | None:
        """Launch and end of the op launched last at or before an instant."""
        k = int(np.searchsorted(self.launch, time_ns, "right")) - 1
        return (int(self.launch[k]), int(self.end[k])) if k >= 0 else None


def _queues(activity: DeviceActivity) -> dict[int, _Queue]:
    ops = np.flatnonzero(activity.launched)
    ops = ops[np.lexsort((activity.launch[ops], activity.stream[ops]))]
    if ops.size == 0:
        return {}
    streams, first = np.unique(activity.stream[ops], return_index=True)
    return {
        int(stream): _Queue(mine, activity.launch[mine], activity.end[mine])
        for stream, mine in zip(streams, np.split(ops, first[1:]), strict=True)
    }


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


def infeed_waits(trace: Trace, device: int) -> iv.Intervals:
    """When a device waited in an infeed op of its program for the host to send the next batch (TPU)."""
    codes = [code for code, name in enumerate(trace.strings) if _INFEED.match(name)]
    waits = trace.device_waits
    chosen = waits.slice[(waits.device == device) & np.isin(trace.slices.name[waits.slice], codes)]
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


def _awaited(others: list[_Queue], recorded: int) -> int:
    """End of the op launched last on the awaited stream before the event was recorded, on whichever device."""
    if recorded == NULL:
        return UNKNOWN_END
    found = [last for queue in others if (last := queue.last_until(recorded)) is not None]
    return max(found, default=(NULL, UNKNOWN_END))[1]
