"""Where ops and kernels stand under the device's roofline, and model FLOPs utilisation.

A roofline bounds work by the larger of its operations over the peak rate and its bytes over the memory's bandwidth
(Williams, Waterman, Patterson 2009). Bytes are the least an op can move, so its true traffic is as much or more.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.costs.attribute import KINDS, OpCosts, op_costs, owners
from stepscope.analysis.costs.call import MATRIX_KINDS, CostKind
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.hlo.programs import ProgramPlace, TracePrograms
from stepscope.analysis.kernels import KernelGroup, kernel_groups, op_precisions, with_formats
from stepscope.analysis.limits import ROOF_NEAR_SHARE, UTILISATION_COUNTED_SHARE
from stepscope.analysis.peaks import best_flops, device_peaks, on_matrix_units, peak_flops
from stepscope.hardware.peaks import DevicePeaks
from stepscope.names.kernels import Family, Tri
from stepscope.record import record
from stepscope.trace.codes import among, distinct, grouped, mapped
from stepscope.trace.tables import I32, I64, NULL, Bools, Rows
from stepscope.trace.trace import Trace

Bound = Literal["compute", "memory", "neither"]
_MATRIX = [KINDS.index(kind) for kind in MATRIX_KINDS]
_COMPILED = KINDS.index(CostKind.COMPILED)

ABOVE_COMPUTE = "above the peak rate: the formula or the peak does not fit (Winograd and FFT compute less)"
ABOVE_MEMORY = "more than memory delivers: caches served it, or the formula or the peak does not fit"


def per_second(amount: int | None, ns: int) -> float | None:
    """A rate; None where the amount is not known, or no time went by."""
    return amount / ns * 1e9 if amount is not None and ns else None


@record
class Roof:
    """Some work and the device's roofs over it. Rates are per second, shares of the peaks; None where not known."""

    count: int
    ns: int
    """Time of the device ops, summed."""
    flops: int | None
    """Operations of all of it."""
    bytes: int | None
    """Bytes it has to move at least."""
    precision: str | None
    matrix_units: bool
    """Whether the peak is that of the tensor or matrix units."""
    peak_flops: int | None
    bandwidth: int | None

    @property
    def flops_per_s(self) -> float | None:
        """Operations per second."""
        return per_second(self.flops, self.ns)

    @property
    def bytes_per_s(self) -> float | None:
        """Bytes per second."""
        return per_second(self.bytes, self.ns)

    @property
    def flops_share(self) -> float | None:
        """Operations per second as a share of the peak."""
        return 0.0 if self.flops == 0 else _share(self.flops_per_s, self.peak_flops)

    @property
    def bandwidth_share(self) -> float | None:
        """Bytes per second as a share of the memory's bandwidth."""
        return _share(self.bytes_per_s, self.bandwidth)

    @property
    def intensity(self) -> float | None:
        """Operations per byte."""
        return self.flops / self.bytes if self.flops is not None and self.bytes else None

    @property
    def ridge(self) -> float | None:
        """Operations per byte from which on the peak rate is the limit."""
        return self.peak_flops / self.bandwidth if self.peak_flops and self.bandwidth else None

    @property
    def share(self) -> float | None:
        """How close the work comes to the lower of its roofs; None where neither is known."""
        known = [share for share in (self.flops_share, self.bandwidth_share) if share is not None]
        return max(known, default=None)

    @property
    def bound(self) -> Bound | None:
        """The roof the work comes near to; ``neither`` where it is far from both, and so is bounded by overhead."""
        compute, memory = self.flops_share, self.bandwidth_share
        if max(compute or 0.0, memory or 0.0) >= ROOF_NEAR_SHARE:
            return "compute" if (compute or 0.0) >= (memory or 0.0) else "memory"
        return "neither" if compute is not None and memory is not None else None

    @property
    def doubt(self) -> str | None:
        """Why a share above one cannot be taken as it stands."""
        if (self.flops_share or 0.0) > 1:
            return ABOVE_COMPUTE
        return ABOVE_MEMORY if (self.bandwidth_share or 0.0) > 1 else None


