"""Notices on the steps of a profile: whether it has any, and whether they are usual ones."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.complete import empty_steps
from stepscope.analysis.facts import Facts
from stepscope.analysis.frame import parse_frame
from stepscope.analysis.limits import FEW_STEPS, SLOW_STEP_SHARE
from stepscope.analysis.once import Once
from stepscope.analysis.steps import WHOLE
from stepscope.diagnosis.evidence import SHOWN
from stepscope.diagnosis.finding import Notice
from stepscope.diagnosis.limits import AHEAD_SHARE, HOST_SHARE, LITTLE_TIME_NS, START_UP_SHARE, WARM_UP_FACTOR
from stepscope.diagnosis.one_time import in_words, seen_in
from stepscope.diagnosis.remedies import (
    JAX,
    LATER,
    ONCE_LOADED,
    PYTORCH,
    TENSORFLOW,
    TORCH_XLA,
    Remedies,
    remedy,
    sentence,
)
from stepscope.trace.codes import among, united
from stepscope.trace.tables import Kind
from stepscope.units import format_count, format_ns

STEP_ADVICE: Remedies = {
    PYTORCH: "Call `prof.step()` once per iteration to have steps.",
    JAX: "Run each iteration inside `with jax.profiler.StepTraceAnnotation('step', step_num=i):`.",
    TENSORFLOW: "Run each iteration inside `with tf.profiler.experimental.Trace('step', step_num=i, _r=1):`.",
    TORCH_XLA: "Run each iteration inside `with xp.StepTrace('step', step_num=i):`.",
    None: "Mark each iteration in the program to have steps.",
}


def inferred(facts: Facts) -> Notice | None:
    """No step was marked."""
    if not facts.markers.inferred:
        return None
    if facts.markers.source == "whole profile" and len(facts.trace.nodes):
        return None  # a profile of TensorFlow 1 is one run of a session
    if any(loss.damaged for loss in facts.trace.completeness.losses):
        return _inferred_of_a_part(facts)
    if facts.markers.source == "whole profile":
        return Notice(
            "profile_no_steps",
            f"No step markers: the whole profile is treated as one step. {remedy(STEP_ADVICE, facts.workload)}",
        )
    return Notice("profile_steps_inferred", f"No step markers: steps are inferred from {facts.markers.source}.")


def _inferred_of_a_part(facts: Facts) -> Notice | None:
    """Markers may have been in what was lost: no advice to write some."""
    if facts.markers.source != "whole profile":
        return None
    text = "No step markers are in the part that could be read: it is treated as one step."
    return Notice("profile_no_steps", text)


def few_steps(facts: Facts) -> Notice | None:
    """Too few steps to tell how much they vary."""
    if facts.markers.source == "whole profile" or len(facts.used) >= FEW_STEPS:
        return None
    count = len(facts.used)
    return Notice(
        "profile_few_steps",
        f"Only {count} complete {'step' if count == 1 else 'steps'}: how much steps vary "
        "is not known. Record five or more.",
    )


def left_out(facts: Facts) -> Notice | None:
    """A marker that is no step: it holds nothing, or of two steps less than half of what the other holds."""
    held, complete = facts.step_contents, np.array(facts.complete)
    chosen = empty_steps(held) | ~complete if len(complete) == 2 else empty_steps(held)
    gone = np.flatnonzero(chosen).tolist()
    if not gone:
        return None
    numbers = [facts.markers.numbers[k] for k in gone]
    one, few = len(gone) == 1, None not in numbers and len(gone) <= SHOWN
    named = f"Step{'' if one else 's'} {', '.join(map(str, numbers))}"
    which = named if few else f"{len(gone)} of {len(complete)} steps"
    ops, others = int(held.ops[gone].max()), round(float(np.median(held.ops[~chosen])))
    does = ("launches", "device ops") if held.on_device else ("holds", "ops")
    return Notice(
        "profile_steps_left_out",
        f"{which} {'is' if one else 'are'} left out of all figures: {'it' if one else 'each'} {does[0]} "
        f"{'at most ' if ops and not one else ''}{ops or 'none'} of the {others} {does[1]} that a whole step has.",
        len(gone),
        says_count=not few,
    )


def takes_little(facts: Facts) -> bool:
    """Whether all used steps together take so little time that nothing can be judged by them."""
    return 0 < facts.used_ns < LITTLE_TIME_NS


def little_time(facts: Facts) -> Notice | None:
    """What was recorded is too short for findings."""
    if not takes_little(facts):
        return None
    return Notice(
        "profile_too_short",
        f"All that was recorded of steps takes {format_ns(facts.used_ns)}: too little to judge what a step waits for. "
        "Record whole steps of the real program.",
    )


def warm_up(facts: Facts) -> Notice | None:
    """The first step is no usual one."""
    whole = [k for k, complete in enumerate(facts.complete) if complete]
    if len(whole) < FEW_STEPS:
        return None
    first, rest = int(facts.step_ns[whole[0]]), float(np.median(facts.step_ns[whole[1:]]))
    if first < WARM_UP_FACTOR * rest or (whole[0] in _apart(facts) and done_once(facts) is not None):
        return None
    return Notice(
        "profile_warm_up",
        f"The first step took {format_ns(first)}, the others about {format_ns(round(rest))}: "
        f"it looks like warm-up. {sentence(LATER, facts.workload)}",
    )


def start_up(facts: Facts) -> Notice | None:
    """A call that is made once takes much of the steps."""
    call = start_up_call(facts)
    if call is None:
        return None
    duration = format_ns(int(facts.trace.slices.dur_ns[call]))
    left_out = ", and left out of the step" if facts.markers.start_up_ns else ""
    return Notice(
        "profile_start_up",
        f"`{facts.trace.name_of(call)}` alone takes {duration}: start-up is inside this "
        f"profile{left_out}. Begin recording after a few steps.",
    )


def _apart(facts: Facts) -> list[int]:
    """Steps that are not used: all but those slow for what comes back."""
    usual = {*facts.used, *(each.step for each in facts.slow if not each.once)}
    return [step for step in range(len(facts.markers)) if step not in usual]


def done_once(facts: Facts) -> Notice | None:
    """Much time went to what is done once, in steps that are no usual ones, or around those that were inferred."""
    if facts.is_capture:
        return Notice(
            "profile_graph_capture",
            f"Graphs are captured here: {in_words(facts, facts.once.rows(Once.CAPTURE))}. What is launched meanwhile "
            "is recorded and does not run. To see how fast it runs, record later, when graphs are launched.",
            facts.once.graphs,
            says_count=True,
        )
    if facts.markers.source == WHOLE:
        return None  # what lies before the one window is ``start_up``'s
    around = [None] if facts.markers.inferred else []  # inferred steps begin where launches repeat
    windows_of = {step: _windows(facts, step) for step in (*_apart(facts), *around)}
    held = {step: seen_in(facts, windows, *Once) for step, windows in windows_of.items()}
    held = {step: rows for step, rows in held.items() if rows.size}
    every = united(np.concatenate([np.empty(0, np.intp), *held.values()]))
    took = int((facts.once.end - facts.once.start)[every].sum())
    if not every.size or took <= SLOW_STEP_SHARE * (facts.mean_step_ns or 0):
        return None
    told = [
        (in_words(facts, rows), fix)
        for kinds, fix in (((Once.LOADING, Once.START_UP), ONCE_LOADED), ((Once.CAPTURE,), LATER))
        if (rows := np.intersect1d(every, facts.once.rows(*kinds))).size
    ]
    steps = [step for step in held if step is not None]
    numbers = [facts.markers.numbers[step] for step in steps]
    names = [str(step if number is None else number) for step, number in zip(steps, numbers, strict=True)]
    where = f"in step{'s' if len(steps) > 1 else ''} {', '.join(names[:SHOWN])}"
    where = "outside the steps that figures are of" if None in held else where
    return Notice(
        "profile_done_once",
        f"Done once, {where}: {'; '.join(words for words, _ in told)}. Figures are of the other steps, which do not "
        f"have it. {sentence(told[0][1], facts.workload)}",
    )


def _windows(facts: Facts, step: int | None) -> list[tuple[int, int]]:
    """A step's windows on the devices (None: the time around the steps, from the profile's beginning on)."""
    before = [(0, int(account.rows.bounds[0])) for account in facts.working] if step is None else []
    return before + [
        (int(account.rows.bounds[row]), int(account.rows.bounds[row + 1]))
        for account in facts.working
        for row in np.flatnonzero(np.array([each == step for each in account.rows.steps], np.bool_)).tolist()
    ]


def start_up_call(facts: Facts) -> int | None:
    """The longest call that takes a large part of the used steps and neither waits nor launches: initialisation."""
    slices = facts.trace.slices
    if not facts.used or not facts.activities or facts.xla is not None:
        return None  # calls of XLA that run a program on the host's own threads are no start-up
    low, high = int(facts.markers.start[facts.used[0]]), int(facts.markers.end[facts.used[-1]])
    low -= facts.markers.start_up_ns if facts.used[0] == 0 else 0
    # Frees that are no allocator's work create the device's context.
    frees = (slices.kind == Kind.ALLOCATION) & (facts.host.causes != Category.ALLOCATOR.code)
    inside = ((slices.kind == Kind.RUNTIME_CALL) | frees) & (slices.start_ns >= low) & (slices.start_ns < high)
    calls = np.flatnonzero(inside & (slices.dur_ns >= START_UP_SHARE * facts.used_ns))
    loads = facts.once.slice[facts.once.rows(Once.LOADING)]  # of those ``code_loading`` tells
    calls = calls[~among(calls, np.concatenate((facts.trace.launches.call, loads)))]
    return int(calls[slices.dur_ns[calls].argmax()]) if calls.size else None


def host_ran_ahead(facts: Facts) -> Notice | None:
    """The device still has much to do when the host has launched the last step: host times are queue filling."""
    median, markers = facts.median_step_ns, facts.markers
    # Nothing says when the host was done with a last step that was inferred: the one before ended where it began.
    step = len(markers) - 1 - (markers.inferred and len(markers) > 1)
    backlog = 0
    for activity, account in facts.devices:
        if activity.device in facts.unused:
            continue
        last, until = account.step_row(step), int(markers.on(activity.device)[1][step])
        if last is not None and activity.launched.any():
            inside = activity.launched & (activity.launch < until)
            end = int(activity.launch_end[inside].max(initial=0))
            # Until the markers end the host may well be waiting for this very work.
            reached = max(end, until)
            backlog = max(backlog, int(account.rows.bounds[last + 1]) - reached)
    if median is None or not facts.activities or backlog < AHEAD_SHARE * median:
        return None
    return Notice(
        "host_ran_ahead",
        f"The host runs ahead of the device: at the end of the steps {format_ns(backlog)} of "
        "work was still queued. Host time per step is then not the step's time.",
    )


def launch_queue_full(facts: Facts) -> Notice | None:
    """Launches wait for room in the device's queue: host time that is none."""
    blocked, count = 0, 0
    for queue in facts.full_queues:
        start = facts.trace.slices.start_ns[queue.slice]
        step = np.searchsorted(facts.markers.start, start, "right") - 1
        inside = among(step, facts.used)
        blocked, count = blocked + int(queue.blocked_ns[inside].sum()), count + int(inside.sum())
    if not count or blocked < HOST_SHARE * facts.used_ns:
        return None
    depth = max(queue.depth for queue in facts.full_queues)
    return Notice(
        "launch_queue_full",
        f"The host is as far ahead as the device lets it be: launches wait {format_ns(facts.per_step(blocked))} per "
        f"step for room behind some {format_count(depth)} others. That is waiting for the device and no work of the "
        "host, however long the calls look.",
        count,
    )


