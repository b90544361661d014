"""Steps that nothing marks: the period of what is launched, and boundaries that suit every device.

The period is found on one device. The programs a host starts on several devices are not launched on all of them in the
same order each time, so a step begins where the host began to start the program on any of them, and no execution of
a program is cut in two.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.limits import PERIOD_MATCH
from stepscope.names.xla_hosts import XlaRole, classify_xla_name
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, grouped, mapped
from stepscope.trace.forest import inherit, on_host_threads, outermost
from stepscope.trace.tables import F64, I32, I64, NULL, FlowKind, Kind
from stepscope.trace.trace import Trace

LONGEST_PERIOD_SEARCH = 2_000_000
"""Launches looked at when steps are inferred; a longer trace is inferred from its start."""


def repeated_steps(trace: Trace, activities: list[DeviceActivity]) -> tuple[I64, I64] | None:
    """Starts and ends of steps on the host: the period of the ops that are launched on one device, of those
    that have one the one with most launches; else the executions of the program that keeps a device longest.

    None where there is none, or where the host starts programs so far ahead of their launches that a boundary would
    cut one.
    """
    devices = sorted(activities, key=lambda a: -int(a.launched.sum()))
    launches = _launches(trace, activities) if activities and len(trace.xla_ops) else None
    periods = [_periods_of_ops(trace, activity) for activity in devices]
    periods += [_runs_of_a_program(launches, activity.device) for activity in devices if launches is not None]
    for begins, last in filter(None, periods):
        for spans in (iv.EMPTY,) if launches is None else launches.executions():
            whole = _not_cutting(begins, spans)
            if (np.diff(whole) > 0).all():
                return whole, np.append(whole[1:], _end_of_launches(activities, spans, last))
    return None


Periods = tuple[I64, int]
"""The first launch of each period on one device, and the last launch looked at."""


def _periods_of_ops(trace: Trace, activity: DeviceActivity) -> Periods | None:
    order = np.flatnonzero(activity.launched)
    order = order[np.argsort(activity.launch[order], kind="stable")][:LONGEST_PERIOD_SEARCH]
    names, launch = trace.slices.name[activity.slice[order]], activity.launch[order]
    repeats = period(names)
    return None if repeats is None else (launch[np.arange(repeats[0], names.size, repeats[1])], int(launch[-1]))


def _runs_of_a_program(launches: _Launches, device: int) -> Periods | None:
    """The executions of the program that took most time, where there are three or more: XLA may run the ops of a
    program in another order each time, and other programs between them."""
    mine = np.flatnonzero((launches.device == device) & (launches.module >= 0))
    if not mine.size:
        return None
    longest = np.bincount(launches.module[mine], launches.busy_ns[mine]).argmax()
    runs = mine[launches.module[mine] == longest]
    runs = runs[np.argsort(launches.launch[runs], kind="stable")]
    first = np.sort(np.unique(launches.execution[runs], return_index=True)[1])
    return (launches.launch[runs[first]], int(launches.launch[mine].max())) if first.size >= 3 else None


def period(names: I32) -> tuple[int, int] | None:
    """First position and length of a sequence's period, if three or more periods repeat nearly exactly.

    Candidates are the distances between occurrences of the rarest names that occur three times or more.
    """
    values, first, counts = np.unique(names, return_index=True, return_counts=True)
    often = counts >= 3
    if names.size < 6 or not often.any():
        return None
    for value in values[often][np.lexsort((first[often], counts[often]))][:5]:
        at = np.flatnonzero(names == value)
        length = int(np.median(np.diff(at)))
        if length < 2 or names.size < 3 * length:
            continue
        if float((names[length:] == names[:-length]).mean()) >= PERIOD_MATCH:
            start = int(at[0]) % length
            return (start if start <= names.size - 3 * length else 0), length
    return None


def _not_cutting(begins: I64, spans: iv.Intervals) -> I64:
    """Boundaries, each moved back to where the span around it begins."""
    if not spans[0].size:
        return begins
    at = np.maximum(np.searchsorted(spans[0], begins, "right") - 1, 0)
    inside = (spans[0][at] <= begins) & (begins < spans[1][at])
    return np.where(inside, spans[0][at], begins)


def _end_of_launches(activities: list[DeviceActivity], spans: iv.Intervals, last: int) -> int:
    """When the last launch had returned, on the device of the period and of all that its execution launched."""
    around = np.flatnonzero((spans[0] <= last) & (last < spans[1]))
    reach = int(spans[1][around[0]]) - 1 if around.size else last
    return max(int(a.launch_end[a.launched & (a.launch <= reach)].max(initial=NULL)) for a in activities)


@record
class _Launches:
    """Every call that launched ops, in a profile of XLA; one value per call and device."""

    device: I32
    launch: I64
    begun: I64
    """When the host began to start the program, on the thread that handed it over to others."""
    execution: I64
    """Number of the execution the call belongs to, over all devices."""
    module: I32
    """Dictionary code of the program's name, -1 where it launched no op of a program."""
    busy_ns: F64
    """Together, of the ops it launched."""

    def executions(self) -> tuple[iv.Intervals, ...]:
        """From the start to the last launch of every execution, those that overlap as one.

        First with what the host did before it launched; then, for hosts that start an execution before all of the one
        before is launched, from the first launch on.
        """
        end = np.full(len(self.execution), NULL)
        np.maximum.at(end, self.execution, self.launch + 1)
        windows = []
        for begin in (np.minimum(self.begun, self.launch), self.launch):
            start = np.full(end.size, np.iinfo(np.int64).max)
            np.minimum.at(start, self.execution, begin)
            windows.append(iv.union(start, end))
        return tuple(windows)


