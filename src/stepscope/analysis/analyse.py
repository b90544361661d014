"""The walk from a trace to its facts: what is computed of every profile, in the order in which one needs the other."""

from __future__ import annotations

from stepscope.analysis.accounting import accounts_of, cores_beside, unused_devices
from stepscope.analysis.complete import complete_steps, step_contents, used_steps
from stepscope.analysis.copies import find_copies
from stepscope.analysis.core_waits import most_without_core
from stepscope.analysis.device import device_activities
from stepscope.analysis.facts import Facts, Progress
from stepscope.analysis.host_roles import host_activity
from stepscope.analysis.kernels import kernel_table
from stepscope.analysis.loop_phases import set_apart
from stepscope.analysis.once import one_time_work
from stepscope.analysis.phases import device_phases, phase_time
from stepscope.analysis.producing import with_produced
from stepscope.analysis.slow_steps import slow_steps
from stepscope.analysis.step_rows import step_bounds
from stepscope.analysis.steps import find_markers
from stepscope.analysis.syncs import find_syncs
from stepscope.analysis.unrecorded import with_unrecorded
from stepscope.analysis.where import Locator
from stepscope.analysis.xla import xla_facts
from stepscope.trace import intervals as iv
from stepscope.trace.trace import Trace


def analyse(trace: Trace, progress: Progress | None = None) -> Facts:
    """Book the time of a trace and find what costs it; what few ask for is computed when it is asked for."""
    tick = progress or (lambda stage, done, total: None)
    tick("accounting", 0, 4)
    activities = device_activities(trace)
    once = one_time_work(trace, activities)
    markers = set_apart(trace, find_markers(trace, activities, once))
    host = with_produced(host_activity(trace, markers.slices, once), activities, markers)
    activities = with_unrecorded(trace, activities, host, markers)
    accounts = accounts_of(trace, activities, host, markers)
    complete = complete_steps(step_contents(trace, markers, activities, once))
    timed = used_steps(complete)
    beside = cores_beside(trace, accounts)
    chips = [account for account in accounts if account.rows.device not in beside]
    unused = unused_devices(chips, timed, markers.own) | beside
    together = step_bounds(markers, [account.rows for account in accounts if account.rows.device not in unused])
    slow = slow_steps(accounts, timed, together, most_without_core(trace, host.main, together), once, unused)
    used = tuple(step for step in timed if step not in {each.step for each in slow})
    tick("accounting", 1, 4)
    locator = Locator(trace)
    devices = list(zip(activities, accounts, strict=False))
    busy = iv.joined([activity.busy for activity in activities])
    syncs = [find_syncs(trace, (each.busy, busy), own, host, locator, (markers, used)) for each, own in devices]
    copies = [find_copies(trace, *device, locator, used, host.main) for device in devices]
    tick("accounting", 2, 4)
    bounds = [account.windows(account.step_rows(used)) for _, account in devices]
    phases = [phase_time(a, device_phases(trace, a), each) for a, each in zip(activities, bounds, strict=True)]
    kernels = kernel_table(trace, activities, bounds)
    tick("accounting", 3, 4)
    xla = xla_facts(trace, activities, bounds, host, markers, used)
    tick("accounting", 4, 4)
    return Facts(
        trace=trace,
        activities=activities,
        host=host,
        locator=locator,
        markers=markers,
        complete=complete,
        used=used,
        slow=slow,
        accounts=accounts,
        unused=unused,
        step_bounds=together,
        syncs=syncs,
        copies=copies,
        phases=phases,
        kernels=kernels,
        xla=xla,
    )
