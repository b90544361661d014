"""How fast collectives were: bytes, time, algorithm and bus bandwidth, and what the link could do.

Algorithm bandwidth is the size of a collective by its time. Bus bandwidth multiplies it by what each link must carry
per byte (``BUS_FACTORS``), so that it can be held against the link's peak whatever the collective and the number of
ranks.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.exchange.collectives import KINDS
from stepscope.analysis.exchange.links import BUS_FACTORS, bus_factor, larger_buffer, link_of
from stepscope.cluster.job import JobFacts
from stepscope.cluster.matching import EQUAL
from stepscope.cluster.waits import Arrivals
from stepscope.names.collectives import Collective
from stepscope.record import record
from stepscope.trace.codes import among
from stepscope.trace.tables import NULL, Bools

_ALL_TO_ALL = KINDS.index(Collective.ALL_TO_ALL)


@record
class Traffic:
    """The collectives of one kind and size in one group, over the steps that count."""

    group: str
    ranks: tuple[int, ...]
    """Ranks that were read."""
    size: int | None
    """Ranks of the group; None where neither it nor the job's size tells: all that were read need not be all."""
    kind: Collective
    bytes: int | None
    """Size as bandwidth counts it (the larger buffer); the median where sizes vary."""
    imbalance: float | None
    """What the rank that puts in most puts in, as a multiple of the mean, in those that all read ranks are known to
    share; None where none is, sizes are not known, or all must put in as much."""
    count: int
    per_step: float
    duration_ns: int
    """Median over ranks and collectives."""
    wait_ns: int | None
    """Mean wait per rank; None where not told."""
    transfer_ns: int
    """Median time from the last rank's arrival to the end, else (``bound``) the median of the shortest durations."""
    bound: bool
    """``transfer_ns`` may hold waiting for a rank that was not read or whose clock is not known: bandwidths are at
    least what is said."""
    exposed_ns_per_step: int
    """Mean over ranks, per step, of the time in which nothing hid them; side by side with others that end later it
    counts with those."""
    algorithm_bandwidth: float | None
    """Bytes per second."""
    bus_bandwidth: float | None
    formula: str | None
    link_bandwidth: float | None
    """Of the link in one direction: as given, else its peak where all ranks of the group share a host and their device
    is known."""
    link_share: float | None
    """Bus bandwidth over that peak."""
    estimate_ns_per_step: int | None
    """Size by the link's peak, as people reckon it."""
    corrected_estimate_ns_per_step: int | None
    """The same times the factor of the formula."""


def traffic(facts: JobFacts, bandwidth: float | None = None) -> list[Traffic]:
    """Every kind and size of collective in every group, most time first; ``bandwidth`` of the link in one direction,
    where it was given."""
    steps = set(facts.used_steps)
    exchanges = []
    for group in facts.groups:
        counts = np.array([number in steps for number in group.matched.step.tolist()], np.bool_)
        # Sizes of an all-to-all vary with its data: all of a group with elements of one size are one.
        sizes = np.where(group.matched.kind == _ALL_TO_ALL, group.matched.element, group.matched.bytes)
        keys = np.stack((group.matched.kind.astype(np.int64), sizes))[:, counts]
        for kind, size in np.unique(keys, axis=1).T.tolist():
            chosen = counts & (group.matched.kind == kind) & (sizes == size)
            exchanges.append(_traffic(facts, group, chosen, bandwidth or _link(facts, group)))
    return sorted(exchanges, key=lambda one: -one.duration_ns * one.count)


def _traffic(facts: JobFacts, group: Arrivals, chosen: Bools, link: float | None) -> Traffic:
    matched = group.matched
    present = matched.present[:, chosen]
    duration = np.where(present, matched.end[:, chosen] - matched.start[:, chosen], 0)
    kind = KINDS[int(matched.kind[chosen][0])]
    told, whole = group.told[chosen], group.whole[chosen]
    last_end = np.where(present, group.end[:, chosen], np.iinfo(np.int64).min).max(axis=0)
    shortest = np.where(present, duration, np.iinfo(np.int64).max).min(axis=0)
    transfer = np.where(whole, last_end - group.at[chosen], shortest)
    size, count = matched.members, int(present.sum(axis=1).max(initial=0))
    known = matched.bytes[chosen][matched.bytes[chosen] != NULL]
    bytes_ = larger_buffer(kind, int(np.median(known)) if known.size else NULL, size)
    taken = max(int(np.median(transfer)), 1)
    factor = bus_factor(kind, size)
    algorithm = None if bytes_ is None else bytes_ * 1e9 / taken
    bus = None if algorithm is None or factor is None else algorithm * factor
    per_step = count / max(len(facts.used_steps), 1)
    plain = None if bytes_ is None or link is None else round(bytes_ * per_step / link * 1e9)
    return Traffic(
        group=matched.group.name,
        ranks=tuple(sorted({facts.ranks[lane.partial] for lane in matched.lanes})),
        size=size,
        kind=kind,
        bytes=bytes_,
        imbalance=_imbalance(facts, group, chosen),
        count=count,
        per_step=per_step,
        duration_ns=int(np.median(duration[present])),
        wait_ns=round(float(group.wait[:, chosen][present & told].mean())) if (present & told).any() else None,
        transfer_ns=taken,
        bound=not whole.all(),
        exposed_ns_per_step=_exposed(facts, group, chosen),
        algorithm_bandwidth=algorithm,
        bus_bandwidth=bus,
        formula=BUS_FACTORS.get(kind),
        link_bandwidth=link,
        link_share=None if bus is None or link is None else bus / link,
        estimate_ns_per_step=plain,
        corrected_estimate_ns_per_step=None if plain is None or factor is None else round(plain * factor),
    )


def _imbalance(facts: JobFacts, group: Arrivals, chosen: Bools) -> float | None:
    """The largest of the ranks' total sizes over their mean."""
    if len(group.matched.lanes) < 2 or among(group.matched.kind[chosen], EQUAL).all():
        return None
    shared, totals = chosen & group.matched.present.all(axis=0), []
    for row, lane in enumerate(group.matched.lanes):
        sizes = facts.partials[lane.partial].collectives.bytes[group.matched.at[row, shared]]
        if not sizes.size or (sizes == NULL).any():
            return None
        totals.append(float(sizes.mean()))
    mean = sum(totals) / len(totals)
    return max(totals) / mean if mean > 0 else None


def _exposed(facts: JobFacts, group: Arrivals, chosen: Bools) -> int:
    total = group.exposed[:, chosen].sum(axis=1)
    return round(float(total.mean()) / max(len(facts.used_steps), 1)) if total.size else 0


def _link(facts: JobFacts, group: Arrivals) -> float | None:
    """Peak of the link between a group's devices in one direction: data sheets quote both directions together."""
    partials = [facts.partials[lane.partial] for lane in group.matched.lanes]
    hosts = {partial.host for partial in partials}
    members = group.matched.members
    whole = members is not None and len(partials) >= members
    if len(hosts) != 1 or not whole or (None in hosts and len(partials) > 1):
        return None
    return link_of([device for partial in partials for device in partial.devices])
