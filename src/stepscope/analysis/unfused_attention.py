"""Attention computed op by op, and what a fused kernel would take for it.

Found by the ops and their shapes: a softmax over scores of some size between batched products that make these scores
and use them, with what scales, masks, casts and drops them in between; backward likewise. Where shapes were not
recorded it is found by the names of the ops alone, and no time is given.

A fused kernel never writes the scores (FlashAttention, Dao et al. 2022). It still reads queries, keys, values and a
mask, writes the output, and computes the same products, backward the scores once more. It is taken to do that at
``FUSED_BANDWIDTH_SHARE`` of the memory's bandwidth or at the rate of this profile's fastest product of the format,
whichever takes longer, and no faster than the device's shortest kernel.
"""

from __future__ import annotations

from dataclasses import field
from functools import lru_cache
from math import prod

import numpy as np

from stepscope.analysis.costs.attribute import KINDS
from stepscope.analysis.costs.call import CostKind, parse_call, recorded_operands, recorded_shapes
from stepscope.analysis.costs.movement import MOVEMENT
from stepscope.analysis.floors import Faster, fused, least_of, reached
from stepscope.analysis.limits import ATTENTION_REACH, FUSED_BANDWIDTH_SHARE
from stepscope.analysis.peaks import device_peaks
from stepscope.analysis.roofline import Work, op_roofs
from stepscope.record import record
from stepscope.trace.codes import among
from stepscope.trace.forest import inherit
from stepscope.trace.tables import F64, I32, Bools, Kind, Rows

_PRODUCTS = ("aten::bmm", "aten::baddbmm")
_SOFTMAX, _BACKWARD = "aten::_softmax", "aten::_softmax_backward_data"
_BETWEEN = [KINDS.index(kind) for kind in (CostKind.ELEMENTWISE, CostKind.COPY)]
_NAMED_BETWEEN = frozenset({*MOVEMENT, "aten::bernoulli_"})
_PLAIN = "aten::_scaled_dot_product_attention_math"


@record
class Scores:
    """One attention's sizes, as far as the recorded shapes tell."""

    batch: int
    """Matrices of scores: samples times heads."""
    queries: int
    keys: int
    head: int
    """Size of a head of queries and keys."""
    value: int
    """Size of a head of values."""
    precision: str | None

    def __str__(self) -> str:
        return f"{self.batch} × {self.queries} × {self.keys}"

    def flops(self, *, backward: bool) -> int:
        """Operations of the products; backward computes the scores again (FlashAttention-2, section 4)."""
        depth = 3 * self.head + 2 * self.value if backward else self.head + self.value
        return 2 * self.batch * self.queries * self.keys * depth

    def elements(self, *, backward: bool) -> int:
        """Elements that are read and written at least; backward reads the output and its gradient too."""
        inputs = self.queries * self.head + self.keys * (self.head + self.value)
        return self.batch * (2 if backward else 1) * (inputs + self.queries * self.value)


@record
class Sites:
    """The places of one device, in all steps, where attention is computed op by op; a value per site.

    ``rows`` are the work's rows of all of them, ``first`` begins each.
    """

    work: Work
    rows: Rows
    first: Rows
    backward: Bools
    plain: Bools
    """Whether ``scaled_dot_product_attention`` was called and fell back to the plain ops."""
    softmax: I32
    """The slice of the softmax."""
    scores: tuple[Scores | None, ...]
    """None where shapes do not tell."""
    moved: F64
    """Bytes that remain, and operations; NaN where not known."""
    flops: F64
    fused_ns: F64
    """Time of a fused kernel; NaN where sizes or peaks are not known."""
    rates: dict[str | None, float | None] = field(default_factory=dict)
    """Per format the rate of products that it is taken to reach, in operations per ns."""

    @property
    def now_ns(self) -> Rows:
        """What each takes."""
        return np.add.reduceat(self.work.ns[self.rows], self.first)

    @property
    def used(self) -> Rows:
        """The sites of the used steps."""
        return np.flatnonzero(self.work.used[self.rows[self.first]])

    def only(self, chosen: Bools) -> Sites | None:
        """Some of them; None for none."""
        if not chosen.any():
            return None
        size = np.diff(np.append(self.first, len(self.rows)))
        first = np.concatenate(([0], np.cumsum(size[chosen])[:-1])).astype(np.intp)
        return Sites(
            self.work, self.rows[np.repeat(chosen, size)], first, self.backward[chosen], self.plain[chosen],
            self.softmax[chosen], tuple(s for s, kept in zip(self.scores, chosen.tolist(), strict=True) if kept),
            self.moved[chosen], self.flops[chosen], self.fused_ns[chosen], self.rates,
        )  # fmt: skip

    def faster(self) -> Faster:
        """The kernels of sites of known sizes with fused ones in their place."""
        kinds = [scores.precision if scores else None for scores in self.scores]
        least = np.zeros(len(kinds))
        for precision in set(kinds):
            mine = np.array([kind == precision for kind in kinds])
            least[mine] = least_of(self.work, self.moved[mine], self.flops[mine], precision)
        return fused(self.work, self.rows, self.first, self.fused_ns, least)


