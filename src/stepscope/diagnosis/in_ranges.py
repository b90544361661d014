"""Host time in ranges that the program named, whatever they are called."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.limits import TOLD_SHARE
from stepscope.diagnosis.limits import WITHIN_SHARE
from stepscope.names.xla_hosts import XlaRole
from stepscope.record import record
from stepscope.trace.codes import among
from stepscope.trace.forest import holding, inherit
from stepscope.trace.shared import shared
from stepscope.trace.tables import F64, I32, Bools, Kind

WORK = (Kind.HOST_OP, Kind.RUNTIME_CALL, Kind.SYNC)


@record
class InRanges:
    """Host time in ranges that the program named."""

    name: str
    """The one with most of it, that within others included; the innermost of those with nearly as much."""
    mostly: bool
    """Whether ``TOLD_SHARE`` of the time passes there."""
    nearly_all: bool
    """Whether ``WITHIN_SHARE`` of the time does."""


def ranges_of(facts: Facts, inside: I32, weight: F64) -> InRanges | None:
    """A range around what the device computes (the whole step, its forward pass) says nothing of the time between."""
    slices = facts.trace.slices
    frame, around = _around(facts)
    whole = weight.sum()
    if weight[frame[inside] >= 0].sum() >= TOLD_SHARE * whole or weight[around[inside] >= 0].sum() < TOLD_SHARE * whole:
        return None
    at = around[inside]
    names, own, total = _totals(slices.name, around, slices.parent, at, weight)
    as_much = np.flatnonzero(total >= WITHIN_SHARE * total.max())
    most = int(as_much[np.lexsort((-own[as_much], total[as_much]))[0]])
    return InRanges(
        facts.trace.strings[names[most]],
        bool(total[most] >= TOLD_SHARE * whole),
        bool(total[most] >= WITHIN_SHARE * whole),
    )


def _totals(name: I32, around: I32, parent: I32, at: I32, weight: F64) -> tuple[I32, F64, F64]:
    """The names of ranges with the weight of the points ``at`` which they are innermost, and of all within them."""
    names_of, weights = [], []
    while (at >= 0).any():
        at, weight = at[at >= 0], weight[at >= 0]
        names_of.append(name[at])
        weights.append(weight)
        at = around[parent[at]]  # -1 is the last, which is in none
    names, code = np.unique(np.concatenate(names_of), return_inverse=True)
    innermost = slice(0, names_of[0].size)
    own = np.bincount(code[innermost], weights[0], names.size).astype(np.float64)
    total = np.bincount(code, np.concatenate(weights), names.size).astype(np.float64)
    return names, own, total


@shared
def _around(facts: Facts) -> tuple[I32, I32]:
    """Per slice, the innermost Python frame and the innermost range that tells; behind the last, nothing."""
    slices = facts.trace.slices
    starts = _starts_work(facts)
    annotation = (slices.kind == Kind.ANNOTATION) & ~holding(starts, slices.parent)
    annotation[facts.host.markers] = False
    # The main thread waits for others in a range around what they launch: autograd's around the backward pass.
    theirs = np.sort(slices.start_ns[starts & among(slices.track, facts.host.turns)])
    first, last = (np.searchsorted(theirs, slices.start_ns + add) for add in (0, slices.dur_ns))
    annotation &= (slices.track != facts.host.main) | (first == last)
    rows = np.arange(len(slices), dtype=np.int32)
    frame, around = (
        np.append(inherit(np.where(chosen, rows, np.int32(-1)), slices.parent), np.int32(-1))
        for chosen in (slices.kind == Kind.PYTHON_FRAME, annotation)
    )
    return frame, around


def _starts_work(facts: Facts) -> Bools:
    """Which slices make a device compute, or do so themselves where there is none. Copies are what loading does too."""
    slices, host = facts.trace.slices, facts.host
    if not facts.activities:
        return among(slices.kind, WORK)
    starts = host.in_role(XlaRole.EXECUTE) | host.in_role(XlaRole.DISPATCH)
    for activity in facts.activities:
        computes = among(activity.category, (Category.COMPUTE.code, Category.COLLECTIVE.code))
        starts[activity.call[activity.launched & computes]] = True
    return starts