def _share(rate: float | None, peak: int | None) -> float | None:
    return rate / peak if rate is not None and peak else None


@record
class OpRoof:
    """Calls of one op with the same shapes and scalars, on one device in the used steps."""

    device: int
    name: str
    dims: str | None
    kind: CostKind
    kernel: str
    """Its main kernel."""
    roof: Roof
    place: ProgramPlace | None = None
    """The instruction it is, where its program is known."""


@record
class KernelRoof:
    """Launches of one kernel that did all of its op's work, on one device in the used steps."""

    device: int
    name: str
    roof: Roof


@record
class Utilisation:
    """Model FLOPs utilisation of a device: the time its matrix products take at the peak of their format, over the time
    of the steps. What was computed counts, activations computed again among it.
    """

    device: int
    flops: int
    """Operations of matrix products in the used steps that were counted."""
    counted_share: float
    """Share of kernel time whose operations were counted, or that certainly has no matrix products."""
    share: float | None
    reason: str | None
    """Why there is no share."""


@record
class Work:
    """Kernels of one device and the ops they work for.

    ``rows`` are ops of the activity; ``group``, ``owner`` and ``period`` have a value per row.
    """

    trace: Trace
    activity: DeviceActivity
    costs: OpCosts
    rows: Rows
    groups: list[KernelGroup]
    group: Rows
    owner: I32
    """Slice of the op whose cost the row shares, -1 for none."""
    period: Rows
    """Which stretch of time between bounds (a step, what lies before, between and after) the row starts in."""
    used: Bools
    """Which rows start in the used steps."""
    used_ns: int
    """Duration of the used steps."""
    others: Rows
    """Ops of the activity that compute nothing, in the used steps."""

    @property
    def ns(self) -> I64:
        """Duration of each row."""
        return self.activity.end[self.rows] - self.activity.start[self.rows]

    @property
    def eligible(self) -> Bools:
        """Which rows compute matrix products by their kernel's name."""
        return np.array([group.traits.eligible for group in self.groups], np.bool_)[self.group]

    def rows_of(self, op: OpRoof) -> Rows:
        """The rows, in all steps, that work for calls of an op with the same shapes."""
        mine = np.flatnonzero(self.owner >= 0)
        owner, strings = self.owner[mine], self.trace.strings
        if op.place is not None:
            return np.asarray(mine[self.costs.place[owner] == self.costs.compiled.index(op.place)], np.intp)
        named = mapped(self.trace.slices.name[owner], strings, lambda text: text == op.name, np.bool_)
        shaped = mapped(self.costs.dims[owner], strings, lambda text: text == op.dims, np.bool_)
        return np.asarray(mine[named & shaped], np.intp)

    def of_used_steps(self) -> Work:
        """The work of the used steps alone."""
        kept = np.flatnonzero(self.used)
        parts = self.rows[kept], self.group[kept], self.owner[kept], self.period[kept], self.used[kept]
        rows, group, owner, period, used = parts
        return replace(self, rows=rows, group=group, owner=owner, period=period, used=used)


def device_work(
    trace: Trace, activities: list[DeviceActivity], periods: list[tuple[I64, list[int]]], programs: TracePrograms
) -> list[Work]:
    """All work of each device; ``periods`` are, per device, the bounds of its stretches of time and the used ones."""
    costs = op_costs(trace, programs)
    precisions = with_formats(op_precisions(trace), costs.place, [place.format for place in costs.compiled])
    works = []
    for activity, (bounds, chosen) in zip(activities, periods, strict=True):
        rows = np.flatnonzero(activity.category == Category.COMPUTE.code)
        groups, group = kernel_groups(trace, activity, rows, precisions)
        began = np.asarray(np.searchsorted(bounds, activity.start, "right") - 1, np.intp)
        period = began[rows]
        others = among(began, chosen) & (activity.category != Category.COMPUTE.code)
        works.append(
            Work(
                trace=trace,
                activity=activity,
                costs=costs,
                rows=rows,
                groups=groups,
                group=group,
                owner=owners(trace, costs, activity)[rows],
                period=period,
                used=among(period, chosen),
                used_ns=int(np.diff(bounds)[chosen].sum()),
                others=np.flatnonzero(others),
            )
        )
    return works


