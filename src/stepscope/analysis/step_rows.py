"""The windows of steps: which ops of a device are whose, and the rows that tile its time."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.steps import Markers
from stepscope.record import record
from stepscope.trace.shared import shared
from stepscope.trace.tables import I64, Bools, Rows


@record
class DeviceRows:
    """The rows that tile one device's time: row ``i`` is ``[bounds[i], bounds[i+1])``."""

    device: int | None
    bounds: I64
    steps: tuple[int | None, ...]
    """Index of the row's step, None for time before, between and after the steps."""
    phases: tuple[str, ...]
    """``step``, ``before``, ``gap`` or ``after``."""

    def at(self, times: I64) -> Rows:
        """The row that each time lies in."""
        return np.searchsorted(self.bounds, times, "right") - 1


@record
class Assigned:
    """Which step each op of a device belongs to; one value per op."""

    step: I64
    """Step that launched the op, -1 before the first; that of the step before for ops of a pause or after the end."""
    inside: Bools
    in_gap: Bools
    """Launched while the profiler paused behind the step."""
    early: Bools
    """Launched before the profile began."""
    occupied: bool = False
    """The device's first op waited for work of before the profile that was not recorded."""


@shared
def assigned(activity: DeviceActivity, markers: Markers) -> Assigned:
    """The steps of a device's ops: by launch, or by when they ran where nothing else tells."""
    launched = activity.launched
    if markers.on_device or not launched.any():
        instant, told = activity.start, np.ones(len(activity), np.bool_)
    elif activity.by_node:
        instant, told = np.where(launched, activity.launch, activity.start), np.ones(len(activity), np.bool_)
    else:
        by_time = activity.unnumbered & ~activity.before_profile
        instant, told = np.where(by_time, activity.start, activity.launch), launched | by_time
    begun, over = markers.on(activity.device)
    step = np.searchsorted(begun, instant, "right") - 1
    after = (step == len(markers) - 1) & (instant >= over[-1])
    in_gap = (step >= 0) & markers.gap_after[step] & (instant >= over[step]) & ~after
    inside = told & ~after & ~in_gap
    return Assigned(step, inside, told & in_gap, activity.before_profile, activity.begins_occupied)


def device_rows(activity: DeviceActivity, markers: Markers) -> DeviceRows:
    """The windows of the steps on one device and what lies around them.

    Window k is ``[E(k-1), E(k))``, where E(k) is the largest end among the ops launched in steps up to k: the wait
    for a late first op belongs to the step that was late, and no window overlaps another. Ops launched before the
    profile or before the first marker end before the first window, and so does work of then that was not recorded.
    """
    begun, _ = markers.on(activity.device)
    origin = min(int(activity.start[0]), int(begun[0]) - markers.start_up_ns)
    ops = assigned(activity, markers)
    times = activity.start, activity.end
    return tiled_rows(activity.device, origin, times, ops, begun, markers.gap_after)


def joint_windows(rows: list[DeviceRows], count: int) -> tuple[I64, I64]:
    """When each of ``count`` steps begins and ends on some devices together: it ends where the last of them has done
    its part, and the next one begins there, so that steps add up to the time that they cover. A step that none of them
    has takes no time."""
    begun = [np.zeros(count, np.int64) for _ in rows]
    over = [np.zeros(count, np.int64) for _ in rows]
    for of, start, end in zip(rows, begun, over, strict=True):
        for row, step in enumerate(of.steps):
            if step is not None:
                start[step], end[step] = of.bounds[row], of.bounds[row + 1]
    return np.maximum.reduce(begun), np.maximum.reduce(over)


def step_bounds(markers: Markers, rows: list[DeviceRows]) -> tuple[I64, I64]:
    """The same of all steps; without a device the host's periods."""
    return joint_windows(rows, len(markers)) if rows else (markers.start, markers.start + host_periods(markers))


def tiled_rows(
    device: int, origin: int, times: tuple[I64, I64], ops: Assigned, begun: I64, paused: Bools
) -> DeviceRows:
    """The same from the starts and ends of the ops and the steps they belong to, when the steps begin, and after which
    the profiler paused."""
    starts, ends = times
    last_end = int(ends.max())
    before = max([int(begun[0]), *ends[ops.early].tolist(), *ends[ops.inside & (ops.step < 0)].tolist()])
    before = max(before, int(starts.min())) if ops.occupied else before
    bounds = [origin]
    steps: list[int | None] = [None]
    phases = ["before"]
    reach = min(before, last_end)
    done, resumed = (_last_of_step(ends, which, ops.step, begun.size) for which in (ops.inside, ops.in_gap))
    if not paused.any():
        reaches = np.maximum.accumulate([reach, *done]).tolist()
        bounds += reaches
        rows = [None, *range(begun.size), None]
        return _without_empty_margins(
            device, [*bounds, max(reaches[-1], last_end)], rows, ["before", *["step"] * begun.size, "after"]
        )
    for k, gap in enumerate(paused.tolist()):
        bounds.append(reach)
        steps.append(k)
        phases.append("step")
        reach = max(reach, done[k])
        if gap:
            bounds.append(reach)
            steps.append(None)
            phases.append("gap")
            reach = min(max(reach, int(begun[k + 1]), resumed[k]), last_end)
    bounds += [reach, max(reach, last_end)]
    return _without_empty_margins(device, bounds, [*steps, None], [*phases, "after"])


def _last_of_step(ends: I64, which: Bools, step: I64, count: int) -> list[int]:
    """When the last of some ops of each of ``count`` steps ends; long before everything where a step has none."""
    last = np.full(count, np.iinfo(np.int64).min)
    chosen = which & (step >= 0)
    np.maximum.at(last, step[chosen], ends[chosen])
    return [int(end) for end in last.tolist()]


def _without_empty_margins(device: int, bounds: list[int], steps: list[int | None], phases: list[str]) -> DeviceRows:
    """Rows of no length are kept for steps (a step without a launch took 0 ns) and dropped elsewhere."""
    kept = [i for i in range(len(steps)) if phases[i] == "step" or bounds[i + 1] > bounds[i]]
    tiled = np.array([bounds[i] for i in kept] + [bounds[-1]], np.int64)
    return DeviceRows(device, tiled, tuple(steps[i] for i in kept), tuple(phases[i] for i in kept))


def host_periods(markers: Markers) -> I64:
    """From the start of a step to the start of the next one of its cycle; the last takes its own length."""
    period = markers.end - markers.start
    follows = np.flatnonzero(~markers.gap_after[:-1])
    period[follows] = markers.start[follows + 1] - markers.start[follows]
    return period
