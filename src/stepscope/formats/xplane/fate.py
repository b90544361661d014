"""Which event becomes a row of which table, and which become none: counted, with the first one's offset."""

from __future__ import annotations

import numpy as np

from stepscope.formats.limits import FAR_NS
from stepscope.formats.xplane import wire
from stepscope.formats.xplane.planes import LineRole
from stepscope.formats.xplane.times import EventTimes, far_from_most
from stepscope.formats.xplane.view import FOREIGN, HOST_ROLES, ONLY_SHOWN, View
from stepscope.record import record
from stepscope.trace.tables import Bools, Rows
from stepscope.trace.trace import Loss

ALLOCATION, DEALLOCATION = "MemoryAllocation", "MemoryDeallocation"

_UNUSABLE = {
    wire.DAMAGED: ("event_damaged", "events whose bytes make no sense", True),
    wire.NEGATIVE: ("duration_negative", "events that end before they start", False),
    wire.OVERFLOW: ("time_out_of_range", "events whose time does not fit", False),
    wire.COUNTED: ("event_aggregated", "events that only say how often something happened", False),
}


@record
class XplaneFate:
    """Which events become what; the rest is in ``losses``."""

    slices: Bools
    memory: Bools
    counters: Bools
    instants: Bools
    metadata: Bools
    """What stands in the file only for XProf to see."""
    losses: tuple[Loss, ...]

    @property
    def held(self) -> Bools:
        """Events that become anything."""
        return self.slices | self.memory | self.counters | self.instants


def fate_of(view: View, times: EventTimes, ops: Rows) -> XplaneFate:
    """Sort the events; ``ops`` are host events that are work of a device, and no instants whatever their duration."""
    what, stats = view.events.what, view.space.stats
    usable = what <= wire.POINT
    far = far_from_most(times.start, usable) | (usable & (times.dur >= FAR_NS))
    derived = usable & (view.own_kind == ONLY_SHOWN)
    good = usable & ~far & ~derived
    instant = good & (what == wire.POINT) & view.on(*HOST_ROLES)
    instant[ops] = False
    instant[times.waits] = False
    instant &= times.dur <= 0  # an action of Megascale that ended with another is written as a moment
    instant &= view.own_kind == FOREIGN
    counting = good & view.on(LineRole.COUNTERS)
    # TPUs have lines of hardware counters by other names beside the one that XProf knows.
    counters = good & view.on(LineRole.COUNTERS, LineRole.DERIVED) & view.having("counter_value")
    memory = np.zeros_like(instant)
    for named_by in ("allocator_name", "index_on_host"):  # GPUs' and hosts' allocators by name, TPUs' by the chip
        memory[stats.rows(named_by)] = True
    memory &= instant & view.called((ALLOCATION, DEALLOCATION).__contains__)
    losses = [_lost(view, what == code, *said) for code, said in _UNUSABLE.items()]
    losses.append(_lost(view, far, "time_out_of_range", "events a day or more long, or away from the others", False))
    lost_names = np.zeros_like(good)
    lost_names[view.lost_names] = True
    if (lost_names & good).any():
        first = int(view.events.offset[int((lost_names & good).argmax())])
        text = "events whose names are not in the file: they are called by their number"
        losses.append(Loss("names_lost", int((lost_names & good).sum()), text, first, damaged=True))
    return XplaneFate(
        slices=good & ~instant & ~counting & ~counters,
        memory=memory,
        counters=counters,
        instants=(instant & ~memory) | (counting & ~counters),
        metadata=derived,
        losses=tuple(loss for loss in losses if loss is not None),
    )


def _lost(view: View, which: Bools, code: str, text: str, damaged: bool) -> Loss | None:
    count = int(np.count_nonzero(which))
    if not count:
        return None
    first = int(view.events.offset[int(which.argmax())])
    return Loss(code, count, text, first, lost_events=count, damaged=damaged)
