"""Whom everyone waited for: per step the late rank, how it came to be late, and whether that is more than chance.

A rank that came late to a collective because it had waited in another one is not to blame: the chain is followed to the
rank that did not wait. What a rank cost in a step is the time that the others, on average, waited for it with nothing
else to do. A rank is a straggler where over the steps that cost exceeds what the others cost by more than chance makes
of ranks that are alike (one-sided t over steps, with the number of ranks taken into account).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stepscope.cluster.matching import Lane
from stepscope.cluster.waits import Arrivals
from stepscope.limits import EXCEPTIONAL_SPREADS, FEW_STEPS, STRAGGLER_SIGNIFICANCE, STRAGGLER_STEPS
from stepscope.trace.tables import F64, I64, NULL

_FOLLOWED = 20_000
"""Late collectives whose chain is followed: those that cost most."""
_LONGEST_CHAIN = 16
_LOOKED_BACK = 256


@dataclass(frozen=True, slots=True)
class LateStep:
    """The rank that one step waited for."""

    number: int
    lane: int
    """Index into ``Blame.lanes``."""
    waited_ns: int
    """What the others waited for it, on average, with nothing else to do."""
    chain: tuple[int, ...]
    """Lanes from the one to blame to the one that came last to the collective that cost most."""


@dataclass(frozen=True, slots=True)
class Straggler:
    """A lane that is late step after step."""

    lane: int
    waited_ns: int
    """Mean over the steps that count."""
    saving_ns: int
    """What every step gains, on average, were it and the other stragglers as early as the latest other."""
    p_value: float
    steps: int
    """Steps in which it was the late one."""


@dataclass(frozen=True, slots=True)
class Blame:
    """Who held up whom."""

    lanes: tuple[Lane, ...]
    numbers: tuple[int, ...]
    """The steps."""
    cost: F64
    """Per lane and step, ns the others waited on average because of it."""
    waited: F64
    """Per lane and step, ns it waited itself."""
    steps: tuple[LateStep, ...]
    stragglers: tuple[Straggler, ...]
    determined: bool
    """Whether there are enough steps to tell a straggler from chance."""


@dataclass(frozen=True, slots=True)
class _Late:
    """One late collective."""

    group: int
    column: int
    lane: int
    number: int
    cost: float


def blame(groups: Sequence[Arrivals], used: frozenset[int]) -> Blame | None:
    """Who held up whom in the steps that count; None where no collective tells."""
    groups = [found for found in groups if found.told.any()]
    if not groups:
        return None
    lanes = tuple(dict.fromkeys(lane for found in groups for lane in found.matched.lanes))
    place = {lane: at for at, lane in enumerate(lanes)}
    late = _late(groups, place)
    numbers = tuple(sorted({number for found in groups for number in found.matched.step[found.told].tolist()}))
    column = {number: at for at, number in enumerate(numbers)}
    cost, waited = np.zeros((len(lanes), len(numbers))), np.zeros((len(lanes), len(numbers)))
    for found in groups:
        rows = [place[lane] for lane in found.matched.lanes]
        at = np.array([column.get(number, 0) for number in found.matched.step.tolist()], np.int64)
        for row, lane in enumerate(rows):
            np.add.at(waited[lane], at[found.told], found.exposed_wait[row, found.told])
    chains = _chains(groups, place, late)
    worst: dict[int, tuple[float, tuple[int, ...]]] = {}
    for one, chain in zip(late, chains, strict=True):
        cost[chain[0], column[one.number]] += one.cost
        if one.cost > worst.get(one.number, (0.0, ()))[0]:
            worst[one.number] = one.cost, chain
    counted = [column[number] for number in numbers if number in used] or list(range(len(numbers)))
    steps = tuple(_late_step(number, cost[:, column[number]], worst) for number in numbers if number in worst)
    found_ones = _stragglers(groups, (late, chains), place, cost, (counted, numbers, steps))
    return Blame(lanes, numbers, cost, waited, steps, found_ones, len(counted) >= FEW_STEPS)


def _late_step(number: int, cost: F64, worst: dict[int, tuple[float, tuple[int, ...]]]) -> LateStep:
    lane = int(cost.argmax())
    chain = worst[number][1]
    return LateStep(number, lane, round(float(cost[lane])), chain if chain and chain[0] == lane else (lane,))


def _late(groups: Sequence[Arrivals], place: dict[Lane, int]) -> list[_Late]:
    """Collectives that kept someone waiting by more than the clocks are uncertain, the dearest of very many."""
    found: list[_Late] = []
    others = max(len(place) - 1, 1)
    for number, group in enumerate(groups):
        cost = group.exposed_wait.sum(axis=0) / others
        sure = group.wait.max(axis=0, initial=0) > group.uncertainty_ns.max(initial=0)
        for column in np.flatnonzero(group.told & sure & (cost > 0) & (group.matched.step != NULL)).tolist():
            lane = place[group.matched.lanes[group.last[column]]]
            found.append(_Late(number, column, lane, int(group.matched.step[column]), float(cost[column])))
    if len(found) > _FOLLOWED:
        found = sorted(found, key=lambda late: -late.cost)[:_FOLLOWED]
    return sorted(found, key=lambda late: int(groups[late.group].at[late.column]))


def _chains(groups: Sequence[Arrivals], place: dict[Lane, int], late: list[_Late]) -> list[tuple[int, ...]]:
    """For each late collective, the lanes from the one to blame to the one that came last."""
    history = _history(groups, place)
    known: dict[tuple[int, int], tuple[int, ...]] = {}
    chains = []
    for one in late:
        chain: tuple[int, ...] = (one.lane,)
        before = _before(groups, history[one.lane], one)
        if before is not None:
            # It had waited itself, in another group: who held it up there is to blame.
            origin = known.get(before, (place[groups[before[0]].matched.lanes[groups[before[0]].last[before[1]]]],))
            if one.lane not in origin:
                chain = (*origin, one.lane)[-_LONGEST_CHAIN:]
        known[one.group, one.column] = chain
        chains.append(chain)
    return chains


def _history(groups: Sequence[Arrivals], place: dict[Lane, int]) -> list[tuple[I64, I64, I64, I64, I64]]:
    """Per lane, its collectives by end: end, start, wait, group, column."""
    parts: list[list[tuple[I64, ...]]] = [[] for _ in place]
    for number, group in enumerate(groups):
        for row, lane in enumerate(group.matched.lanes):
            at = np.flatnonzero((group.start[row] != NULL) & group.told)
            parts[place[lane]].append(
                (group.end[row, at], group.start[row, at], group.wait[row, at], np.full(at.size, number), at)
            )
    made = []
    for part in parts:
        columns = [np.concatenate(column) for column in zip(*part, strict=True)]
        order = np.argsort(columns[0], kind="stable")
        made.append(tuple(column[order] for column in columns))
    return made  # type: ignore[return-value]


def _before(groups: Sequence[Arrivals], history: tuple[I64, ...], one: _Late) -> tuple[int, int] | None:
    """The last collective of another group in which the late lane waited for at least half of how late it is now.

    Only since it last met the members of this group: there they all left together.
    """
    ends, _, waits, of_group, columns = history
    group = groups[one.group]
    lateness = group.wait[:, one.column].max()
    last = int(np.searchsorted(ends, group.start[int(group.last[one.column]), one.column], "right"))
    for at in range(last - 1, max(last - _LOOKED_BACK, 0) - 1, -1):
        if of_group[at] == one.group:
            return None
        if 2 * waits[at] >= lateness:
            return int(of_group[at]), int(columns[at])
    return None


def _stragglers(
    groups: Sequence[Arrivals],
    found: tuple[list[_Late], list[tuple[int, ...]]],
    place: dict[Lane, int],
    cost: F64,
    steps: tuple[list[int], tuple[int, ...], tuple[LateStep, ...]],
) -> tuple[Straggler, ...]:
    counted, numbers, late_steps = steps
    if len(counted) < FEW_STEPS or len(place) < 2:
        return ()
    seen = cost[:, counted]
    p_values, total = {}, seen.sum(axis=0)
    for lane in range(len(place)):
        ahead = seen[lane] - (total - seen[lane]) / (len(place) - 1)
        p_value = p_of_mean(ahead) * len(place)
        if p_value < STRAGGLER_SIGNIFICANCE:
            p_values[lane] = p_value
    late, chains = found
    considered = {numbers[at] for at in counted}
    held = sum(step.lane in p_values for step in late_steps if step.number in considered)
    if held < STRAGGLER_STEPS * len(counted):
        return ()
    gained = dict.fromkeys(p_values, 0.0)
    for one, chain in zip(late, chains, strict=True):
        if chain[0] in p_values and one.number in considered:
            gained[chain[0]] += _gain(groups[one.group], one.column, {*p_values, chain[-1]}, place)
    others = max(len(place) - len(p_values), 1)
    return tuple(
        sorted(
            (
                Straggler(
                    lane,
                    round(float(seen[lane].mean())),
                    round(gained[lane] / len(counted) / others),
                    p_value,
                    sum(step.lane == lane and step.number in considered for step in late_steps),
                )
                for lane, p_value in p_values.items()
            ),
            key=lambda straggler: -straggler.waited_ns,
        )
    )


def _gain(group: Arrivals, column: int, without: set[int], place: dict[Lane, int]) -> float:
    """What waiting goes, summed over the lanes that wait, were some lanes to come with the latest other."""
    rest = [row for row, lane in enumerate(group.matched.lanes) if place[lane] not in without]
    came = group.start[rest, column]
    came = came[came != NULL]
    if not came.size:  # everyone is a straggler or missing: all wait for the last of them
        return float(group.exposed_wait[:, column].sum())
    earlier = max(0, int(group.at[column]) - int(came.max()))
    waiting = group.exposed_wait[rest, column]
    return float(np.minimum(waiting, earlier).sum())


def p_of_mean(values: F64) -> float:
    """How likely values as far above 0 on average are by chance: one-sided, Student's t.

    Of five steps one may be exceptional: those far from the median (``EXCEPTIONAL_SPREADS``) do not count.
    """
    values = _without_exceptions(values)
    count = values.size
    mean, spread = float(values.mean()), float(values.std(ddof=1)) if count > 1 else math.inf
    if mean <= 0 or count < 2:
        return 1.0
    if spread <= 1e-9 * mean:
        return 0.0
    return _t_tail(mean / (spread / math.sqrt(count)), count - 1)


def _without_exceptions(values: F64) -> F64:
    """Values without those far from the median, at most one of five."""
    apart = np.abs(values - np.median(values))
    most = values.size // 5
    far = np.argsort(-apart, kind="stable")[:most]
    return np.delete(values, far[apart[far] > EXCEPTIONAL_SPREADS * np.median(apart)])


def _t_tail(t: float, freedom: int) -> float:
    """P(T > t) of Student's distribution with a whole number of degrees of freedom (Abramowitz and Stegun 26.7.3-4)."""
    angle = math.atan2(t, math.sqrt(freedom))
    cosine2 = math.cos(angle) ** 2
    term = total = math.cos(angle) if freedom % 2 else 1.0
    for k in range(3 if freedom % 2 else 2, freedom, 2):
        term *= cosine2 * (k - 1) / k
        total += term
    if freedom == 1:
        inside = 2 * angle / math.pi
    elif freedom % 2:
        inside = 2 / math.pi * (angle + math.sin(angle) * total)
    else:
        inside = math.sin(angle) * total
    return max((1 - inside) / 2, 0.0)
