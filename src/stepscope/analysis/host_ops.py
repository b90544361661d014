"""Ops that compute on the host in a program whose work is on a device."""

from __future__ import annotations

import re
from functools import partial

import numpy as np

from stepscope.analysis.host import NO_CAUSE, HostActivity
from stepscope.analysis.placement import METADATA_OPS
from stepscope.trace.codes import mapped
from stepscope.trace.forest import holding, inherit, outermost
from stepscope.trace.tables import I32, Kind
from stepscope.trace.trace import Trace

_REACHES = (Kind.RUNTIME_CALL, Kind.SYNC, Kind.ALLOCATION, Kind.COMPILE)
# What hands over work, or waits for it elsewhere (other ranks, another device's ops, the body of a function), computes
# nothing itself. XLA's frameworks run ops in programs: C++ functions are all they show beside them.
_OPS = {
    "PyTorch": re.compile(r"^(?!c10d::|nccl:|gloo:)\w+::"),
    "TensorFlow": re.compile(r"^[^\s:]+:(?!(?:Stateful)?PartitionedCall|While|If|NoOp)[A-Z]\w*$"),
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
    """Ops that compute on the host and take at least so long: outermost ones in which nothing is launched and no
    runtime of a device is called, outside of what has a cause of its own (the input pipeline, compiling, checkpoints).
    """
    slices, framework = trace.slices, trace.info.framework
    if framework not in _OPS:
        return np.empty(0, np.int32)
    reaches = np.isin(slices.kind, _REACHES)
    reaches[trace.launches.call] = True
    caused = inherit(np.where(host.causes != NO_CAUSE, np.int32(1), np.int32(-1)), slices.parent) > 0
    if len(trace.nodes):
        computes = np.zeros(len(slices), np.bool_)
        computes[trace.nodes.slice[trace.nodes.placement >= 0]] = True
    else:
        computes = mapped(slices.name, trace.strings, partial(is_computing_op, framework=framework), np.bool_)
    computes &= (slices.kind == Kind.HOST_OP) & ~reaches & ~holding(reaches, slices.parent) & ~caused
    outer = outermost(computes, slices.parent)
    rows = np.flatnonzero((outer == np.arange(len(slices))) & (slices.dur_ns >= least_ns))
    return rows.astype(np.int32)