def op_roofs(everything: Work) -> list[OpRoof]:
    """The ops with a cost in the used steps, longest first."""
    work = everything.of_used_steps()
    of, lead, ns = _by_owner(work)
    if of.size == 0:
        return []
    costs = work.costs
    compiled = costs.place[of]
    name = np.where(compiled >= 0, -1, work.trace.slices.name[of]).astype(np.int64)
    key = (name, costs.dims[of], compiled, costs.flops[of], costs.bytes[of], work.group[lead])
    first, at = grouped(*key)
    kinds = zip(*(column[first].tolist() for column in key), strict=True)
    count, total = np.bincount(at), np.bincount(at, ns).astype(np.int64)
    peaks = device_peaks(work.trace, work.activity.device)
    roofs = []
    for row, calls, took, example in zip(kinds, count.tolist(), total.tolist(), of[first].tolist(), strict=True):
        group, place = work.groups[row[5]], costs.place_of(example)
        dims = work.trace.strings[row[1]] if row[1] >= 0 else None
        roofs.append(
            OpRoof(
                device=work.activity.device,
                name=work.trace.strings[row[0]] if place is None else place.one.name,
                dims=dims if place is None else place.operands,
                kind=KINDS[costs.kind[example]] if place is None else place.cost.kind,
                kernel=group.name,
                roof=_roof(calls, took, (_times(row[3], calls), _times(row[4], calls)), group, (peaks, place)),
                place=place,
            )
        )
    return sorted(roofs, key=lambda one: (-one.roof.ns, one.name))


def _by_owner(work: Work) -> tuple[Rows, Rows, I64]:
    """The ops with a cost; per op the row of its main kernel (the longest, one of matrix products before others) and
    the time of all its kernels.
    """
    mine = np.flatnonzero(work.owner >= 0)
    if mine.size == 0:
        return mine, mine, np.empty(0, np.int64)
    of, dense = np.unique(work.owner[mine], return_inverse=True)
    ns = work.ns[mine]
    order = np.lexsort((ns, work.eligible[mine], dense))
    lead = mine[order[np.cumsum(np.bincount(dense)) - 1]]
    return np.asarray(of, np.intp), lead, np.bincount(dense, ns).astype(np.int64)


def _times(one: int, calls: int) -> int | None:
    return None if one == NULL else one * calls


def _roof(
    count: int, ns: int, cost: tuple[int | None, int | None], group: KernelGroup,
    roofs: tuple[DevicePeaks | None, ProgramPlace | None],
) -> Roof:  # fmt: skip
    (flops, moved), (peaks, place) = cost, roofs
    bandwidth = peaks.memory_bandwidth if peaks else None
    matrix = _matrix_units(group, place)
    return Roof(
        count=count,
        ns=ns,
        flops=flops,
        bytes=moved,
        precision=group.precision,
        matrix_units=matrix,
        peak_flops=peak_flops(peaks, group, matrix=matrix) if peaks else None,
        bandwidth=bandwidth.value if bandwidth else None,
    )


def _matrix_units(group: KernelGroup, place: ProgramPlace | None) -> bool:
    """Whether a kernel is held against the matrix units: what its program computes tells more than its name."""
    if place is None:
        return on_matrix_units(group)
    return place.is_product and group.traits.tensor_core is not Tri.NO


def row_peaks(work: Work, rows: Rows) -> I64:
    """Per row that shares an op's cost the peak rate for it, NULL where that is not known."""
    peaks = device_peaks(work.trace, work.activity.device)
    pairs = work.group[rows], work.costs.place[work.owner[rows]]
    first, at = grouped(*pairs)
    rates = [NULL]
    for number, place in zip(*(column[first].tolist() for column in pairs), strict=True):
        group, where = work.groups[number], work.costs.compiled[place] if place >= 0 else None
        peak = peak_flops(peaks, group, matrix=_matrix_units(group, where)) if peaks else None
        rates.append(NULL if peak is None else peak)
    return np.array(rates, np.int64)[at + 1]


