"""How far the clocks of ranks are apart, from the collectives they took part in.

Two facts tell the offset between two clocks. A collective cannot end on one rank before it began on another: a hard
bound. And where it ends on all ranks at nearly the same time, as on devices it does, the ends are the estimate, as
exact as they scatter; elsewhere, and where threads of a host carry it out (one may be told late every time), it is the
middle between the bounds. Clocks also drift against each other (quartz: tens
of microseconds per second); a slope is taken where the ends show one. Processes of one host share its clock, unless
the bounds, or ends that agree as well as that, say otherwise (containers and virtual machines may bear one name). Where
no bound can be met, collectives were not what they seemed, or a clock jumped: the uncertainty says by how much.

Ranks that no chain of collectives connects have a reference of their own, unless they share a host.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stepscope.analysis.exchange.collectives import HOST
from stepscope.cluster.limits import DRIFT_COLLECTIVES, DRIFT_SIGNIFICANCE, ENDS_TOGETHER_NS, SAME_HOST_CLOCK_NS
from stepscope.cluster.matching import Matched
from stepscope.cluster.partial import Partial
from stepscope.record import record
from stepscope.trace.tables import F64, I64, NULL

_NAMELESS = ("localhost", "localhost.localdomain", "")
_ROUNDS = 30
_STEEPEST = 1e-3
"""No clock is off by more than a second in a thousand."""


@record
class Clock:
    """What to add to a process's clock to have the reference's: ``offset + drift x (time - at)``."""

    offset_ns: float
    drift: float
    at_ns: int
    """The moment, on its own clock, that the offset holds for."""
    uncertainty_ns: float
    collectives: int
    """Collectives the estimate rests on."""
    reference: int = 0
    """Index of the partial result whose clock the reference is."""

    def to_reference(self, time: I64) -> I64:
        """Times on this clock as the reference's clock would have shown them."""
        moved = self.offset_ns + self.drift * (time - self.at_ns)
        return np.asarray(time + np.rint(moved).astype(np.int64))


SAME = Clock(0.0, 0.0, 0, 0.0, 0)


_Edges = dict[int, list[tuple[int, Clock, bool]]]


def clocks_of(partials: Sequence[Partial], matched: Sequence[Matched]) -> tuple[list[Clock], list[dict[int, float]]]:
    """A clock per partial result, on that of the first of those it is connected with. And per group, how uncertain its
    own collectives leave its members' clocks against each other's, in ns."""
    edges: _Edges = defaultdict(list)
    within: list[dict[int, float]] = []
    for group in matched:
        direct = _of_group(partials, group)
        within.append({other: clock.uncertainty_ns for _, other, clock in direct})
        for hub, other, clock in direct:
            _connect(edges, hub, other, clock)
            within[-1].setdefault(hub, 0.0)
    clocks = _connected(len(partials), edges)
    if _join_hosts(partials, edges, clocks):
        clocks = _connected(len(partials), edges)
    return clocks, within


def _connect(edges: _Edges, hub: int, other: int, clock: Clock) -> None:
    edges[hub].append((other, clock, True))
    edges[other].append((hub, clock, False))


def _connected(count: int, edges: _Edges) -> list[Clock]:
    """Everyone's clock, on that of the first he is connected with."""
    clocks: dict[int, Clock] = {}
    for root in range(count):
        if root not in clocks:
            clocks |= _spread(root, edges)
    return [clocks[number] for number in range(count)]


def _join_hosts(partials: Sequence[Partial], edges: _Edges, clocks: Sequence[Clock]) -> bool:
    """Connect by the clock of their host what no collective connects; whether any was.

    Not where collectives show that a host's name stands for more than one clock.
    """
    doubtful = {
        partials[hub].host
        for hub, of in edges.items()
        for other, clock, _ in of
        if _share_clock(partials[hub], partials[other])
        and abs(clock.offset_ns) > clock.uncertainty_ns + SAME_HOST_CLOCK_NS
    }
    first: dict[str, int] = {}
    joined = False
    for number, partial in enumerate(partials):
        if partial.host is None or partial.host in doubtful or partial.epoch_ns is None:
            continue
        hub = first.setdefault(partial.host, number)
        if clocks[hub].reference != clocks[number].reference and _share_clock(partials[hub], partial):
            _connect(edges, hub, number, Clock(0.0, 0.0, 0, SAME_HOST_CLOCK_NS, 0))
            joined = True
    return joined


