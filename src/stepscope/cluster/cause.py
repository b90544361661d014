"""Why one rank is late: which part of its own time exceeds that of the others, and what that means.

A late rank spends more on something than the others do in the same steps, and less on waiting for them. What exceeds
theirs most is its cause, where it explains enough of how late it is. More compute is a slow device where all kernels
are slower alike, and uneven work where some are, or where there are more of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from stepscope.analysis.categories import CATEGORIES, Category
from stepscope.cluster.limits import CAUSE_SHARE, SAME_GPU_SHARE
from stepscope.cluster.matching import Lane
from stepscope.cluster.partial import Kernel, Partial
from stepscope.record import record
from stepscope.trace.codes import among, distinct
from stepscope.trace.shared import shared
from stepscope.trace.tables import F64, I64, Rows

Cause = Literal["input", "slow_device", "uneven_work", "host", "link", "unknown"]

_NOT_OWN = [Category.COLLECTIVE, Category.COLLECTIVE_WAIT, Category.PEER]
_CAUSES: dict[Category, Cause] = {
    Category.INPUT: "input",
    Category.INFEED: "input",
    Category.COPY_STAGING: "input",
    Category.COPY_H2D: "input",
    Category.COMPUTE: "slow_device",
    Category.COLLECTIVE_TRANSFER: "link",
    Category.UNKNOWN_DEVICE: "unknown",
    Category.UNRECORDED: "unknown",
}
_COUNTS_DIFFER = 0.02
_LEAST_EXCESS = 1.02


@record
class OwnCause:
    """Why a lane is late; excess over the median of the other lanes, in ns per step."""

    cause: Cause
    category: Category | None
    excess_ns: int
    excess: dict[Category, int]
    """Every category of which it has more than the others."""
    kernels: tuple[tuple[str, float], ...] = ()
    """Kernels that take longer than elsewhere, and how many times as long."""


def own_cause(partials: Sequence[Partial], means: dict[Lane, F64], lane: Lane, late_ns: float) -> OwnCause:
    """Why a lane is late. ``means`` are each lane's mean ns per category over the same steps."""
    others = np.array([mean for other, mean in means.items() if other != lane])
    if not len(others) or lane not in means:
        return OwnCause("unknown", None, 0, {})
    more = means[lane] - np.median(others, axis=0)
    more[[category.code for category in _NOT_OWN]] = 0
    excess = {CATEGORIES[code]: round(float(more[code])) for code in np.argsort(-more).tolist() if more[code] >= 1}
    grouped: dict[Cause, float] = {}
    for category, ns in excess.items():
        cause = _CAUSES.get(category, "host")
        grouped[cause] = grouped.get(cause, 0.0) + ns
    cause = max(grouped, key=lambda one: grouped[one], default="unknown")
    ns = round(grouped.get(cause, 0.0))
    category = next((c for c in excess if _CAUSES.get(c, "host") == cause), None)
    if ns < CAUSE_SHARE * late_ns:
        return OwnCause("unknown", category, ns, excess)
    if cause != "slow_device":
        return OwnCause(cause, category, ns, excess)
    uneven, kernels = _uneven(partials, lane)
    return OwnCause("uneven_work" if uneven else "slow_device", category, ns, excess, kernels)


def _uneven(partials: Sequence[Partial], lane: Lane) -> tuple[bool, tuple[tuple[str, float], ...]]:
    """Whether a lane's kernels are more, or some of them longer, than others'; and those that are longer."""
    own = {kernel.name: kernel for kernel in partials[lane.partial].kernels}
    elsewhere: dict[str, list[Kernel]] = {}
    for number, partial in enumerate(partials):
        if number != lane.partial:
            for kernel in partial.kernels:
                elsewhere.setdefault(kernel.name, []).append(kernel)
    shared = [name for name in own if name in elsewhere]
    if not shared:
        return False, ()
    usual_ns = np.array([float(np.median([k.ns for k in elsewhere[name]])) for name in shared])
    usual_count = np.array([float(np.median([k.count for k in elsewhere[name]])) for name in shared])
    ns, count = np.array([own[name].ns for name in shared]), np.array([own[name].count for name in shared])
    times = ns / np.maximum(usual_ns, 1.0)
    longer = sorted(zip(shared, times.tolist(), strict=True), key=lambda pair: -own[pair[0]].ns * (1 - 1 / pair[1]))
    told = tuple((name, ratio) for name, ratio in longer[:5] if ratio >= _LEAST_EXCESS)
    if abs(float(count.sum()) / max(float(usual_count.sum()), 1.0) - 1) > _COUNTS_DIFFER:
        return True, told
    whole = float(ns.sum()) / max(float(usual_ns.sum()), 1.0)
    order = np.argsort(times)
    reach = np.cumsum(ns[order]) / max(float(ns.sum()), 1.0)
    tenth = float(times[order][int(np.searchsorted(reach, 0.1))])
    return tenth - 1 < SAME_GPU_SHARE * (whole - 1), told


def mean_parts(partials: Sequence[Partial], parts: Sequence[I64], numbers: Sequence[int]) -> dict[Lane, F64]:
    """Per lane (device that is used, or host), mean ns per category over some steps, by number."""
    wanted = np.array(sorted(numbers), np.int64)
    means = {}
    for at, (partial, booked) in enumerate(zip(partials, parts, strict=True)):
        for device, rows, number in _numbered(partial):
            mine = rows[among(number, wanted)]
            if mine.size:
                means[Lane(at, device)] = booked[mine].mean(axis=0)
    return means


@shared
def _numbered(partial: Partial) -> list[tuple[int, Rows, I64]]:
    """Per device that is used, or the host, the rows of a rank's steps and what those are called."""
    rows, number = partial.rows, step_numbers(partial)
    if not len(number):
        return []
    devices = (device for device in distinct(rows.device) if device not in partial.unused)
    of = ((device, np.flatnonzero((rows.step >= 0) & (rows.device == device))) for device in devices)
    return [(device, at, number[np.minimum(rows.step[at], len(number) - 1)]) for device, at in of]


def step_numbers(partial: Partial) -> I64:
    """What each step of a rank is called: its number, or where none is numbered its index."""
    number = partial.steps.number
    known = number >= 0
    return number if known.all() else np.arange(len(number))
