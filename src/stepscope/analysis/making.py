"""Batches that a program makes itself where the host computes: told by what they are made of, and by when.

Where nothing is copied to a device, what lies before the first forward pass of a step is a batch's if it makes tensors
of what are none (files, lists, numbers), or if behind it, still before that pass, something does. Code that is called
after a batch makes one wherever it lies. Ops of the program's own count too where no function holds them. Nothing of
it is differentiated or exchanged with other ranks, and none of it changes a tensor in place: what does so is an
optimizer's, an average of weights. Needs recorded Python frames.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.callbacks import callbacks_around
from stepscope.analysis.host import NO_CAUSE, HostActivity
from stepscope.analysis.learning import own_ops, passes, teaches
from stepscope.analysis.limits import BATCH_NS
from stepscope.analysis.own_code import is_programs
from stepscope.analysis.steps import WHOLE, Markers
from stepscope.names.producing import (
    changes_in_place,
    is_anonymous,
    makes_no_batch,
    makes_tensors,
    reads_numbers,
    says_batch,
)
from stepscope.trace.codes import among, mapped, marked
from stepscope.trace.forest import holding, is_outermost, outermost
from stepscope.trace.tables import I64, Bools, Kind, Rows
from stepscope.trace.trace import Trace


def made_on_host(host: HostActivity, markers: Markers) -> Rows:
    """The outermost slices in which the thread of the loop makes a batch, in a profile without a device."""
    trace = host.trace
    if host.pool or host.main < 0 or markers.source == WHOLE or trace.info.framework != "PyTorch":
        return np.empty(0, np.intp)
    if not (trace.slices.kind == Kind.PYTHON_FRAME).any():
        return np.empty(0, np.intp)  # Without frames nothing tells where the model is called.
    mine = among(trace.slices.track, host.loop)
    learns = mine & (teaches(trace) | passes(trace))
    free = mine & ~_taken(host, learns)
    made = _named(trace, free) | _leading(trace, free, learns, markers)
    return np.flatnonzero(is_outermost(made, trace.slices.parent))


def _taken(host: HostActivity, learns: Bools) -> Bools:
    """What is known for something else, holds such, or lies in it: a cause, a pass of the model, a callback."""
    trace, slices = host.trace, host.trace.slices
    caused = (host.causes != NO_CAUSE) | (host.roles != NO_CAUSE)
    caused[host.markers[host.markers >= 0]] = False
    other = mapped(slices.name, trace.strings, makes_no_batch, np.bool_) & _is_code(trace)
    other |= mapped(slices.name, trace.strings, reads_numbers, np.bool_) & own_ops(trace)
    caused |= mapped(slices.name, trace.strings, _exchanges, np.bool_)
    # The job's own profiler may mark the same steps once more.
    others = (slices.kind == Kind.STEP) & ~among(np.arange(len(slices)), host.markers)
    known = learns | caused | (others & ~holding(learns, slices.parent))
    held = holding(known, slices.parent)
    inside = outermost(known | other, slices.parent) >= 0
    return np.asarray(held | inside | (callbacks_around(trace) >= 0) | (slices.kind == Kind.STEP))


def _named(trace: Trace, free: Bools) -> Bools:
    """Functions and ranges of the program's own that are called after a batch, and take long enough for one."""
    rows = np.flatnonzero(free & _is_code(trace) & (trace.slices.dur_ns >= BATCH_NS))
    rows = rows[mapped(trace.slices.name[rows], trace.strings, says_batch, np.bool_)]
    return marked(rows[is_programs(trace, rows)], free.size)


def _leading(trace: Trace, free: Bools, learns: Bools, markers: Markers) -> Bools:
    """What lies before the first pass of its step, up to the last that makes tensors there; ops from the first that
    does on: what is computed before it is computed of weights."""
    slices, strings = trace.slices, trace.strings
    alters = mapped(slices.name, strings, changes_in_place, np.bool_) & own_ops(trace)
    usable = free & ~alters & ~holding(alters, slices.parent)
    begun = np.searchsorted(markers.start, slices.start_ns, "right") - 1
    ends = slices.start_ns + slices.dur_ns
    first = _first(slices.start_ns[learns], begun[learns], len(markers))
    usable &= (begun >= 0) & (ends <= first[np.maximum(begun, 0)])
    makes = usable & mapped(slices.name, strings, makes_tensors, np.bool_)
    step = np.maximum(begun, 0)
    since = _first(slices.start_ns[makes], begun[makes], len(markers))[step]
    computes = (slices.kind == Kind.HOST_OP) & (slices.start_ns >= since)
    made = usable & (_functions(trace, usable, makes) | computes)
    made &= slices.start_ns <= _last(slices.start_ns[makes], begun[makes], len(markers))[step]
    long = _sums(slices.dur_ns, is_outermost(made, slices.parent), begun, len(markers))
    return np.asarray(made & (long[step] >= BATCH_NS))


def _functions(trace: Trace, usable: Bools, makes: Bools) -> Bools:
    """Of the program's functions: those that make tensors, those that run no op, and those without a name."""
    slices = trace.slices
    rows = np.flatnonzero(usable & _is_code(trace))
    rows = rows[is_programs(trace, rows)]
    computes = holding(slices.kind == Kind.HOST_OP, slices.parent)[rows]
    bare = mapped(slices.name[rows], trace.strings, is_anonymous, np.bool_)
    makers = np.zeros(usable.size, np.bool_)
    in_c = mapped(slices.name[rows], trace.strings, lambda name: name.startswith("<built-in"), np.bool_)
    makers[rows[holding(makes, slices.parent)[rows] | (~computes & ~in_c) | bare]] = True
    return makers | makes


def _exchanges(name: str) -> bool:
    return name.startswith(("c10d::", "nccl:", "gloo:", "mpi:"))


def _is_code(trace: Trace) -> Bools:
    return np.asarray(among(trace.slices.kind, (Kind.PYTHON_FRAME, Kind.ANNOTATION)))


def _first(times: I64, step: I64, steps: int) -> I64:
    """Per step, the earliest of some times; before all others where it has none."""
    earliest = np.full(steps, np.iinfo(np.int64).max)
    np.minimum.at(earliest, step[step >= 0], times[step >= 0])
    return np.where(earliest == np.iinfo(np.int64).max, np.iinfo(np.int64).min, earliest)


def _last(times: I64, step: I64, steps: int) -> I64:
    latest = np.full(steps, np.iinfo(np.int64).min)
    np.maximum.at(latest, step[step >= 0], times[step >= 0])
    return latest


def _sums(values: I64, chosen: Bools, step: I64, steps: int) -> I64:
    sums = np.zeros(steps, np.int64)
    rows = np.flatnonzero(chosen & (step >= 0))
    np.add.at(sums, step[rows], values[rows])
    return sums
