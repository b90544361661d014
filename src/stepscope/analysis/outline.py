"""What every report begins with, of one profile or of a job of many ranks: files, steps, accounting, the mean step.

A profile is a job of one rank: what makes an ``Outline`` of a job stands in ``cluster/outline.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from stepscope.analysis import summary
from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import Category
from stepscope.analysis.exchange.collectives import HOST
from stepscope.analysis.facts import Facts
from stepscope.analysis.kernels import precision_of
from stepscope.analysis.pods import ended_last
from stepscope.record import record
from stepscope.trace.codes import among
from stepscope.trace.tables import I32, I64, NULL, Bools
from stepscope.trace.trace import Device, Loss

Basis = Literal["device", "host"]


@record
class InputFile:
    """An input file; ``bytes`` is its size on disk."""

    path: str
    bytes: int | None
    events: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What was read, and how whole it is."""

    format: str
    framework: str | None
    files: list[InputFile]
    ranks: list[int | None]
    world_size: int | None
    devices: list[Device]
    on_cpu: bool
    """The processes could use no device."""
    host: str | None
    epoch_ns: int | None
    complete: bool
    events: dict[str, int]
    losses: list[Loss]


@record
class Steps:
    """One value per step; times in ns from the trace's origin."""

    number: I64
    """NULL where the profile numbers none."""
    start: I64
    dur: I64
    host_dur: I64
    complete: Bools
    used: Bools
    slow: Bools


@record
class AccountingRows:
    """The accounting: one value per row, by device and time; the rows of a device tile."""

    device: I32
    """``HOST`` for the host's."""
    step: I32
    """Index of the step, -1 for none."""
    phase: tuple[str, ...]
    start: I64
    dur: I64
    parts: I64
    """One column per category."""
    used: Bools


@record
class Timed:
    """A rank's steps and rows."""

    rank: int | None
    basis: Basis
    inferred: bool
    steps: Steps
    rows: AccountingRows
    parts: I64
    """The rows' parts; of a job, with collectives divided."""


@record
class StepTime:
    """Duration of the used steps; None where that is not known."""

    median: int | None
    mean: int | None
    p95: int | None


@record
class TwoShares:
    """A share in two ways; None where it is not known."""

    by_count: float | None = None
    by_time: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The figures above everything else; None is what is not known, or of a job not told."""

    step_time_ns: StepTime
    unrecorded_step_ns: int | None
    steps_used: int
    steps_slow: int = 0
    step_basis: Basis | None
    inferred: bool
    step_source: str
    parts_ns_per_step: Mapping[Category, int]
    parts_share: Mapping[Category, float]
    device_busy_share: float | None
    device_busy_share_without_collectives: float | None
    duty_cycle_share: float | None = None
    device_ops_share: TwoShares = TwoShares()
    low_precision_share: TwoShares = TwoShares()
    precision_known_share: float | None = None
    launch_wait_share: float | None = None
    idle_between_steps_ns: int | None = None
    idle_within_steps_ns: int | None = None
    phases_ns_per_step: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """The mean used step of one device."""

    rank: int | None
    device: int | None
    basis: Basis
    steps: int
    unused: bool = False
    behind_ns: int | None = None
    ended_last: int | None = None
    parts: Mapping[Category, int]
    shares: Mapping[Category, float]


@record
class Outline:
    """What every report begins with."""

    recorded: Recorded
    ranks: list[Timed]
    summary: Summary
    breakdowns: list[Breakdown]


def outline(facts: Facts, files: list[InputFile]) -> Outline:
    """Of one profile."""
    rank, rows = facts.trace.info.rank, rows_of(facts)
    timed = Timed(rank, facts.basis, facts.markers.inferred, steps_of(facts), rows, rows.parts)
    last = ended_last(facts)
    told = [_breakdown(facts, account, last) for account in facts.accounts if facts.used_rows(account)]
    return Outline(_recorded(facts, files), [timed], _summary(facts), told)


def _recorded(facts: Facts, files: list[InputFile]) -> Recorded:
    info, completeness = facts.trace.info, facts.trace.completeness
    return Recorded(
        format=info.format,
        framework=info.framework,
        files=files,
        ranks=[info.rank],
        world_size=info.world_size,
        devices=list(info.devices),
        on_cpu=info.on_cpu,
        host=info.host,
        epoch_ns=info.origin_epoch_ns,
        complete=completeness.complete,
        events={"total": completeness.events, **completeness.rows},
        losses=list(completeness.losses),
    )


def steps_of(facts: Facts, most: int | None = None) -> Steps:
    """The steps; of very many the first."""
    markers, count = facts.markers, len(facts.markers)
    used, slow = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    used[list(facts.used)] = True
    slow[[each.step for each in facts.slow]] = True
    return Steps(
        number=np.array([NULL if number is None else number for number in markers.numbers], np.int64)[:most],
        start=markers.start[:most],
        dur=facts.step_ns[:most],
        host_dur=facts.host_step_ns[:most],
        complete=np.array(facts.complete, np.bool_)[:most],
        used=used[:most],
        slow=slow[:most],
    )


def rows_of(facts: Facts, most: int | None = None) -> AccountingRows:
    """The rows of all devices; of very many the first of each."""
    accounts = facts.accounts
    kept = None if most is None else max(1, most // max(len(accounts), 1))
    device = [np.full(len(a.rows.steps[:kept]), device_number(a), np.int32) for a in accounts]
    step = [np.array([-1 if s is None else s for s in a.rows.steps[:kept]], np.int32) for a in accounts]
    width = len(Category)
    return AccountingRows(
        device=joined(device, np.int32),
        step=joined(step, np.int32),
        phase=tuple(phase for a in accounts for phase in a.rows.phases[:kept]),
        start=joined([a.rows.bounds[:-1][:kept] for a in accounts], np.int64),
        dur=joined([a.duration_ns[:kept] for a in accounts], np.int64),
        parts=np.concatenate([np.zeros((0, width), np.int64), *(a.parts[:kept] for a in accounts)]),
        used=joined([among(of, facts.used) for of in step], np.bool_),
    )


def device_number(account: Account) -> int:
    """An account's device, ``HOST`` where there is none."""
    return HOST if account.rows.device is None else account.rows.device