_Site = tuple[int, list[int], Scores | None]
"""A softmax, all ops of its attention, and its sizes."""


@record
class _Ops:
    """The ops with kernels of one device, thread by thread as they were called; a value per op."""

    work: Work
    slice: Rows
    name: list[str]
    dims: list[str | None]
    between: Bools
    """Which only move and change elements."""
    place: Rows
    """Thread and period together: only ops of equal ones belong together."""
    values: list[str | None]
    """Recorded scalars."""
    precision: dict[int, str | None]
    """Of products, by slice: the format of their kernel's operands."""


def unfused_attention(work: Work) -> Sites | None:
    """The sites of a device; None where there are none."""
    if not work.rows.size or not {_SOFTMAX, _BACKWARD} & set(work.trace.strings):
        return None
    op = _ops_of_rows(work)
    ops = _ops(work, op)
    sites = [
        (at, members, scores)
        for at, name in enumerate(ops.name)
        if name in (_SOFTMAX, _BACKWARD)
        for members, scores in _site(ops, at, backward=name == _BACKWARD)
    ]
    return _measured(ops, op, _apart(sites)) if sites else None


def _apart(sites: list[_Site]) -> list[_Site]:
    """Each op in one site alone, that of the softmax that comes first."""
    taken: set[int] = set()
    apart = []
    for at, members, scores in sites:
        own = [member for member in members if member not in taken]
        taken.update(own)
        if own:
            apart.append((at, own, scores))
    return apart


def _ops_of_rows(work: Work) -> I32:
    """Per row the op it works for: the one whose cost it shares, else the innermost around its launch."""
    slices = work.trace.slices
    own = np.where(slices.kind == Kind.HOST_OP, np.arange(len(slices), dtype=np.int32), -1).astype(np.int32)
    call = work.activity.call[work.rows]
    around = np.where(call >= 0, inherit(own, slices.parent)[call], -1)
    return np.where(work.owner >= 0, work.owner, around).astype(np.int32)


def _ops(work: Work, op: I32) -> _Ops:
    slices, costs, strings = work.trace.slices, work.costs, work.trace.strings
    rows = np.flatnonzero(op >= 0)
    ids, first = np.unique(op[rows], return_index=True)
    period = work.period[rows[first]]
    order = np.lexsort((slices.start_ns[ids], slices.track[ids]))
    ids, period = ids[order], period[order]
    dims, recorded = costs.dims[ids].tolist(), work.trace.host_ops
    values = np.full(len(slices), -1, np.int32)
    values[recorded.slice] = recorded.concrete_inputs
    matrix = np.flatnonzero(work.eligible & (work.owner >= 0))
    products, lead = np.unique(work.owner[matrix], return_index=True)
    groups = [work.groups[group] for group in work.group[matrix[lead]].tolist()]
    return _Ops(
        work=work,
        slice=np.asarray(ids, np.intp),
        name=[strings[code] for code in slices.name[ids].tolist()],
        dims=[strings[code] if code >= 0 else None for code in dims],
        between=among(costs.kind[ids], _BETWEEN),
        values=[strings[code] if code >= 0 else None for code in values[ids].tolist()],
        precision=dict(zip(products.tolist(), (group.precision for group in groups), strict=True)),
        place=np.asarray(slices.track[ids].astype(np.int64) * (int(period.max(initial=0)) + 2) + period, np.intp),
    )


