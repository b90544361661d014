"""Runs of kernels that only move data, by the types of TensorFlow's ops: its profiles hold no shapes, so that what one
hands to the next, and what fusing them would save, is not known."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.limits import LEAST_RUN
from stepscope.names.scopes import is_tensorflow_op
from stepscope.names.tf_ops import only_moves_data
from stepscope.record import record
from stepscope.trace.codes import among, mapped
from stepscope.trace.forest import inherit
from stepscope.trace.tables import I32, Rows
from stepscope.trace.trace import Trace


@record
class Runs:
    """Stretches of a stream in which one such kernel follows another, in the used steps."""

    ops: Rows
    """Their ops (positions in the ``DeviceActivity``), run after run."""
    run: Rows
    """Which run each is of."""
    scope: I32
    """Per op of the device the name of its node and type, -1 where not recorded."""


def op_names(trace: Trace, activity: DeviceActivity) -> I32:
    """Per op of a device the name of TensorFlow's op it works for, ``node:Type``: its own, else that of the event in
    which it was launched; -1 for none, and for what XLA made of ops."""
    slices, compiled = trace.slices, trace.xla_ops
    own = np.full(len(slices), -1, np.int32)
    own[compiled.slice] = np.where(compiled.op < 0, compiled.scope, -1)
    made = np.zeros(len(slices), np.bool_)
    made[compiled.slice] = compiled.op >= 0
    named = mapped(slices.name, trace.strings, is_tensorflow_op, np.bool_)
    around = inherit(np.where(named, slices.name, np.int32(-1)).astype(np.int32), slices.parent)
    launched = np.where(activity.call >= 0, around[activity.call], -1)
    names = np.where(own[activity.slice] >= 0, own[activity.slice], launched)
    return np.where(made[activity.slice], -1, names).astype(np.int32)


def memory_bound_runs(trace: Trace, activity: DeviceActivity, used: Rows, bounds: Rows) -> Runs | None:
    """The runs of ``LEAST_RUN`` kernels or more of a device; None where there are none. ``used`` are the rows of the
    used steps, ``bounds`` the bounds of all."""
    scope = op_names(trace, activity)
    row = np.searchsorted(bounds, activity.start, "right") - 1
    moves = mapped(scope, trace.strings, only_moves_data, np.bool_) & (activity.category == Category.COMPUTE.code)
    moves &= among(row, used)
    order = np.lexsort((activity.start, activity.stream))
    fits, stream, step = moves[order], activity.stream[order], row[order]
    begins = fits.copy()
    begins[1:] &= ~fits[:-1] | (stream[1:] != stream[:-1]) | (step[1:] != step[:-1])
    run = np.cumsum(begins) - 1
    size = np.bincount(run[fits], minlength=1) if fits.any() else np.zeros(1, np.int64)
    long = fits & (size[np.maximum(run, 0)] >= LEAST_RUN)
    return Runs(order[long], run[long], scope) if long.any() else None
