"""Notices on the devices of a profile: whether they were recorded, and which of them work."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.barriers import find_barriers, in_steps
from stepscope.analysis.categories import Category
from stepscope.analysis.contradictions import contradictions
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.facts import Facts
from stepscope.analysis.functions import only_functions
from stepscope.analysis.idle import told_by_time
from stepscope.analysis.limits import UNMATCHED_SHARE, UNRECORDED_NS
from stepscope.analysis.summary import mean_parts
from stepscope.analysis.waits import BARRIER
from stepscope.diagnosis.finding import Notice
from stepscope.diagnosis.limits import LATE_CORE_NS, UNDIVIDED_SHARE
from stepscope.diagnosis.remedies import AMD, INTEL, NVIDIA, PYTORCH, Remedies, RemedyPart, sentence
from stepscope.hardware.devices import lookup
from stepscope.names.in_use import Feature
from stepscope.trace import intervals as iv
from stepscope.trace.tables import Kind
from stepscope.trace.trace import Device
from stepscope.units import format_ns, format_share

_OURS = (Feature.OWN_RECORDING,)
_CUDA = "If the job uses a GPU, record `activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]`."
_ADVICE: Remedies = {
    PYTORCH: (
        RemedyPart(_CUDA, vendors=(*NVIDIA, *AMD), unless=_OURS),
        RemedyPart(
            "If the job uses a GPU, record `activities=[ProfilerActivity.CPU, ProfilerActivity.XPU]`.",
            vendors=INTEL,
            unless=_OURS,
            certain=True,
        ),
    ),
    None: "If the job uses a GPU or TPU, `stepscope doctor` says why it may be missing.",
}

_MISSING: Remedies = {
    None: (
        RemedyPart(
            "On NVIDIA check CUPTI's permissions (NVreg_RestrictProfilingToAdminUsers) and that no other profiler is "
            "attached.",
            vendors=NVIDIA,
        ),
        RemedyPart("Check that no other profiler is attached.", vendors=(*AMD, *INTEL), certain=True),
    )
}

RANKS_ELSEWHERE = "profile_ranks_elsewhere"
"""Said of a profile on its own; of a job's ranks the job says which are not here."""


def missing(facts: Facts) -> Notice | None:
    """No device activity was recorded, of a process that could have used a device."""
    if facts.activities or facts.trace.info.on_cpu:
        return None
    slices = facts.trace.slices
    launched = int(((slices.kind == Kind.RUNTIME_CALL) & (slices.correlation >= 0)).sum())
    if launched:
        return Notice(
            "profile_device_missing",
            "Device calls were recorded but nothing of what the device did: that side of this profile is missing. "
            f"{sentence(_MISSING, facts.workload)}",
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
        f"No device activity was recorded: times are the host's. {sentence(_ADVICE, facts.workload)}",
    )


def missing_in_a_part(facts: Facts) -> Notice | None:
    """No device activity is in what is left of a file."""
    if facts.activities:
        return None
    text = "No device activity is in the part that could be read: it may have stood behind the cut."
    return Notice("profile_device_missing", text)


def launches_unnumbered(facts: Facts) -> Notice | None:
    """Device ops without the number of their launch."""
    share = facts.sampling.launches_unnumbered
    if any(_told_by_time(facts, activity, account) for activity, account in facts.devices):
        return Notice(
            _NOT_RECORDED,
            "The profiler did not record which calls started the device's programs: they count to the step in which "
            "they ran, and what the host did at that time is taken for what the device waited for.",
        )
    if share <= UNMATCHED_SHARE:
        return None
    return Notice(
        _NOT_RECORDED,
        f"The profiler did not record which call launched {format_share(share)} of the device's ops: they count to the "
        "step in which they ran, and why the device idled before them is known in part only.",
    )


_NOT_RECORDED = "launches_not_recorded"


def _told_by_time(facts: Facts, activity: DeviceActivity, account: Account) -> bool:
    """Whether anything of a device's idle time is told by what the host did meanwhile alone."""
    if activity.device in facts.unused or not told_by_time(facts.trace, activity, facts.host):
        return False
    assert account.idle is not None
    return bool((account.idle.pieces.category != Category.UNKNOWN_DEVICE.code).any())


def launched_before(facts: Facts) -> Notice | None:
    """Device ops of before the profile."""
    count = sum(int(activity.before_profile.sum()) for activity in facts.activities)
    if not count:
        return None
    return Notice(
        "profile_launched_before",
        "Device ops were launched before the profile began; no step is charged for them.",
        count,
    )


