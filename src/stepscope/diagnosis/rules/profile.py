"""profile_*: what about the profile itself a reader must know. These are notices, never findings."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.functions import only_functions
from stepscope.analysis.host import NO_CAUSE
from stepscope.diagnosis.evidence import capture_slows_host, host_share
from stepscope.diagnosis.finding import Notice
from stepscope.diagnosis.remedies import JAX, PYTORCH, TENSORFLOW, TORCH_XLA, Remedies, remedy
from stepscope.diagnosis.rules import efficiency, memory, misread
from stepscope.diagnosis.rules.recorded import host_unrecorded, no_lines
from stepscope.hardware.devices import lookup
from stepscope.limits import (
    AHEAD_SHARE,
    FEW_STEPS,
    HOST_SHARE,
    PROFILER_SHARE,
    START_UP_SHARE,
    UNMATCHED_SHARE,
    WARM_UP_FACTOR,
)
from stepscope.names.xla_hosts import XlaRole
from stepscope.trace.tables import Kind
from stepscope.trace.trace import Device, Loss
from stepscope.units import format_ns, format_share

STEP_ADVICE: Remedies = {
    PYTORCH: "Call `prof.step()` once per iteration to have steps.",
    JAX: "Run each iteration inside `with jax.profiler.StepTraceAnnotation('train', step_num=i):`.",
    TENSORFLOW: "Run each iteration inside `with tf.profiler.experimental.Trace('train', step_num=i, _r=1):`.",
    TORCH_XLA: "Run each iteration inside `with xp.StepTrace('train', step_num=i):`.",
    None: "Mark each iteration in the program to have steps.",
}
DEVICE_ADVICE: Remedies = {
    PYTORCH: "If the job uses a GPU, record `activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]`.",
    None: "If the job uses a GPU or TPU, `stepscope doctor` says why it may be missing.",
}


def notices(facts: Facts) -> list[Notice]:
    """All notices, in the order in which one should read them."""
    found = [
        Notice(_code(loss.code, loss.damaged), _sentence(loss), loss.count)
        for loss in facts.trace.completeness.losses
        if loss.damaged or loss.lost_events or not (loss.code == "flow_open" or _closes_the_list(loss))
    ]
    partial = facts.trace.completeness.nameless or facts.device_lost
    for rule in (_steps, _device_cut) if partial else _RULES:
        notice = rule(facts)
        if notice is not None:
            found.append(notice)
    return found


def _closes_the_list(loss: Loss) -> bool:
    """One empty event: so XLA's exporter ends its list."""
    return loss.code == "event_empty" and loss.count == 1


def _code(code: str, damaged: bool) -> str:
    return f"damaged_{code}" if damaged else f"profile_{code}"


def _sentence(loss: Loss) -> str:
    lost = loss.damaged or loss.lost_events
    place = f", first at byte {loss.first_offset:,}" if loss.first_offset is not None and lost else ""
    return f"{loss.text[:1].upper()}{loss.text[1:]}{place}."


def _steps(facts: Facts) -> Notice | None:
    if not facts.markers.inferred:
        return None
    if facts.markers.source == "whole profile" and len(facts.trace.nodes):
        return None  # a profile of TensorFlow 1 is one run of a session
    if any(loss.damaged for loss in facts.trace.completeness.losses):
        return _steps_cut(facts)
    if facts.markers.source == "whole profile":
        return Notice(
            "profile_no_steps",
            "No step markers: the whole profile is treated as one step. "
            f"{remedy(STEP_ADVICE, facts.trace.info.framework)}",
        )
    return Notice("profile_steps_inferred", f"No step markers: steps are inferred from {facts.markers.source}.")


def _few_steps(facts: Facts) -> Notice | None:
    if facts.markers.source == "whole profile" or len(facts.used) >= FEW_STEPS:
        return None
    count = len(facts.used)
    return Notice(
        "profile_few_steps",
        f"Only {count} complete {'step' if count == 1 else 'steps'}: how much steps vary "
        "is not known. Record five or more.",
    )


def _warm_up(facts: Facts) -> Notice | None:
    whole = [k for k, complete in enumerate(facts.complete) if complete]
    if len(whole) < FEW_STEPS:
        return None
    first, rest = int(facts.step_ns[whole[0]]), float(np.median(facts.step_ns[whole[1:]]))
    if first < WARM_UP_FACTOR * rest:
        return None
    return Notice(
        "profile_warm_up",
        f"The first step took {format_ns(first)}, the others about {format_ns(round(rest))}: "
        "it looks like warm-up. Let the profiler wait a few steps longer.",
    )


