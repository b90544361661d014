"""Ops that compute on the host in a program whose work is on a device."""

from __future__ import annotations

from functools import partial

import numpy as np

from stepscope.analysis.host import NO_CAUSE, HostActivity
from stepscope.analysis.placement import METADATA_OPS
from stepscope.regex import regex
from stepscope.trace.codes import among, mapped, marked
from stepscope.trace.forest import holding, inherit, is_outermost, summed
from stepscope.trace.tables import I32, I64, Bools, Kind
from stepscope.trace.trace import Trace

_REACHES = (Kind.RUNTIME_CALL, Kind.SYNC, Kind.ALLOCATION, Kind.COMPILE)
# What hands over work, or waits for it elsewhere (other ranks, another device's ops, the body of a function), computes
# nothing itself. XLA's frameworks run ops in programs: C++ functions are all they show beside them.
_OPS = {
    "PyTorch": regex(r"^(?!c10d::|nccl:|gloo:)\w+::"),
    "TensorFlow": regex(r"^[^\s:]+:(?!(?:Stateful)?PartitionedCall|While|If|NoOp)[A-Z]\w*$"),
}
"""Names of ops: PyTorch's have a namespace, TensorFlow's in an XPlane the type behind the name of their node."""


def is_computing_op(name: str, framework: str) -> bool:
    """Whether a host op of this name computes something where it runs.

    >>> [is_computing_op(name, "PyTorch") for name in ("aten::sort", "aten::view", "c10d::allreduce_", "forward")]
    [True, False, False, False]
    >>> [is_computing_op(name, "TensorFlow") for name in ("loss/Unique:UniqueV2", "f/call:StatefulPartitionedCall")]
    [True, False]
    """
    return name not in METADATA_OPS and _OPS[framework].match(name[:2_048]) is not None


def host_ops(trace: Trace, host: HostActivity, least_ns: int) -> I32:
    """Ops that compute on the host, at least so long: outermost ones in which nothing is launched and no runtime of a
    device is called, outside of what has a cause of its own (the input pipeline, compiling, checkpoints).
    """
    slices, framework = trace.slices, trace.info.framework
    if framework not in _OPS:
        return np.empty(0, np.int32)
    reaches = among(slices.kind, _REACHES)
    reaches[trace.launches.call] = True
    caused = inherit(np.where(host.causes != NO_CAUSE, np.int32(1), np.int32(-1)), slices.parent) > 0
    if len(trace.nodes):
        computes = marked(trace.nodes.slice[trace.nodes.placement >= 0], len(slices))
        computing = np.where(computes, slices.dur_ns, 0)
    else:
        computes = mapped(slices.name, trace.strings, partial(is_computing_op, framework=framework), np.bool_)
        computing = summed(_own_time(trace, computes, least_ns), slices.parent)
    computes &= (slices.kind == Kind.HOST_OP) & ~reaches & ~holding(reaches, slices.parent) & ~caused
    computes &= computing >= least_ns
    return np.flatnonzero(is_outermost(computes, slices.parent)).astype(np.int32)


def _own_time(trace: Trace, computes: Bools, least_ns: int) -> I64:
    """What each op computes itself: its time where it has no inner ops. Of others one long stretch between inner ops
    is computing, what is shorter is dispatching them: an op that only makes views computes nothing."""
    slices = trace.slices
    metadata = mapped(slices.name, trace.strings, METADATA_OPS.__contains__, np.bool_)
    ops = np.flatnonzero((slices.kind == Kind.HOST_OP) & (computes | metadata)).astype(np.int32)
    around = _nearest(ops, slices.parent)[slices.parent[ops]]
    nested = (slices.parent[ops] >= 0) & (around >= 0)
    inner, around = ops[nested], around[nested]
    order = np.argsort(around, kind="stable")
    inner, around = inner[order], around[order]
    first = np.append(True, np.diff(around) != 0)[: around.size]
    start, dur = slices.start_ns, slices.dur_ns
    end = start[inner] + dur[inner]
    before = np.where(first, start[around], np.roll(end, 1))
    own = np.zeros(len(slices), np.int64)
    np.maximum.at(own, around, start[inner] - before)
    last = np.append(first[1:], True)[: around.size]
    np.maximum.at(own, around[last], start[around[last]] + dur[around[last]] - end[last])
    own[own < least_ns] = 0
    has_inner = marked(around, len(slices))
    leaves = ops[~has_inner[ops]]
    own[leaves] = slices.dur_ns[leaves]
    own[~computes] = 0
    return own


def _nearest(ops: I32, parent: I32) -> I32:
    """Per slice, the innermost op around it (or itself), -1 for none."""
    nearest = np.full(parent.size, -1, np.int32)
    nearest[ops] = ops
    return inherit(nearest, parent)
