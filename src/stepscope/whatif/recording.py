"""What recording itself took of a step, so that savings are told of the step as it is when nobody records.

The model: recording costs the same for each thing that it writes down on the threads that launch (an op, a Python call,
a call into a runtime), where and when that happens. So the host's time inflates by how many calls it holds: sleeping,
waits for files and devices, and long work inside one op stay what they are, and so does all that devices do. How much
one call costs follows from the step recorded and the step unrecorded, which the recording tool has timed: with that
much taken out at each call, the replay (without a device the host's own time) gives the step unrecorded. It is
at most what recording takes of calls that do nothing, by the median time from one call to the next: where that does not
explain the steps, the machine was slower while it recorded (other work ran beside it), and what is left shrinks alike.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stepscope.analysis.facts import Facts
from stepscope.analysis.summary import unrecorded_step_ns
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among
from stepscope.trace.forest import rows_of_track
from stepscope.trace.tables import I64, Kind
from stepscope.whatif.change import Change

_WRITTEN = (Kind.PYTHON_FRAME, Kind.MODULE, Kind.HOST_OP, Kind.RUNTIME_CALL)
_MOST_TRIES, _EXACT = 8, 0.01
_MOST_OF_A_CALL = 0.85
"""Recording's share of the time from one call to the next where calls do nothing: 0.82 to 0.86 measured (PyTorch 2.13,
Python functions, generators and methods of strings in a loop)."""


@record
class Overhead:
    """What recording took, and the step without."""

    step_ns: int
    """The mean used step as it would be unrecorded."""
    change: Change
    """The host's time that is the recording's own."""
    scale: float = 1.0
    """By how much all that is left shrinks: where calls cannot have cost all that the step is longer by."""

    def left(self, facts: Facts, ns: int, spans: dict[int, iv.Intervals]) -> int:
        """What some time per used step, recorded on these stretches of the host, takes unrecorded."""
        return round(max(ns - self.within(facts, spans), 0) * self.scale)

    def within(self, facts: Facts, spans: dict[int, iv.Intervals]) -> int:
        """How much of some time of the host, per used step, is the recording's."""
        steps = list(facts.used)
        windows = iv.union(*(bounds[steps] for bounds in facts.step_bounds))
        taken = (iv.intersect(of, spans[track]) for track, of in self.change.host.items() if track in spans)
        return facts.per_step(sum(iv.measure(iv.intersect(spans, windows)) for spans in taken))


def told_step_ns(facts: Facts) -> int | None:
    """The mean used step that promises are about: unrecorded where that is known, else as recorded."""
    unrecorded = unrecorded_step_ns(facts)
    return facts.mean_step_ns if unrecorded is None else unrecorded


def overhead(facts: Facts, step_of: Callable[[Change], float] | None) -> Overhead | None:
    """What recording took of each step; ``step_of`` is the replay, None where there is none. None where it took
    nothing that is known."""
    wanted, mean = unrecorded_step_ns(facts), facts.mean_step_ns
    if wanted is None:
        return None
    calls = {track: _calls(facts, track) for track in facts.launching_tracks}
    if mean is None or not sum(map(len, calls.values())):
        return Overhead(wanted, Change())

    def taken(ns: float) -> Change:
        return Change(host={track: _spans(start, ns) for track, start in calls.items() if start.size})

    most = _most(calls)
    if step_of is None:
        everywhere = {track: _always(facts) for track in calls}
        counted = Overhead(wanted, taken(1.0)).within(facts, everywhere)
        change = taken(min((mean - wanted) / counted, most) if counted else 0.0)
        left: float = mean - Overhead(wanted, change).within(facts, everywhere)
    else:
        unchanged = step_of(Change())
        change = taken(_each(lambda ns: step_of(taken(ns)), unchanged, unchanged - (mean - wanted), most))
        left = step_of(change)
    return Overhead(wanted, change, min(wanted / left, 1.0) if left > 0 else 1.0)


def _most(calls: dict[int, I64]) -> float:
    """The most that recording a call can have cost, in ns."""
    between = np.concatenate([np.diff(start) for start in calls.values()])
    return _MOST_OF_A_CALL * float(np.median(between)) if between.size else 0.0


def _each(step_of: Callable[[float], float], unchanged: float, wanted: float, most: float) -> float:
    """What one call costs, in ns, so that a step takes what is wanted: found by halving, as it may also hide."""
    low, high = 0.0, most
    for _ in range(_MOST_TRIES):
        middle = (low + high) / 2
        step = step_of(middle)
        if abs(step - wanted) <= _EXACT * unchanged:
            return middle
        low, high = (middle, high) if step > wanted else (low, middle)
    return low


def _calls(facts: Facts, track: int) -> I64:
    """When a thread's calls begin, in order."""
    slices = facts.trace.slices
    rows = slice(*rows_of_track(slices, track))
    return slices.start_ns[rows][among(slices.kind[rows], _WRITTEN)]


def _spans(start: I64, ns: float) -> iv.Intervals:
    """So long a stretch at each instant; where they would overlap one begins when the one before it is over."""
    before = np.arange(start.size) * ns
    begun = np.maximum.accumulate(start - before) + before
    begin, end = np.rint(begun).astype(np.int64), np.rint(begun + ns).astype(np.int64)
    return iv.union(begin, end)


def _always(facts: Facts) -> iv.Intervals:
    begun, over = facts.step_bounds
    return iv.union(begun, over)
