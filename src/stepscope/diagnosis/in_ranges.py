"""Host time in ranges that the program named, whatever they are called."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.limits import TOLD_SHARE, WITHIN_SHARE
from stepscope.names.xla_hosts import XlaRole
from stepscope.trace.forest import holding, inherit
from stepscope.trace.tables import F64, I32, Bools, Kind

WORK = (Kind.HOST_OP, Kind.RUNTIME_CALL, Kind.SYNC)


@dataclass(frozen=True, slots=True)
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
    starts = _starts_work(facts)
    annotation = (slices.kind == Kind.ANNOTATION) & ~holding(starts, slices.parent)
    annotation[facts.host.markers] = False
    # The main thread waits for others in a range around what they launch: autograd's around the backward pass.
    theirs = np.sort(slices.start_ns[starts & np.isin(slices.track, facts.host.turns)])
    first, last = (np.searchsorted(theirs, slices.start_ns + add) for add in (0, slices.dur_ns))
    annotation &= (slices.track != facts.host.main) | (first == last)
    rows = np.arange(len(slices), dtype=np.int32)
    frame, around = (
        np.append(inherit(np.where(chosen, rows, np.int32(-1)), slices.parent), np.int32(-1))
        for chosen in (slices.kind == Kind.PYTHON_FRAME, annotation)
    )
    whole = weight.sum()
    if weight[frame[inside] >= 0].sum() >= TOLD_SHARE * whole or weight[around[inside] >= 0].sum() < TOLD_SHARE * whole:
        return None
    at, total = around[inside], np.zeros(len(facts.trace.strings))
    own = np.bincount(slices.name[at[at >= 0]], weight[at >= 0], total.size)
    while (at >= 0).any():
        at, weight = at[at >= 0], weight[at >= 0]
        np.add.at(total, slices.name[at], weight)
        at = around[slices.parent[at]]  # -1 is the last, which is in none
    as_much = np.flatnonzero(total >= WITHIN_SHARE * total.max())
    most = int(as_much[np.lexsort((-own[as_much], total[as_much]))[0]])
    return InRanges(
        facts.trace.strings[most], bool(total[most] >= TOLD_SHARE * whole), bool(total[most] >= WITHIN_SHARE * whole)
    )


def _starts_work(facts: Facts) -> Bools:
    """Which slices make a device compute, or do so themselves where there is none. Copies are what loading does too."""
    slices, host = facts.trace.slices, facts.host
    if not facts.activities:
        return np.isin(slices.kind, WORK)
    found = host.in_role(XlaRole.EXECUTE) | host.in_role(XlaRole.DISPATCH)
    for activity in facts.activities:
        computes = np.isin(activity.category, (Category.COMPUTE.code, Category.COLLECTIVE.code))
        found[activity.call[activity.launched & computes]] = True
    return found
