"""What takes time and memory on each rank, by name: what is kept of one, and the ranks of a job beside each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import isnan, nan

import numpy as np

from stepscope.analysis.alike import alike
from stepscope.analysis.facts import Facts
from stepscope.analysis.memory import MemoryUse
from stepscope.cluster.limits import RANKS_OF_A_USE, USES_KEPT
from stepscope.record import record
from stepscope.trace.tables import F64

Name = tuple[str, str]
"""A name, and what it is of: the side of an op or a stage, whose memory; empty where nothing tells two apart."""
_LONGEST = 200


@record
class Uses:
    """Of one rank, the mean of a step over all its devices, most first."""

    names: tuple[Name, ...]
    value: F64
    """ns, of memory bytes."""
    count: F64
    """How many; NaN where that is not counted."""


@record
class RankUses:
    """What pages show of a rank beside the others."""

    kernels: Uses
    ops: Uses
    """Device time of what they launched themselves, of those that launch nothing their own time on the host."""
    layers: Uses
    stages: Uses
    """Of the input pipeline."""
    memory: Uses


@record
class OneUse:
    """One rank's."""

    rank: int
    value: int
    count: float | None


@record
class Spread:
    """One name over the ranks that have it."""

    name: Name
    ranks: int
    mean: int
    count: float | None
    each: tuple[OneUse, ...]
    """That with most first, that with least last; of many ranks some of both."""


def uses_of(facts: Facts) -> RankUses:
    """What is kept of one rank."""
    steps = max(len(facts.used), 1)
    ops = facts.ops.by_type if facts.ops is not None else ()
    stages = facts.input_stages
    waits = [(("in the loader", "training thread"), stages.wait_ns, nan)] if stages and stages.wait_ns else []
    return RankUses(
        kernels=_dearest(((use.name, ""), use.total_ns, use.count) for use in facts.kernels.uses).per(steps),
        ops=_dearest(
            ((op.op, op.side), op.device_self_ns if op.side == "device" else op.self_ns, op.count) for op in ops
        ).per(steps),
        layers=_dearest(
            ((one.path, ""), one.whole.own_ns, one.whole.kernels) for of in facts.layers for one in alike(of.layers)
        ).per(steps),
        stages=_dearest(
            [*waits, *(((one.name, one.side), one.ns, nan) for one in (stages.stages if stages else ()))]
        ).per(steps),
        memory=_memory(facts.memory),
    )


@record
class _Sums:
    ns: dict[Name, float]
    count: dict[Name, float]

    def per(self, steps: int) -> Uses:
        """The largest of them, per step."""
        names = sorted((name for name, ns in self.ns.items() if ns), key=lambda name: -self.ns[name])[:USES_KEPT]
        made = [np.array([of[name] for name in names], np.float64) / steps for of in (self.ns, self.count)]
        return Uses(tuple(names), *made)


def _dearest(uses: Iterable[tuple[Name, float, float]]) -> _Sums:
    ns: dict[Name, float] = defaultdict(float)
    counts: dict[Name, float] = defaultdict(float)
    for (name, of), value, count in uses:
        key = (name[:_LONGEST], of)
        ns[key] += value
        counts[key] += count
    return _Sums(ns, counts)


def _memory(uses: Sequence[MemoryUse]) -> Uses:
    """Of the device's allocators, and the host's, the one with the higher peak."""
    values: dict[Name, float] = {}
    for of in ("device", "host"):
        pools = [use for use in uses if use.pool.on_host == (of == "host")]
        if not pools:
            continue
        use = max(pools, key=lambda one: one.peak.allocated)
        told: dict[str, float | None] = {
            "peak": use.peak.allocated,
            "reserved": use.reserved_bytes,
            "left": use.headroom.free_bytes if use.headroom else None,
            "growth": use.growth.mean_bytes if use.growth else None,
            **{str(held): size for held, size in use.peak.held.items()},
        }
        values |= {(what, of): value for what, value in told.items() if value is not None}
    return Uses(tuple(values), np.array(list(values.values()), np.float64), np.full(len(values), nan))


def spreads(ranks: Sequence[int], each: Sequence[Uses]) -> list[Spread]:
    """Every name over the ranks that have it, in the order in which ranks have them."""
    uses_of: dict[Name, list[OneUse]] = {}
    for rank, uses in zip(ranks, each, strict=True):
        for name, value, count in zip(uses.names, uses.value.tolist(), uses.count.tolist(), strict=True):
            uses_of.setdefault(name, []).append(OneUse(rank, round(value), None if isnan(count) else count))
    return [_spread(name, uses) for name, uses in uses_of.items()]


def dearest(uses: Sequence[Spread]) -> list[Spread]:
    """Those that take most of all ranks together."""
    return sorted(uses, key=lambda one: -one.mean * one.ranks)[:USES_KEPT]


def _spread(name: Name, uses: list[OneUse]) -> Spread:
    uses = sorted(uses, key=lambda use: (-use.value, use.rank))
    counts = [use.count for use in uses if use.count is not None]
    half = RANKS_OF_A_USE // 2
    return Spread(
        name=name,
        ranks=len(uses),
        mean=round(sum(use.value for use in uses) / len(uses)),
        count=sum(counts) / len(counts) if counts else None,
        each=tuple(uses if len(uses) <= RANKS_OF_A_USE else [*uses[:half], *uses[-half:]]),
    )