def _site(ops: _Ops, at: int, *, backward: bool) -> list[tuple[list[int], Scores | None]]:
    """The ops of the attention around a softmax, and its sizes; empty where it is none."""
    near = [j for j in range(max(at - ATTENTION_REACH, 0), min(at + ATTENTION_REACH + 1, len(ops.name)))
            if ops.place[j] == ops.place[at]]  # fmt: skip
    before = [j for j in reversed(near) if j < at and ops.name[j] in _PRODUCTS]
    after = [j for j in near if j > at and ops.name[j] in _PRODUCTS]
    if ops.dims[at] is None:
        members = range(before[0], after[0] + 1) if before and after else range(0)
        known = all(ops.name[j] in _NAMED_BETWEEN or j in (before[0], after[0]) for j in members)
        return [(list(members), None)] if members and known else []
    shape = _scores_shape(ops.dims[at] or "")
    if shape is None or not _is_over_keys(ops, at):
        return []
    made = [j for j in before if _products(ops, j, shape).makes]
    using = [j for j in after if _products(ops, j, shape).uses]
    if not made or not using:
        return []
    ends = {made[0], using[0]}
    if backward:
        # The gradient of the other operand stands beside each: of the values before, of keys or queries behind.
        beside = [j for j in before if j != made[0] and abs(j - made[0]) <= 2 and _products(ops, j, shape).uses]
        ends |= {*beside[:1], *(j for j in using[1:2] if j - using[0] <= 2)}
    total = prod(shape)
    between = [
        j
        for j in range(min(ends), max(ends) + 1)
        if ops.between[j] and any(prod(one) == total for one in recorded_shapes(ops.dims[j] or ""))
    ]
    return [(sorted({*ends, *between, at}), _sizes(ops, made[0], using[0], shape, backward=backward))]


@lru_cache(maxsize=4096)
def _scores_shape(dims: str) -> tuple[int, int, int] | None:
    """Matrices, queries and keys of a softmax's input."""
    shapes = [shape for shape in recorded_shapes(dims) if len(shape) >= 3]
    if len(shapes) != 1 or not prod(shapes[0]):
        return None
    (shape,) = shapes
    return prod(shape[:-2]), shape[-2], shape[-1]


def _is_over_keys(ops: _Ops, at: int) -> bool:
    """Whether a softmax is over the last dimension, or its dimension was not recorded."""
    argument = 2 if ops.name[at] == _BACKWARD else 1
    call = parse_call(ops.dims[at], "[]", ops.values[at])
    dim = call.value(argument) if call is not None else None
    return dim is None or dim == -1 or (call is not None and dim == len(call.shapes[0]) - 1)


@record
class _Role:
    """What a product has to do with scores of some size."""

    makes: bool = False
    uses: bool = False


def _products(ops: _Ops, at: int, shape: tuple[int, int, int]) -> _Role:
    return _role(ops.name[at], ops.dims[at] or "", shape)


@lru_cache(maxsize=4096)
def _role(name: str, dims: str, shape: tuple[int, int, int]) -> _Role:
    sizes, batch = recorded_operands(name, dims), _batch(dims)
    if sizes is None or batch != shape[0]:
        return _Role()
    rows, length, columns = sizes
    scores = shape[1:]
    left, right = (rows, length), (length, columns)
    return _Role(makes=(rows, columns) == scores, uses=left in (scores, scores[::-1]) or right == scores)


@lru_cache(maxsize=4096)
def _batch(dims: str) -> int | None:
    """Matrices that a batched product multiplies."""
    sizes = {shape[0] for shape in recorded_shapes(dims) if len(shape) == 3}
    return sizes.pop() if len(sizes) == 1 else None


