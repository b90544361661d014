"""Waiting for the rank that came last, told apart from transfer, and booked in every rank's accounting.

In a collective that needs data of all, whatever lies before the last rank's arrival is waiting, the rest transfer.
Where a member of the group is missing it may have come later still: then only the waiting for the last known one is
told, and the rest stays undivided. Where clocks are not known well enough nothing is divided.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.cluster.clocks import Clock, aligned
from stepscope.cluster.matching import Lane, Matched
from stepscope.cluster.partial import Partial
from stepscope.limits import CLOCK_SHARE
from stepscope.trace import intervals as iv
from stepscope.trace.tables import F64, I32, I64, NULL, Bools

_COLLECTIVE, _WAIT, _TRANSFER = (
    c.code for c in (Category.COLLECTIVE, Category.COLLECTIVE_WAIT, Category.COLLECTIVE_TRANSFER)
)


@dataclass(frozen=True, slots=True)
class Arrivals:
    """A group's collectives on one clock: who came when, and who waited. Rows are lanes, columns collectives."""

    matched: Matched
    start: I64
    end: I64
    """On the reference's clock, NULL where absent."""
    told: Bools
    """Which collectives can be divided: they need all, and clocks are known well enough."""
    last: I32
    """Lane that came last, -1 where not told."""
    at: I64
    """When it came."""
    wait: I64
    """Time between a lane's arrival and the last one's, at most its duration; 0 where not told."""
    exposed_wait: I64
    """The part of it in which the lane had nothing else to do."""
    uncertainty_ns: F64
    """Of each lane's clock."""

    @property
    def whole(self) -> Bools:
        """Of which collectives the rest is transfer: told, and no member is missing."""
        return self.told & self.matched.whole


def arrivals(
    partials: Sequence[Partial], clocks: Sequence[Clock | None], found: Matched, within: dict[int, float]
) -> Arrivals:
    """Lay a group's collectives on one clock; ``within`` is how uncertain its own collectives leave its members'."""
    start, end = aligned(found, clocks)
    known = start != NULL
    of_lane = [(clocks[lane.partial], within.get(lane.partial, math.inf)) for lane in found.lanes]
    uncertainty = np.array([0.0 if clock is None else min(clock.uncertainty_ns, own) for clock, own in of_lane])
    if len({lane.partial for lane in found.lanes}) < 2:
        uncertainty = np.zeros(len(found.lanes))  # devices of one process share a clock
    duration = np.where(known, end - start, 0)
    worst = np.where(known, uncertainty[:, None], 0).max(axis=0, initial=0)
    # What was sampled may lack the very collective that another rank's is taken for.
    sampled = any(partials[lane.partial].sampled for lane in found.lanes)
    sure = (worst <= CLOCK_SHARE * duration.max(axis=0, initial=0)) & (not sampled)
    told = found.synchronises & (known.sum(axis=0) > 1) & sure
    came = np.where(known, start, np.iinfo(np.int64).min)
    last, at = came.argmax(axis=0), came.max(axis=0, initial=np.iinfo(np.int64).min)
    wait = np.where(known & told, np.clip(at - np.where(known, start, 0), 0, duration), 0)
    exposed = np.zeros_like(wait)
    for row, lane in enumerate(found.lanes):
        own = np.flatnonzero(wait[row])
        began = partials[lane.partial].collectives.start[found.at[row, own]]
        exposed[row, own] = iv.covered_between(_exposed(partials, lane), began, began + wait[row, own])
    return Arrivals(found, start, end, told, np.where(told, last, -1).astype(np.int32), at, wait, exposed, uncertainty)


def _exposed(partials: Sequence[Partial], lane: Lane) -> iv.Intervals:
    exposed = partials[lane.partial].exposed
    mine = exposed.device == lane.device
    return exposed.start[mine], exposed.end[mine]


def exposed_of(partials: Sequence[Partial], found: Matched, row: int) -> I64:
    """How long, in each collective of a group, one of its lanes had nothing else to do."""
    lane, there = found.lanes[row], found.present[row]
    table, at = partials[lane.partial].collectives, found.at[row, there]
    made = np.zeros(there.size, np.int64)
    made[there] = iv.covered_between(_exposed(partials, lane), table.start[at], table.end[at])
    return made


def divided(partials: Sequence[Partial], groups: Sequence[Arrivals]) -> list[I64]:
    """The parts of each partial result's rows with collectives divided; every row still sums to its duration."""
    spans: dict[Lane, list[tuple[I64, I64, I64, Bools]]] = {}
    for found in groups:
        whole = found.whole
        for row, lane in enumerate(found.matched.lanes):
            table, at = partials[lane.partial].collectives, found.matched.at[row]
            there = at >= 0
            began, ended = table.start[at[there]], table.end[at[there]]
            spans.setdefault(lane, []).append((began, ended, began + found.wait[row, there], whole[there]))
    parts = [partial.rows.parts.copy() for partial in partials]
    for lane, found_spans in spans.items():
        began, ended, came, whole = (np.concatenate(column) for column in zip(*found_spans, strict=True))
        _book(partials[lane.partial], lane, (began, ended, came, whole), parts[lane.partial])
    return parts


def _book(partial: Partial, lane: Lane, spans: tuple[I64, I64, I64, Bools], parts: I64) -> None:
    """Divide one lane's exposed collective time: it is transfer where any collective transfers, else undivided where
    any is, else waiting."""
    began, ended, came, whole = spans
    exposed = _exposed([partial], Lane(0, lane.device))
    transfers = iv.union(came[whole], ended[whole])
    undivided = iv.union(
        np.concatenate((came[~whole], *_unmatched(partial, lane, began)[:1])),
        np.concatenate((ended[~whole], *_unmatched(partial, lane, began)[1:])),
    )
    waits = iv.subtract(iv.subtract(iv.union(began, came), transfers), undivided)
    rows = np.flatnonzero(partial.rows.device == lane.device)
    start = partial.rows.start[rows]
    end = start + partial.rows.dur[rows]
    for code, spans_of in ((_TRANSFER, transfers), (_WAIT, waits)):
        moved = iv.covered_between(iv.intersect(exposed, spans_of), start, end)
        moved = np.minimum(moved, parts[rows, _COLLECTIVE])
        parts[rows, code] += moved
        parts[rows, _COLLECTIVE] -= moved


def _unmatched(partial: Partial, lane: Lane, matched: I64) -> tuple[I64, I64]:
    table = partial.collectives
    mine = (table.device == lane.device) & ~np.isin(table.start, matched)
    return table.start[mine], table.end[mine]
