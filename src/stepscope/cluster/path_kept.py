"""What is kept of a rank's critical path: its pieces between collectives, where it may be left for another rank's."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.exchange.collectives import Collectives
from stepscope.analysis.facts import Facts
from stepscope.cluster.limits import PATH_PIECES_KEPT
from stepscope.record import record
from stepscope.trace.codes import united
from stepscope.trace.tables import I32, I64, U8
from stepscope.whatif.critical import CriticalPath, critical_path

_NONE = -1


@record
class KeptPath:
    """A rank's critical path, cut where its collectives begin and end: by time, on the rank's own clock.

    The pieces of a step tile it. Part k of the path's time is ``ns[k]`` of ``category[k]``, in the piece ``piece[k]``.
    """

    step: I32
    """Index of each piece's step."""
    start: I64
    end: I64
    collective: I32
    """The collective, among those kept, that runs on the path all through the piece; -1 for none."""
    piece: I32
    category: U8
    ns: I64
    why_not: str | None = None
    """Why there is none, in words that follow "because"."""


def kept_path(facts: Facts) -> KeptPath:
    """Of the first used steps, as many as there is room for."""
    path = critical_path(facts)
    if isinstance(path, str) or not path.dur.size:
        return _none(path if isinstance(path, str) else "no complete step was recorded")
    runs = _runs(facts, path)
    start, end, element = _atoms(path, facts.collectives.start)
    run = runs[element]
    new = np.ones(start.size, np.bool_)
    new[1:] = (
        (path.step[element[1:]] != path.step[element[:-1]])
        | (run[1:] != run[:-1])
        | np.isin(start[1:], facts.collectives.start)
    )
    first = np.flatnonzero(new)
    kept = _fitting(path.step[element[first]])
    if not kept:
        return _none("no step has so few collectives that its path is kept")
    last = np.append(first[1:], start.size)[:kept] - 1
    atoms = int(last[-1]) + 1
    code = (np.cumsum(new)[:atoms] - 1) * len(Category) + path.category[element[:atoms]]
    parts, place = np.unique(code, return_inverse=True)
    ns = np.zeros(parts.size, np.int64)
    np.add.at(ns, place, (end - start)[:atoms])
    first = first[:kept]
    return KeptPath(
        step=path.step[element[first]].astype(np.int32),
        start=start[first],
        end=end[last],
        collective=run[first],
        piece=(parts // len(Category)).astype(np.int32),
        category=(parts % len(Category)).astype(np.uint8),
        ns=ns,
    )


def _none(why_not: str) -> KeptPath:
    long, short = np.empty(0, np.int64), np.empty(0, np.int32)
    return KeptPath(short, long, long, short, short, np.empty(0, np.uint8), long, why_not)


def _fitting(step: I32) -> int:
    """How many pieces are kept: those of whole steps."""
    if step.size <= PATH_PIECES_KEPT:
        return int(step.size)
    return int(np.searchsorted(step, step[PATH_PIECES_KEPT], "left"))


def _atoms(path: CriticalPath, cuts: I64) -> tuple[I64, I64, I64]:
    """The elements cut at some times: start and end of each part, and its element."""
    over = path.start + path.dur
    start = united(path.start, cuts)
    element = np.searchsorted(path.start, start, "right") - 1
    inside = (element >= 0) & (start < over[element])
    start, element = start[inside], element[inside]
    end = np.minimum(over[element], np.append(start[1:], np.iinfo(np.int64).max))
    return start, end, element


def _runs(facts: Facts, path: CriticalPath) -> I32:
    """Per element, the collective that it is the run of."""
    of_stretch = np.full(path.dur.size, _NONE, np.int32)
    devices = np.concatenate([np.full(len(a), a.device, np.int32) for a in facts.activities])
    runs = np.flatnonzero((path.category == Category.COLLECTIVE.code) & (path.op >= 0))
    for device in np.unique(devices[path.op[runs]]).tolist():
        mine = runs[devices[path.op[runs]] == device]
        of_stretch[mine] = _around(facts.collectives, device, path.start[mine], path.start[mine] + path.dur[mine])
    return of_stretch


def _around(table: Collectives, device: int, start: I64, end: I64) -> I32:
    """The last collective of a device to begin by each of some starts, where it lasts to the end."""
    rows = np.flatnonzero(table.device == device)
    rows = rows[np.argsort(table.start[rows], kind="stable")]
    if not rows.size:
        return np.full(start.size, _NONE, np.int32)
    at = np.searchsorted(table.start[rows], start, "right") - 1
    row = rows[np.maximum(at, 0)]
    return np.where((at >= 0) & (table.end[row] >= end), row, _NONE).astype(np.int32)
