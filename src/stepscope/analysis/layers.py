"""Cost per layer: the time of kernels (of ops, where there is no device) by the module or name scope behind them.

A layer is an ``nn.Module`` of PyTorch by its place among the modules that call it, a scope of JAX's ``op_name``, or a
name scope of a TensorFlow graph. Backward kernels belong to the layer whose op they differentiate: by the arrows and
sequence numbers of autograd, by ``transpose(...)`` of JAX and the gradient scopes of TensorFlow. What is computed again
in the backward pass (activation checkpointing) is launched by the module itself and counts as its forward.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stepscope.analysis.backward import forward_of
from stepscope.analysis.categories import Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.limits import LAYER_DEPTH
from stepscope.analysis.ops import Windows, host_ops, within
from stepscope.names.scopes import Scope, jax_scope, tensorflow_scope
from stepscope.record import record
from stepscope.trace.codes import used_codes
from stepscope.trace.forest import inherit, levels, on_host_threads
from stepscope.trace.tables import I32, I64, Bools, Kind, Rows
from stepscope.trace.trace import Trace


@record
class Layer:
    """One layer; times are sums over its kernels (or ops), so streams may overlap."""

    path: str
    """The scopes around it and its own, outermost first."""
    forward_ns: int
    """Time of its own: in no layer further inside."""
    backward_ns: int
    kernels: int
    """How many kernels (or ops) that is."""
    whole_ns: int
    """With all layers inside it."""

    @property
    def own_ns(self) -> int:
        """Forward and backward."""
        return self.forward_ns + self.backward_ns


@record
class Layers:
    """The layers on one device, dearest first: what a smaller one would save most of stands on top."""

    device: int | None
    """None where the time is that of the host's ops."""
    layers: tuple[Layer, ...]
    outside_ns: int
    """Time outside any layer: with it the layers' own times sum to ``total_ns``."""
    total_ns: int


@record
class Paths:
    """Per slice, the number of its layer in ``names`` (-1: none) and whether it is part of the backward pass."""

    layer: I32
    backward: Bools
    names: tuple[str, ...]


def layer_costs(trace: Trace, activities: list[DeviceActivity], windows: tuple[Windows, list[Windows]]) -> list[Layers]:
    """The layers of the used steps, per device; none where neither modules nor scopes were recorded.

    ``windows`` are the used steps on the host and on each device.
    """
    paths = layer_paths(trace)
    if paths is None:
        return []
    if not activities:
        ops = host_ops(trace)
        inside = within(windows[0], trace.slices.start_ns[ops.slice])
        return [_layers(None, paths, ops.slice[inside], ops.self_ns[inside])]
    made = []
    for activity, window in zip(activities, windows[1], strict=True):
        rows = np.flatnonzero(within(window, activity.start) & (activity.category == Category.COMPUTE.code))
        if rows.size:
            own, call = activity.slice[rows], activity.call[rows]
            told = np.where(paths.layer[own] >= 0, own, call).astype(np.intp)
            made.append(_layers(activity.device, paths, told, (activity.end - activity.start)[rows]))
    return made


def _layers(device: int | None, paths: Paths, slices: Rows, duration: I64) -> Layers:
    """``slices`` say which layer each duration belongs to; -1 for none."""
    layer = np.where(slices >= 0, paths.layer[slices], -1)
    backward = paths.backward[slices] & (layer >= 0)
    size = len(paths.names)
    sums = np.zeros((3, size + 1), np.int64)  # the last column takes what is outside
    np.add.at(sums[0], layer[~backward], duration[~backward])
    np.add.at(sums[1], layer[backward], duration[backward])
    np.add.at(sums[2], layer, 1)
    whole: dict[str, int] = {}
    own = {paths.names[k]: sums[:, k].tolist() for k in np.flatnonzero(sums[2, :size]).tolist()}
    for path, (forward, back, _) in own.items():
        pieces = path.split("/")
        for depth in range(1, len(pieces) + 1):
            outer = "/".join(pieces[:depth])
            whole[outer] = whole.get(outer, 0) + forward + back
    layers = [
        Layer(path, forward, back, kernels, ns)
        for path, ns in whole.items()
        for forward, back, kernels in (own.get(path, [0, 0, 0]),)
    ]
    layers.sort(key=lambda one: (-one.own_ns, -one.whole_ns, one.path))
    return Layers(device, tuple(layers), int(sums[:2, size].sum()), int(duration.sum()))


