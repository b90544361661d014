"""The lines of a function in which its time passes."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.facts import Facts
from stepscope.analysis.frame import Frame, parse_frame
from stepscope.analysis.places import Place, find_places
from stepscope.analysis.where import Where
from stepscope.trace.codes import among, used_codes
from stepscope.trace.forest import innermost_at, is_outermost, outermost
from stepscope.trace.tables import I32, Bools, Kind

_LOOKED_AT = 200
_POINTS = 32
"""Points of a call at which it is asked which line ran: what takes 3 % of it is met."""

_KNOWN = 0.2
"""A function is told by a line of it that holds this share of its time: what is not known of the rest (what ops took,
stretches that nobody looked at) makes it no worse a place to look."""


def lines_of(facts: Facts, within: Bools, function: Frame) -> tuple[Place, ...]:
    """The lines of a function in which the time of its calls inside of some slices passes, longest first; the function
    as a whole where no lines are known."""
    return lines_of_calls(facts, calls_of(facts, within, function))


def lines_of_calls(facts: Facts, calls: I32) -> tuple[Place, ...]:
    """The lines in which the time of some calls passes, longest first."""
    dur = facts.trace.slices.dur_ns[calls]
    longest = calls[np.argsort(-dur, kind="stable")[:_LOOKED_AT]]
    start, length = facts.trace.slices.start_ns[longest], facts.trace.slices.dur_ns[longest]
    at = (np.arange(_POINTS) * 2 + 1) / (2 * _POINTS)
    points = (start[:, None] + length[:, None] * at).astype(np.int64).ravel()
    inside = innermost_at(facts.trace.slices, np.repeat(facts.trace.slices.track[longest], _POINTS), points)
    scale = float(dur.sum()) / max(float(length.sum()), 1.0)
    places = find_places(facts.locator, inside, np.repeat(length * scale / _POINTS, _POINTS), at=points)
    return tuple(
        Place(Where(p.file, p.line, p.function, defined=p.defined), place.name, place.ns, place.share)
        for place in places
        for p in (place.where,)
        if p.file is not None
    )


def longest_line(facts: Facts, calls: I32, frame: Frame) -> Where:
    """The line of a function in which most time of some of its calls passes, as far as lines are known; the function
    where they are of less than ``_KNOWN`` of it."""
    function = Where(frame.file, frame.line, frame.function, defined=frame.is_definition)
    if not frame.is_users or not calls.size:
        return function
    known = (place.where for place in lines_of_calls(facts, calls) if place.share >= _KNOWN)
    mine = (line for line in known if line.function == frame.function and line.file == frame.file)
    return next((line for line in mine if line.line is not None and not line.defined), function)


def calls_of(facts: Facts, within: Bools, function: Frame) -> I32:
    """The outermost calls of a function inside of some slices."""
    slices, strings = facts.trace.slices, facts.trace.strings
    is_frame = slices.kind == Kind.PYTHON_FRAME
    # As profiles write it, or as the locator gives it: without a line that is none, or as a definition.
    codes = [
        code
        for code in used_codes(slices.name[is_frame], len(strings)).tolist()
        if function in (parse_frame(strings[code]), facts.locator.frame(strings[code]))
    ]
    mine = is_frame & among(slices.name, codes) & (outermost(within, slices.parent) >= 0)
    rows = np.flatnonzero(is_outermost(mine, slices.parent))
    return rows.astype(np.int32)
