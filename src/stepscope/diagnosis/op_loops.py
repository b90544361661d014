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
from stepscope.analysis.own_code import asking, is_users
from stepscope.analysis.where import Where
from stepscope.diagnosis.numbers_read import by_program
from stepscope.names.producing import reads_numbers
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, mapped, marked, united, without
from stepscope.trace.forest import inherit, is_outermost, outermost
from stepscope.trace.shared import shared
from stepscope.trace.tables import I32, I64, Bools, Kind
from stepscope.units import format_mean, format_ns

LOOP_TURNS: Final = 32
"""An op that one call of a function runs so often runs in a loop, and so does a module that it calls so often."""
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
    calls_modules: bool
    """Whether ops are those of modules that it calls again and again: whether these can be fewer nobody knows, as each
    may need what the one before it found."""
    between: iv.Intervals
    """The Python around the ops, in the calls of that function; where it calls modules, around and in them."""
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
    rows = rows[_within(facts, rows)]
    direct = rows[by_program(facts, rows)]
    looped, call = _looped(facts, direct, asking(trace)[direct])
    rest = without(rows, direct)
    in_modules, turn, caller = _in_turns(facts, rest)
    rows, call = np.concatenate((looped, in_modules)), np.concatenate((call, caller))
    if not rows.size:
        return None
    names, group = np.unique(slices.name[call], return_inverse=True)
    most = int(np.bincount(group, slices.dur_ns[rows]).argmax())
    frame = facts.locator.frame(trace.strings[names[most]])
    if frame is None:
        return None
    chosen = group == most
    turn = turn[chosen[looped.size :]]
    rows, call, modules = rows[chosen], united(call[chosen]), united(turn)
    asked = np.concatenate((rows[: rows.size - turn.size], turn))  # A module's place is where it is called.
    places, which = np.unique(facts.locator.group(asked), return_inverse=True)
    longest = np.bincount(which, slices.dur_ns[rows]).argmax() if places.size else 0
    backward = _backward(facts, rows)
    ops = iv.of(slices, np.concatenate((rows, backward)))
    # Around modules much else may be done in a turn, which is not theirs.
    around = _bridged(iv.of(slices, np.concatenate((rows, modules)))) if modules.size else iv.of(slices, call)
    inside = marked(modules if modules.size else call, len(slices))
    inner = np.flatnonzero(own_ops(trace) & (outermost(inside, slices.parent) >= 0)).astype(np.int32)
    between = iv.subtract(around, iv.of(slices, united(inner, rows)))
    return OpLoop(
        where=replace(facts.locator.where(int(asked[which == longest][0])), op=None),
        function=frame.function,
        per_step=rows.size / len(facts.used),
        ops_ns=iv.measure(ops),
        is_differentiated=backward.size > 0,
        calls_modules=modules.size > 0,
        between=between,
        ns=iv.measure(iv.joined([_bridged(ops), between])),
    )


def _in_turns(facts: Facts, rows: I32) -> tuple[I32, I32, I32]:
    """Of ops in modules those of which one module is called again and again by one call of a function of the program,
    and which take little each; with these calls of the module, and that of the function."""
    slices = facts.trace.slices
    own = mapped(slices.name, facts.trace.strings, is_users, np.bool_) & (slices.kind == Kind.PYTHON_FRAME)
    modules = np.flatnonzero((slices.kind == Kind.MODULE) & (slices.parent >= 0))
    modules = modules[own[slices.parent[modules]]].astype(np.int32)
    turns = np.full(len(slices), -1, np.int32)
    turns[modules] = modules
    around = np.append(inherit(turns, slices.parent), np.int32(-1))
    looped, turn_of = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
    turn = around[rows]
    while (known := turn >= 0).any():  # From the innermost to those around.
        rows, turn = rows[known], turn[known]
        again = _again(facts, rows, turn, slices.parent[turn])
        looped.append(rows[again])
        turn_of.append(turn[again])
        rows, turn = rows[~again], around[slices.parent[turn[~again]]]
    turn = np.concatenate(turn_of)
    return np.concatenate(looped), turn, slices.parent[turn].astype(np.int32)


def _again(facts: Facts, rows: I32, turn: I32, call: I32) -> Bools:
    """Which ops are of a loop: one call of a function in it, and one module, have many turns of few small ops."""
    slices = facts.trace.slices
    ends = slices.start_ns[call] + slices.dur_ns[call]
    inside = _step(facts, slices.start_ns[call]) == _step(facts, ends)  # Else it is the loop that makes the steps.
    key = call.astype(np.int64) * (len(facts.trace.strings) + 1) + slices.name[turn]
    keys, which = np.unique(key, return_inverse=True)
    first = np.unique(turn, return_index=True)[1]
    times = np.bincount(which[first], minlength=keys.size)
    ops = np.bincount(which, _parts(facts)[rows], keys.size)
    mean = np.bincount(which, slices.dur_ns[rows], keys.size) / np.maximum(ops, 1)
    return np.asarray(((times >= LOOP_TURNS) & (mean < SMALL_OP_NS))[which] & inside)


@shared
def _parts(facts: Facts) -> I64:
    """Per op how many ops it is made of: a cell of an LSTM is of several."""
    slices = facts.trace.slices
    op = slices.kind == Kind.HOST_OP
    leaf = op.copy()
    leaf[slices.parent[op & (slices.parent >= 0)]] = False
    return np.bincount(outermost(op, slices.parent)[leaf], minlength=len(slices))


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