def layer_paths(trace: Trace) -> Paths | None:
    """Scopes that ops were compiled with, else the modules or graph nodes that launched them."""
    compiled = trace.xla_ops
    scoped = compiled.scope >= 0
    if scoped.any():
        of_framework = tensorflow_scope if trace.info.framework == "TensorFlow" else jax_scope
        return _by_text(trace, compiled.slice[scoped], compiled.scope[scoped], of_framework)
    ops = host_ops(trace)
    if (ops.node >= 0).any():
        paths = _by_text(trace, ops.slice, ops.node, tensorflow_scope)
        return paths if any(paths.names) else None
    return _by_module(trace)


def _by_text(trace: Trace, slices: Rows | I32, text: I32, scope: Callable[[str], Scope]) -> Paths:
    count = len(trace.strings)
    used = used_codes(text, count).tolist()
    told = {code: scope(trace.strings[code]) for code in used}
    number = {name: k for k, name in enumerate(dict.fromkeys(one.layer for one in told.values() if one.layer))}
    layer_of, back_of = np.full(count + 1, -1, np.int32), np.zeros(count + 1, np.int32)
    layer_of[used] = [number.get(told[code].layer, -1) for code in used]
    back_of[used] = [told[code].backward for code in used]
    layer = np.full(len(trace.slices), -1, np.int32)
    backward = np.full(len(trace.slices), -1, np.int32)
    layer[slices], backward[slices] = layer_of[text], back_of[text]
    parent = trace.slices.parent
    return Paths(inherit(layer, parent), inherit(backward, parent) == 1, tuple(number))


def _by_module(trace: Trace) -> Paths | None:
    slices = trace.slices
    is_module = (slices.kind == Kind.MODULE) & on_host_threads(trace)
    rows = np.flatnonzero(is_module)
    if not rows.size:
        return None
    own = np.full(len(slices), -1, np.int32)
    own[rows] = np.arange(rows.size, dtype=np.int32)
    innermost = inherit(own, slices.parent)
    outer = slices.parent[rows]
    parent = np.where(outer >= 0, innermost[outer], -1).astype(np.int32)
    layer, names = _chains(trace, slices.name[rows], parent)
    of_slice = np.where(innermost >= 0, layer[innermost], -1).astype(np.int32)
    forward = forward_of(trace)
    behind = np.where(forward >= 0, of_slice[forward], -1)
    linked = (of_slice < 0) & (behind >= 0)
    return Paths(np.where(linked, behind, of_slice).astype(np.int32), linked, names)


def _chains(trace: Trace, name: I32, parent: I32) -> tuple[I32, tuple[str, ...]]:
    """Number modules by the chain of names that leads to each, level by level."""
    layer = np.full(name.size, -1, np.int32)
    paths: list[str] = []
    level = levels(parent)
    order = np.argsort(level, kind="stable")
    for rows in np.split(order, np.cumsum(np.bincount(level))[:-1]):
        above = np.where(parent[rows] >= 0, layer[parent[rows]], -1).astype(np.int64)
        if level[rows[0]] >= LAYER_DEPTH:
            layer[rows] = above
            continue
        _, first, dense = np.unique(above * len(trace.strings) + name[rows], return_index=True, return_inverse=True)
        layer[rows] = dense + len(paths)
        for at in first.tolist():
            own = trace.strings[name[rows[at]]].removeprefix("nn.Module: ")
            paths.append(f"{paths[above[at]]}/{own}" if above[at] >= 0 else own)
    return layer, tuple(paths)
