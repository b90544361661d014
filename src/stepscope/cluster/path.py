"""The critical path of a job: the chain of what sets the step time, over all ranks.

It is walked backwards from the end of a step, along the critical path of the rank that ends it last. Where a collective
runs on that path, only what follows the last rank's arrival is the collective's; before it the step was up to that
rank, and its path is gone along. Nobody's waiting is on the path: the late rank's own time stands in its place.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from stepscope.analysis.categories import CATEGORIES, Category
from stepscope.analysis.summary import apportion
from stepscope.cluster.cause import step_numbers
from stepscope.cluster.job import JobFacts
from stepscope.cluster.matching import base_of
from stepscope.cluster.waits import Arrivals
from stepscope.record import record
from stepscope.trace.tables import I64


@record
class JobPath:
    """The path of a job's steps."""

    steps: tuple[int, ...]
    """Their numbers."""
    ns: I64
    """Its time: a row per rank (of ``JobFacts.partials``), a column per category."""
    hops: int
    """How often it goes from one rank to another."""
    undivided: int
    """Collectives on it of which the last rank to arrive is not known."""

    longer_ns: int
    """By how much it is longer than the steps, which ranks begin and end apart."""

    @property
    def total_ns(self) -> int:
        """Its length."""
        return int(self.ns.sum())

    @property
    def per_step(self) -> list[tuple[int, Category, int]]:
        """Rank (of ``JobFacts.partials``), category and ns per step, most first: whole numbers that sum to a step's."""
        cells = {(int(at), CATEGORIES[code]): int(self.ns[at, code]) for at, code in np.argwhere(self.ns)}
        told = apportion(cells, len(self.steps)).items()
        return sorted(((*cell, ns) for cell, ns in told), key=lambda one: -one[2])


def job_path(facts: JobFacts) -> JobPath | str:
    """The path of the steps that count, else why there is none, in words that follow "because"."""
    if facts.sampled:
        return "events are missing inside the profiles"
    if len(facts.partials) < 2:
        return "one rank was read"
    reasons = [partial.path_kept.why_not for partial in facts.partials]
    if all(reasons):
        return f"of rank {facts.ranks[0]}, as of all others, {reasons[0]}" if len(set(reasons)) > 1 else str(reasons[0])
    if not any(group.told.any() for group in facts.groups):
        return "of no collective is it known which rank arrived last"
    unknown = sum(clock is None for clock in facts.clocks)
    if unknown:
        return f"{unknown} of {len(facts.clocks)} ranks have clocks that cannot be compared with the others'"
    walk = _Walk(facts)
    for number in reversed(facts.used_steps):
        walk.step(number)
    if not walk.steps:
        return "no rank's path is kept of a step that counts"
    longer = int(walk.ns.sum()) - sum(facts.every_step_ns[number] for number in walk.steps)
    return JobPath(tuple(reversed(walk.steps)), walk.ns, walk.hops, walk.undivided, longer)


_Place = tuple[Arrivals, int, int]
"""A group, its lane (a row) and its collective (a column)."""


