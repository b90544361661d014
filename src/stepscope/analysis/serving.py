"""Serving of language models: what the iterations of a server run, how long they take, and what limits the tokens.

An iteration is a pass through the model whose range's name says what it ran (``names/serving.py``). Where every step
holds one at most, it takes as long as its step does, and its time is booked as the step's is. Else it is as long as its
range on the host, or as its module's execution on the device.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from stepscope.analysis.categories import BUSY, CATEGORIES, Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.limits import LATENCY_TAIL, ROOF_NEAR_SHARE, UTILISATION_COUNTED_SHARE
from stepscope.analysis.peaks import device_peaks
from stepscope.analysis.roofline import per_second
from stepscope.names.serving import (
    BATCHES,
    MAXTEXT,
    TENSORFLOW_SERVING,
    Iteration,
    ServingPhase,
    iteration,
    serving_module,
)
from stepscope.record import record
from stepscope.trace.codes import among, distinct, mapped
from stepscope.trace.forest import on_host_threads
from stepscope.trace.tables import I64, NULL, Kind, TrackKind
from stepscope.trace.trace import Trace

Basis = Literal["step", "host range", "module"]


@record
class Latency:
    """How long iterations take, in ns; None where too few were recorded to tell."""

    mean: int
    p50: int
    p90: int | None
    p99: int | None


@record
class MemoryTraffic:
    """What kernels read and write at least, of those whose bytes are known."""

    bytes: int
    ns: int
    """Time of these kernels."""
    known_share: float
    """Their share of the time of all kernels."""
    bandwidth: int | None
    """What the devices' memories deliver at most, in bytes per second."""

    @property
    def bandwidth_share(self) -> float | None:
        """Bytes per second of these kernels as a share of the memory's bandwidth."""
        return self.bytes / self.ns * 1e9 / self.bandwidth if self.bandwidth and self.ns else None

    @property
    def binds(self) -> bool:
        """Whether memory is known to set the pace of the kernels."""
        share = self.bandwidth_share
        return share is not None and share >= ROOF_NEAR_SHARE and self.known_share >= UTILISATION_COUNTED_SHARE


@record
class PhaseUse:
    """The iterations of one phase; a number is None where not every name among them says it."""

    phase: ServingPhase
    count: int
    ns: int
    """Of all of them together."""
    latency: Latency
    requests: float | None
    """Per iteration, the median; so are those that follow."""
    padded: float | None
    prefill_tokens: float | None
    decode_requests: float | None
    decode_tokens: float | None
    context_tokens: float | None
    prefill_tokens_in_all: int | None
    decode_requests_in_all: int | None
    exact: bool
    """Whether each request that decodes gets one token in each iteration: else it is one or more."""
    parts: dict[Category, int]
    """The time of the devices (or of the host) by category; empty where it is not booked by iteration."""
    traffic: MemoryTraffic | None

    @property
    def decodes(self) -> bool:
        """Whether requests get tokens in it."""
        return self.phase in (ServingPhase.DECODE, ServingPhase.MIXED)

    @property
    def ns_per_token(self) -> int | None:
        """Time between two tokens of one request, the median; at most that where they may be several at once."""
        return self.latency.p50 if self.decodes else None

    @property
    def prefill_tokens_per_s(self) -> float | None:
        """Tokens of prompts per second of these iterations."""
        return per_second(self.prefill_tokens_in_all, self.ns) if self.prefill_tokens_in_all else None

    @property
    def decode_tokens_per_s(self) -> float | None:
        """Tokens of answers per second of these iterations; at least that many where they are not ``exact``."""
        return per_second(self.decode_requests_in_all, self.ns) if self.decodes else None

    @property
    def busy_share(self) -> float | None:
        """Share of the time in which devices work."""
        total = sum(self.parts.values())
        return sum(ns for category, ns in self.parts.items() if category in BUSY) / total if total else None

    @property
    def limit(self) -> tuple[Category, float] | None:
        """What takes most of the time, and its share."""
        total = sum(self.parts.values())
        if not total:
            return None
        category, ns = max(self.parts.items(), key=lambda part: part[1])
        return category, ns / total