def other_phases(facts: Facts) -> Notice | None:
    """What the loop does beside training, and where."""
    aside = facts.markers.aside
    if not aside:
        return None
    told = []
    for kind in dict.fromkeys(each.kind for each in aside):
        same = [each for each in aside if each.kind is kind]
        ns = sum(each.end_ns - each.start_ns for each in same)
        places = dict.fromkeys(_called(facts, each.slice) for each in same)
        often = "once" if len(same) == 1 else f"{len(same)} times"
        told.append(f"{kind.value} {format_ns(ns)} ({often}, in {', '.join(places)})")
    cut = facts.markers.paused is not None
    steps = "the steps are those of training, without it" if cut else "it is in the steps that it comes in"
    return Notice("loop_phases", f"Beside training the loop also spends time on {'; '.join(told)}: {steps}.")


def _called(facts: Facts, row: int) -> str:
    """A function with its file and line, or a range's name; of a library's function also what calls it."""
    name = facts.trace.name_of(row)
    frame = parse_frame(name)
    if frame is None:
        return f"`{name}`"
    caller = facts.locator.where(row)
    if frame.is_users or caller.file is None or caller.function == frame.function:
        return frame.told
    line = "" if caller.line is None or caller.defined else f":{caller.line}"
    return f"{frame.told}, called from `{caller.function}` ({caller.file}{line})"
