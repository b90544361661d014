"""Loops that run many small ops where few on larger tensors would do, on a host that computes: in which function, and
what they take."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from stepscope.analysis.backward import forward_of
from stepscope.analysis.facts import Facts
from stepscope.analysis.host import NO_CAUSE
from stepscope.analysis.learning import own_ops
from stepscope.analysis.own_code import asking
from stepscope.analysis.where import Where
from stepscope.diagnosis.numbers_read import by_program
from stepscope.names.producing import reads_numbers
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, mapped, marked
from stepscope.trace.forest import is_outermost, outermost
from stepscope.trace.tables import I32, I64, Bools
from stepscope.units import format_mean, format_ns

LOOP_TURNS: Final = 32
"""An op that one call of a function runs so often runs in a loop."""
SMALL_OP_NS: Final = 50_000
"""In the mean, while recorded."""


@record
class OpLoop:
    """The loop of the program in which most time goes."""

    where: Where
    function: str
    per_step: float
    """Ops that it runs itself."""
    ops_ns: int
    """In the ops and their backward pass, in all used steps."""
    is_differentiated: bool
    between: iv.Intervals
    """The Python around the ops, in the calls of that function."""
    ns: int
    """In all of it, with what lies between one op and the next of the backward pass."""

    def told(self, facts: Facts) -> str:
        """In words."""
        place = f" ({self.where.at})" if self.where.at else ""
        backward = " and their backward pass" if self.is_differentiated else ""
        return (
            f"A loop in `{self.function}`{place} runs {format_mean(self.per_step)} small ops per step: "
            f"{format_ns(facts.per_step(self.ops_ns))} in them{backward}, "
            f"{format_ns(facts.per_step(iv.measure(self.between)))} in the Python around them"
        )


def longest_loop(facts: Facts, but: Bools) -> OpLoop | None:
    """Of loops in functions of the program that are called within a step; ``but`` are slices told elsewhere, with what
    is inside them."""
    trace, slices = facts.trace, facts.trace.slices
    told = outermost((facts.host.causes != NO_CAUSE) | but, slices.parent) >= 0
    told |= mapped(slices.name, trace.strings, reads_numbers, np.bool_)  # By themselves.
    rows = np.flatnonzero(own_ops(trace) & (slices.track == facts.host.main) & ~told).astype(np.int32)
    rows = rows[_within(facts, rows) & by_program(facts, rows)]
    rows, call = _looped(facts, rows, asking(trace)[rows])
    if not rows.size:
        return None
    names, group = np.unique(slices.name[call], return_inverse=True)
    most = int(np.bincount(group, slices.dur_ns[rows]).argmax())
    rows, call = rows[group == most], np.unique(call[group == most])
    frame = facts.locator.frame(trace.strings[names[most]])
    if frame is None:
        return None
    places, which = np.unique(facts.locator.group(rows), return_inverse=True)
    longest = np.bincount(which, slices.dur_ns[rows]).argmax() if places.size else 0
    backward = _backward(facts, rows)
    ops = iv.of(facts.trace.slices, np.concatenate((rows, backward)))
    inside = np.flatnonzero(own_ops(trace) & (outermost(marked(call, len(slices)), slices.parent) >= 0)).astype(
        np.int32
    )
    return OpLoop(
        where=replace(facts.locator.where(int(rows[which == longest][0])), op=None),
        function=frame.function,
        per_step=rows.size / len(facts.used),
        ops_ns=iv.measure(ops),
        is_differentiated=backward.size > 0,
        between=(between := iv.subtract(iv.of(facts.trace.slices, call), iv.of(facts.trace.slices, inside))),
        ns=iv.measure(iv.joined([_bridged(ops), between])),
    )


def _bridged(spans: iv.Intervals) -> iv.Intervals:
    """Some intervals without the gaps between them that take no longer than a small op."""
    starts, ends = spans
    longer = iv.union(starts, ends + SMALL_OP_NS)
    return longer[0], longer[1] - SMALL_OP_NS


def _looped(facts: Facts, rows: I32, call: I32) -> tuple[I32, I32]:
    """Of ops and the calls that ask for them those that run again and again, and take little each time."""
    slices = facts.trace.slices
    ends = slices.start_ns[call] + slices.dur_ns[call]
    inside = _step(facts, slices.start_ns[call]) == _step(facts, ends)  # Else it is the loop that makes the steps.
    rows, call = rows[inside], call[inside]
    key = call.astype(np.int64) * (len(facts.trace.strings) + 1) + slices.name[rows]
    _, which, times = np.unique(key, return_inverse=True, return_counts=True)
    mean = np.bincount(which, slices.dur_ns[rows], times.size) / np.maximum(times, 1)
    again = ((times >= LOOP_TURNS) & (mean < SMALL_OP_NS))[which]
    return rows[again], call[again]


def _backward(facts: Facts, rows: I32) -> I32:
    """What differentiates some ops, in the used steps."""
    slices, forward = facts.trace.slices, forward_of(facts.trace)
    asked = outermost(marked(rows, len(slices)), slices.parent)
    backward = np.flatnonzero(is_outermost((forward >= 0) & (asked[forward] >= 0), slices.parent)).astype(np.int32)
    mine: I32 = backward[_within(facts, backward) & (slices.track[backward] == facts.host.main)]
    return mine


def _within(facts: Facts, rows: I32) -> Bools:
    return among(_step(facts, facts.trace.slices.start_ns[rows]), facts.used)


def _step(facts: Facts, times: I64) -> I64:
    return np.searchsorted(facts.markers.start, times, "right") - 1
