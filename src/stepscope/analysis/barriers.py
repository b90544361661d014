"""Barriers of the cores that run one program: who came last, and how long the others waited for it (TPU)."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.facts import Facts
from stepscope.analysis.limits import BARRIER_APART_NS
from stepscope.analysis.waits import barriers
from stepscope.record import record


@record
class Barrier:
    """One barrier: the waits of some devices that end together."""

    slices: dict[int, int]
    """Device -> the slice of its wait."""
    waited_ns: dict[int, int]
    end_ns: int

    @property
    def last(self) -> int:
        """The device that came last: it waits least."""
        return min(self.waited_ns, key=lambda device: self.waited_ns[device])

    @property
    def longest_ns(self) -> int:
        """How much longer than the last one the first one waited."""
        return max(self.waited_ns.values()) - min(self.waited_ns.values())


def find_barriers(facts: Facts) -> list[Barrier]:
    """The barriers of two devices or more, in order of time."""
    slices = facts.trace.slices
    devices = [activity.device for activity in facts.activities]
    places = [(device, row) for device in devices for row in barriers(facts.trace, device).tolist()]
    made: list[Barrier] = []
    for device, row in sorted(places, key=lambda one: facts.trace.end_ns(one[1])):
        end, waited = facts.trace.end_ns(row), int(slices.dur_ns[row])
        latest = made[-1] if made else None
        if latest is None or device in latest.slices or end - latest.end_ns > BARRIER_APART_NS:
            made.append(Barrier({}, {}, end))
        made[-1].slices[device], made[-1].waited_ns[device] = row, waited
    return [barrier for barrier in made if len(barrier.slices) > 1]


def in_steps(facts: Facts, barrier: Barrier) -> bool:
    """Whether a barrier lies in a used step of the device that waits longest."""
    device = max(barrier.waited_ns, key=lambda one: barrier.waited_ns[one])
    account = facts.accounts[facts.at[device]]
    row = int(np.searchsorted(account.rows.bounds, barrier.end_ns - 1, "right")) - 1
    return row in facts.used_rows(account)
