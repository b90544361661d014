"""Which steps of a profile are whole ones: a marker may hold nothing, or be cut off where the profile ends."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.limits import EMPTY_STEP_OPS, EMPTY_STEP_SHARE, SHORT_LAST_STEP
from stepscope.analysis.once import OneTimeWork
from stepscope.analysis.step_rows import assigned
from stepscope.analysis.steps import Markers
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.forest import on_host_threads
from stepscope.trace.tables import F64, I64, Bools, Kind
from stepscope.trace.trace import Trace


@record
class StepContents:
    """What each step holds; arrays have one value per step."""

    ops: I64
    """Device ops it launched; ops of the host, where no step launches any."""
    busy_ns: I64
    """What those take, added up."""
    on_device: bool
    host_ops: I64
    host_ns: I64
    """From the marker's start to its end, without what is done once."""


def step_contents(trace: Trace, markers: Markers, activities: list[DeviceActivity], once: OneTimeWork) -> StepContents:
    """Count what each step launches, and what the host does in it."""
    size = len(markers)
    ops, busy = np.zeros(size, np.int64), np.zeros(size, np.int64)
    for activity in activities:
        of = assigned(activity, markers)
        # An op whose launch was not recorded counts where it ran.
        begun, over = markers.on(activity.device)
        ran = np.searchsorted(begun, activity.start, "right") - 1
        ran[activity.start >= over[ran]] = -1
        loose = ~activity.launched & ~activity.before_profile & ~of.inside
        step = np.where(loose, ran, np.where(of.inside, of.step, -1))
        inside = step >= 0
        ops += np.bincount(step[inside], minlength=size)
        busy += np.bincount(step[inside], (activity.end - activity.start)[inside], size).astype(np.int64)
    slices = trace.slices
    rows = np.flatnonzero((slices.kind == Kind.HOST_OP) & on_host_threads(trace))
    step = np.searchsorted(markers.start, slices.start_ns[rows], "right") - 1
    within = (step >= 0) & (slices.start_ns[rows] < markers.end[step])
    host_ops = np.bincount(step[within], minlength=size).astype(np.int64)
    host_ns = markers.end - markers.start - iv.covered_between(once.spans(), markers.start, markers.end)
    if ops.any():
        return StepContents(ops, busy, True, host_ops, host_ns)
    return StepContents(host_ops, host_ns, False, host_ops, host_ns)


def complete_steps(contents: StepContents) -> tuple[bool, ...]:
    """Which steps are whole: all but those that hold nothing beside the others, a last one that was cut off, and of two
    the one that holds less than half of the other."""
    size = len(contents.ops)
    empty = empty_steps(contents)
    complete = ~empty
    others = complete[:-1]
    if size == 2 and complete.all():
        complete = ~_smaller_of_two(contents)
    elif size > 2 and complete[-1] and others.any():
        # The shortest of the others: longer ones may have been held up.
        short = contents.host_ns[-1] < SHORT_LAST_STEP * contents.host_ns[:-1][others].min()
        few = contents.on_device and contents.ops[-1] < SHORT_LAST_STEP * np.median(contents.ops[:-1][others])
        complete[-1] = not (short or few)
    return tuple(complete.tolist())


def empty_steps(contents: StepContents) -> Bools:
    """Steps that hold nothing, or next to nothing, beside the others: ``prof.step()`` was called once too often.

    One in the middle may be a step all the same where the host does as much in it as in others.
    """
    ops = contents.ops
    empty = np.zeros(ops.size, np.bool_)
    if not ops.any() or ops.size < 2:
        return empty
    idle = _next_to_nothing(contents.host_ops) | (not contents.host_ops.any())
    empty = idle & _next_to_nothing(ops) & _next_to_nothing(contents.busy_ns, few=None)
    empty[[0, -1]] |= ops[[0, -1]] == 0
    return np.asarray(empty)


def _next_to_nothing(held: I64, few: int | None = EMPTY_STEP_OPS) -> Bools:
    """Where there is at most a small share of what the others have in the median."""
    small = held <= EMPTY_STEP_SHARE * _median_of_others(held)
    return np.asarray(small if few is None else small & (held < few))


def _median_of_others(held: I64) -> F64:
    """Per step, the median of all others; there are two or more steps."""
    order = np.argsort(held, kind="stable")
    rank = np.empty(held.size, np.int64)
    rank[order] = np.arange(held.size)
    middle = [(held.size - 2) // 2, (held.size - 1) // 2]
    low, high = (held[order[place + (place >= rank)]] for place in middle)
    return np.asarray((low + high) / 2)


def _smaller_of_two(contents: StepContents) -> Bools:
    """The step that holds under half of the other's ops and of their time; neither, where neither does."""
    held = np.stack((contents.ops, contents.busy_ns))
    return np.asarray((held < SHORT_LAST_STEP * held[:, ::-1]).all(axis=0))


def used_steps(complete: tuple[bool, ...]) -> tuple[int, ...]:
    """The steps that statistics are made of: complete ones, without the first and last where four or more remain."""
    whole = [k for k, is_complete in enumerate(complete) if is_complete]
    return tuple(whole[1:-1]) if len(whole) >= 4 else tuple(whole)
