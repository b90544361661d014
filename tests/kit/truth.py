"""The accounting a simulation must get: every device nanosecond by cause, from what the machine knows.

This states the definitions of the project's accounting (windows E(k), busy time by priority, gaps through the
op that ends them, the lead a wait destroyed) over the machine's own knowledge, never over recorded events.
Where the definitions leave a piece of time to more than one category, the row says in ``open_ns`` by how much
each of them may differ; the planted cases are built so that this is nothing or a few microseconds.
"""

from __future__ import annotations

import statistics
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.kit.machine import DeviceOp, HostSpan, Machine

HAND_ON_NS = 1_000_000
"""A copy, memset or collective that ends a gap hands the cause to compute that starts this soon after it."""

BUSY = ("compute", "collective", "copy_h2d", "copy_d2h", "copy_d2d", "copy_p2p", "memset")
"""Busy categories, the first of those that run at a time counts."""

Piece = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Mark:
    """A step on the host. ``pause_ns`` is how long the profiler was off after it."""

    number: int
    start: int
    end: int
    pause_ns: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """A stretch of one device's time (or the host's, where there is no device)."""

    device: int | None
    step: int | None
    phase: str
    start_ns: int
    dur_ns: int
    parts: Mapping[str, int]
    open_ns: Mapping[str, int]
    """How far a category may differ because the definitions allow more than one reading."""

    @property
    def end_ns(self) -> int:
        return self.start_ns + self.dur_ns


@dataclass(frozen=True, slots=True)
class Truth:
    """The rows of every device, which steps are whole, and the markers."""

    rows: tuple[Row, ...]
    marks: tuple[Mark, ...]
    complete: Mapping[int, bool]

    def row(self, step: int, device: int | None = 0) -> Row:
        """The row of a step on a device."""
        return next(row for row in self.rows if row.step == step and row.device == device)

    def steps(self) -> list[int]:
        """The numbers of the steps."""
        return [mark.number for mark in self.marks]

    def used(self) -> list[int]:
        """The steps statistics are made of.

        Complete ones, without first and last where there are four or more.
        """
        whole = [number for number in self.steps() if self.complete[number]]
        return whole[1:-1] if len(whole) >= 4 else whole

    def step_ns(self, number: int) -> int:
        """The time of a step: between the ends of the last devices in the step before and in this one."""
        mine = [row for row in self.rows if row.step == number]
        return max(row.start_ns + row.dur_ns for row in mine) - max(row.start_ns for row in mine)

    def median_step_ns(self) -> float:
        """Median step time over the steps used."""
        return statistics.median(self.step_ns(number) for number in self.used())

    def mean_step_ns(self) -> float:
        """Mean step time over the steps used: what a cause that strikes now and then must be judged by."""
        return statistics.fmean(self.step_ns(number) for number in self.used())

    def mean_parts(self, device: int | None = 0) -> dict[str, float]:
        """Mean ns per step and category over the steps used."""
        return self._mean([self.row(number, device).parts for number in self.used()])

    def mean_open(self, device: int | None = 0) -> dict[str, float]:
        """Mean ns per step that the definitions leave open, by category."""
        return self._mean([self.row(number, device).open_ns for number in self.used()])

    def _mean(self, rows: Sequence[Mapping[str, int]]) -> dict[str, float]:
        total: Counter[str] = Counter()
        for row in rows:
            total.update(row)
        return {name: value / len(rows) for name, value in sorted(total.items()) if value}


def mismatches(
    actual: Mapping[str, float],
    wanted: Mapping[str, float],
    allowed: Mapping[str, float],
    tolerance_ns: float = 0,
) -> list[str]:
    """What differs beyond what the definitions leave open; empty when the two agree."""
    return [
        f"{name}: {actual.get(name, 0):.0f} ns, expected {wanted.get(name, 0):.0f}"
        f" (open {allowed.get(name, 0):.0f}, tolerance {tolerance_ns:.0f})"
        for name in sorted({*actual, *wanted})
        if abs(actual.get(name, 0) - wanted.get(name, 0)) > allowed.get(name, 0) + tolerance_ns
    ]


def account(machine: Machine, marks: Sequence[Mark], covered: bool = True) -> Truth:
    """The truth of a finished simulation.

    ``covered`` says whether stretches of Python have a recorded cover.
    """
    devices = sorted({op.device for op in machine.ops})
    rows = [row for device in devices for row in _DeviceLedger(machine, marks, device, covered).rows()]
    if not devices:
        rows = [_host_row(machine, mark, covered) for mark in marks]
    return Truth(tuple(rows), tuple(marks), _complete(machine, marks))


def _complete(machine: Machine, marks: Sequence[Mark]) -> dict[int, bool]:
    """A last step with under half the median launches or host time was cut off."""
    launches = Counter(op.step for op in machine.ops)
    counts = [launches[mark.number] for mark in marks]
    host = [mark.end - mark.start for mark in marks]
    whole = dict.fromkeys((mark.number for mark in marks), True)
    if len(marks) > 1:
        few = 2 * counts[-1] < statistics.median(counts[:-1])
        whole[marks[-1].number] = not (few or 2 * host[-1] < statistics.median(host[:-1]))
    return whole