def largest(clocks: Sequence[Clock]) -> int:
    """The reference that most clocks have, of several the first."""
    return Counter(clock.reference for clock in clocks).most_common(1)[0][0] if clocks else 0


def _spread(root: int, edges: _Edges) -> dict[int, Clock]:
    """Clocks of all that can be reached from a root, each by the way with the least uncertainty."""
    clocks: dict[int, Clock] = {}
    queue: list[tuple[float, int, int, Clock]] = [(0.0, 0, root, replace(SAME, reference=root))]
    count = 0
    while queue:
        _, _, node, clock = heapq.heappop(queue)
        if node in clocks:
            continue
        clocks[node] = clock
        for other, edge, forward in edges.get(node, ()):
            if other not in clocks:
                count += 1
                through = _through(clock, edge, forward)
                heapq.heappush(queue, (through.uncertainty_ns, count, other, through))
    return clocks


def _through(hub: Clock, edge: Clock, forward: bool) -> Clock:
    """The clock behind an edge; ``forward`` where the edge turns the other's times into the hub's."""
    offset, at = (edge.offset_ns, edge.at_ns) if forward else (-edge.offset_ns, round(edge.at_ns + edge.offset_ns))
    drift = edge.drift if forward else -edge.drift
    at_hub = at + offset
    return Clock(
        offset + hub.offset_ns + hub.drift * (at_hub - hub.at_ns),
        drift + hub.drift,
        at,
        edge.uncertainty_ns + hub.uncertainty_ns,
        edge.collectives,
        hub.reference,
    )


def _share_clock(one: Partial, other: Partial) -> bool:
    known = None not in (one.host, one.epoch_ns, other.epoch_ns) and one.host not in _NAMELESS
    return known and one.host == other.host


def _of_group(partials: Sequence[Partial], group: Matched) -> list[tuple[int, int, Clock]]:
    """Clocks of a group's processes against the one that took part in most; devices of one process share a clock."""
    chosen = group.synchronises & (group.present.sum(axis=0) > 1)
    rows: dict[int, list[int]] = defaultdict(list)
    for row, lane in enumerate(group.lanes):
        rows[lane.partial].append(row)
    numbers = sorted(rows)
    if len(numbers) < 2 or not chosen.any():
        return []
    present = group.present[:, chosen]
    start = np.where(present, group.start[:, chosen], np.iinfo(np.int64).min)
    end = np.where(present, group.end[:, chosen], np.iinfo(np.int64).max)
    begins = np.stack([start[rows[number]].max(axis=0) for number in numbers])
    ends = np.stack([end[rows[number]].min(axis=0) for number in numbers])
    there = np.stack([present[rows[number]].any(axis=0) for number in numbers])
    lasted = np.where(present, end - start, np.iinfo(np.int64).max).min(axis=0)
    hub = int(np.argmax(there.sum(axis=1)))
    on_devices = all(lane.device != HOST for lane in group.lanes)
    clocks = []
    for other in range(len(numbers)):
        both = there[hub] & there[other]
        if other != hub and both.any():
            spans = (begins[hub, both], ends[hub, both]), (begins[other, both], ends[other, both])
            share = _share_clock(partials[numbers[hub]], partials[numbers[other]])
            clock = estimate(*spans, lasted[both], same_host=share, ends_tell=on_devices)
            clocks.append((numbers[hub], numbers[other], clock))
    return clocks


