"""Kernels by name: how much time each takes, at what precision, and whether it uses tensor cores."""

from __future__ import annotations

import math
import re

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.device import DeviceActivity
from stepscope.names.kernels import KernelTraits, Tri, describe, op_precision
from stepscope.record import record
from stepscope.trace.codes import among, mapped
from stepscope.trace.forest import inherit
from stepscope.trace.sparse import PerSlice
from stepscope.trace.tables import I32, I64, NULL, Kind, Rows
from stepscope.trace.trace import Trace

LOW_PRECISION = frozenset({"fp16", "bf16", "fp8", "fp4"})
"""Precisions of 16 bits and fewer."""


@record
class KernelGroup:
    """Launches of one kernel by ops of one precision: what its name, and where that hides it its op, tells."""

    name: str
    traits: KernelTraits
    precision: str | None
    precision_reason: str


@record
class LaunchShape:
    """How a kernel was launched, of its longest launch, as recorded; None where it was not."""

    grid: tuple[int, ...] | None
    """Blocks along each axis."""
    block: tuple[int, ...] | None
    """Threads of a block along each axis."""
    registers: int | None
    """Per thread."""
    shared_memory: int | None
    """Bytes per block."""
    occupancy_pct: float | None
    """Occupancy the profiler estimated. None where it says 0, which no kernel that ran had: Kineto leaves out the
    shared memory a kernel asks for beyond the default (libkineto, DeviceProperties.cpp)."""

    @property
    def blocks(self) -> int | None:
        """Blocks of the grid."""
        return math.prod(self.grid) if self.grid else None


@record
class KernelUse:
    """All launches of one kernel on one device in the used steps."""

    name: str
    device: int
    traits: KernelTraits
    precision: str | None
    precision_reason: str
    count: int
    total_ns: int
    min_ns: int
    max_ns: int
    op: str | None
    """The innermost host op around its longest launch, None where none was recorded."""
    shape: LaunchShape


@record
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
    precision_of_op = op_precisions(trace)
    op_around = _host_ops(trace)
    uses: list[KernelUse] = []
    for activity, windows in zip(activities, used, strict=True):
        rows = _kernels_in(activity, windows)
        uses += _uses(trace, activity, rows, precision_of_op, op_around)
    return KernelTable(tuple(sorted(uses, key=lambda use: (-use.total_ns, use.name))))


def _kernels_in(activity: DeviceActivity, windows: tuple[I64, I64]) -> Rows:
    """The ops of a device that are compute kernels and start in windows ``(starts, ends)``."""
    starts, ends = windows
    if not len(starts):
        return np.empty(0, np.intp)
    at = np.searchsorted(starts, activity.start, "right") - 1
    inside = (at >= 0) & (activity.start < ends[np.maximum(at, 0)])
    return np.flatnonzero(inside & (activity.category == Category.COMPUTE.code))


