"""The places in the program where some time passes, by share, until most of it is named.

Each nanosecond counts for one place: where frames were recorded the user's function, else the annotation, the kind of
module or the op. A function that a few modules, annotations or ops inside it tell better is replaced by those.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from stepscope.analysis.frame import Frame
from stepscope.analysis.limits import PLACES_SHARE, PLACES_SHOWN
from stepscope.analysis.where import Locator, Where
from stepscope.record import record
from stepscope.regex import regex
from stepscope.trace.codes import among, grouped, used_codes
from stepscope.trace.tables import I32, I64, Bools, Rows
from stepscope.trace.trace import Trace

_FRAME, _MODULE, _ANNOTATION, _OP, _OWN = range(5)
_COARSE = (_FRAME, _ANNOTATION, _MODULE, _OP, _OWN)
"""What a place is called after where that is all one names: the first of these that is known."""
_FINER = (
    (_FRAME, _ANNOTATION),
    (_FRAME, _ANNOTATION, _MODULE),
    (_FRAME, _ANNOTATION, _MODULE, _OP),
)
_FEW = 3
"""A place is told by its parts where so many of them name most of its time."""
_INSTANCE = regex(r"_\d+$")

Weights = npt.NDArray[np.int64] | npt.NDArray[np.float64]


@record
class Place:
    """Somewhere in the program and the time that passes there."""

    where: Where
    name: str
    """The function, annotation, module or op in words."""
    ns: int
    share: float
    """Of all the time asked for, that of unknown place too."""


def find_places(
    locator: Locator, slices: I32, weight: Weights, *, at: I64 | None = None, own_names: bool = False
) -> tuple[Place, ...]:
    """Where the time of some slices (-1: unknown) passes, longest first, until ``PLACES_SHARE`` of it is named.

    With instants (``at``) it is that of what each slice was at then: the line of a function, not the function.

    Where ``PLACES_SHOWN`` do not name as much, the last says how many more there are, and their time. With
    ``own_names`` a slice of which no place is known is told by its own name.
    """
    total = float(weight.sum())
    known = slices >= 0
    slices, weight, at = slices[known], weight[known], None if at is None else at[known]
    if not slices.size or total <= 0:
        return ()
    parts, frames = locator.parts(slices, at)
    parts[:, _MODULE], kinds = _kinds_of_modules(locator.trace, parts[:, _MODULE])
    own = locator.trace.slices.name[slices] if own_names else np.full(slices.size, -1, np.int32)
    parts = np.column_stack((parts, own))
    groups = [
        group
        for coarse in _grouped(_coarse(parts), np.arange(slices.size), weight)
        for group in _told_finer(parts, coarse, weight)
    ]
    places: list[Place] = []
    more: list[float] = []
    for key, rows in sorted(groups, key=lambda group: -float(weight[group[1]].sum())):
        where, ns = _where(locator.trace, frames, kinds, key), float(weight[rows].sum())
        name = _name(where) or (f"`{locator.trace.strings[key[_OWN]]}`" if key[_OWN] >= 0 else None)
        if name is None:
            continue
        if sum(place.share for place in places) >= PLACES_SHARE:
            break
        if len(places) < PLACES_SHOWN:
            places.append(Place(where, name, round(ns), ns / total))
        else:
            more.append(ns)
    if more:
        name = f"{len(more)} more {'place' if len(more) == 1 else 'places'}"
        places.append(Place(Where(), name, round(sum(more)), sum(more) / total))
    return tuple(places)


_Group = tuple[tuple[int, ...], Rows]
"""The parts of a place, -1 for those that are left out, and the rows that are there."""


def _coarse(parts: I32) -> I32:
    """Only the first part of each that is known."""
    made = np.full_like(parts, -1)
    free: Bools = np.ones(len(parts), np.bool_)
    for part in _COARSE:
        known = free & (parts[:, part] >= 0)
        made[known, part] = parts[known, part]
        free &= ~known
    return made


def _grouped(parts: I32, rows: Rows, weight: Weights) -> list[_Group]:
    """Rows of equal parts, most time first."""
    first, at = grouped(*parts.T)
    order = np.argsort(at, kind="stable")
    members = np.split(rows[order], np.cumsum(np.bincount(at))[:-1])
    groups = [(tuple(key), group) for key, group in zip(parts[first].tolist(), members, strict=True)]
    return sorted(groups, key=lambda group: -float(weight[group[1]].sum()))


def _told_finer(parts: I32, coarse: _Group, weight: Weights) -> list[_Group]:
    """A place as it is, or the parts of it where a few tell most of its time; the rest of it stays one place."""
    key, rows = coarse
    if (parts[rows] == parts[rows[0]]).all():  # However fine, it is one place.
        return [(tuple(part if at in _FINER[-1] else key[at] for at, part in enumerate(parts[rows[0]].tolist())), rows)]
    least = PLACES_SHARE * float(weight[rows].sum())
    groups = [coarse]
    for columns in _FINER:
        chosen = np.where(among(np.arange(parts.shape[1]), columns), parts[rows], np.array(key, np.int32))
        finer = _grouped(chosen.astype(np.int32), rows, weight)
        if sum(float(weight[group[1]].sum()) for group in finer[:_FEW]) < least:
            break
        rest = [group[1] for group in finer[_FEW:]]
        groups = finer[:_FEW] + ([(key, np.concatenate(rest))] if rest else [])
    return groups


def _kinds_of_modules(trace: Trace, modules: I32) -> tuple[I32, dict[int, str]]:
    """Modules of one kind (``Linear_3``, ``Linear_4``) by the code of one of them, and what each is called: one that is
    alone keeps its number."""
    first: dict[str, int] = {}
    called = {-1: ""}
    kind = np.full(len(trace.strings) + 1, -1, np.int32)
    for code in used_codes(modules, len(trace.strings)).tolist():
        name = trace.strings[code].removeprefix("nn.Module: ")
        kind[code] = first.setdefault(_INSTANCE.sub("", name), code)
        called[kind[code]] = name if kind[code] == code else _INSTANCE.sub("", name)
    return kind[modules], called


def _where(trace: Trace, frames: tuple[Frame | None, ...], kinds: dict[int, str], key: tuple[int, ...]) -> Where:
    frame = frames[key[_FRAME]] if key[_FRAME] >= 0 else None
    annotation, op = (trace.strings[code] if code >= 0 else "" for code in (key[_ANNOTATION], key[_OP]))
    return Locator.made(frame, (kinds[key[_MODULE]], annotation, op))


def _name(where: Where) -> str | None:
    """A place in a few words: its function, or the line of code outside of functions, and what tells it from others."""
    parts = [part for part in (where.op, where.module, where.annotation) if part]
    if where.file is None:
        return " in ".join(f"`{part}`" for part in parts) or None
    at = where.file if where.line is None else f"{where.file}:{where.line}"
    function = where.function if where.function and not where.function.startswith("<") else None
    line = f", line {where.line}" if function and where.line is not None and not where.defined else ""
    return f"`{function or at}`{line}" + (f" ({' in '.join(parts)})" if parts else "")