@record
class Serving:
    """What a server ran."""

    server: str
    basis: Basis
    """What the times are of."""
    recorded: int
    """Iterations in the profile, cut ones at its ends among them."""
    uses: tuple[PhaseUse, ...]
    """By phase, those with most time first."""

    @property
    def ns(self) -> int:
        """Time of all iterations."""
        return sum(use.ns for use in self.uses)

    @property
    def decode_tokens_per_s(self) -> float | None:
        """Tokens of answers per second over all iterations; None where some that decode do not say how many."""
        known = [use.decode_requests_in_all for use in self.uses if use.decodes]
        if not known or any(use.phase is ServingPhase.UNKNOWN for use in self.uses):
            return None
        return None if None in known else per_second(sum(filter(None, known)), self.ns)

    @property
    def exact(self) -> bool:
        """Whether it is known that no request gets several tokens at once."""
        return all(use.exact for use in self.uses if use.decodes)


@record
class _Ran:
    """Iterations in order of time."""

    slices: list[int]
    says: list[Iteration]
    on_device: bool = False


@record
class _Timed:
    """An iteration, how long it took, and the step that it is, if it is one."""

    says: Iteration
    ns: int
    step: int | None = None


def serving(facts: Facts) -> Serving | None:
    """The iterations of a server; None where no name tells of any."""
    ran = None if facts.is_capture else _ranges(facts.trace) or _modules(facts.trace) or _batches(facts.trace)
    if ran is None:
        return None
    timed = _timed(facts, ran)
    if not timed:
        return None
    by_host: Basis = "module" if ran.on_device else "host range"
    basis: Basis = by_host if timed[0].step is None else "step"
    phases = {one.says.phase for one in timed}
    uses = [_use(facts, phase, [one for one in timed if one.says.phase is phase]) for phase in phases]
    uses.sort(key=lambda use: (-use.ns, use.phase))
    return Serving(ran.says[0].server, basis, len(ran.slices), tuple(uses))


def _timed(facts: Facts, ran: _Ran) -> list[_Timed]:
    steps = None if ran.on_device else _steps_of(facts, ran.slices)
    if steps is None:
        took = facts.trace.slices.dur_ns[np.array(ran.slices, np.intp)].tolist()
        return [_Timed(says, ns) for says, ns in zip(ran.says, took, strict=True)]
    counted = set(facts.timed)
    pairs = [(says, step) for says, step in zip(ran.says, steps, strict=True) if step in counted]
    return [_Timed(says, int(facts.step_ns[step]), step) for says, step in pairs]


def _ranges(trace: Trace) -> _Ran | None:
    """Ranges of the thread that has most of them, outermost where they nest."""
    slices = trace.slices
    ranged = among(slices.kind, (Kind.STEP, Kind.ANNOTATION))
    ranged &= on_host_threads(trace)
    rows = np.flatnonzero(ranged)
    told = {code: iteration(trace.strings[code]) for code in distinct(slices.name[rows])}
    known = [code for code, says in told.items() if says is not None]
    rows = rows[among(slices.name[rows], known)]
    if not rows.size:
        return None
    threads, counts = np.unique(slices.track[rows], return_counts=True)
    rows = rows[slices.track[rows] == threads[counts.argmax()]]
    rows = rows[np.lexsort((-slices.dur_ns[rows], slices.start_ns[rows]))]
    reach = np.concatenate(([np.iinfo(np.int64).min], np.maximum.accumulate(_ends(trace, rows))[:-1]))
    kept = rows[_ends(trace, rows) > reach].tolist()
    return _Ran(kept, [says for row in kept if (says := told[int(slices.name[row])]) is not None])


def _modules(trace: Trace) -> _Ran | None:
    """Executions of a server's modules on the first device that runs those of both phases."""
    slices = trace.slices
    rows = np.flatnonzero(slices.kind == Kind.MODULE)
    rows = rows[trace.tracks.kind[slices.track[rows]] == TrackKind.DEVICE_LINE]
    told = {code: serving_module(trace.strings[code]) for code in distinct(slices.name[rows])}
    rows = rows[among(slices.name[rows], [code for code, phase in told.items() if phase is not None])]
    for track in distinct(slices.track[rows]):
        mine = rows[slices.track[rows] == track].tolist()
        phases = [phase for row in mine if (phase := told[int(slices.name[row])]) is not None]
        if len(set(phases)) == 2:
            return _Ran(mine, [Iteration(MAXTEXT, phase) for phase in phases], on_device=True)
    return None