def kernel_roofs(everything: Work) -> list[KernelRoof]:
    """Kernels that did all of their op's work alone, longest first: an op's cost is not split among several."""
    work = everything.of_used_steps()
    mine = np.flatnonzero(work.owner >= 0)
    _, dense, count = np.unique(work.owner[mine], return_inverse=True, return_counts=True)
    alone = mine[count[dense] == 1] if mine.size else mine
    flops, moved = work.costs.flops[work.owner[alone]], work.costs.bytes[work.owner[alone]]
    peaks = device_peaks(work.trace, work.activity.device)
    roofs = []
    for number in distinct(work.group[alone]):
        rows = work.group[alone] == number
        known = [None if (part[rows] == NULL).any() else int(part[rows].sum()) for part in (flops, moved)]
        group = work.groups[number]
        place = work.costs.place_of(int(work.owner[alone[rows][0]]))
        roof = _roof(int(rows.sum()), int(work.ns[alone[rows]].sum()), (known[0], known[1]), group, (peaks, place))
        roofs.append(KernelRoof(work.activity.device, group.name, roof))
    return sorted(roofs, key=lambda one: (-one.roof.ns, one.name))


def utilisation(everything: Work) -> Utilisation | None:
    """Model FLOPs utilisation of a device; None where it ran no kernels in the used steps."""
    work = everything.of_used_steps()
    total = int(work.ns.sum())
    if not total:
        return None
    peaks = device_peaks(work.trace, work.activity.device)
    rates = [best_flops(peaks, group.precision) if peaks and group.precision else None for group in work.groups]
    of, lead, _ = _by_owner(work)
    counted = _computes_products(work, of) & (work.costs.flops[of] != NULL)
    flops = work.costs.flops[of[counted]]
    rate = np.array([one or 0 for one in rates], np.float64)[work.group[lead[counted]]]
    share_counted = 1 - _uncounted_ns(work, of[counted]) / total
    ideal = float((flops[rate > 0] / rate[rate > 0]).sum()) * 1e9
    reason = _why_not(work, peaks, share_counted, known=bool((rate > 0).all()))
    share = None if reason else ideal / work.used_ns
    return Utilisation(work.activity.device, int(flops.sum()), share_counted, share, reason)


def _computes_products(work: Work, slices: Rows) -> Bools:
    """Which ops with a cost compute matrix products: what XLA's profiler says of an op does not tell them apart."""
    kind = work.costs.kind[slices]
    products = np.array([*(place.is_product for place in work.costs.compiled), True], np.bool_)
    return np.asarray(among(kind, _MATRIX) | ((kind == _COMPILED) & products[work.costs.place[slices]]))


def _uncounted_ns(work: Work, counted: Rows) -> int:
    """Time of kernels that may compute matrix products and belong to no op whose products were counted."""
    may = np.array([g.traits.eligible or g.traits.family is Family.UNKNOWN for g in work.groups], np.bool_)
    known = np.array([*(place.cost.flops is not None for place in work.costs.compiled), False], np.bool_)
    settled = among(work.owner, counted) | ((work.owner >= 0) & known[work.costs.place[work.owner]])
    return int(work.ns[may[work.group] & ~settled].sum())


def _why_not(work: Work, peaks: DevicePeaks | None, counted: float, *, known: bool) -> str | None:
    if counted < UTILISATION_COUNTED_SHARE:
        return f"the operations of too much kernel time are not known{_what_tells_costs(work.trace)}"
    if peaks is None:
        return "the device's peaks are not known"
    return None if known else "the number format of some matrix products, or its peak, is not known"


def _what_tells_costs(trace: Trace) -> str:
    """What to record so that more operations are known, where that is possible."""
    if trace.info.framework != "PyTorch" or (trace.host_ops.concrete_inputs >= 0).any():
        return ""
    if (trace.host_ops.input_dims >= 0).any():
        return "; this PyTorch records no strides and other numbers of convolutions, newer ones do"
    return "; record_shapes=True tells most of them"
