"""Waiting for the rank that came last, told apart from transfer, and booked in every rank's accounting.

In a collective that needs data of all, whatever lies before the last rank's arrival is waiting, the rest transfer.
Where a member of the group is missing it may have come later still: then only the waiting for the last known one is
told, and the rest stays undivided. Where clocks are not known well enough nothing is divided. Collectives of one lane
may run side by side: each instant of waiting, or of nothing else to do, counts in the one that lasts longest.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.cluster.clocks import Clock, aligned
from stepscope.cluster.limits import CLOCK_SHARE
from stepscope.cluster.matching import Lane, Matched
from stepscope.cluster.partial import Partial
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among
from stepscope.trace.tables import F64, I32, I64, NULL, Bools

_COLLECTIVE, _WAIT, _TRANSFER = (
    c.code for c in (Category.COLLECTIVE, Category.COLLECTIVE_WAIT, Category.COLLECTIVE_TRANSFER)
)


@record
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
    """The part of it that is booked as waiting: the lane had nothing else to do, not even transfer, and waits for
    nobody who comes later still."""
    exposed: I64
    """How long the lane had nothing else to do, nor a collective that ends later."""
    uncertainty_ns: F64
    """Of each lane's clock."""

    @property
    def whole(self) -> Bools:
        """Of which collectives the rest is transfer: told, and no member is missing."""
        return self.told & self.matched.whole


def divided(
    partials: Sequence[Partial],
    clocks: Sequence[Clock],
    matched: Sequence[Matched],
    within: Sequence[dict[int, float]],
) -> tuple[tuple[Arrivals, ...], list[I64]]:
    """Groups' collectives on one clock, and the parts of each partial result's rows with collectives divided.

    ``within`` is how uncertain a group's own collectives leave its members' clocks. Every row still sums to its
    duration.
    """
    groups = tuple(_arrivals(partials, clocks, each, own) for each, own in zip(matched, within, strict=True))
    places: dict[Lane, list[tuple[Arrivals, int]]] = defaultdict(list)
    for group in groups:
        for row, lane in enumerate(group.matched.lanes):
            places[lane].append((group, row))
    parts = [partial.rows.parts.copy() for partial in partials]
    for lane, found_places in places.items():
        _divide(partials[lane.partial], lane, found_places, parts[lane.partial])
    return groups, parts


def _arrivals(
    partials: Sequence[Partial], clocks: Sequence[Clock], group: Matched, within: dict[int, float]
) -> Arrivals:
    """Lay a group's collectives on one clock; what is exposed of them is not known yet."""
    start, end = aligned(group, clocks)
    known = start != NULL
    of_lane = [(clocks[lane.partial], within.get(lane.partial, math.inf)) for lane in group.lanes]
    uncertainty = np.array([min(clock.uncertainty_ns, own) for clock, own in of_lane])
    if len({lane.partial for lane in group.lanes}) < 2:
        uncertainty = np.zeros(len(group.lanes))  # devices of one process share a clock
    duration = np.where(known, end - start, 0)
    worst = np.where(known, uncertainty[:, None], 0).max(axis=0, initial=0)
    # What was sampled may lack the very collective that another rank's is taken for.
    sampled = any(partials[lane.partial].sampled for lane in group.lanes)
    sure = (worst <= CLOCK_SHARE * duration.max(axis=0, initial=0)) & (not sampled)
    told = group.synchronises & (known.sum(axis=0) > 1) & sure
    came = np.where(known, start, np.iinfo(np.int64).min)
    last, at = came.argmax(axis=0), came.max(axis=0, initial=np.iinfo(np.int64).min)
    wait = np.where(known & told, np.clip(at - np.where(known, start, 0), 0, duration), 0)
    none, last = np.zeros_like(wait), np.where(told, last, -1).astype(np.int32)
    return Arrivals(group, start, end, told, last, at, wait, none, none.copy(), uncertainty)


def _exposed(partial: Partial, device: int) -> iv.Intervals:
    mine = partial.exposed.device == device
    return partial.exposed.start[mine], partial.exposed.end[mine]


def _divide(partial: Partial, lane: Lane, places: list[tuple[Arrivals, int]], parts: I64) -> None:
    """Divide one lane's exposed collective time: it is transfer where any collective transfers, else undivided where
    any is, else waiting. Fills its rows in ``exposed_wait`` and ``exposed`` of its groups, and books ``parts``."""
    there = [group.matched.present[row] for group, row in places]
    table = partial.collectives
    at = np.concatenate([group.matched.at[row, of] for (group, row), of in zip(places, there, strict=True)])
    began, ended = table.start[at], table.end[at]
    came = began + np.concatenate([group.wait[row, of] for (group, row), of in zip(places, there, strict=True)])
    whole = np.concatenate([group.whole[of] for (group, _), of in zip(places, there, strict=True)])
    exposed = _exposed(partial, lane.device)
    transfers, waits = _kinds(partial, lane, (began, ended, came, whole))
    waiting = iv.intersect(exposed, waits)
    waited = iv.covered_between(waiting, began, _alone(began, came))
    free = iv.covered_between(exposed, began, _alone(began, ended))
    cuts = np.cumsum([int(of.sum()) for of in there])[:-1]
    of_each = zip(places, there, np.split(waited, cuts), np.split(free, cuts), strict=True)
    for (group, row), of, wait_of, free_of in of_each:
        group.exposed_wait[row, of], group.exposed[row, of] = wait_of, free_of
    rows = np.flatnonzero(partial.rows.device == lane.device)
    start = partial.rows.start[rows]
    end = start + partial.rows.dur[rows]
    for code, spans in ((_TRANSFER, iv.intersect(exposed, transfers)), (_WAIT, waiting)):
        moved = np.minimum(iv.covered_between(spans, start, end), parts[rows, _COLLECTIVE])
        parts[rows, code] += moved
        parts[rows, _COLLECTIVE] -= moved


def _kinds(partial: Partial, lane: Lane, spans: tuple[I64, I64, I64, Bools]) -> tuple[iv.Intervals, iv.Intervals]:
    """When a lane transfers, and when it waits, from its collectives' beginning, end, last arrival and wholeness."""
    began, ended, came, whole = spans
    transfers = iv.union(came[whole], ended[whole])
    others = _unmatched(partial, lane, began)
    undivided = iv.union(np.concatenate((came[~whole], others[0])), np.concatenate((ended[~whole], others[1])))
    return transfers, iv.subtract(iv.subtract(iv.union(began, came), transfers), undivided)


def _alone(starts: I64, ends: I64) -> I64:
    """Earlier ends with which intervals share no instant: each instant is left to the one that ends last."""
    order = np.argsort(ends, kind="stable")
    later = np.minimum.accumulate(np.append(starts[order][1:], np.iinfo(np.int64).max)[::-1])[::-1]
    made = np.empty_like(ends)
    made[order] = np.maximum(np.minimum(ends[order], later), starts[order])
    return made


def _unmatched(partial: Partial, lane: Lane, matched: I64) -> tuple[I64, I64]:
    table = partial.collectives
    mine = (table.device == lane.device) & ~among(table.start, matched)
    return table.start[mine], table.end[mine]
