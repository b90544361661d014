"""The clock of a TPU: ops carry its times beside the host's, and only those are exact.

The profiler writes every op with the times of the device's own counter and with the host's time that it takes them to
stand for. That second one is an estimate, made anew every now and then: it may run off and jump back by a hundred
milliseconds within one op, while what the host itself recorded (a program's completion) stays in step with the device.
So durations, and the time between ops that follow each other, are the device's; the host's times only say where on the
session's clock all that lies. Where the device paused long enough, it may be put a little earlier or later than before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stepscope.formats.xplane.grouping import grouped
from stepscope.formats.xplane.limits import CLOCK_AGREES_NS, CLOCK_DRIFT_NS, CLOCK_PAUSE_NS
from stepscope.formats.xplane.planes import LineRole
from stepscope.formats.xplane.view import View
from stepscope.record import record
from stepscope.trace.tables import F64, I64, NULL, Bools
from stepscope.trace.trace import Loss
from stepscope.units import format_ns

_WINDOWS, _OPS_OF_WINDOW = 8, 64
_FASTEST = 0.01
"""No two clocks differ by more than one part in a hundred; quartz is off by some parts in 100,000."""


@record
class Aligned:
    """How well the clock of one device could be put on the session's."""

    plane: int
    error_ns: int
    """How far off the device's events may lie as a whole."""
    jumps_ns: int
    """How far the host's times of single ops, as written, are off."""


class _Stamps(NamedTuple):
    """Some ops by both clocks."""

    start: I64
    end: I64
    host: I64
    host_end: I64


