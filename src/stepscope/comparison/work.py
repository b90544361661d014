"""What a run's steps are made of: its device ops (without a device, its host ops) by name, op, shapes and layer."""

from __future__ import annotations

from typing import Literal

import numpy as np

from stepscope.analysis.facts import Facts
from stepscope.analysis.layers import layer_paths
from stepscope.analysis.ops import FrameworkOps, compiled_ops, host_ops, within
from stepscope.record import record
from stepscope.trace.tables import I32, I64, Rows

Label = Literal["name", "op", "dims", "layer"]


@record
class Item:
    """Work that shares labels: its time in each used step, mean over the devices; None where a label is not known."""

    labels: tuple[str | None, ...]
    per_step_ns: I64
    count: int
    """Over all used steps and devices."""


@record
class StepWork:
    """One value per device op (host op) of the used steps."""

    steps: int
    devices: int
    step: I32
    """Number of the step among the used."""
    ns: I64
    codes: dict[Label, I32]
    """Place of each label in ``names``, -1 for none."""
    names: dict[Label, tuple[str, ...]]

    def by(self, *labels: Label) -> list[Item]:
        """Its items by some labels, dearest first."""
        if not self.step.size:
            return []
        keys, item = np.unique(np.stack([self.codes[label] for label in labels]), axis=1, return_inverse=True)
        item = item.reshape(-1)
        sums = np.zeros((keys.shape[1], self.steps), np.int64)
        np.add.at(sums, (item, self.step), self.ns)
        counts = np.bincount(item, minlength=keys.shape[1])
        made = [
            Item(tuple(self._name(label, code) for label, code in zip(labels, key, strict=True)), row, count)
            for key, row, count in zip(keys.T.tolist(), sums // self.devices, counts.tolist(), strict=True)
        ]
        return sorted(made, key=lambda one: (-int(one.per_step_ns.sum()), str(one.labels)))

    def _name(self, label: Label, code: int) -> str | None:
        return self.names[label][code] if code >= 0 else None


def step_work(facts: Facts) -> StepWork:
    """The work of the used steps of all devices that are used."""
    ops = host_ops(facts.trace)
    parts = [_device_rows(facts, k) for k, (each, _) in enumerate(facts.devices) if each.device not in facts.unused]
    if not facts.activities:
        start = facts.markers.start[list(facts.used)]
        starts = facts.trace.slices.start_ns[ops.slice]
        rows = np.flatnonzero(within((start, start + facts.host_step_ns[list(facts.used)]), starts))
        step = np.searchsorted(start, starts[rows], "right") - 1
        parts = [(ops.slice[rows].astype(np.intp), ops.slice[rows].astype(np.intp), step, ops.self_ns[rows])]
    own, by, step, ns = (
        np.concatenate([np.empty(0, np.int64), *(part[k] for part in parts)]).astype(np.int64) for k in range(4)
    )
    codes, names = _labels(facts, ops, own, by)
    return StepWork(len(facts.used), max(len(parts), 1), step.astype(np.int32), ns, codes, names)


def _device_rows(facts: Facts, device: int) -> tuple[Rows, Rows, Rows, I64]:
    """Slice, launching call (-1), step and duration of each op in the used windows of a device."""
    activity, account = facts.devices[device]
    starts, ends = facts.used_windows(account)
    chosen = np.flatnonzero(within((starts, ends), activity.start))
    step = np.searchsorted(starts, activity.start[chosen], "right") - 1
    duration = (activity.end - activity.start)[chosen]
    return activity.slice[chosen].astype(np.intp), activity.call[chosen].astype(np.intp), step, duration


def _labels(
    facts: Facts, ops: FrameworkOps, own: Rows, by: Rows
) -> tuple[dict[Label, I32], dict[Label, tuple[str, ...]]]:
    trace = facts.trace
    none = np.full(own.size, -1, np.int32)
    inner = np.where(by >= 0, ops.innermost[by], -1) if own.size and ops.slice.size else none
    kind = np.where(inner >= 0, ops.kind[inner], -1) if ops.slice.size else none
    dims = _dims(facts, ops, inner)
    instructions, told = compiled_ops(trace, own)
    kind = kind.astype(np.int32)
    kind[instructions] = told.kind + np.int32(len(ops.kinds))
    paths = layer_paths(trace)
    layer = none
    if paths is not None:
        layer = np.where(by >= 0, paths.layer[by], -1)
        layer = np.where(paths.layer[own] >= 0, paths.layer[own], layer)
    codes: dict[Label, I32] = {
        "name": trace.slices.name[own].astype(np.int32),
        "op": kind,
        "dims": dims.astype(np.int32),
        "layer": layer.astype(np.int32),
    }
    strings = tuple(trace.strings)
    return codes, {
        "name": strings,
        "op": (*ops.kinds, *told.kinds),
        "dims": strings,
        "layer": paths.names if paths else (),
    }


def _dims(facts: Facts, ops: FrameworkOps, op: I32) -> I32:
    """Code of the shapes that an op took, by its number; -1 where they were not recorded."""
    recorded = facts.trace.host_ops
    of_slice = np.full(len(facts.trace.slices), -1, np.int32)
    of_slice[recorded.slice] = recorded.input_dims
    return (
        np.where(op >= 0, of_slice[ops.slice[op]], np.int32(-1)) if ops.slice.size else np.full(op.size, -1, np.int32)
    )
