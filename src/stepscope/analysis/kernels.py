"""Kernels by name: how much time each takes, at what precision, and whether it uses tensor cores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.device import DeviceActivity
from stepscope.names.kernels import KernelTraits, Tri, describe, op_precision
from stepscope.trace.codes import mapped
from stepscope.trace.forest import inherit
from stepscope.trace.tables import I32, I64, Kind
from stepscope.trace.trace import Trace

LOW_PRECISION = frozenset({"fp16", "bf16", "fp8", "fp4"})
"""Precisions of 16 bits and fewer."""


@dataclass(frozen=True, slots=True)
class KernelUse:
    """All launches of one kernel on one device in the used steps."""

    name: str
    device: int
    traits: KernelTraits
    precision: str | None
    precision_reason: str
    count: int
    total_ns: int


@dataclass(frozen=True, slots=True)
class KernelTable:
    """The kernels of the used steps, longest first; times are sums over launches, so streams may overlap."""

    uses: tuple[KernelUse, ...]

    @property
    def total_ns(self) -> int:
        """Time of all kernels."""
        return sum(use.total_ns for use in self.uses)

    @property
    def count(self) -> int:
        """Number of kernel launches."""
        return sum(use.count for use in self.uses)


def kernel_table(trace: Trace, activities: list[DeviceActivity], used: list[tuple[I64, I64]]) -> KernelTable:
    """Kernels that start in the used windows ``(starts, ends)`` of each device."""
    precision_of_op = _op_precisions(trace)
    uses: list[KernelUse] = []
    for activity, (starts, ends) in zip(activities, used, strict=True):
        at = np.searchsorted(starts, activity.start, "right") - 1
        inside = (
            (at >= 0) & (activity.start < ends[np.maximum(at, 0)]) if len(starts) else np.zeros(len(activity), bool)
        )
        rows = np.flatnonzero(inside & (activity.category == Category.COMPUTE.code))
        uses += _uses(trace, activity, rows.astype(np.int64), precision_of_op)
    return KernelTable(tuple(sorted(uses, key=lambda use: (-use.total_ns, use.name))))


def _uses(trace: Trace, activity: DeviceActivity, rows: I64, precision_of_op: I32) -> list[KernelUse]:
    """Group by name and by the precision of the op behind the launch: a name may hide what its op reveals."""
    if rows.size == 0:
        return []
    names = trace.slices.name[activity.slice[rows]]
    call = activity.call[rows]
    op = np.where(call >= 0, precision_of_op[call], -1)
    key = names.astype(np.int64) * 64 + (op + 1)
    groups, dense = np.unique(key, return_inverse=True)
    count = np.bincount(dense)
    total = np.zeros(groups.size, np.int64)
    np.add.at(total, dense, activity.end[rows] - activity.start[rows])
    found = []
    for group, n, ns in zip(groups.tolist(), count.tolist(), total.tolist(), strict=True):
        name = trace.strings[group // 64]
        traits = describe(name)
        precision, reason = _precision(traits, _PRECISIONS[group % 64 - 1] if group % 64 else None)
        found.append(KernelUse(name, activity.device, traits, precision, reason, int(n), int(ns)))
    return found


def _precision(traits: KernelTraits, of_op: str | None) -> tuple[str | None, str]:
    if traits.precision is not None:
        return traits.precision, traits.precision_reason
    if of_op is not None:
        return of_op, "the input types of the op that launched it"
    return None, "neither the kernel's name nor recorded input types say"


_PRECISIONS = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8")


def _op_precisions(trace: Trace) -> I32:
    """Per slice, the index in ``_PRECISIONS`` of the innermost enclosing op with recorded input types, else -1."""
    own = np.full(len(trace.slices), -1, np.int32)
    ops = trace.host_ops
    own[ops.slice] = mapped(ops.input_types, trace.strings, _precision_number, np.int32) - 1
    own[~np.isin(trace.slices.kind, (Kind.HOST_OP, Kind.ANNOTATION))] = -1
    return inherit(own, trace.slices.parent)


def _precision_number(input_types: str) -> int:
    """One more than the place in ``_PRECISIONS``, 0 for none."""
    precision = op_precision(input_types)
    return _PRECISIONS.index(precision) + 1 if precision in _PRECISIONS else 0


@dataclass(frozen=True, slots=True)
class Precision:
    """Shares over the kernels of the used steps; None where no kernel's precision is known."""

    low_by_count: float | None
    low_by_time: float | None
    known_by_time: float | None
    tensor_core_by_time: dict[str, float]
    """Share of kernel time that uses tensor cores: yes, no, unknown."""
    eligible_unused_ns: int
    """Time in kernels whose operation could use tensor cores and that certainly do not."""
    eligible_unused: tuple[KernelUse, ...]


def precision_of(table: KernelTable) -> Precision:
    """What precision the kernels ran at and whether they used tensor cores."""
    known = [use for use in table.uses if use.precision is not None]
    low = [use for use in known if use.precision in LOW_PRECISION]
    unused = tuple(use for use in table.uses if use.traits.eligible and use.traits.tensor_core is Tri.NO)
    total = table.total_ns
    return Precision(
        low_by_count=_share(sum(u.count for u in low), sum(u.count for u in known)),
        low_by_time=_share(sum(u.total_ns for u in low), sum(u.total_ns for u in known)),
        known_by_time=_share(sum(u.total_ns for u in known), total),
        tensor_core_by_time={
            str(answer): sum(u.total_ns for u in table.uses if u.traits.tensor_core is answer) / total for answer in Tri
        }
        if total
        else {},
        eligible_unused_ns=sum(use.total_ns for use in unused),
        eligible_unused=unused,
    )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
