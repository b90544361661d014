"""What is kept of one rank: a few kB to a few hundred kB, whatever the size of its profile.

Everything that is compared between ranks, on the rank's own clock. A ``Partial`` crosses process boundaries, so it
holds plain values and arrays only, and nothing of the trace itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from operator import eq

import numpy as np

from stepscope.analysis.accounting import Account, host_time
from stepscope.analysis.categories import Category
from stepscope.analysis.exchange.collectives import Collectives
from stepscope.analysis.facts import Facts
from stepscope.analysis.outline import AccountingRows, Basis, Steps, device_number, joined, rows_of, steps_of
from stepscope.analysis.workload import Workload
from stepscope.cluster.limits import EXPOSED_KEPT, KERNEL_NAMES_KEPT, ROWS_KEPT
from stepscope.cluster.path_kept import KeptPath, kept_path
from stepscope.cluster.uses import RankUses, uses_of
from stepscope.diagnosis.evidence import has_python
from stepscope.diagnosis.finding import Diagnosis, Finding, Notice
from stepscope.diagnosis.notices.devices import RANKS_ELSEWHERE
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.tables import I32, I64
from stepscope.trace.trace import Device
from stepscope.whatif.change import Change
from stepscope.whatif.recording import told_step_ns

_NAME = 200
_EVIDENCE = 3


@record
class ExposedStretches:
    """The longest stretches in which collectives were all that a device did, by device and time."""

    device: I32
    start: I64
    end: I64


@record
class Kernel:
    """A kernel in the used steps: time and launches per step, over all devices."""

    name: str
    ns: float
    count: float


@record
class Partial:
    """One rank's profile, reduced."""

    path: str
    bytes: int | None
    events: int
    rank: int | None
    world_size: int | None
    host: str | None
    format: str
    framework: str | None
    workload: Workload
    """What advice has to fit."""
    devices: tuple[Device, ...]
    on_cpu: bool
    """The process could use no device."""
    unused: frozenset[int]
    epoch_ns: int | None
    complete: bool
    lost_events: int
    lost_bytes: int
    sampled: bool
    inferred: bool
    step_source: str
    basis: Basis
    bottleneck: str
    steps: Steps
    rows: AccountingRows
    collectives: Collectives
    exposed: ExposedStretches
    kernels: tuple[Kernel, ...]
    path_kept: KeptPath
    uses: RankUses
    findings: tuple[Finding, ...]
    minor: tuple[Finding, ...]
    notices: tuple[Notice, ...]
    python: bool
    """Whether Python code was recorded."""
    unrecorded_share: float = 1.0
    """What a step takes when nobody records, as a share of a recorded one; 1 where that is not known."""

    @property
    def lanes(self) -> list[int]:
        """The devices that carried out collectives (``HOST`` among them)."""
        return [int(device) for device in np.unique(self.collectives.device)]


def reduce(facts: Facts, diagnosis: Diagnosis, path: str, size: int | None) -> Partial:
    """What is kept of a rank's facts and diagnosis."""
    info, completeness = facts.trace.info, facts.trace.completeness
    return Partial(
        path=path,
        bytes=size,
        events=completeness.events,
        rank=info.rank,
        world_size=info.world_size,
        host=info.host,
        format=info.format,
        framework=info.framework,
        workload=facts.workload,
        devices=info.devices,
        on_cpu=info.on_cpu,
        unused=facts.unused,
        epoch_ns=info.origin_epoch_ns,
        complete=completeness.complete,
        lost_events=sum(loss.lost_events for loss in completeness.losses),
        lost_bytes=sum(loss.lost_bytes for loss in completeness.losses),
        sampled=facts.sampling.sampled,
        inferred=facts.markers.inferred,
        step_source=facts.markers.source,
        basis=facts.basis,
        bottleneck=diagnosis.bottleneck,
        steps=steps_of(facts, ROWS_KEPT),
        rows=rows_of(facts, ROWS_KEPT),
        collectives=_collectives(facts),
        exposed=_exposed(facts),
        kernels=_kernels(facts),
        path_kept=kept_path(facts),
        uses=uses_of(facts),
        findings=tuple(map(_plain, diagnosis.findings)),
        minor=tuple(map(_plain, diagnosis.minor)),
        notices=tuple(notice for notice in diagnosis.notices if notice.code != RANKS_ELSEWHERE),
        python=has_python(facts),
        unrecorded_share=(told_step_ns(facts) or 1) / (facts.mean_step_ns or 1),
    )


def _collectives(facts: Facts) -> Collectives:
    """Groups of ten thousand ranks are named by every one of them: ranks in a row, or so many apart, as a range."""
    collectives = facts.collectives
    return replace(
        collectives, groups=tuple(replace(group, ranks=_ranged(group.ranks)) for group in collectives.groups)
    )


def _ranged(ranks: Sequence[int] | None) -> Sequence[int] | None:
    if ranks is None or len(ranks) < 2 or ranks[0] == ranks[1]:
        return ranks
    even = range(ranks[0], ranks[-1] + (1 if ranks[1] > ranks[0] else -1), ranks[1] - ranks[0])
    return even if len(even) == len(ranks) and all(map(eq, even, ranks)) else ranks


def _plain(finding: Finding) -> Finding:
    """A finding without what only a replay of its own trace can use."""
    parts = tuple(replace(part, change=Change()) for part in finding.fix_set)
    plain = replace(finding, change=None, next_waits=(), loading=None, fix_set=parts)
    return replace(plain, evidence=finding.evidence[:_EVIDENCE])


def _exposed(facts: Facts) -> ExposedStretches:
    spans = [(device_number(account), _talking(facts, at, account)) for at, account in enumerate(facts.accounts)]
    device = joined([np.full(len(start), number, np.int32) for number, (start, _) in spans], np.int32)
    start = joined([start for _, (start, _) in spans], np.int64)
    end = joined([end for _, (_, end) in spans], np.int64)
    if len(start) > EXPOSED_KEPT:
        kept = np.sort(np.argpartition(start - end, EXPOSED_KEPT)[:EXPOSED_KEPT])
        device, start, end = device[kept], start[kept], end[kept]
    return ExposedStretches(device, start, end)


def _talking(facts: Facts, at: int, account: Account) -> iv.Intervals:
    """When collectives were all that the account's device, or the host, did."""
    bounds = account.rows.bounds
    if account.rows.device is None:
        return host_time(facts.trace, facts.host, Category.COLLECTIVE, (bounds[:1], bounds[-1:]))
    start, end, codes = facts.activities[at].busy_pieces
    chosen = codes == Category.COLLECTIVE.code
    return iv.clip((start[chosen], end[chosen]), int(bounds[0]), int(bounds[-1]))


def _kernels(facts: Facts) -> tuple[Kernel, ...]:
    """The kernels that take most of the used steps' time."""
    steps = max(len(facts.used), 1)
    ns: dict[str, float] = defaultdict(float)
    count: dict[str, float] = defaultdict(float)
    for use in facts.kernels.uses:
        ns[use.name[:_NAME]] += use.total_ns / steps
        count[use.name[:_NAME]] += use.count / steps
    longest = sorted(ns, key=lambda name: -ns[name])[:KERNEL_NAMES_KEPT]
    return tuple(Kernel(name, ns[name], count[name]) for name in longest)