def busy_unrecorded(facts: Facts) -> Notice | None:
    """A device worked on what the profile does not hold."""
    of_device = [(iv.measure(activity.unrecorded), activity) for activity in facts.activities]
    longest, activity = max(of_device, key=lambda each: each[0], default=(0, None))
    if activity is None or not longest or contradictions(facts).late is not None:
        return None
    rows, spans = facts.accounts[facts.activities.index(activity)].rows, activity.unrecorded
    inside = [at for at, step in enumerate(rows.steps) if step is not None]
    ends = np.array(inside) + 1
    in_steps = int(iv.covered_between(spans, rows.bounds[inside], rows.bounds[ends]).sum())
    shown = _waits_in(facts, spans)
    where = "It lies before the steps, and no step is charged for it" if not in_steps else (
        f"{format_ns(in_steps)} of it lie in the steps" if in_steps < longest else "It lies in the steps"
    )  # fmt: skip
    advice = (
        " To record it too, start the profiler where the device has nothing left to do (after a synchronise)."
        if activity.begins_occupied
        else ""
    )
    return Notice(
        "device_busy_unrecorded",
        f"For {format_ns(longest)} the device was busy with work that this profile does not hold: "
        f"{shown or 'work that was launched did not start'}, and nothing recorded ran. That is not idle time. "
        f"{where}.{advice}",
        len(spans[0]),
    )


def _waits_in(facts: Facts, spans: iv.Intervals) -> str:
    """The call in which the host was blocked longest meanwhile, in words; empty where none took long."""
    waits = facts.host.waits
    blocked = iv.covered_between(spans, waits.start, waits.end)
    if blocked.max(initial=0) < UNRECORDED_NS:
        return ""
    at = int(blocked.argmax())
    return f"the host was blocked in `{facts.trace.name_of(int(waits.slice[at]))}` for {format_ns(int(blocked[at]))}"


def unused(facts: Facts) -> Notice | None:
    """Devices that computed nothing."""
    idle = sorted(facts.unused - facts.beside - _computing(facts).keys())
    if not idle:
        return None
    devices = [device for device in facts.trace.info.devices if device.id in idle]
    variables = " or ".join(dict.fromkeys(f"`{name}`" for device in devices for name in _hiding(device)))
    hide = f"hide them from the program ({variables})" if variables else "leave them out of the program"
    return Notice(
        "devices_unused",
        f"{len(idle)} of {len(facts.activities) - len(facts.beside)} devices computed nothing in these steps (number "
        f"{', '.join(map(str, idle))}): step times, means and findings are of the others. Spread the work over them, "
        f"or create the data on the devices that compute and {hide}.",
        len(idle),
        says_count=True,
    )


def outside_steps(facts: Facts) -> Notice | None:
    """Devices that computed, but not in the steps."""
    told = [
        f"device {device} ran {count:,} {'kernel' if count == 1 else 'kernels'} ({format_ns(ns)})"
        for device, (count, ns) in _computing(facts).items()
        if device in facts.unused - facts.beside
    ]
    if not told:
        return None
    return Notice(
        "devices_outside_steps",
        f"Outside of these steps {', '.join(told)}: step times, means and findings are of the other devices. It may "
        "belong to another process, whose steps are not marked.",
        len(told),
    )


def _computing(facts: Facts) -> dict[int, tuple[int, int]]:
    """The devices that computed anything in the profile: how many kernels they ran, and for how long."""
    counts = {}
    for activity in facts.activities:
        chosen = activity.category == Category.COMPUTE.code
        if chosen.any():
            ns = int((activity.end - activity.start)[chosen].sum())
            counts[activity.device] = int(chosen.sum()), ns
    return counts


def late_core(facts: Facts) -> Notice | None:
    """A device for which others waited long at a barrier outside of the steps."""
    barriers = [one for one in find_barriers(facts) if one.longest_ns >= LATE_CORE_NS and not in_steps(facts, one)]
    if not barriers:
        return None
    worst = max(barriers, key=lambda one: one.longest_ns)
    device = max(worst.waited_ns, key=lambda one: worst.waited_ns[one])
    return Notice(
        "late_core",
        f"Outside of the steps device {device} waited {format_ns(worst.waited_ns[device])} at a barrier "
        f"(`{BARRIER}`) for the others; device {worst.last} came last.",
        len(barriers),
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


def no_collectives(facts: Facts) -> Notice | None:
    """A job of many ranks without collectives."""
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


def ranks_elsewhere(facts: Facts) -> Notice | None:
    """One rank of a job alone, that collectives keep from its work."""
    world, parts = facts.trace.info.world_size, mean_parts(facts)
    if world is None or world < 2 or parts.get(Category.COLLECTIVE, 0) <= UNDIVIDED_SHARE * sum(parts.values()):
        return None
    who = "One rank" if facts.trace.info.rank is None else f"Rank {facts.trace.info.rank}"
    return Notice(
        RANKS_ELSEWHERE,
        f"{who} of {world} alone: to tell waiting from transfer, diagnose all ranks' profiles together.",
    )