def _launches(trace: Trace, activities: list[DeviceActivity]) -> _Launches:
    """What launches of one execution share: program and run id, else the range that started it, else nothing."""
    slices, compiled = trace.slices, trace.xla_ops
    ops = np.concatenate([a.slice[a.launched] for a in activities])
    device = np.concatenate([np.full(int(a.launched.sum()), a.device) for a in activities])
    call = np.concatenate([a.call[a.launched] for a in activities])
    _, first, group = np.unique(device * len(slices) + call, return_index=True, return_inverse=True)
    row_of = np.full(len(slices), -1, np.int32)
    row_of[compiled.slice] = np.arange(len(compiled), dtype=np.int32)
    row, call = row_of[ops[first]], call[first]
    run, program = (np.where(row >= 0, column[row], NULL) for column in (compiled.run, compiled.program))
    root, known = _roots(trace)[call], run != NULL
    shared = np.where(known, run, np.where(root >= 0, root, call))
    return _Launches(
        device=device[first].astype(np.int32),
        launch=slices.start_ns[call],
        begun=np.where(root >= 0, slices.start_ns[root], slices.start_ns[call]),
        execution=grouped(known, shared, np.where(known, program, 0))[1],
        module=np.where(row >= 0, compiled.module[row], -1).astype(np.int32),
        busy_ns=np.bincount(group.reshape(-1), slices.dur_ns[ops]).astype(np.float64),
    )


def _roots(trace: Trace) -> I32:
    """Per slice, the outermost range around it in which the host starts a program, -1 for none; where one thread handed
    the work over to another, on the first of them."""
    slices = trace.slices
    kinds = among(slices.kind, (Kind.ANNOTATION, Kind.HOST_OP, Kind.RUNTIME_CALL))
    rows = np.flatnonzero(kinds & on_host_threads(trace))
    starts = np.zeros(len(slices), np.bool_)
    starts[rows] = mapped(slices.name[rows], trace.strings, _starts_program, np.bool_)
    own = outermost(starts, slices.parent)
    handed = trace.flows.kind == FlowKind.PRODUCER_CONSUMER
    giver = np.full(len(slices), -1, np.int32)
    giver[trace.flows.target[handed]] = own[trace.flows.source[handed]]
    given = inherit(giver, slices.parent)
    return np.where(given >= 0, given, own)


def _starts_program(name: str) -> bool:
    return classify_xla_name(name) in (XlaRole.EXECUTE, XlaRole.DISPATCH)