def kernel_groups(
    trace: Trace, activity: DeviceActivity, rows: Rows, precision_of_op: I32
) -> tuple[list[KernelGroup], Rows]:
    """The kinds of kernels among some ops of a device, and which of them each op is.

    They are told apart by name and by the precision of the op behind the launch: a name may hide what its op reveals.
    """
    call = activity.call[rows]
    own = precision_of_op[activity.slice[rows]]
    op = np.where(own >= 0, own, np.where(call >= 0, precision_of_op[call], -1))
    key = trace.slices.name[activity.slice[rows]].astype(np.int64) * 64 + (op + 1)
    groups, dense = np.unique(key, return_inverse=True)
    return [_group(trace.strings[code // 64], code % 64) for code in groups.tolist()], np.asarray(dense, np.intp)


def _group(name: str, op: int) -> KernelGroup:
    traits = describe(name)
    return KernelGroup(name, traits, *_precision(traits, _PRECISIONS[op - 1] if op else None))


def _uses(trace: Trace, activity: DeviceActivity, rows: Rows, precision_of_op: I32, op_around: I32) -> list[KernelUse]:
    groups, dense = kernel_groups(trace, activity, rows, precision_of_op)
    if not groups:
        return []
    took = activity.end[rows] - activity.start[rows]
    # By group and duration, so that a group's first and last are its shortest and longest launch.
    order = np.lexsort((took, dense))
    ends = np.cumsum(np.bincount(dense))
    firsts = np.concatenate(([0], ends[:-1]))
    totals = np.add.reduceat(took[order], firsts)
    uses = []
    for group, first, end, total in zip(groups, firsts.tolist(), ends.tolist(), totals.tolist(), strict=True):
        longest = int(rows[order[end - 1]])
        uses.append(
            KernelUse(
                name=group.name,
                device=activity.device,
                traits=group.traits,
                precision=group.precision,
                precision_reason=group.precision_reason,
                count=end - first,
                total_ns=total,
                min_ns=int(took[order[first]]),
                max_ns=int(took[order[end - 1]]),
                op=_op_name(trace, int(activity.call[longest]), op_around),
                shape=_shape(trace, int(activity.row[longest])),
            )
        )
    return uses


def _host_ops(trace: Trace) -> I32:
    """Per slice, the innermost host op around it."""
    own = np.full(len(trace.slices), -1, np.int32)
    rows = np.flatnonzero(trace.slices.kind == Kind.HOST_OP)
    own[rows] = rows
    return inherit(own, trace.slices.parent)


def _op_name(trace: Trace, call: int, op_around: I32) -> str | None:
    op = int(op_around[call]) if call >= 0 else -1
    return trace.name_of(op) if op >= 0 else None


def _shape(trace: Trace, row: int) -> LaunchShape:
    ops = trace.device_ops
    registers, shared = (int(v) if v != NULL else None for v in (ops.registers[row], ops.shared_memory[row]))
    occupancy = float(ops.occupancy_pct[row])
    return LaunchShape(
        grid=_sizes(trace, int(ops.grid[row])),
        block=_sizes(trace, int(ops.block[row])),
        registers=registers,
        shared_memory=shared,
        occupancy_pct=occupancy if occupancy > 0 else None,
    )


def _sizes(trace: Trace, code: int) -> tuple[int, ...] | None:
    digits = re.findall(r"\d{1,10}", trace.strings[code][:200]) if code >= 0 else []
    return tuple(int(size) for size in digits) or None


def _precision(traits: KernelTraits, of_op: str | None) -> tuple[str | None, str]:
    if traits.precision is not None:
        return traits.precision, traits.precision_reason
    if of_op is not None:
        return of_op, "the input types of the op that launched it"
    return None, "neither the kernel's name nor recorded input types say"


_PRECISIONS = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8")


def op_precisions(trace: Trace) -> I32:
    """Per slice, the index in ``_PRECISIONS`` of the innermost enclosing op with recorded input types, else -1."""
    own = np.full(len(trace.slices), -1, np.int32)
    ops = trace.host_ops
    own[ops.slice] = mapped(ops.input_types, trace.strings, _precision_number, np.int32) - 1
    own[~among(trace.slices.kind, (Kind.HOST_OP, Kind.ANNOTATION))] = -1
    return inherit(own, trace.slices.parent)


def with_formats(precisions: I32, place: PerSlice[np.int32], formats: list[str | None]) -> I32:
    """``op_precisions`` with the number formats of instructions for the slices that execute them (``place``)."""
    numbers = [_PRECISIONS.index(name) if name in _PRECISIONS else -1 for name in formats]
    told, slices, stated = np.array([*numbers, -1], np.int32)[place.values[:-1]], place.slices, precisions.copy()
    stated[slices[told >= 0]] = told[told >= 0]
    return stated


def _precision_number(input_types: str) -> int:
    """One more than the place in ``_PRECISIONS``, 0 for none."""
    precision = op_precision(input_types)
    return _PRECISIONS.index(precision) + 1 if precision in _PRECISIONS else 0


@record
class PrecisionShares:
    """Shares over the kernels of the used steps; None where no kernel's precision is known."""

    low_by_count: float | None
    low_by_time: float | None
    known_by_time: float | None
    tensor_core_by_time: dict[str, float]
    """Share of kernel time that uses tensor cores: yes, no, unknown."""
    eligible_unused_ns: int
    """Time in kernels whose operation could use tensor cores and that certainly do not."""
    eligible_unused: tuple[KernelUse, ...]


def precision_of(table: KernelTable) -> PrecisionShares:
    """What precision the kernels ran at and whether they used tensor cores."""
    known = [use for use in table.uses if use.precision is not None]
    low = [use for use in known if use.precision in LOW_PRECISION]
    unused = tuple(use for use in table.uses if use.traits.eligible and use.traits.tensor_core is Tri.NO)
    total = table.total_ns
    return PrecisionShares(
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
