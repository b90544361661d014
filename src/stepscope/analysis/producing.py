"""Batches that a program makes itself, without a loader: told by where they are made.

Python code, or a range that the program named, of a thread that launches: nothing is launched in it, and the next
launch is a copy of some size to the device. Where it also lies before a step's first other launch, or is called after
a batch, it makes what that copy sends. Code that is known for something else (logging, metrics, callbacks, a
framework's own) is not taken for it, nor what comes before a loader, whose batch it is then. JAX's profiles of a CPU
hold no copies: there the name has to say it, and the next that the loop does with a device is to hand it an array.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stepscope.analysis.callbacks import callbacks_around
from stepscope.analysis.categories import Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.host import NO_CAUSE, HostActivity
from stepscope.analysis.limits import BATCH_BYTES, BATCH_NS
from stepscope.analysis.making import made_on_host
from stepscope.analysis.own_code import is_programs
from stepscope.analysis.steps import WHOLE, Markers
from stepscope.names.producing import makes_no_batch, says_batch
from stepscope.names.xla_hosts import sends_arrays
from stepscope.trace.codes import among, mapped, marked
from stepscope.trace.forest import holding, outermost
from stepscope.trace.tables import I32, I64, Bools, Kind, Rows
from stepscope.trace.trace import Trace


def with_produced(host: HostActivity, activities: list[DeviceActivity], markers: Markers) -> HostActivity:
    """The host's activity, with the making of batches as the input that it is."""
    rows = _produced(host, activities, markers) if activities else made_on_host(host, markers).astype(np.int32)
    if not rows.size:
        return host
    causes = host.causes.copy()
    causes[rows] = Category.INPUT.code
    return replace(host, causes=causes, produced=rows, _sets={})


def _produced(host: HostActivity, activities: list[DeviceActivity], markers: Markers) -> I32:
    trace, none = host.trace, np.empty(0, np.int32)
    launch, sends = _launches(trace, activities)
    by_name = not sends.any()
    if by_name:
        launch, sends = _with_transfers(host, launch)
    if not sends.any() or host.pool or markers.source == WHOLE:
        return none
    rows = _may_make(host)
    begin = trace.slices.start_ns[rows]
    end = begin + trace.slices.dur_ns[rows]
    first, after = np.searchsorted(launch, begin), np.searchsorted(launch, end)
    then = (first == after) & np.append(sends, False)[after]
    rows, begin, first = rows[then], begin[then], first[then]
    others = np.concatenate(([0], np.cumsum(~sends)))
    step = np.searchsorted(markers.start, begin, "right") - 1
    opening = others[np.searchsorted(launch, markers.start)][np.maximum(step, 0)]
    leads = (others[first] == opening) & (step >= 0) & (not (markers.inferred or markers.on_device or by_name))
    says = mapped(trace.slices.name[rows], trace.strings, says_batch, np.bool_)
    made = rows[(leads | says) & ~_before_loading(host, begin, launch[first])]
    return _outer(trace, _unless_other(trace, made))


def _launches(trace: Trace, activities: list[DeviceActivity]) -> tuple[I64, Bools]:
    """When anything was launched, in order, and whether it was a copy to a device of the size of a batch, or more. What
    else is copied there (a rate, a scale) comes without a batch, and stands for nothing."""
    launches = []
    for activity in activities:
        copies = activity.category == Category.COPY_H2D.code
        small = copies & (trace.device_ops.bytes[activity.row] < BATCH_BYTES)
        counted = activity.launched & ~small
        launches.append((activity.launch[counted], copies[counted]))
    if not launches:
        return np.empty(0, np.int64), np.empty(0, np.bool_)
    launch, sends = (np.concatenate(part) for part in zip(*launches, strict=True))
    order = np.argsort(launch, kind="stable")
    return launch[order], sends[order]


def _with_transfers(host: HostActivity, launch: I64) -> tuple[I64, Bools]:
    """The launches with when the loop handed arrays to a device, of JAX, whose profiles of a CPU hold no copies. Their
    sizes are not recorded, so what comes before a transfer makes a batch only where its name says so."""
    slices, none = host.trace.slices, np.empty(0, np.int64)
    if host.trace.info.framework != "JAX":
        return none, np.zeros(0, np.bool_)
    mine = (host.causes == Category.TRANSFER.code) & among(slices.track, host.loop)
    # The Python of a call looks at its arguments also where all of them are on the device already.
    sent = slices.start_ns[mine & mapped(slices.name, host.trace.strings, sends_arrays, np.bool_)]
    times, sends = np.concatenate((launch, sent)), np.repeat((False, True), (launch.size, sent.size))
    order = np.argsort(times, kind="stable")
    return times[order], sends[order]


def _may_make(host: HostActivity) -> Rows:
    """Functions of the program's own, what its functions call, and ranges, on the thread of the loop: long enough to be
    worth a thread of their own, and not known for anything else."""
    slices, strings = host.trace.slices, host.trace.strings
    chosen = among(slices.kind, (Kind.PYTHON_FRAME, Kind.ANNOTATION)) & (slices.dur_ns >= BATCH_NS)
    chosen &= (host.causes == NO_CAUSE) & (host.roles == NO_CAUSE) & among(slices.track, host.loop)
    chosen[host.markers[host.markers >= 0]] = False
    rows = np.flatnonzero(chosen)
    rows = rows[~mapped(slices.name[rows], strings, makes_no_batch, np.bool_)]
    rows = rows[is_programs(host.trace, rows)]
    loads = holding(host.causes == Category.INPUT.code, slices.parent)[rows]
    waits = holding(slices.kind == Kind.SYNC, slices.parent)[rows]
    free = ~loads & ~waits & (callbacks_around(host.trace)[rows] < 0)
    return np.asarray(rows[free], np.intp)


def _before_loading(host: HostActivity, begin: I64, sent: I64) -> Bools:
    """Behind which a loader is asked for its batch before something is sent."""
    slices = host.trace.slices
    loading = np.sort(slices.start_ns[(host.causes == Category.INPUT.code) & among(slices.track, host.loop)])
    return np.asarray(np.searchsorted(loading, begin) < np.searchsorted(loading, sent))


def _unless_other(trace: Trace, rows: Rows) -> Rows:
    """Without those half of whose time passes in what makes no batch."""
    slices = trace.slices
    around = outermost(marked(rows, len(slices)), slices.parent)
    inner = np.flatnonzero((around >= 0) & (slices.dur_ns >= BATCH_NS // 2))
    inner = inner[among(slices.kind[inner], (Kind.PYTHON_FRAME, Kind.ANNOTATION))]
    other = inner[mapped(slices.name[inner], trace.strings, makes_no_batch, np.bool_)]
    longest = np.zeros(len(slices), np.int64)
    np.maximum.at(longest, around[other], slices.dur_ns[other])
    return rows[2 * longest[rows] < slices.dur_ns[rows]]


def _outer(trace: Trace, rows: Rows) -> I32:
    outer = outermost(marked(rows, len(trace.slices)), trace.slices.parent)[rows] == rows
    return np.asarray(rows[outer], np.int32)
