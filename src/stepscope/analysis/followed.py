"""What XLA does on threads of its own while the main thread waits for it: sending batches, feeding them in, compiling.

The main thread then shows a wait, or nothing but ranges that the program named; what it waits for is what the helper
does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.names.xla_hosts import XlaRole
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among
from stepscope.trace.tables import Bools, Kind, TrackKind

if TYPE_CHECKING:
    from stepscope.analysis.host import HostActivity, Waits

_FOLLOWED = {
    Category.COMPILE: XlaRole.COMPILE,
    Category.INFEED: XlaRole.INFEED,
    Category.TRANSFER: XlaRole.TRANSFER,
}


def helpers(host: HostActivity, cause: Category) -> tuple[int, ...]:
    """Tracks of threads that do something of a cause which the main one may be waiting for."""
    role, trace = _FOLLOWED.get(cause), host.trace
    if role is None or host.main < 0 or not len(trace.device_ops):
        return ()
    tracks = np.unique(trace.slices.track[host.in_role(role)]).tolist()
    own = (*host.loop, *host.turns)
    return tuple(track for track in tracks if track not in own and trace.tracks.kind[track] == TrackKind.HOST_THREAD)


def followed(host: HostActivity, cause: Category) -> iv.Intervals:
    """When helpers did something of a cause while the main thread was in a wait, or showed nothing but ranges that the
    program named."""
    done = [host.own_time(helper, cause) for helper in helpers(host, cause)]
    return iv.intersect(iv.joined(done), _waiting(host)) if done else iv.EMPTY


def for_devices(host: HostActivity) -> Waits:
    """The waits without those for a helper: half of the time or more it works, and no device does."""
    waits, trace = host.waits, host.trace
    helping = iv.joined([host.own_time(helper, cause) for cause in _FOLLOWED for helper in helpers(host, cause)])
    if not len(helping[0]):
        return waits
    begun = trace.slices.start_ns[trace.device_ops.slice]
    helping = iv.subtract(helping, iv.union(begun, begun + trace.slices.dur_ns[trace.device_ops.slice]))
    helped = 2 * iv.covered_between(helping, waits.start, waits.end) >= waits.end - waits.start
    kept = ~(helped & host.in_role(XlaRole.WAIT)[waits.slice])
    return replace(
        waits, slice=waits.slice[kept], track=waits.track[kept], start=waits.start[kept], end=waits.end[kept]
    )


def _waiting(host: HostActivity) -> iv.Intervals:
    slices = host.trace.slices
    mine = slices.track == host.main
    waits = mine & (host.in_role(XlaRole.WAIT) | (slices.kind == Kind.SYNC))
    named = among(slices.kind, (Kind.ANNOTATION, Kind.STEP)) & ~host.has_cause
    end = slices.start_ns + slices.dur_ns
    silent = iv.complement(_cover(host, mine & ~waits & ~named), int(slices.start_ns.min()), int(end.max()))
    return iv.joined([silent, _cover(host, waits), host.blocked])


def _cover(host: HostActivity, chosen: Bools) -> iv.Intervals:
    start = host.trace.slices.start_ns[chosen]
    return iv.union(start, start + host.trace.slices.dur_ns[chosen])