def _start_up(facts: Facts) -> Notice | None:
    call = start_up_call(facts)
    if call is None:
        return None
    duration = format_ns(int(facts.trace.slices.dur_ns[call]))
    return Notice(
        "profile_start_up",
        f"`{facts.trace.name_of(call)}` alone takes {duration}: start-up is inside this "
        "profile. Begin recording after a few steps.",
    )


def start_up_call(facts: Facts) -> int | None:
    """The longest call that takes a large part of the used steps and neither waits nor launches: initialisation."""
    slices = facts.trace.slices
    if not facts.used or not facts.activities or facts.xla is not None:
        return None  # calls of XLA that run a program on the host's own threads are no start-up
    low, high = int(facts.markers.start[facts.used[0]]), int(facts.markers.end[facts.used[-1]])
    # Frees that are no allocator's work create the device's context.
    frees = (slices.kind == Kind.ALLOCATION) & (facts.host.causes == NO_CAUSE)
    inside = ((slices.kind == Kind.RUNTIME_CALL) | frees) & (slices.start_ns >= low) & (slices.start_ns < high)
    calls = np.flatnonzero(inside & (slices.dur_ns >= START_UP_SHARE * facts.used_ns))
    calls = np.setdiff1d(calls, facts.trace.launches.call)
    return int(calls[slices.dur_ns[calls].argmax()]) if calls.size else None


def _device_missing(facts: Facts) -> Notice | None:
    if facts.activities:
        return None
    slices = facts.trace.slices
    launched = int(((slices.kind == Kind.RUNTIME_CALL) & (slices.correlation >= 0)).sum())
    if launched:
        return Notice(
            "profile_device_missing",
            "Device calls were recorded but no device activity: the device side of "
            "this profile is missing. On NVIDIA check CUPTI's permissions (NVreg_RestrictProfilingToAdminUsers) "
            "and that no other profiler is attached.",
            launched,
        )
    if only_functions(facts.trace):
        return Notice(
            "profile_functions_only",
            "Only functions and named ranges were recorded: no device, and nothing of what they compute with or wait "
            "for. `-v` lists them by the time spent in their own code.",
        )
    return Notice(
        "profile_no_device",
        f"No device activity was recorded: times are the host's. {remedy(DEVICE_ADVICE, facts.trace.info.framework)}",
    )


def _sampled(facts: Facts) -> Notice | None:
    if not facts.sampling.sampled:
        return None
    return Notice(
        "profile_sampled",
        "Events are missing inside this profile (it was sampled or filtered): shares are "
        "those of what is left, and costs per step are not determined.",
    )


def _unnumbered(facts: Facts) -> Notice | None:
    share = facts.sampling.launches_unnumbered
    if share <= UNMATCHED_SHARE:
        return None
    return Notice(
        "launches_not_recorded",
        f"The profiler did not record which call launched {format_share(share)} of the device's ops: they count to the "
        "step in which they ran, and why the device idled before them is known in part only.",
    )


def _before_profile(facts: Facts) -> Notice | None:
    count = sum(int(activity.before_profile.sum()) for activity in facts.activities)
    if not count:
        return None
    return Notice(
        "profile_launched_before",
        "Device ops were launched before the profile began; no step is charged for them.",
        count,
    )


def _devices_unused(facts: Facts) -> Notice | None:
    if not facts.unused:
        return None
    devices = [device for device in facts.trace.info.devices if device.id in facts.unused]
    numbers = ", ".join(map(str, sorted(facts.unused)))
    variables = " or ".join(dict.fromkeys(f"`{name}`" for device in devices for name in _hiding(device)))
    hide = f"hide them from the program ({variables})" if variables else "leave them out of the program"
    return Notice(
        "devices_unused",
        f"{len(facts.unused)} of {len(facts.activities)} devices computed nothing in these steps (number {numbers}): "
        "step times, means and findings are of the others. Spread the work over them, or create the data on the "
        f"devices that compute and {hide}.",
        len(facts.unused),
    )


_HIDING = {"NVIDIA": "CUDA_VISIBLE_DEVICES", "AMD": "HIP_VISIBLE_DEVICES", "Google": "TPU_VISIBLE_CHIPS"}
"""The environment variable that says which devices of a vendor a program sees."""


def _hiding(device: Device) -> tuple[str, ...]:
    """The variables for a device; of a GPU of unknown make, for all GPUs."""
    known, name = lookup(device.name or ""), device.name or ""
    vendor = known.vendor if known else next((vendor for vendor in _HIDING if vendor in name), None)
    if vendor is None and device.kind == "gpu":
        return _HIDING["NVIDIA"], _HIDING["AMD"]
    vendor = "Google" if device.kind == "tpu" else vendor
    return (_HIDING[vendor],) if vendor in _HIDING else ()


