"""Contention for the host's cores: ops of launching threads that take longer while loader threads work.

Only a contrast inside the profile shows it: the same op, with and without the loaders at work. Only threads that
prepare batches count; other threads may work because the op itself made them.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.host import HostActivity
from stepscope.analysis.input_stages import by_stage
from stepscope.analysis.inputs import WAITING, takings
from stepscope.analysis.limits import CONTENTION_FACTOR, CONTENTION_OPS, CONTENTION_THREADS
from stepscope.analysis.steps import Markers, begun_in
from stepscope.names.hosts import runs_others
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, distinct, mapped, marked
from stepscope.trace.forest import holding, is_outermost
from stepscope.trace.tables import F64, I32, I64, Kind, Rows
from stepscope.trace.trace import Trace

_QUIET = 0.1
"""At most so many loader threads, as a mean over an op, and it ran by itself."""


@record
class Contention:
    """What ops of the launching threads took longer beside working loader threads, over the used steps."""

    threads: int
    """Loader threads."""
    name: str
    """The op that lost most."""
    usual_ns: int
    """Its median by itself."""
    slow_ns: int
    """Its median beside them."""
    slices: tuple[int, ...]
    """Slow calls of every op, longest loss first."""
    lost: dict[int, iv.Intervals]
    """By track, the ends of slow calls: what they take beyond the usual."""

    @property
    def lost_ns(self) -> int:
        """All of it."""
        return sum(map(iv.measure, self.lost.values()))


def contention(
    trace: Trace,
    host: HostActivity,
    markers: Markers,
    used: tuple[int, ...],
    activities: list[DeviceActivity],
    blocked: I32,
) -> Contention | None:
    """The contrast, None where there is none or too few calls to see one; ``blocked`` are launches that waited for room
    in a queue."""
    taking = takings(host, markers, used)
    spans = by_stage(trace, taking, np.flatnonzero(taking.preparing))
    working = [part for (_, stage), part in spans.items() if stage != WAITING]
    threads = len({thread for thread, _ in spans})
    if threads < CONTENTION_THREADS:
        return None
    waits = np.concatenate((host.waits.slice, blocked))
    ops = _ops(trace, waits, markers, used, activities)
    start, length = trace.slices.start_ns[ops], trace.slices.dur_ns[ops]
    beside = np.zeros(ops.size)
    for part in working:
        beside += iv.covered_between(part, start, start + length) / np.maximum(length, 1)
    names, usual, slow = _contrasts(trace.slices.name[ops], length, beside)
    if not names:
        return None
    at = {name: k for k, name in enumerate(names)}
    held = np.flatnonzero((beside >= CONTENTION_THREADS) & among(trace.slices.name[ops], names))
    expected = np.array([usual[at[name]] for name in trace.slices.name[ops[held]].tolist()], np.int64)
    lost = length[held] - expected
    held, expected, lost = held[lost > 0], expected[lost > 0], lost[lost > 0]
    tracks = trace.slices.track[ops[held]]
    ends = {
        int(track): iv.union((start[held] + expected)[tracks == track], (start[held] + length[held])[tracks == track])
        for track in np.unique(tracks)
    }
    total = {name: int(lost[trace.slices.name[ops[held]] == name].sum()) for name in names}
    worst = max(total, key=lambda name: total[name])
    order = held[np.argsort(-lost, kind="stable")]
    shown = trace.strings[worst], int(usual[at[worst]]), int(slow[at[worst]])
    return Contention(threads, *shown, tuple(ops[order].tolist()), ends)


def _ops(trace: Trace, waiting: I32, markers: Markers, used: tuple[int, ...], activities: list[DeviceActivity]) -> Rows:
    """Outermost ops and calls of the launching threads in the used steps that wait for nothing."""
    slices = trace.slices
    launching = np.unique(np.concatenate([np.empty(0, np.int32), *(a.thread[a.launched] for a in activities)]))
    chosen = among(slices.kind, (Kind.HOST_OP, Kind.RUNTIME_CALL)) & among(slices.track, launching)
    chosen &= ~mapped(slices.name, trace.strings, runs_others, np.bool_)
    waits = marked(waiting, len(slices))
    chosen = is_outermost(chosen, slices.parent)
    chosen &= ~waits & ~holding(waits, slices.parent) & begun_in(trace, markers, used)
    return np.flatnonzero(chosen)


def _contrasts(name: I32, length: I64, beside: F64) -> tuple[list[int], list[int], list[int]]:
    """Names of ops that take ``CONTENTION_FACTOR`` times as long beside the loaders, with both medians."""
    names: list[int] = []
    usual: list[int] = []
    slow: list[int] = []
    for code in distinct(name[beside >= CONTENTION_THREADS]):
        alone = length[(name == code) & (beside <= _QUIET)]
        held = length[(name == code) & (beside >= CONTENTION_THREADS)]
        if min(alone.size, held.size) < CONTENTION_OPS:
            continue
        before, after = int(np.median(alone)), int(np.median(held))
        if after >= CONTENTION_FACTOR * max(before, 1):
            names.append(code)
            usual.append(before)
            slow.append(after)
    return names, usual, slow