def _sizes(ops: _Ops, made: int, using: int, shape: tuple[int, int, int], *, backward: bool) -> Scores | None:
    first = recorded_operands(ops.name[made], ops.dims[made] or "")
    second = recorded_operands(ops.name[using], ops.dims[using] or "")
    if first is None or second is None:
        return None
    # Behind a backward softmax the queries' gradient (scores x keys) comes first, or the keys' (queries x scores).
    other = second[2] if (second[0], second[1]) in (shape[1:], shape[:0:-1]) else second[0]
    head, value = (other, first[1]) if backward else (first[1], other)
    return Scores(shape[0], shape[1], shape[2], head, value, ops.precision.get(int(ops.slice[made])))


def _measured(ops: _Ops, op: I32, sites: list[_Site]) -> Sites:
    work = ops.work
    order = np.argsort(op, kind="stable")
    rows: list[Rows] = []
    for _, members, _ in sites:
        slices = ops.slice[members]
        low, high = np.searchsorted(op[order], slices, "left"), np.searchsorted(op[order], slices, "right")
        rows.append(np.concatenate([order[a:b] for a, b in zip(low.tolist(), high.tolist(), strict=True)]))
    first = np.cumsum([0, *(len(one) for one in rows[:-1])])
    softmax = np.array([ops.slice[at] for at, _, _ in sites], np.int32)
    backward = np.array([ops.name[at] == _BACKWARD for at, _, _ in sites], np.bool_)
    plain = np.array([_inside(ops, at, _PLAIN) for at, _, _ in sites], np.bool_)
    scores = tuple(one for _, _, one in sites)
    moved, flops = np.full(len(sites), np.nan), np.full(len(sites), np.nan)
    for site, (_, members, one) in enumerate(sites):
        if one is not None:
            size = _element_bytes(ops, members)
            moved[site] = one.elements(backward=bool(backward[site])) * size + _masks(ops, members)
            flops[site] = one.flops(backward=bool(backward[site]))
    formats = {one.precision for one in scores if one is not None}
    products = op_roofs(work)
    rates = {precision: reached(products, precision, on_units=False) for precision in formats}
    return _timed(
        Sites(work, np.concatenate(rows), first, backward, plain, softmax, scores, moved, flops, moved, rates)
    )


def _timed(sites: Sites) -> Sites:
    """With the time of fused kernels."""
    peaks = device_peaks(sites.work.trace, sites.work.activity.device)
    bandwidth = peaks.memory_bandwidth.value / 1e9 * FUSED_BANDWIDTH_SHARE if peaks and peaks.memory_bandwidth else None
    rate = np.array([(sites.rates.get(one.precision) if one else None) or np.nan for one in sites.scores])
    moving = sites.moved / bandwidth if bandwidth else np.full(len(rate), np.nan)
    wished = np.maximum(np.maximum(moving, sites.flops / rate), sites.work.ns.min())
    return Sites(sites.work, sites.rows, sites.first, sites.backward, sites.plain, sites.softmax, sites.scores,
                 sites.moved, sites.flops, np.minimum(wished, sites.now_ns), sites.rates)  # fmt: skip


def _element_bytes(ops: _Ops, members: list[int]) -> float:
    """Bytes of an element of the products' operands."""
    for j in members:
        sizes, batch = recorded_operands(ops.name[j], ops.dims[j] or ""), _batch(ops.dims[j] or "")
        moved = int(ops.work.costs.bytes[ops.slice[j]])
        if sizes is not None and batch and moved > 0 and ops.name[j] == "aten::bmm":
            n, k, m = sizes
            return moved / (batch * (n * k + k * m + n * m))
    return float("nan")


def _masks(ops: _Ops, members: list[int]) -> int:
    """Bytes that the ops between read besides the scores: masks and biases, which a fused kernel reads too."""
    costs = ops.work.costs
    total = 0
    for j in members:
        made = costs.calls[int(costs.call[ops.slice[j]])] if costs.call[ops.slice[j]] >= 0 else None
        if ops.between[j] and made is not None and made.bytes is not None and made.written is not None:
            total += max(made.bytes - 2 * made.written, 0)
    return total


def _inside(ops: _Ops, at: int, name: str) -> bool:
    """Whether an op was called inside another of a name."""
    trace, around = ops.work.trace, int(ops.slice[at])
    while around >= 0:
        if trace.name_of(around) == name:
            return True
        around = int(trace.slices.parent[around])
    return False
