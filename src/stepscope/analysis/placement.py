"""Which ops ran on the host and which on a device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stepscope.trace.tables import Kind
from stepscope.trace.trace import Trace

METADATA_OPS = frozenset("""
    aten::view aten::_unsafe_view aten::reshape aten::_reshape_alias aten::as_strided aten::expand aten::expand_as
    aten::slice aten::select aten::narrow aten::squeeze aten::unsqueeze aten::transpose aten::t aten::permute
    aten::detach detach detach_ aten::detach_ aten::alias aten::empty aten::empty_like aten::empty_strided
    aten::resize_ aten::set_ aten::unbind aten::chunk aten::split aten::split_with_sizes aten::flatten aten::unflatten
    aten::result_type aten::to aten::contiguous aten::is_nonzero aten::numel aten::lift_fresh aten::requires_grad_
    aten::result_type aten::size aten::stride aten::unfold aten::diagonal aten::movedim aten::swapaxes aten::mT
    aten::new_empty aten::new_empty_strided aten::_local_scalar_dense aten::item aten::resolve_conj aten::resolve_neg
""".split())
"""Ops that only describe tensors or hand values over: they compute nothing anywhere."""


@dataclass(frozen=True, slots=True)
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


def place_ops(trace: Trace, start_ns: int, end_ns: int) -> Placement | None:
    """Where the ops that begin in ``[start, end)`` ran.

    None where no host op was recorded, or where no launch lies inside an op and nothing connects the two.
    """
    slices = trace.slices
    is_op = (slices.kind == Kind.HOST_OP) & (slices.start_ns >= start_ns) & (slices.start_ns < end_ns)
    if not is_op.any():
        return None
    launched = _nearest_op(trace, trace.launches.call)
    if len(trace.device_ops) and not (launched >= 0).any():
        return None
    on_device = np.zeros(len(slices), np.bool_)
    on_device[launched[launched >= 0]] = True
    has_inner = np.zeros(len(slices), np.bool_)
    ops = np.flatnonzero(slices.kind == Kind.HOST_OP)
    outer = _nearest_op(trace, slices.parent[ops])
    has_inner[outer[outer >= 0]] = True
    idle_names = np.array([code for code, text in enumerate(trace.strings) if text in METADATA_OPS], np.int32)
    on_host = is_op & ~on_device & ~has_inner & ~np.isin(slices.name, idle_names)
    on_device &= is_op
    counted = np.isin(launched, np.flatnonzero(on_device))
    return Placement(int(on_host.sum()), int(on_device.sum()), int(slices.dur_ns[on_host].sum()),
                     int(slices.dur_ns[trace.launches.op[counted]].sum()))


def _nearest_op(trace: Trace, rows: np.ndarray[tuple[int], np.dtype[np.int32]]) -> np.ndarray[
        tuple[int], np.dtype[np.int32]]:
    """Per slice, itself or the innermost host op around it, -1 for none."""
    found = rows.copy()
    while True:
        climbing = np.flatnonzero((found >= 0) & (trace.slices.kind[found] != Kind.HOST_OP))
        if climbing.size == 0:
            return found
        found[climbing] = trace.slices.parent[found[climbing]]