def _host_ran_ahead(facts: Facts) -> Notice | None:
    """The device still has much to do when the host has launched the last step: host times are queue filling."""
    median, markers = facts.median_step_ns, facts.markers
    # Nothing says when the host was done with a last step that was inferred: the one before ended where it began.
    step = len(markers) - 1 - (markers.inferred and len(markers) > 1)
    until = int(markers.end[step])
    backlog = 0
    for activity, account in facts.devices:
        if activity.device in facts.unused:
            continue
        last = account.step_row(step)
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


def _capture(facts: Facts) -> Notice | None:
    recorded = capture_slows_host(facts)
    if recorded is None or host_share(facts) < HOST_SHARE:
        return None
    if not facts.activities:
        return Notice("capture_slows_host", f"Recording {recorded} slows the host: steps are faster without it.")
    return Notice(
        "capture_slows_host",
        f"Recording {recorded} slows the host: without it the device waits less for the host than shown here.",
    )


def _profiler(facts: Facts) -> Notice | None:
    if not facts.used_ns:
        return None
    code, steps = Category.PROFILER.code, facts.timed
    total = max((int(account.parts[account.step_rows(steps), code].sum()) for account in facts.accounts), default=0)
    own, share = round(total / len(steps)), total / int(facts.step_ns[list(steps)].sum())
    if share < PROFILER_SHARE:
        return None
    return Notice(
        "profile_overhead", f"The profiler's own work takes {format_ns(own)} per step ({format_share(share)})."
    )


def _collectives(facts: Facts) -> Notice | None:
    world = facts.trace.info.world_size
    if world is None or world < 2 or not facts.activities:
        return None
    if any((activity.category == Category.COLLECTIVE.code).any() for activity in facts.activities):
        return None
    return Notice(
        "profile_no_collectives",
        f"The job has {world} ranks but no collective was recognised on the device: "
        "communication is not told apart here.",
    )


def _lazy_phases(facts: Facts) -> Notice | None:
    """In a lazy framework the ranges people call forward and backward hold the building of the graph."""
    if facts.trace.info.framework != TORCH_XLA:
        return None
    count = int(facts.host.in_role(XlaRole.LAZY_PHASE).sum())
    if not count:
        return None
    return Notice(
        "lazy_phases",
        "Host ranges called forward or backward measure how long PyTorch/XLA built the graph, not how long the device "
        "computed: do not compare them with device time.",
        count,
    )


def _no_scopes(facts: Facts) -> Notice | None:
    """Without name scopes device ops cannot be traced to layers; nothing is inferred from the order of ops."""
    if facts.trace.info.framework != TORCH_XLA or not len(facts.trace.xla_ops):
        return None
    if (facts.trace.xla_ops.scope >= 0).any():
        return None
    return Notice(
        "profile_no_scopes",
        "No name scopes were recorded, so device ops cannot be told apart by layer. Run with XLA_HLO_DEBUG=1 "
        "(and XLA_IR_DEBUG=1) set.",
    )


def _recompiled(facts: Facts) -> Notice | None:
    """A module that ran before was compiled once more: mostly because a shape changed."""
    again = [found for found in (facts.xla.compilations if facts.xla else ()) if found.again]
    if not again:
        return None
    first = again[0]
    step = None if first.step is None else facts.markers.numbers[first.step]
    where = "" if first.step is None else f" in step {first.step if step is None else step}"
    why = f" because its inputs changed ({first.changed})" if first.changed else ""
    return Notice(
        "recompiled",
        f"`{first.module}` was compiled again{where}{why}: {format_ns(first.ns)}. Pad or bucket inputs to a few fixed "
        "shapes, and run one step of each before the profile begins.",
        len(again),
    )


def _steps_cut(facts: Facts) -> Notice | None:
    """Markers may have been in what was lost: no advice to write some."""
    if facts.markers.source != "whole profile":
        return None
    text = "No step markers are in the part that could be read: it is treated as one step."
    return Notice("profile_no_steps", text)


def _device_cut(facts: Facts) -> Notice | None:
    if facts.activities:
        return None
    text = "No device activity is in the part that could be read: it may have stood behind the cut."
    return Notice("profile_device_missing", text)


_RULES: tuple[Callable[[Facts], Notice | None], ...] = (
    _steps,
    _few_steps,
    _warm_up,
    _start_up,
    _device_missing,
    _sampled,
    _unnumbered,
    _before_profile,
    _devices_unused,
    _host_ran_ahead,
    host_unrecorded,
    no_lines,
    _capture,
    _profiler,
    _collectives,
    misread.meter,
    _lazy_phases,
    _no_scopes,
    _recompiled,
    efficiency.small_grids,
    efficiency.softmax_in_fp16,
    memory.growth,
    memory.fragmentation,
    memory.headroom,
)