def use_device_clocks(view: View, start: I64, dur: I64) -> tuple[I64, I64, list[Aligned]]:
    """Start and duration of every event, those of TPUs by their own clocks; ``start`` and ``dur`` are the host's."""
    stats = view.space.stats
    rows = np.intersect1d(stats.rows("device_offset_ps"), stats.rows("device_duration_ps")).astype(np.intp)
    begin, length = stats.sizes("device_offset_ps", rows), stats.sizes("device_duration_ps", rows)
    sane = (begin != NULL) & (length != NULL) & (begin < 1 << 62) & (length < 1 << 62)
    rows, begin, length = rows[sane], begin[sane], length[sane]
    if not rows.size:
        return start, dur, []
    own = _Stamps(begin // 1000, (begin + length) // 1000, start[rows], (start + dur)[rows])
    start, dur, aligned = start.copy(), dur.copy(), []
    measured, plane = view.on(LineRole.STREAM), view.of_lines(view.lines.plane)
    for number, mine in grouped(plane[rows]):
        ops = mine[measured[rows[mine]]]
        placed = _placed(_Stamps(*(column[ops if ops.size else mine] for column in own)))
        others = np.flatnonzero(plane == number)
        others = np.setdiff1d(others, rows[mine], assume_unique=True)
        begun = placed.of_host(start[others])
        dur[others] = np.maximum(placed.of_host((start + dur)[others]) - begun, 0)
        start[others] = begun
        start[rows[mine]] = placed.of_device(own.start[mine], start[rows[mine]])
        dur[rows[mine]] = (own.end - own.start)[mine]
        aligned.append(Aligned(number, placed.error_ns, placed.jumps_ns))
    return start, dur, aligned


def losses(view: View, aligned: list[Aligned]) -> list[Loss]:
    """What to say of devices whose clock is known less well than usual."""
    told = [one for one in aligned if max(one.error_ns, one.jumps_ns) > CLOCK_DRIFT_NS]
    if not told:
        return []
    whose = "its" if len(told) == 1 else "their"
    names = ", ".join(view.space.planes.names[one.plane] for one in told)
    error, jumps = max(one.error_ns for one in told), max(one.jumps_ns for one in told)
    return [
        Loss(
            "device_clock",
            len(told),
            f"the host's times written for the ops of {names} are up to {format_ns(jumps)} off: durations are those of "
            f"{whose} own clock, which are exact; where the ops lie beside the host's events is known to "
            f"±{format_ns(error)}",
        )
    ]


@record
class _Placed:
    """Where the ops of one device lie on the session's clock."""

    first: I64
    """Start of each stretch of ops, by the device's clock; within one, times are the device's alone."""
    offset: I64
    """What is added to them."""
    known_host: I64
    known_new: I64
    """The edges of ops by the host's time as written, and where they lie."""
    error_ns: int
    jumps_ns: int
    usable: bool = True

    def of_device(self, start: I64, host: I64) -> I64:
        """When something began, by the device's clock; by the host's where that one is of no use."""
        at = np.maximum(np.searchsorted(self.first, start, "right") - 1, 0)
        return start + self.offset[at] if self.usable else host

    def of_host(self, host: I64) -> I64:
        """Where the host's time, as written, of something else on the device lies: as far from the nearest edge of an
        op as both were written. What runs off does so for a stretch of time; its times need not even rise."""
        if not self.usable:
            return host
        after = np.searchsorted(self.known_host, host)
        low, high = np.maximum(after - 1, 0), np.minimum(after, self.known_host.size - 1)
        near = np.where(host - self.known_host[low] < self.known_host[high] - host, low, high)
        return self.known_new[near] + host - self.known_host[near]


def _placed(ops: _Stamps) -> _Placed:
    order = np.argsort(ops.start, kind="stable")
    ops = _Stamps(*(column[order] for column in ops))
    apart = ops.host - ops.start
    middle = int(np.median(apart))
    off = int(np.abs(apart - middle).max())
    if off <= CLOCK_DRIFT_NS:
        return _known(ops, ops.start[:1], np.array([middle], np.int64), (off, off))
    if not _related(ops):
        return _Placed(ops.start[:1], apart[:1], ops.host[:1], ops.host[:1], off, off, usable=False)
    wanted = _agreed(ops, apart)
    breaks = _breaks(ops, wanted)
    offset = _monotone(ops, breaks, _offsets(wanted, breaks))
    of_op = offset[np.cumsum(breaks) - 1]
    error = int(np.abs(wanted - of_op).max()) + CLOCK_AGREES_NS
    return _known(ops, ops.start[breaks], offset, (error, int(np.abs(apart - of_op).max())))


def _known(ops: _Stamps, first: I64, offset: I64, errors: tuple[int, int]) -> _Placed:
    at = np.searchsorted(first, ops.start, "right") - 1
    new = np.concatenate((ops.start + offset[at], ops.end + offset[at]))
    host = np.concatenate((ops.host, ops.host_end))
    order = np.argsort(host, kind="stable")
    return _Placed(first, offset, host[order], new[order], *errors)


def _related(ops: _Stamps) -> bool:
    """Whether both clocks tell of nearly the same length of time."""
    own, host = int(ops.start[-1] - ops.start[0]), int(ops.host.max() - ops.host.min())
    return abs(own - host) <= max(own, host) // 2


def _agreed(ops: _Stamps, apart: I64) -> F64:
    """How far the host's clock is ahead at each op (in order of start), by what most ops of a stretch of time agree on:
    estimates that ran off agree with each other only as long as one of them lasted. What changes at once does so in the
    longest pause."""
    start = ops.start
    passed, changed = np.diff(start).astype(np.float64), np.diff(apart).astype(np.float64)
    rates = changed[passed > 0] / passed[passed > 0]
    rate = float(np.median(rates)) if rates.size else 0.0
    steady = (start - start[0]) * (rate if abs(rate) <= _FASTEST else 0.0)
    rest, idle = apart - steady, _idle_before(ops)
    windows = np.array_split(np.arange(start.size), max(1, min(_WINDOWS, start.size // _OPS_OF_WINDOW)))
    knots: list[tuple[int, float]] = []
    for window in windows:
        middle, most = int(window[window.size // 2]), _most_common(rest[window])
        if knots and abs(most - knots[-1][1]) > CLOCK_DRIFT_NS:
            before, known = knots[-1]
            pause = before + 1 + int(idle[before + 1 : middle + 1].argmax())
            if idle[pause] >= CLOCK_PAUSE_NS:
                knots += [(pause - 1, known), (pause, most)]
        knots.append((middle, most))
    places = np.array([place for place, _ in knots])
    agreed: F64 = steady + np.interp(start - start[0], start[places] - start[0], [most for _, most in knots])
    return agreed


def _idle_before(ops: _Stamps) -> I64:
    return np.append(0, ops.start[1:] - np.maximum.accumulate(ops.end)[:-1])


def _most_common(values: F64) -> float:
    values = np.sort(values)
    count = np.searchsorted(values, values + CLOCK_AGREES_NS, "right") - np.arange(values.size)
    best = int(count.argmax())
    return float(np.median(values[best : best + count[best]]))


def _breaks(ops: _Stamps, wanted: F64) -> Bools:
    """Which ops begin a stretch that may be placed for itself: behind a pause; and where clocks run apart by more than
    ``CLOCK_DRIFT_NS`` without one, behind any idle time."""
    idle = _idle_before(ops)
    breaks: Bools = idle >= CLOCK_PAUSE_NS
    breaks[0] = True
    for piece in np.split(np.arange(breaks.size), np.flatnonzero(breaks)[1:]):
        if np.ptp(wanted[piece]) > 2 * CLOCK_DRIFT_NS:
            breaks[piece] |= idle[piece] > 0
    return breaks


def _offsets(wanted: F64, breaks: Bools) -> I64:
    first = np.flatnonzero(breaks)
    return np.array([round(float(np.median(piece))) for piece in np.split(wanted, first[1:])], np.int64)


def _monotone(ops: _Stamps, breaks: Bools, offset: I64) -> I64:
    """Offsets with which no stretch begins before the one before it is over."""
    first = np.flatnonzero(breaks)
    begin, end = ops.start[first], np.maximum.accumulate(ops.end)[np.append(first[1:], breaks.size) - 1]
    before = np.append(0, np.cumsum(end - begin)[:-1])
    placed = np.maximum.accumulate(begin + offset - before) + before
    return np.asarray(placed - begin)