def _batches(trace: Trace) -> _Ran | None:
    """Batches of TensorFlow Serving, whose threads take them side by side."""
    if trace.info.framework != "TensorFlow":
        return None
    slices = trace.slices
    rows = np.flatnonzero(mapped(slices.name, trace.strings, _is_batch, np.bool_))
    rows = rows[trace.tracks.kind[slices.track[rows]] == TrackKind.HOST_THREAD]
    if not rows.size:
        return None
    said = [Iteration(TENSORFLOW_SERVING, ServingPhase.BATCH)] * rows.size
    return _Ran(rows[np.argsort(slices.start_ns[rows], kind="stable")].tolist(), said)


def _is_batch(name: str) -> bool:
    return BATCHES.fullmatch(name) is not None


def _ends(trace: Trace, rows: Iterable[int]) -> I64:
    at = np.asarray(rows, np.intp)
    return trace.slices.start_ns[at] + trace.slices.dur_ns[at]


def _steps_of(facts: Facts, slices: Sequence[int]) -> list[int] | None:
    """The step that each iteration begins in; None where one holds several, or steps are not marked on the host."""
    markers = facts.markers
    if markers.on_device or markers.inferred:
        return None
    rows = np.array(slices, np.intp)
    marked = markers.slices >= 0
    begin = np.where(marked, facts.trace.slices.start_ns[markers.slices], markers.start)
    step = np.searchsorted(begin, facts.trace.slices.start_ns[rows], "right") - 1
    inside = step[step >= 0]
    return None if np.unique(inside).size < inside.size else [int(one) for one in step.tolist()]


def _use(facts: Facts, phase: ServingPhase, timed: Sequence[_Timed]) -> PhaseUse:
    says = [one.says for one in timed]
    ns = np.array([one.ns for one in timed], np.int64)
    steps = tuple(one.step for one in timed if one.step is not None)
    decode = [one.decode_requests for one in says]
    return PhaseUse(
        phase=phase,
        count=len(says),
        ns=int(ns.sum()),
        latency=_latency(ns),
        requests=_median([one.requests for one in says]),
        padded=_median([one.padded for one in says]),
        prefill_tokens=_median([one.prefill_tokens for one in says]),
        decode_requests=_median(decode),
        decode_tokens=_median([one.decode_tokens for one in says]),
        context_tokens=_median([one.context_tokens for one in says]),
        prefill_tokens_in_all=_sum([one.prefill_tokens for one in says]),
        decode_requests_in_all=_sum(decode),
        exact=all(one.decode_tokens is not None and one.decode_tokens == one.decode_requests for one in says),
        parts=_parts(facts, steps),
        traffic=_traffic(facts, steps),
    )


def _latency(ns: I64) -> Latency:
    """A percentile is told where iterations lie beyond it: else it would be the maximum in disguise."""
    ordered = np.sort(ns)

    def tail(percent: int) -> int | None:
        beyond = ordered.size * (100 - percent) // 100
        return int(ordered[ordered.size - 1 - beyond]) if beyond >= LATENCY_TAIL else None

    return Latency(round(float(ns.mean())), int(np.median(ns)), tail(90), tail(99))


def _parts(facts: Facts, steps: tuple[int, ...]) -> dict[Category, int]:
    sums = np.zeros(len(CATEGORIES), np.int64)
    for account in facts.working:
        sums += account.parts[account.step_rows(steps)].sum(axis=0)
    return {CATEGORIES[code]: int(sums[code]) for code in np.flatnonzero(sums).tolist()}


def _traffic(facts: Facts, steps: tuple[int, ...]) -> MemoryTraffic | None:
    """The bytes of the kernels of some steps, as far as anything recorded tells them."""
    moved, known_ns, all_ns = 0, 0, 0
    bandwidths = set()
    for work, (activity, account) in zip(facts.work, facts.devices, strict=True):
        if activity.device in facts.unused:
            continue
        rows = np.flatnonzero(among(work.period, account.step_rows(steps)))
        owner = work.owner[rows]
        told = (owner >= 0) & (work.costs.bytes[owner] != NULL)
        moved += int(work.costs.bytes[np.unique(owner[told])].sum())
        known_ns += int(work.ns[rows[told]].sum())
        all_ns += int(work.ns[rows].sum())
        peaks = device_peaks(facts.trace, activity.device)
        bandwidths.add(peaks.memory_bandwidth.value if peaks and peaks.memory_bandwidth else None)
    if not known_ns:
        return None
    bandwidth = bandwidths.pop() if len(bandwidths) == 1 else None
    return MemoryTraffic(moved, known_ns, known_ns / all_ns, bandwidth)


def _median(values: Sequence[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known and len(known) == len(values) else None


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
