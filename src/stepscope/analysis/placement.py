"""Which ops ran on the host and which on a device."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.executors import of_pipeline
from stepscope.names.hosts import HostRole, classify_host_name
from stepscope.names.tf_graph import is_passive, parse_annotation
from stepscope.record import record
from stepscope.trace.codes import among, mapped, marked, used_codes
from stepscope.trace.forest import holding, inherit
from stepscope.trace.tables import I32, Bools, Kind
from stepscope.trace.trace import Trace

METADATA_OPS = frozenset(
    f"aten::{name}"
    for name in (
        *("view", "_unsafe_view", "reshape", "_reshape_alias", "as_strided", "expand", "expand_as", "slice", "select"),
        *("narrow", "squeeze", "unsqueeze", "transpose", "t", "permute", "detach", "detach_", "alias", "unbind"),
        *("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "resize_", "set_", "lift_fresh"),
        *("chunk", "split", "split_with_sizes", "flatten", "unflatten", "unfold", "diagonal", "movedim", "swapaxes"),
        *("to", "contiguous", "result_type", "is_nonzero", "item", "_local_scalar_dense", "numel", "size", "stride"),
        *("requires_grad_", "resolve_conj", "resolve_neg", "view_as", "view_as_real", "view_as_complex", "real"),
        *("imag", "_conj", "_neg_view", "swapdims", "moveaxis", "adjoint", "ravel", "broadcast_to", "mT", "mH"),
        *("broadcast_tensors", "tensor_split", "hsplit", "vsplit", "dsplit", "unsafe_chunk", "unsafe_split"),
        *("unsafe_split_with_sizes", "unflatten_dense_tensors", "squeeze_", "unsqueeze_", "transpose_", "t_"),
        *("as_strided_", "atleast_1d", "atleast_2d", "atleast_3d", "numpy_T", "matrix_H", "record_stream", "set_data"),
    )
) | {"detach", "detach_"}
"""Ops that only describe tensors or hand values over: they compute nothing anywhere."""

_METADATA_TYPES = frozenset(
    {
        *("_Arg", "_Retval", "Const", "ControlTrigger", "ExpandDims", "Identity", "IdentityN", "NoOp", "Placeholder"),
        *("PreventGradient", "Rank", "ReadVariableOp", "Reshape", "Shape", "ShapeN", "Size", "Squeeze", "StopGradient"),
        *("VarHandleOp", "VarIsInitializedOp", "Variable", "VariableV2"),
    }
)
"""The same of TensorFlow, by type."""


@record
class Placement:
    """Innermost ops that compute something, by where they ran."""

    host_ops: int
    device_ops: int
    host_ns: int
    """Time the host computed in ops placed there."""
    device_ns: int
    """Time the device worked on ops placed there (sum over its ops)."""

    @property
    def device_share_by_count(self) -> float | None:
        """Share of ops placed on a device; None where there is no op."""
        total = self.host_ops + self.device_ops
        return self.device_ops / total if total else None

    @property
    def device_share_by_time(self) -> float | None:
        """Share of the time of ops spent on a device; None where there is none."""
        total = self.host_ns + self.device_ns
        return self.device_ns / total if total else None


def place_ops(trace: Trace, start_ns: int, end_ns: int, captured: Bools) -> Placement | None:
    """Where the ops that begin in ``[start, end)`` ran, but for those with which tf.data prepares batches on the host,
    and those of which a call was ``captured`` into a graph: they ran nowhere.

    None where no host op was recorded, or where no launch lies inside an op and nothing connects the two.
    """
    if len(trace.nodes):
        return _place_nodes(trace, start_ns, end_ns)
    slices = trace.slices
    is_op = (slices.kind == Kind.HOST_OP) & (slices.start_ns >= start_ns) & (slices.start_ns < end_ns)
    if trace.info.framework == "TensorFlow":
        is_op &= mapped(slices.name, trace.strings, is_graph_op, np.bool_) & ~of_pipeline(trace)
    is_op &= ~holding(captured, slices.parent)
    if not is_op.any():
        return None
    launched = _nearest_op(trace, trace.launches.call)
    if len(trace.device_ops) and not (launched >= 0).any():
        return None
    on_device = marked(launched[launched >= 0], len(slices))
    has_inner = np.zeros(len(slices), np.bool_)
    ops = np.flatnonzero(slices.kind == Kind.HOST_OP)
    outer = _nearest_op(trace, slices.parent[ops])
    has_inner[outer[outer >= 0]] = True
    idle_names = np.array([code for code, text in enumerate(trace.strings) if text in METADATA_OPS], np.int32)
    on_host = is_op & ~on_device & ~has_inner & ~among(slices.name, idle_names)
    on_device &= is_op
    counted = among(launched, np.flatnonzero(on_device))
    return Placement(
        int(on_host.sum()),
        int(on_device.sum()),
        int(slices.dur_ns[on_host].sum()),
        int(slices.dur_ns[trace.launches.op[counted]].sum()),
    )


def is_graph_op(name: str) -> bool:
    """Whether a range of TensorFlow's is an op of a graph that computes something: most are its own functions."""
    op = parse_annotation(name, "")[1]
    if op is None or op in _METADATA_TYPES or is_passive(op):
        return False
    return classify_host_name(name, False) is not HostRole.INPUT


def compiled_only(trace: Trace) -> bool:
    """Whether all that computes on devices was compiled by XLA, so that ops are those of modules: nothing runs one op
    by itself. A profile of TensorFlow names the op of every kernel (``tf_op``), compiled or not."""
    compiled, kinds = trace.xla_ops, trace.slices.kind[trace.device_ops.slice]
    theirs = compiled.slice[(compiled.op >= 0) | (compiled.module >= 0)]
    return theirs.size > 0 and bool(among(trace.device_ops.slice[kinds == Kind.KERNEL], theirs).all())


def _place_nodes(trace: Trace, start_ns: int, end_ns: int) -> Placement:
    """As ``place_ops``, where nodes of a graph say what they were placed on."""
    slices, nodes = trace.slices, trace.nodes
    rows = nodes.slice[nodes.placement >= 0]
    rows = rows[(slices.start_ns[rows] >= start_ns) & (slices.start_ns[rows] < end_ns)]
    # Transfers, calls of functions and what waits for input compute nothing anywhere.
    used = used_codes(slices.name[rows], len(trace.strings)).tolist()
    passive = [code for code in used if classify_host_name(trace.strings[code], False) is HostRole.INPUT]
    rows = rows[(slices.kind[rows] != Kind.OTHER) & ~among(slices.name[rows], passive)]
    on_device = slices.kind[rows] == Kind.RUNTIME_CALL
    counted = among(trace.launches.call, rows[on_device])
    return Placement(
        int((~on_device).sum()),
        int(on_device.sum()),
        int(slices.dur_ns[rows[~on_device]].sum()),
        int(slices.dur_ns[trace.launches.op[counted]].sum()),
    )


def _nearest_op(trace: Trace, rows: I32) -> I32:
    """Per slice, itself or the innermost host op around it, -1 for none."""
    slices = trace.slices
    ops = np.where(slices.kind == Kind.HOST_OP, np.arange(len(slices), dtype=np.int32), np.int32(-1))
    nearest = np.append(inherit(ops, slices.parent), np.int32(-1))[rows]
    return np.asarray(nearest, np.int32)
