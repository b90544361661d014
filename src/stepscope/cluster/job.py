"""A job: the partial results of its ranks on one clock, with every collective matched, divided and blamed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from stepscope.analysis.categories import CATEGORIES, Category
from stepscope.analysis.exchange.collectives import HOST, KINDS
from stepscope.cluster.blame import Blame, blame
from stepscope.cluster.cause import OwnCause, mean_parts, own_cause, step_numbers
from stepscope.cluster.clocks import Clock, clocks_of, largest
from stepscope.cluster.matching import Lane, Matched, match
from stepscope.cluster.partial import Partial
from stepscope.cluster.waits import Arrivals, divided
from stepscope.names.collectives import Collective
from stepscope.record import record
from stepscope.trace.codes import among
from stepscope.trace.tables import F64, I64


@record
class Failed:
    """A rank's file that could not be read."""

    path: str
    reason: str
    rank: int | None = None


@record
class JobFacts:
    """Everything that is known of a job; lists run parallel to ``partials``, which are in order of rank."""

    partials: tuple[Partial, ...]
    clocks: tuple[Clock | None, ...]
    """None where neither a chain of collectives nor a host leads to the reference: the first of the largest set that is
    connected."""
    groups: tuple[Arrivals, ...]
    parts: tuple[I64, ...]
    """Rows' parts with collectives divided."""
    blame: Blame | None
    failed: tuple[Failed, ...] = ()
    duplicates: tuple[tuple[int, tuple[str, ...]], ...] = ()
    """Ranks of which more than one profile was found, with those that were left out."""
    again: tuple[int, ...] = ()
    """Ranks that were read once more, as the worker that first read them was lost."""

    @cached_property
    def world_size(self) -> int | None:
        """Ranks of the job, where the profiles agree on it."""
        said = Counter(p.world_size for p in self.partials if p.world_size is not None)
        return said.most_common(1)[0][0] if said else None

    @cached_property
    def ranks(self) -> list[int]:
        """The ranks that were read."""
        return [at if partial.rank is None else partial.rank for at, partial in enumerate(self.partials)]

    @cached_property
    def missing(self) -> list[int]:
        """Ranks of the job without a profile; none where its size is not known."""
        world = self.world_size
        present = {*self.ranks, *(one.rank for one in self.failed)}
        return [] if world is None else [rank for rank in range(min(world, 1 << 20)) if rank not in present]

    @cached_property
    def sampled(self) -> bool:
        """Whether any rank's profile was sampled: what a step costs cannot be told then."""
        return any(partial.sampled for partial in self.partials)

    @cached_property
    def used_steps(self) -> tuple[int, ...]:
        """Numbers of the steps that at least half of the ranks count."""
        counts: Counter[int] = Counter()
        for partial in self.partials:
            counts.update(step_numbers(partial)[partial.steps.used].tolist())
        return tuple(sorted(number for number, count in counts.items() if 2 * count >= len(self.partials)))

    @cached_property
    def means(self) -> dict[Lane, F64]:
        """Mean ns per category and step of each lane."""
        return mean_parts(self.partials, self.parts, self.used_steps)

    @cached_property
    def step_ns(self) -> dict[int, int]:
        """The duration of each step that counts."""
        return {number: self.every_step_ns[number] for number in self.used_steps if number in self.every_step_ns}

    @cached_property
    def every_step_ns(self) -> dict[int, int]:
        """The duration of each step: the mean over ranks, whose windows tile their time alike."""
        durations = defaultdict[int, list[int]](list)
        for partial in self.partials:
            for number, ns in zip(step_numbers(partial).tolist(), partial.steps.dur.tolist(), strict=True):
                durations[number].append(ns)
        return {number: round(sum(of) / len(of)) for number, of in durations.items()}

    @cached_property
    def mean_step_ns(self) -> int | None:
        """Mean duration of the steps that count."""
        return round(sum(self.step_ns.values()) / len(self.step_ns)) if self.step_ns else None

    @cached_property
    def unrecorded_share(self) -> float:
        """What a step takes when nobody records, as a share of a recorded one: the mean over ranks."""
        shares = [partial.unrecorded_share for partial in self.partials]
        return sum(shares) / len(shares) if shares else 1.0

    @cached_property
    def on_host(self) -> bool:
        """Whether no device worked on any rank."""
        return all((partial.rows.device == HOST).all() for partial in self.partials)

    @cached_property
    def told_step_ns(self) -> int | None:
        """The mean step that savings are told of."""
        return None if self.mean_step_ns is None else round(self.mean_step_ns * self.unrecorded_share)

    @cached_property
    def mean_parts(self) -> dict[Category, float]:
        """Mean ns per category over lanes and steps."""
        if not self.means:
            return {}
        mean = np.mean(list(self.means.values()), axis=0)
        return {CATEGORIES[code]: float(mean[code]) for code in np.flatnonzero(mean).tolist()}

    def pipeline_wait_ns(self, lane: Lane) -> int | None:
        """What a lane waits per step for its neighbours in a pipeline, with nothing else to do; None where it sends
        nothing to one alone, or clocks do not tell."""
        return self._pipeline_waits.get(lane)

    @cached_property
    def _devices(self) -> Counter[int]:
        """Devices that count, by partial result."""
        return Counter(lane.partial for lane in self.means)

    @cached_property
    def _pipeline_waits(self) -> dict[Lane, int]:
        sends, waited = KINDS.index(Collective.SEND_RECV), dict[Lane, int]()
        for group in self.groups:
            chosen = group.told & (group.matched.kind == sends) & among(group.matched.step, self.used_steps)
            for lane, waits in zip(group.matched.lanes, group.exposed_wait, strict=True) if chosen.any() else ():
                waited[lane] = waited.get(lane, 0) + int(waits[chosen].sum())
        return {lane: round(ns / max(len(self.used_steps), 1)) for lane, ns in waited.items()}

    def cause_of(self, lane: Lane, late_ns: float, numbers: Sequence[int] | None = None) -> OwnCause:
        """Why a lane is late by so much, in all steps that count or in some."""
        means = self.means if numbers is None else mean_parts(self.partials, self.parts, numbers)
        if self.blame is not None:
            means = {other: means[other] for other in self.blame.with_(lane) if other in means}
        cause = own_cause(self.partials, means, lane, late_ns)
        if cause.cause == "slow_device" and self.pipeline_wait_ns(lane) is not None:
            return replace(cause, cause="uneven_work")  # stages of a pipeline have work of their own
        return cause

    def name(self, lane: Lane) -> str:
        """A lane as people know it."""
        rank = f"rank {self.ranks[lane.partial]}"
        return rank if self._devices[lane.partial] < 2 or lane.device < 0 else f"{rank}, device {lane.device}"


def combine(
    partials: Sequence[Partial],
    failed: Sequence[Failed] = (),
    duplicates: Sequence[tuple[int, tuple[str, ...]]] = (),
    again: Sequence[int] = (),
) -> JobFacts:
    """Put the ranks of a job together."""
    ordered = tuple(sorted(partials, key=lambda partial: (partial.rank is None, partial.rank or 0, partial.path)))
    matched: list[Matched] = match(ordered)
    clocks, within = clocks_of(ordered, matched)
    groups, parts = divided(ordered, clocks, matched, within)
    main = largest(clocks)
    known = tuple(clock if clock.reference == main else None for clock in clocks)
    facts = JobFacts(ordered, known, groups, tuple(parts), None, tuple(failed), tuple(duplicates), tuple(sorted(again)))
    return replace(facts, blame=blame(groups, frozenset(facts.used_steps)))