def estimate(
    hub: tuple[I64, I64], other: tuple[I64, I64], shortest: I64, *, same_host: bool = False, ends_tell: bool = True
) -> Clock:
    """The clock of a process from starts and ends of collectives on a hub's clock and its own.

    ``shortest`` is each collective's shortest duration on any rank; ``ends_tell`` whether they end at nearly the same
    time everywhere. Threads of a host, one of which may be told late every time, leave only the bounds.
    """
    at = int(np.median(other[1]))
    time = (other[1] - at).astype(np.float64)
    apart = (hub[1] - other[1]).astype(np.float64)
    middle, drift = _line(time, apart, np.maximum(shortest, 1).astype(np.float64))
    bounds = _bounds(hub, other, drift * time, math.inf)
    assert bounds is not None
    lowest, highest = bounds
    half = (highest - lowest) / 2
    offset = min(max(middle, lowest), highest)
    residual = np.abs(apart - offset - drift * time)
    together = np.minimum(shortest, ENDS_TOGETHER_NS)
    scatter = max(float((together + residual).min()), float(np.quantile(residual, 0.9)))
    by_ends = ends_tell and half >= 0 and scatter < half
    if same_host and _bounds(hub, other, 0.0 * time, SAME_HOST_CLOCK_NS) is not None:
        exact = by_ends and scatter <= SAME_HOST_CLOCK_NS and len(time) >= DRIFT_COLLECTIVES
        if not exact or abs(offset) <= SAME_HOST_CLOCK_NS + scatter:
            return Clock(0.0, 0.0, at, SAME_HOST_CLOCK_NS, len(time))
    if not by_ends:
        return Clock(lowest + half, drift, at, max(abs(half) * (2 if half < 0 else 1), 1.0), len(time))
    return Clock(offset, drift, at, max(scatter, 1.0), len(time))


def _bounds(hub: tuple[I64, I64], other: tuple[I64, I64], drift: F64, slack_ns: float) -> tuple[float, float] | None:
    """The least and largest offset with which no collective ends on one clock before it began on the other; None where
    0 lies outside by more than so much."""
    lowest = float((hub[0] - other[1] - drift).max())
    highest = float((hub[1] - other[0] - drift).min())
    return (lowest, highest) if lowest - slack_ns <= 0 <= highest + slack_ns else None


def _line(time: F64, apart: F64, spread: F64) -> tuple[float, float]:
    """The level and slope of the differences by least absolute deviations, weighted by how exact each can be."""
    weight = 1.0 / spread
    level = _weighted_median(apart, weight)
    if time.size < DRIFT_COLLECTIVES or np.ptp(time) <= 0:
        return level, 0.0
    offset, slope = _fit(time, apart, weight)
    residual = apart - offset - slope * time
    noise = 1.4826 * float(np.median(np.abs(residual))) + 1.0
    error = noise / (np.sqrt(time.size) * float(np.std(time)))
    drifts = abs(slope) > DRIFT_SIGNIFICANCE * error and abs(slope) < _STEEPEST
    return (offset, slope) if drifts else (level, 0.0)


def _fit(time: F64, apart: F64, weight: F64) -> tuple[float, float]:
    """Level and slope by iteratively reweighted least squares."""
    factor, offset, slope = weight / weight.max(), 0.0, 0.0
    scale = float(np.abs(time).max())
    x = time / scale
    used = factor
    for _ in range(_ROUNDS):
        total = used.sum()
        mx, my = (used * x).sum() / total, (used * apart).sum() / total
        across = (used * (x - mx) ** 2).sum()
        before = offset, slope
        slope = float((used * (x - mx) * (apart - my)).sum() / across) if across > 0 else 0.0
        offset = float(my - slope * mx)
        if (offset, slope) == before:
            break  # Every further round would find the same.
        used = factor / np.maximum(np.abs(apart - offset - slope * x), 1.0)
    return offset, slope / scale


def _weighted_median(values: F64, weight: F64) -> float:
    order = np.argsort(values, kind="stable")
    reach = np.cumsum(weight[order])
    return float(values[order[int(np.searchsorted(reach, reach[-1] / 2))]])


def aligned(group: Matched, clocks: Sequence[Clock]) -> tuple[I64, I64]:
    """Starts and ends of a group's collectives on the reference that most of its lanes have; NULL where absent, and
    for lanes with another."""
    start, end = np.full_like(group.start, NULL), np.full_like(group.end, NULL)
    reference = largest([clocks[lane.partial] for lane in group.lanes])
    for row, lane in enumerate(group.lanes):
        clock, there = clocks[lane.partial], group.present[row]
        if clock.reference == reference:
            start[row, there] = clock.to_reference(group.start[row, there])
            end[row, there] = clock.to_reference(group.end[row, there])
    return start, end
