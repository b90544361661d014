"""What is different in a replay."""

from __future__ import annotations

from dataclasses import field, replace

import numpy as np

from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.tables import I64, Bools

GONE = -1
"""Duration of an op that no longer holds up its stream."""


@record
class Change:
    """What is different in a replay; nothing, by default."""

    host: dict[int, iv.Intervals] = field(default_factory=dict)
    """Host track -> stretches of its time that go."""
    waits: frozenset[int] = frozenset()
    """Slices of host waits that go."""
    op_ns: I64 | None = None
    """Duration of each op (as in ``Graph.ops``), ``GONE`` for some; None leaves them as measured."""
    charge_ns: I64 | None = None
    """What each op takes longer, because of work that replaces what goes; None for nothing."""
    called: Bools | None = None
    """Which ops (as in ``Graph.ops``) no longer wait for the Python function that their program called before them;
    None for no op."""
    floor_ns: int = 0
    """A step takes no less: what now runs beside the rest still has to run."""
    beside_ns: dict[tuple[int, str], int] = field(default_factory=dict)
    """Device and what now runs beside its other work -> the time that is its own: links carry one thing at a time, so a
    step takes no less than all that runs there."""
    most_ns: int | None = None
    """By itself it saves no more per step: the idle time it ends. What else it takes away held nothing up, but would
    once something else is different, so that this bound is not one of changes together."""

    @property
    def least_ns(self) -> int:
        """What a step takes at least."""
        on_device: dict[int, int] = {}
        for (device, _), ns in self.beside_ns.items():
            on_device[device] = on_device.get(device, 0) + ns
        return max(self.floor_ns, *on_device.values(), 0)

    def __or__(self, other: Change) -> Change:
        """Both changes at once; an op takes the shorter of its durations and the larger of its charges.

        ``Change() | change`` is the change without its ``most_ns``.
        """
        host = {track: _either(self.host.get(track), other.host.get(track)) for track in {*self.host, *other.host}}
        ops = [ns for ns in (self.op_ns, other.op_ns) if ns is not None]
        called = [ops for ops in (self.called, other.called) if ops is not None]
        charges = [ns for ns in (self.charge_ns, other.charge_ns) if ns is not None]
        return Change(
            host=host,
            waits=self.waits | other.waits,
            op_ns=np.minimum.reduce(ops) if ops else None,
            charge_ns=np.maximum.reduce(charges) if charges else None,
            called=np.logical_or.reduce(called) if called else None,
            floor_ns=max(self.floor_ns, other.floor_ns),
            beside_ns={**self.beside_ns, **other.beside_ns},
        )

    def within(self, time: iv.Intervals) -> Change:
        """The change that takes away no more of the host's time than lies in some stretches."""
        return replace(self, host={track: iv.intersect(spans, time) for track, spans in self.host.items()})

    def outside(self, time: iv.Intervals) -> Change:
        """The change that leaves the host's time of some stretches where it is."""
        return replace(self, host={track: iv.subtract(spans, time) for track, spans in self.host.items()})

    def left_by(self, other: Change) -> float:
        """The share of the host's time that it takes away and the other does not; all of it where that is none."""
        left = whole = 0
        for track, spans in self.host.items():
            whole += iv.measure(spans)
            left += iv.measure(iv.subtract(spans, other.host.get(track, iv.EMPTY)))
        return left / whole if whole else 1.0

    def holds(self, other: Change) -> bool:
        """Whether nearly all that the other takes out goes with this one already."""
        for track, spans in other.host.items():
            left = iv.subtract(spans, self.host.get(track, iv.EMPTY))
            if iv.measure(left) > (1 - _NEARLY) * iv.measure(spans):
                return False
        ops = other.op_ns is None or (self.op_ns is not None and bool((self.op_ns <= other.op_ns).all()))
        called = other.called is None or (self.called is not None and not (other.called & ~self.called).any())
        return ops and called and other.waits <= self.waits


_NEARLY = 0.9


def _either(a: iv.Intervals | None, b: iv.Intervals | None) -> iv.Intervals:
    sets = [spans for spans in (a, b) if spans is not None]
    return iv.joined(sets)