def _host_row(machine: Machine, mark: Mark, covered: bool) -> Row:
    pieces = [(span.start, span.end, _named(span.cause, covered)) for span in machine.spans]
    parts = _clip(pieces, mark.start, mark.end)
    return Row(None, mark.number, "step", mark.start, mark.end - mark.start, parts, {})


def _named(cause: str, covered: bool) -> str:
    """Time in a wait is host time like any other until the lead it destroyed is known."""
    if cause in ("sync", "copy_wait", "copy_staging"):
        return "launch"
    return "unknown_host" if cause == "python" and not covered else cause


def _clip(pieces: Iterable[Piece], start: int, end: int) -> dict[str, int]:
    parts: Counter[str] = Counter()
    for begin, finish, name in pieces:
        length = min(finish, end) - max(begin, start)
        if length > 0:
            parts[name] += length
    return dict(parts)


@dataclass
class _Share:
    """A gap's pieces in time order, and what is open about them."""

    pieces: list[Piece]
    open: Counter[str] = field(default_factory=Counter)
    lead_ns: int = 0
    """What waits destroyed and this gap did not use up; a later gap may."""
    copying_ns: int = 0
    """The same of copies from pageable memory, if they are to count as waits."""

    def may_be(self, ns: int, *names: str) -> None:
        for name in names:
            self.open[name] += max(ns, 0)


