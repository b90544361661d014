"""The part of a trace that some steps are made of."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.device import device_activities
from stepscope.analysis.facts import Facts
from stepscope.analysis.once import one_time_work
from stepscope.analysis.steps import WHOLE, Markers, find_markers
from stepscope.errors import UsageError
from stepscope.trace.codes import among
from stepscope.trace.select import TracePart, overlapping, with_partners
from stepscope.trace.tables import Bools, Kind, TrackKind
from stepscope.trace.trace import InferredSteps, Trace
from stepscope.units import format_ns


def by_steps(facts: Facts, first: int | None, stop: int | None) -> TracePart:
    """Steps ``first`` to ``stop - 1`` by the numbers the report shows, None for open ends, and what lies between them.

    Of the host, what overlaps the time from the first step's marker to the start of the step behind the last one (the
    end of the last marker, where none follows). Of each device, the ops launched in that time, however late they ran,
    and those launched earlier that ran into it, so that the device windows of all steps but the first and the last
    stay what they were. Calls stay with the ops they launched. The markers of other steps go.

    Raises UsageError where there is no such step, or where steps of other numbers lie between those chosen.
    """
    markers = facts.markers
    numbers = _numbers(markers)
    chosen = [i for i, n in enumerate(numbers) if (first is None or n >= first) and (stop is None or n < stop)]
    if not chosen:
        raise UsageError(f"no such step: this profile has {_ranges(numbers)}")
    low, high = chosen[0], chosen[-1]
    for before, here in pairwise(chosen):
        if here > before + 1:
            places = [f"step {numbers[i]} begins at {format_ns(int(markers.start[i]))}" for i in (before, here)]
            raise UsageError(f"the numbers of steps repeat: {' and '.join(places)}; choose by time")
    begin = int(markers.start[low])
    follows = high + 1 < len(markers) and not markers.gap_after[high]
    end = int(markers.start[high + 1] if follows else markers.end[high])
    device_end = max([end, *(_end_of(account, high) for _, account in facts.devices)])
    keep = _kept(facts, begin, end, device_end)
    for device in markers.own:
        _keep_own(facts, keep, device, (low, high + 1 if follows else None))
    keep = with_partners(facts.trace, keep)
    return TracePart(keep, _ranges(numbers[low : high + 1]), (begin, end))


def with_inferred_steps(part: Trace, trace: Trace, windows: list[tuple[int, int]]) -> Trace:
    """A part of a trace with the trace's steps that reach into all the windows, where nothing marks them: what is left
    of the launches would repeat otherwise, or not at all. They keep the numbers that reports show."""
    activities = device_activities(trace)
    markers = find_markers(trace, activities, one_time_work(trace, activities))
    if not markers.inferred or markers.source == WHOLE:
        return part
    chosen = [
        k
        for k, (start, end) in enumerate(zip(markers.start.tolist(), markers.end.tolist(), strict=True))
        if all(start < stop and end > begin for begin, stop in windows)
    ]
    if not chosen:
        return part
    steps = InferredSteps(
        source=markers.source,
        start_ns=tuple(markers.start[chosen].tolist()),
        end_ns=tuple(markers.end[chosen].tolist()),
        number=tuple(_numbers(markers)[k] for k in chosen),
    )
    return replace(part, info=replace(part.info, steps=steps))


def _kept(facts: Facts, begin: int, end: int, device_end: int) -> Bools:
    trace, slices, markers = facts.trace, facts.trace.slices, facts.markers
    on_device = among(trace.tracks.kind[slices.track], (TrackKind.DEVICE_STREAM, TrackKind.DEVICE_LINE))
    keep = overlapping(trace, begin, np.where(on_device, device_end, end))
    ops, calls = trace.device_ops.slice, trace.device_ops.launch
    if markers.on_device or not (calls >= 0).any():
        # As for the device windows: what ran in the time belongs to the steps.
        keep[ops] = overlapping(trace, begin, end)[ops]
    else:
        ops, calls = ops[calls >= 0], calls[calls >= 0]
        launched = slices.start_ns[calls]
        keep[ops] = (launched < end) & ((launched >= begin) | (slices.start_ns[ops] + slices.dur_ns[ops] > begin))
    keep[~on_device & (slices.kind == Kind.STEP) & (slices.start_ns < begin)] = False
    marks = markers.slices[markers.slices >= 0]
    inside = (slices.start_ns[marks] >= begin) & (slices.start_ns[marks] < end)
    keep[marks] = inside
    return keep


def _keep_own(facts: Facts, keep: Bools, device: int, steps: tuple[int, int | None]) -> None:
    """The same of a device that marks its steps itself: what lies between its own marks of the first and the step
    behind the last one (None: to the end of its last mark)."""
    trace, slices = facts.trace, facts.trace.slices
    start, end = facts.markers.own[device]
    low, behind = steps
    begin = int(start[low])
    over = int(end[-1] if behind is None else start[behind])
    mine = trace.tracks.device[slices.track] == device
    keep[mine] = overlapping(trace, begin, over)[mine]
    marks = mine & among(trace.tracks.kind[slices.track], (TrackKind.DEVICE_LINE,)) & (slices.kind == Kind.STEP)
    keep[marks] = ((slices.start_ns >= begin) & (slices.start_ns < over))[marks]


def _numbers(markers: Markers) -> list[int]:
    """What reports call the steps."""
    return [index if number is None else number for index, number in enumerate(markers.numbers)]


def _end_of(account: Account, step: int) -> int:
    row = account.step_row(step)
    return int(account.rows.bounds[0 if row is None else row + 1])


def _ranges(numbers: list[int]) -> str:
    return f"step {numbers[0]}" if len(numbers) == 1 else f"steps {min(numbers)} to {max(numbers)}"