def joined(parts: list[npt.NDArray[Any]], dtype: type[Any]) -> npt.NDArray[Any]:
    """Columns behind each other, of which there may be none."""
    return np.concatenate([np.empty(0, dtype), *parts]).astype(dtype)


def _summary(facts: Facts) -> Summary:
    median, p95 = summary.step_time(facts)
    median, mean, p95 = (None,) * 3 if facts.is_capture else (median, facts.mean_step_ns, p95)
    between, within = summary.idle_per_step(facts) or (None, None)
    placed, precision = facts.placement if facts.activities else None, precision_of(facts.kernels)
    return Summary(
        step_time_ns=StepTime(median, mean, p95),
        unrecorded_step_ns=None if facts.is_capture else summary.unrecorded_step_ns(facts),
        steps_used=len(facts.used),
        steps_slow=len(facts.slow),
        step_basis=facts.basis if facts.used else None,
        inferred=facts.markers.inferred,
        step_source=facts.markers.source,
        parts_ns_per_step=summary.mean_parts(facts),
        parts_share=summary.shares(summary.total_parts(facts)),
        device_busy_share=summary.busy_share(facts, collectives=True),
        device_busy_share_without_collectives=summary.busy_share(facts, collectives=False),
        duty_cycle_share=summary.duty_cycle_share(facts),
        device_ops_share=TwoShares(*(placed.device_share_by_count, placed.device_share_by_time) if placed else ()),
        low_precision_share=TwoShares(precision.low_by_count, precision.low_by_time),
        precision_known_share=precision.known_by_time,
        launch_wait_share=summary.launch_wait_share(facts),
        idle_between_steps_ns=between,
        idle_within_steps_ns=within,
        phases_ns_per_step=summary.phases_per_step(facts),
    )


def _breakdown(facts: Facts, account: Account, last: dict[int, int]) -> Breakdown:
    totals, rows, device = summary.account_parts(facts, account), facts.used_rows(account), account.rows.device
    return Breakdown(
        rank=facts.trace.info.rank,
        device=device,
        basis=facts.basis,
        steps=len(rows),
        unused=device in facts.unused - facts.beside,
        behind_ns=summary.behind_ns(facts, account),
        ended_last=None if device is None else last.get(device),
        parts=summary.apportion(totals, len(rows)),
        shares=summary.shares(totals),
    )