class _DeviceLedger:
    """The accounting of one device."""

    def __init__(self, machine: Machine, marks: Sequence[Mark], device: int, covered: bool) -> None:
        self.machine, self.marks, self.covered = machine, marks, covered
        self.device = device
        self.ops = sorted((op for op in machine.ops if op.device == device), key=lambda op: (op.start, _rank(op)))
        self.compute = [op for op in self.ops if op.category == "compute"]
        self.span_starts = [span.start for span in machine.spans]
        self.span_ends = [span.end for span in machine.spans]
        self.origin = min(self.ops[0].start, marks[0].start)
        self.end = max(op.end for op in self.ops)
        self.lead_ns = self.copying_ns = self.counted_until = 0

    def rows(self) -> list[Row]:
        """The rows, tiling everything from the first op or marker to the last op."""
        pieces, opened = self._timeline()
        made = []
        for step, phase, start, end in self._bounds():
            open_ns: Counter[str] = Counter()
            for at, share in opened:
                if start <= at < end:
                    open_ns.update(share)
            if end > start or phase == "step":
                made.append(Row(self.device, step, phase, start, end - start, _clip(pieces, start, end), dict(open_ns)))
        return made

    def _bounds(self) -> list[tuple[int | None, str, int, int]]:
        first = self.marks[0].start
        launched = min((op.start for op in self.ops if op.call_start is not None), default=self.end)
        early = [op.end for op in self.ops if op.call_start is None and op.start < launched]
        early += [op.end for op in self.ops if op.call_start is not None and op.call_start < first]
        reach = min(max([first, *early]), self.end)
        bounds: list[tuple[int | None, str, int, int]] = [(None, "before", self.origin, reach)]
        for position, mark in enumerate(self.marks):
            last = max([reach, *(op.end for op in self.ops if op.step == mark.number)])
            bounds.append((mark.number, "step", reach, last))
            reach = last
            if mark.pause_ns and position + 1 < len(self.marks):
                resumed = min(max(reach, self.marks[position + 1].start), self.end)
                bounds.append((None, "gap", reach, resumed))
                reach = resumed
        return [*bounds, (None, "after", reach, self.end)]

    def _timeline(self) -> tuple[list[Piece], list[tuple[int, Counter[str]]]]:
        """Pieces that tile the device's time, and what is open, by the start of the gap it is open in."""
        pieces, opened = [], []
        for start, end, name in self._busy():
            if name:
                pieces.append((start, end, name))
            else:
                self._count_waits(start)
                share = self._explain(start, end)
                self.lead_ns, self.copying_ns = share.lead_ns, share.copying_ns
                pieces += share.pieces
                opened.append((start, share.open))
        return pieces, opened

    def _busy(self) -> list[Piece]:
        """Elementary intervals with the category that counts, "" where nothing runs."""
        changes = sorted([(op.start, _rank(op), 1) for op in self.ops] + [(op.end, _rank(op), -1) for op in self.ops])
        running, at, made = [0] * len(BUSY), self.origin, []
        for when, rank, change in changes:
            if when > at:
                name = next((BUSY[i] for i, count in enumerate(running) if count), "")
                made.append((at, when, name))
                at = when
            running[rank] += change
        return _merged(made)

    def _explain(self, start: int, end: int) -> _Share:
        """A gap, through the op that ends it, or the compute right behind a copy, memset or collective."""
        op = self.ops[bisect_left(self.ops, end, key=lambda op: op.start)]
        share = self._through(op, start, end)
        if op.category == "compute":
            return share
        behind = self.compute[bisect_left(self.compute, end, key=lambda op: op.start) :][:1]
        if not behind or behind[0].start - op.end > HAND_ON_NS:
            return share
        handed = self._through(behind[0], start, end)
        one, other = (_clip(each.pieces, start, end) for each in (share, handed))
        for name in {*one, *other}:
            # Time before the copy's own call and inside it reads differently through the two ops.
            handed.may_be(abs(one.get(name, 0) - other.get(name, 0)), name)
        return handed

    def _through(self, op: DeviceOp, start: int, end: int) -> _Share:
        if op.call_start is None or op.call_end is None:
            return self._share((start, end, "unknown_device"))
        if op.call_start < start:
            return self._queued(op, start, end)
        share = _Share(self._host_time(start, min(op.call_start, end)))
        self._blame_wait(share, start)
        self._if_threads_alternate(share, op)
        in_call = min(op.call_end, end)
        if in_call > op.call_start:
            share.pieces.append((op.call_start, in_call, "copy_staging" if _staged(op) else "launch"))
            if not _staged(op):
                # Whether a destroyed lead reaches into the op's own call, the definition does not say.
                share.may_be(min(in_call - op.call_start, share.lead_ns + share.copying_ns), "launch", "sync")
        if end > in_call:
            name = "dependency" if op.awaited else "launch_latency"
            share.pieces.append((max(in_call, start), end, name))
            if op.awaited:
                share.may_be(end - in_call, "launch_latency", "unknown_device", "dependency")
        return share

    def _share(self, piece: Piece) -> _Share:
        """A gap of one piece, which spends no lead."""
        return _Share([piece], lead_ns=self.lead_ns, copying_ns=self.copying_ns)

    def _queued(self, op: DeviceOp, start: int, end: int) -> _Share:
        """Launched before the gap began."""
        if op.awaited:
            return self._share((start, end, "dependency"))
        share = self._share((start, end, "device_latency"))
        # A launch may race the end of the op before it; how much is latency depends on how the cap is taken.
        share.may_be(end - start - self.machine.costs.latency_ns, "device_latency", "unknown_device")
        if _staged(op):
            share.may_be(end - start, "device_latency", "unknown_device", "copy_staging")
        if op.behind_wait:
            share.may_be(end - start, "device_latency", "dependency")
        return share

    def _spans(self, start: int, end: int) -> list[HostSpan]:
        """Host spans that touch ``[start, end]``; they tile the host's time."""
        return self.machine.spans[bisect_left(self.span_ends, start) : bisect_left(self.span_starts, end)]

    def _host_time(self, start: int, end: int) -> list[Piece]:
        return [
            (max(span.start, start), min(span.end, end), _named(span.cause, self.covered))
            for span in self._spans(start, end)
            if span.end > start
        ]

    def _blame_wait(self, share: _Share, gap: int) -> None:
        """Move the launching that a destroyed lead would have hidden: at most the time blocked before the device went
        idle, each ns once. Python code stays what it is."""
        lead, copying = self.lead_ns, self.copying_ns
        rest = sum(end - start for start, end, name in share.pieces if name == "launch")
        moved = min(rest, lead)
        share.lead_ns, share.copying_ns = lead - moved, max(copying - (rest - moved), 0)
        if moved < rest:
            returning = sum(span.end - gap for span in self._spans(gap, gap) if span.cause == "sync")
            share.may_be(min(rest - moved, returning + copying), "sync", "launch")
        share.pieces = _moved(share.pieces, moved)

    def _count_waits(self, gap: int) -> None:
        """Add what the host was blocked in a wait before the device went idle, each nanosecond once.

        Idle moments between queued work are part of it: without the wait the host would have led by them too.
        """
        for span in self._spans(gap, gap):
            blocked = gap - max(span.start, min(self.counted_until, gap))
            if span.cause == "sync":
                self.lead_ns += blocked
            elif span.cause == "copy_wait":
                # A copy from pageable memory is not listed among the waits, yet it blocks like one.
                self.copying_ns += blocked
        self.counted_until = gap

    def _if_threads_alternate(self, share: _Share, op: DeviceOp) -> None:
        """Backward runs while the main thread only waits: that dispatching is no op of the thread."""
        for start, end, name in share.pieces:
            for span in self._spans(start, end):
                if span.thread != op.thread == "main" and name == "launch":
                    share.may_be(min(span.end, end) - max(span.start, start), "launch", "python", "unknown_host")


def _moved(pieces: list[Piece], ns: int) -> list[Piece]:
    made: list[Piece] = []
    for start, end, name in pieces:
        taken = min(ns, end - start) if name == "launch" else 0
        made += [(start, start + taken, "sync")] * (taken > 0) + [(start + taken, end, name)] * (end - start > taken)
        ns -= taken
    return made


def _merged(pieces: list[Piece]) -> list[Piece]:
    made: list[Piece] = []
    for start, end, name in pieces:
        if made and made[-1][2] == name:
            start = made.pop()[0]
        made.append((start, end, name))
    return made


def _rank(op: DeviceOp) -> int:
    return BUSY.index(op.category)


def _staged(op: DeviceOp) -> bool:
    """A copy from pageable memory: its call returns only when it is done."""
    return op.call_end is not None and op.category == "copy_h2d" and op.call_end >= op.end
