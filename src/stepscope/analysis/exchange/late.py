"""Which device of a profile comes last to what it exchanges with others of the same profile, and how long they wait."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from stepscope.analysis.exchange.collectives import Collectives
from stepscope.record import record
from stepscope.trace.codes import among, distinct
from stepscope.trace.tables import I64, Bools


@record
class LateDevice:
    """The device for which another one waits longest."""

    device: int
    wait_ns: int
    """How long that one waits for it, in all of the steps."""
    times: int
    """How often it comes last."""
    count: int
    """How often they exchange something."""


def late_device(table: Collectives, waiting: int, kinds: Iterable[int], steps: Iterable[int]) -> LateDevice | None:
    """For whom a device waits in collectives of some kinds and steps; None where it waits for none, or where those of
    the devices do not match."""
    chosen = among(table.kind, list(kinds)) & among(table.step, list(steps))
    lost: dict[int, int] = {}
    times: dict[int, int] = {}
    count = 0
    for group in distinct(table.group[chosen & (table.device == waiting)]):
        mine = chosen & (table.group == group)
        devices = distinct(table.device[mine])
        columns = [_in_order(table, mine & (table.device == device)) for device in devices]
        own = columns[devices.index(waiting)]
        if len(devices) < 2 or any(not np.array_equal(own[0], step) for step, _, _ in columns):
            continue
        starts = np.stack([start for _, start, _ in columns])
        last, wait = starts.argmax(axis=0), starts.max(axis=0) - own[1]
        # One that ended before the last began was another one's.
        met = (starts.max(axis=0) < np.stack([end for _, _, end in columns]).min(axis=0)) & (wait > 0)
        count += own[0].size
        for at in distinct(last[met]):
            lost[devices[at]] = lost.get(devices[at], 0) + int(wait[met & (last == at)].sum())
            times[devices[at]] = times.get(devices[at], 0) + int((met & (last == at)).sum())
    device = max(lost, key=lambda one: lost[one], default=None)
    return None if device is None else LateDevice(device, lost[device], times[device], count)


def _in_order(table: Collectives, rows: Bools) -> tuple[I64, I64, I64]:
    """Step, start and end of some collectives in the order in which they begin."""
    at = np.flatnonzero(rows)
    at = at[np.argsort(table.start[at], kind="stable")]
    return table.step[at].astype(np.int64), table.start[at], table.end[at]