class _Walk:
    """Goes from the end of each step to its beginning, from piece to piece and from rank to rank."""

    def __init__(self, facts: JobFacts) -> None:
        self._facts = facts
        self._base = base_of(facts.partials)
        self.ns = np.zeros((len(facts.partials), len(Category)), np.int64)
        self.steps: list[int] = []
        self.hops = self.undivided = 0
        self._numbers = [step_numbers(partial) for partial in facts.partials]
        self._places: dict[int, Mapping[int, _Place]] = {}
        self._lanes: dict[int, list[tuple[Arrivals, int]]] = defaultdict(list)
        for group in facts.groups:
            for row, lane in enumerate(group.matched.lanes):
                self._lanes[lane.partial].append((group, row))
        self._seen: set[tuple[int, int]] = set()
        self._follows: tuple[int, int] | None = None

    def step(self, number: int) -> None:
        """Walk one step: where the walk of the one behind it came to, else from the rank that ends it last."""
        follows = self._follows
        ahead = None if follows is None or follows[0] != number + 1 else self._last_piece(follows[1], number)
        at = (follows[1], ahead) if follows is not None and ahead is not None else self._last_to_end(number)
        if at is None:
            return
        self.steps.append(number)
        partial, piece = at
        while piece >= 0 and self._number(partial, piece) == number:
            partial, piece = self._piece(partial, piece)
        self._follows = number, partial

    def _number(self, partial: int, piece: int) -> int:
        return int(self._numbers[partial][self._facts.partials[partial].path_kept.step[piece]])

    def _last_piece(self, partial: int, number: int) -> int | None:
        """The piece with which a rank's path of a step ends; None where it is not kept."""
        steps = self._facts.partials[partial].path_kept.step
        index = np.flatnonzero(self._numbers[partial] == number)
        if not index.size:
            return None
        at = int(np.searchsorted(steps, index[-1], "right")) - 1
        return at if at >= 0 and steps[at] == index[-1] else None

    def _last_to_end(self, number: int) -> tuple[int, int] | None:
        """The rank that ends a step last, of those whose path of it is kept, and its last piece."""
        ends: list[tuple[int, int, int]] = []
        for at, (partial, clock) in enumerate(zip(self._facts.partials, self._facts.clocks, strict=True)):
            piece = None if clock is None else self._last_piece(at, number)
            if clock is not None and piece is not None:
                shift = 0 if partial.epoch_ns is None else partial.epoch_ns - self._base
                ends.append((int(clock.to_reference(partial.path_kept.end[piece : piece + 1] + shift)[0]), at, piece))
        return max(ends)[1:] if ends else None

    def _piece(self, partial: int, piece: int) -> tuple[int, int]:
        """Take a piece, and go to the one before it: of the rank that a collective waited for, where one ran in it."""
        path = self._facts.partials[partial].path_kept
        row, length = int(path.collective[piece]), int(path.end[piece] - path.start[piece])
        place = self._place(partial, row) if row >= 0 else None
        late = None if place is None else self._late(place[0], place[2])
        if place is None or late is None:
            self.undivided += row >= 0
            of = slice(*np.searchsorted(path.piece, [piece, piece + 1]))
            self.ns[partial, path.category[of]] += path.ns[of]
            return partial, piece - 1
        group, lane, column = place
        arrived = int(self._facts.partials[partial].collectives.start[row] + group.wait[lane, column])
        kind = Category.COLLECTIVE_TRANSFER if group.whole[column] else Category.COLLECTIVE
        if group.last[column] == lane:
            self.ns[partial, kind.code] += length
            return partial, piece - 1
        self.ns[partial, kind.code] += min(length, max(int(path.end[piece]) - arrived, 0))
        self.hops += late[0] != partial
        return late

    def _late(self, group: Arrivals, column: int) -> tuple[int, int] | None:
        """The rank that arrived last at a collective, and the piece of its path before that; None where not known."""
        last = int(group.last[column])
        key = (id(group), column)
        if last < 0 or key in self._seen:
            return None
        partial = group.matched.lanes[last].partial
        kept = self._facts.partials[partial]
        began = kept.collectives.start[group.matched.at[last, column]]
        piece = int(np.searchsorted(kept.path_kept.end, began, "left"))
        if piece == kept.path_kept.end.size or kept.path_kept.end[piece] != began:
            return None
        self._seen.add(key)
        return partial, piece

    def _place(self, partial: int, row: int) -> _Place | None:
        if partial not in self._places:
            places: dict[int, _Place] = {}
            for group, lane in self._lanes[partial]:
                for column in np.flatnonzero(group.matched.at[lane] >= 0).tolist():
                    places[int(group.matched.at[lane, column])] = group, lane, column
            self._places[partial] = places
        return self._places[partial].get(row)
