"""The lines of a function in which its time passes."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.facts import Facts
from stepscope.analysis.places import Place, find_places
from stepscope.analysis.where import Frame, Where, parse_frame
from stepscope.trace.codes import used_codes
from stepscope.trace.forest import innermost_at, is_outermost, outermost
from stepscope.trace.tables import I32, Bools, Kind

_LOOKED_AT = 200
_POINTS = 32
"""Points of a call at which it is asked which line ran: what takes 3 % of it is met."""


def lines_of(facts: Facts, within: Bools, function: Frame) -> tuple[Place, ...]:
    """The lines of a function in which the time of its calls inside of some slices passes, longest first; the function
    as a whole where no lines are known."""
    calls = _calls(facts, within, function)
    dur = facts.trace.slices.dur_ns[calls]
    longest = calls[np.argsort(-dur, kind="stable")[:_LOOKED_AT]]
    start, length = facts.trace.slices.start_ns[longest], facts.trace.slices.dur_ns[longest]
    at = (np.arange(_POINTS) * 2 + 1) / (2 * _POINTS)
    points = (start[:, None] + length[:, None] * at).astype(np.int64).ravel()
    inside = innermost_at(facts.trace.slices, np.repeat(facts.trace.slices.track[longest], _POINTS), points)
    scale = float(dur.sum()) / max(float(length.sum()), 1.0)
    found = find_places(facts.locator, inside, np.repeat(length * scale / _POINTS, _POINTS), at=points)
    return tuple(
        Place(Where(p.file, p.line, p.function, defined=p.defined), place.name, place.ns, place.share)
        for place in found
        for p in (place.where,)
        if p.file is not None
    )


def _calls(facts: Facts, within: Bools, function: Frame) -> I32:
    """The outermost calls of a function inside of some slices."""
    slices, strings = facts.trace.slices, facts.trace.strings
    is_frame = slices.kind == Kind.PYTHON_FRAME
    codes = [
        code for code in used_codes(slices.name[is_frame], len(strings)).tolist()
        if parse_frame(strings[code]) == function
    ]
    mine = is_frame & np.isin(slices.name, codes) & (outermost(within, slices.parent) >= 0)
    rows = np.flatnonzero(is_outermost(mine, slices.parent))
    return rows.astype(np.int32)
