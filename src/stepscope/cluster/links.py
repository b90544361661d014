"""Groups that exchange the same data more slowly than others like them: something between their ranks is slow."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np

from stepscope.analysis.exchange.collectives import KINDS
from stepscope.analysis.limits import FEW_STEPS
from stepscope.cluster.chance import p_of_mean
from stepscope.cluster.job import JobFacts
from stepscope.cluster.limits import SLOW_LINK_TIMES, STRAGGLER_SIGNIFICANCE
from stepscope.cluster.waits import Arrivals
from stepscope.names.collectives import Collective
from stepscope.record import record
from stepscope.trace.codes import among
from stepscope.trace.tables import F64, NULL, Bools

_MANY = 16


@record
class SlowLink:
    """A group that is slower than its siblings, over the steps that count."""

    group: str
    ranks: tuple[int, ...]
    hosts: tuple[str, ...]
    kind: Collective
    """Of the collectives that show it most."""
    siblings: int
    """Groups it was compared with."""
    times: float
    """How many times as long as theirs its transfers take."""
    excess_ns: int
    """What they take longer per step, altogether."""
    exposed_ns: int
    """The part of it that nothing hides, mean over its ranks."""
    steps: int
    p_value: float
    bandwidth: float | None
    """Bytes one rank puts in by the time, per second; None where sizes are not known."""
    usual_bandwidth: float | None


@record
class _Series:
    """The transfers of one kind and size in one group: a total per step."""

    group: Arrivals
    chosen: Bools
    ns: F64
    """Per used step; NaN where it has none."""


def slow_links(facts: JobFacts) -> list[SlowLink]:
    """The slow groups, those that lose most first."""
    alike: dict[tuple[object, ...], list[_Series]] = defaultdict(list)
    for group in facts.groups:
        for key, chosen in _kinds(group, facts.used_steps):
            hosts = len({facts.partials[lane.partial].host for lane in group.matched.lanes})
            size = group.matched.group.size, len(group.matched.lanes), hosts
            alike[*size, *key].append(_Series(group, chosen, _per_step(group, chosen, facts.used_steps)))
    tests = sum(len(series) for series in alike.values() if len(series) > 1)
    slowest: dict[int, SlowLink] = {}
    for like, series in alike.items():
        for one, usual in zip(series, _usual(series), strict=True):
            slow = _compared(facts, one, usual, (len(series) - 1, like[-1] != NULL), tests)
            known = slowest.get(id(one.group))
            if slow is not None and (known is None or slow.excess_ns > known.excess_ns):
                slowest[id(one.group)] = slow
    return sorted(slowest.values(), key=lambda slow: -slow.exposed_ns)


def _kinds(group: Arrivals, used: tuple[int, ...]) -> list[tuple[tuple[int, int], Bools]]:
    """Kinds and sizes of a group's collectives of which the transfer is known, in the steps that count."""
    counts = group.whole & among(group.matched.step, used)
    keys = np.stack((group.matched.kind.astype(np.int64), group.matched.bytes))
    distinct = np.unique(keys[:, counts], axis=1).T.tolist() if counts.any() else []
    return [((kind, size), counts & (keys[0] == kind) & (keys[1] == size)) for kind, size in distinct]


def _per_step(group: Arrivals, chosen: Bools, used: tuple[int, ...]) -> F64:
    """Time from the last rank's arrival to the end, summed over each step."""
    ends = np.where(group.start[:, chosen] == NULL, np.iinfo(np.int64).min, group.end[:, chosen]).max(axis=0)
    place = np.searchsorted(used, group.matched.step[chosen])
    total, count = np.zeros(len(used)), np.zeros(len(used))
    np.add.at(total, place, np.maximum(ends - group.at[chosen], 0))
    np.add.at(count, place, 1)
    return np.where(count > 0, total, math.nan)


def _usual(series: list[_Series]) -> list[F64]:
    """Per series the median of the others in each step; of many, whose median no single one moves, that of all."""
    if len(series) < 2:
        return [np.full_like(one.ns, math.nan) for one in series]
    table = np.array([one.ns for one in series])
    if len(series) > _MANY:
        return [_median(table)] * len(series)
    return [_median(np.delete(table, at, axis=0)) for at in range(len(series))]


def _median(table: F64) -> F64:
    medians = np.full(table.shape[1], math.nan)
    known = ~np.isnan(table).all(axis=0)
    medians[known] = np.nanmedian(table[:, known], axis=0)
    return medians


def _compared(facts: JobFacts, one: _Series, usual: F64, siblings: tuple[int, bool], tests: int) -> SlowLink | None:
    """A series against what is usual, step by step; of its siblings the number, and whether sizes are known."""
    both = ~np.isnan(one.ns) & ~np.isnan(usual)
    if both.sum() < FEW_STEPS:
        return None
    usual = usual[both]
    ahead = one.ns[both] - usual
    times = float(one.ns[both].sum() / max(usual.sum(), 1.0))
    each = one.chosen.sum() / len(facts.used_steps)
    uncertain = 2 * float(one.group.uncertainty_ns.max(initial=0.0)) * each
    p_value = p_of_mean(ahead) * tests
    if times < SLOW_LINK_TIMES or ahead.mean() <= uncertain or p_value >= STRAGGLER_SIGNIFICANCE:
        return None
    lanes = one.group.matched.lanes
    exposed = one.group.exposed[:, one.chosen] - one.group.exposed_wait[:, one.chosen]
    free = max(float(exposed.sum(axis=1).mean()) / len(facts.used_steps), 0.0)
    excess = float(ahead.mean())
    bytes_ = int(np.median(one.group.matched.bytes[one.chosen])) * each if siblings[1] else None
    hosts = dict.fromkeys(facts.partials[lane.partial].host for lane in lanes)
    return SlowLink(
        group=one.group.matched.group.name,
        ranks=tuple(sorted({facts.ranks[lane.partial] for lane in lanes})),
        hosts=tuple(host for host in hosts if host),
        kind=KINDS[int(one.group.matched.kind[one.chosen][0])],
        siblings=siblings[0],
        times=times,
        excess_ns=round(excess),
        exposed_ns=round(min(excess, free)),
        steps=int(both.sum()),
        p_value=p_value,
        bandwidth=None if bytes_ is None else bytes_ * 1e9 / max(float(one.ns[both].mean()), 1.0),
        usual_bandwidth=None if bytes_ is None else bytes_ * 1e9 / max(float(usual.mean()), 1.0),
    )
