"""What the trace viewer holds of a profile with more slices than a browser has room for: its first steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from stepscope.record import record
from stepscope.units import format_ns
from stepscope.web.lines import Line

_COLUMNS = ("start", "dur", "text", "kind", "category", "slice", "gap")


@record
class Bound:
    """The lines up to a moment."""

    lines: list[Line]
    until_ns: int
    """Whatever starts at or after this is left out."""
    note: str
    """What that is and how to see it."""


def bounded_lines(lines: list[Line], steps: Sequence[dict[str, Any]], most: int) -> Bound | None:
    """The first whole steps of the lines with no more slices than ``most`` (without steps, or where the first has more,
    as much time as that holds); None where all fit. ``steps`` have ``name`` and ``end_ns``."""
    total = sum(line.start.size for line in lines)
    if total <= most:
        return None
    until = _latest(lines, most)
    last = max((step for step in steps if step["end_ns"] <= until), key=lambda step: step["end_ns"], default=None)
    if last is not None:
        until = last["end_ns"]
    cut = [_before(line, until) for line in lines]
    kept = sum(line.start.size for line in cut)
    return Bound(
        [line for line in cut if line.start.size], until, _note(kept, total, last["name"] if last else None, until)
    )


def _latest(lines: list[Line], most: int) -> int:
    """The last moment before which at most so many slices start."""
    low = min(int(line.start[0]) for line in lines)
    high = max(int(line.start[-1]) for line in lines) + 1
    while high - low > 1:
        middle = (low + high) // 2
        if sum(int(np.searchsorted(line.start, middle)) for line in lines) <= most:
            low = middle
        else:
            high = middle
    return low


def _before(line: Line, until: int) -> Line:
    size = int(np.searchsorted(line.start, until))
    columns = {f.name: getattr(line, f.name) for f in fields(line) if f.name in _COLUMNS}
    return replace(line, **{name: column[:size] for name, column in columns.items() if column is not None})


def _note(kept: int, total: int, last: str | None, until: int) -> str:
    option = "--steps" if last else "--time"
    end = f"the end of {last}" if last else format_ns(until)
    return (
        f"Partial: of the {total:,} slices of this trace the {kept:,} up to {end} are shown; other pages are of the "
        f"whole profile. To see another part: `stepscope slice PROFILE part.json {option} A:B`, then "
        "`stepscope view part.json`."
    )
