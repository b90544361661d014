"""Whom everyone waited for: per step the late rank, how it came to be late, and whether that is more than chance.

A rank that came late to a collective because it had waited in another one is not to blame: the chain is followed to the
rank that did not wait. What a rank cost in a step is the time that the others, on average, waited for it with nothing
else to do. The others are those that tell in that step and exchange data with it, directly or through others. A rank is
a straggler where over the steps that cost exceeds what the others cost by more than chance makes of ranks that are
alike (one-sided t over steps, with the number of ranks taken into account).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from stepscope.analysis.limits import FEW_STEPS
from stepscope.cluster.chance import p_of_mean
from stepscope.cluster.limits import STRAGGLER_SIGNIFICANCE, STRAGGLER_STEPS, SUSPECT_SIGNIFICANCE
from stepscope.cluster.matching import Lane
from stepscope.cluster.waits import Arrivals
from stepscope.record import record
from stepscope.trace.codes import distinct
from stepscope.trace.tables import F64, I64, NULL, Bools

_FOLLOWED = 20_000
"""Late collectives whose chain is followed: those that cost most."""
_LONGEST_CHAIN = 16
_LOOKED_BACK = 256


@record
class LateStep:
    """The rank that one step waited for."""

    number: int
    lane: int
    """Index into ``Blame.lanes``."""
    waited_ns: int
    """What the others waited for it, on average, with nothing else to do."""
    chain: tuple[int, ...]
    """Lanes from the one to blame to the one that came last to the collective that cost most."""


@record
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
    others: tuple[int, ...]
    """The lanes that wait for it, directly or through others."""


@record
class Blame:
    """Who held up whom."""

    lanes: tuple[Lane, ...]
    numbers: tuple[int, ...]
    """The steps."""
    sets: I64
    """Per lane, the set it belongs to: lanes that exchange data with each other, directly or through others."""
    tells: Bools
    """Per lane and step, whether it took part in a collective that tells."""
    cost: F64
    """Per lane and step, ns the others of its set waited on average because of it."""
    waited: F64
    """Per lane and step, ns it waited itself."""
    p_values: F64
    """Per lane, how rarely chance makes any lane as late as it is; 1 where that was not tested."""
    steps: tuple[LateStep, ...]
    stragglers: tuple[Straggler, ...]
    determined: bool
    """Whether there are enough steps to tell a straggler from chance."""
    counted: tuple[int, ...]
    """Columns of the steps that count; all where none does."""

    @property
    def suspect(self) -> int | None:
        """The lane that is late more often than the others, though chance may explain it; None where there is none."""
        lane = int(self.p_values.argmin())
        return lane if self.p_values[lane] < SUSPECT_SIGNIFICANCE and not self.stragglers else None

    def with_(self, lane: Lane) -> list[Lane]:
        """A lane and those it exchanges data with, directly or through others."""
        one = self.sets[self.lanes.index(lane)] if lane in self.lanes else -1
        return [other for other, of in zip(self.lanes, self.sets.tolist(), strict=True) if of == one or other == lane]

    def waited_by(self, lanes: Collection[Lane]) -> int | None:
        """What some lanes wait per step on average, each in the steps it tells of; None where none does."""
        wanted = set(lanes)
        rows = [at for at, lane in enumerate(self.lanes) if lane in wanted]
        told, waited = self.tells[rows][:, self.counted], self.waited[rows][:, self.counted]
        tell = told.sum(axis=0)
        return round(float((waited.sum(axis=0)[tell > 0] / tell[tell > 0]).mean())) if tell.any() else None

    def rest(self, known: Collection[int]) -> float:
        """What lanes wait per step on average, but the one that waits least, beyond what is due to known ones."""
        total, columns = 0.0, self.counted
        for one in distinct(self.sets):
            lanes = np.flatnonzero(self.sets == one)
            told, waited = self.tells[lanes][:, columns], self.waited[lanes][:, columns]
            least = np.where(told, waited, np.inf).min(axis=0)
            others = told.sum(axis=0) - 1
            mean = np.where(others > 0, (waited.sum(axis=0) - least) / np.maximum(others, 1), 0.0)
            due = self.cost[[lane for lane in lanes.tolist() if lane in known]][:, columns].sum(axis=0)
            total += lanes.size * float(np.maximum(mean - due, 0.0).mean())
        return total / len(self.lanes)


@record
class _Late:
    """One late collective."""

    group: int
    column: int
    lane: int
    number: int
    waited: float
    """Summed over the lanes that waited."""


@record
class _Seen:
    """What stragglers are told from."""

    groups: Sequence[Arrivals]
    place: dict[Lane, int]
    late: list[_Late]
    chains: list[tuple[int, ...]]
    sets: I64
    tells: Bools
    cost: F64
    counted: list[int]
    """Columns of the steps that count."""
    numbers: tuple[int, ...]


def blame(groups: Sequence[Arrivals], used: frozenset[int]) -> Blame | None:
    """Who held up whom in the steps that count; None where no collective tells."""
    groups = [group for group in groups if group.told.any()]
    if not groups:
        return None
    lanes = tuple(dict.fromkeys(lane for group in groups for lane in group.matched.lanes))
    place = {lane: at for at, lane in enumerate(lanes)}
    numbers = tuple(sorted({number for group in groups for number in group.matched.step[group.told].tolist()}))
    column = {number: at for at, number in enumerate(numbers)}
    waited, tells = np.zeros((len(lanes), len(numbers))), np.zeros((len(lanes), len(numbers)), np.bool_)
    for group in groups:
        at = np.array([column.get(number, 0) for number in group.matched.step.tolist()], np.int64)
        for row, lane in enumerate(group.matched.lanes):
            np.add.at(waited[place[lane]], at[group.told], group.exposed_wait[row, group.told])
            tells[place[lane], at[group.told & (group.start[row] != NULL)]] = True
    sets = _sets(groups, place)
    cost = np.zeros_like(waited)
    others = {one: np.maximum(tells[sets == one].sum(axis=0) - 1, 1) for one in distinct(sets)}
    late = _late(groups, place)
    chains = _chains(groups, place, late)
    worst: dict[int, tuple[float, tuple[int, ...]]] = {}
    for one, chain in zip(late, chains, strict=True):
        at_step = column[one.number]
        mean = one.waited / int(others[int(sets[one.lane])][at_step])
        cost[chain[0], at_step] += mean
        if mean > worst.get(one.number, (0.0, ()))[0]:
            worst[one.number] = mean, chain
    counted = [column[number] for number in numbers if number in used] or list(range(len(numbers)))
    steps = tuple(_late_step(number, cost[:, column[number]], worst) for number in numbers if number in worst)
    seen = _Seen(groups, place, late, chains, sets, tells, cost, counted, numbers)
    p_values = _p_values(seen)
    return Blame(
        lanes, numbers, sets, tells, cost, waited, p_values, steps, _stragglers(seen, p_values),
        len(counted) >= FEW_STEPS, tuple(counted),
    )  # fmt: skip


def _sets(groups: Sequence[Arrivals], place: dict[Lane, int]) -> I64:
    """Per lane, the least of the lanes that it exchanges data with, directly or through others."""
    first = list(range(len(place)))

    def least(lane: int) -> int:
        while first[lane] != lane:
            first[lane] = lane = first[first[lane]]
        return lane

    for group in groups:
        there = (group.start[:, group.told] != NULL).any(axis=1)
        members = [least(place[group.matched.lanes[row]]) for row in np.flatnonzero(there).tolist()]
        for lane in members:
            first[least(lane)] = min(members)
    return np.array([least(lane) for lane in range(len(place))], np.int64)


def _late_step(number: int, cost: F64, worst: dict[int, tuple[float, tuple[int, ...]]]) -> LateStep:
    lane = int(cost.argmax())
    chain = worst[number][1]
    return LateStep(number, lane, round(float(cost[lane])), chain if chain and chain[0] == lane else (lane,))


def _late(groups: Sequence[Arrivals], place: dict[Lane, int]) -> list[_Late]:
    """Collectives that kept someone waiting by more than the clocks are uncertain, the longest of very many."""
    late_ones: list[_Late] = []
    for number, group in enumerate(groups):
        waited = group.exposed_wait.sum(axis=0)
        sure = group.wait.max(axis=0, initial=0) > group.uncertainty_ns.max(initial=0)
        for column in np.flatnonzero(group.told & sure & (waited > 0) & (group.matched.step != NULL)).tolist():
            lane = place[group.matched.lanes[group.last[column]]]
            late_ones.append(_Late(number, column, lane, int(group.matched.step[column]), float(waited[column])))
    if len(late_ones) > _FOLLOWED:
        late_ones = sorted(late_ones, key=lambda late: -late.waited)[:_FOLLOWED]
    return sorted(late_ones, key=lambda late: int(groups[late.group].at[late.column]))


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


def _p_values(seen: _Seen) -> F64:
    """Per lane, how rarely chance makes any of them cost as much more than the others of its set."""
    chances = np.ones(len(seen.place))
    for one in distinct(seen.sets):
        lanes = np.flatnonzero(seen.sets == one)
        columns = [at for at in seen.counted if seen.tells[lanes, at].sum() > 1]
        if len(columns) < FEW_STEPS or lanes.size < 2:
            continue
        cost = seen.cost[lanes][:, columns]
        ahead = cost - (cost.sum(axis=0) - cost) / (lanes.size - 1)
        chances[lanes] = [min(p_of_mean(of) * chances.size, 1.0) for of in ahead]
    return chances


def _stragglers(seen: _Seen, p_values: F64) -> tuple[Straggler, ...]:
    """Lanes beyond chance that are the late ones of their set in enough steps, the dearest first."""
    beyond = set(np.flatnonzero(p_values < STRAGGLER_SIGNIFICANCE).tolist())
    late_steps: dict[int, int] = dict.fromkeys(beyond, 0)
    for one in distinct(seen.sets[list(beyond)]):
        lanes = np.flatnonzero(seen.sets == one)
        cost = seen.cost[lanes][:, seen.counted]
        lasts = lanes[cost.argmax(axis=0)][cost.max(axis=0) > 0].tolist()
        held = {lane: lasts.count(lane) for lane in beyond.intersection(lanes.tolist())}
        if sum(held.values()) < STRAGGLER_STEPS * len(seen.counted):
            beyond -= held.keys()
        late_steps |= held
    gained = _gained(seen, beyond)
    late_ranks = [
        Straggler(
            lane,
            round(float(seen.cost[lane, seen.counted].mean())),
            round(gained[lane]),
            float(p_values[lane]),
            late_steps[lane],
            tuple(other for other in np.flatnonzero(seen.sets == seen.sets[lane]).tolist() if other != lane),
        )
        for lane in sorted(beyond)
    ]
    return tuple(sorted(late_ranks, key=lambda straggler: -straggler.waited_ns))


def _gained(seen: _Seen, stragglers: set[int]) -> dict[int, float]:
    """What a step gains on average, per straggler, were they to come with the latest other."""
    columns = {seen.numbers[at]: at for at in seen.counted}
    gained = dict.fromkeys(stragglers, 0.0)
    for one, chain in zip(seen.late, seen.chains, strict=True):
        if chain[0] in stragglers and one.number in columns:
            mine = np.flatnonzero((seen.sets == seen.sets[one.lane]) & seen.tells[:, columns[one.number]])
            others = max(mine.size - len(stragglers.intersection(mine.tolist())), 1)
            gain = _gain(seen.groups[one.group], one.column, {*stragglers, chain[-1]}, seen.place)
            gained[chain[0]] += gain / others / len(columns)
    return gained


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
