"""Host time in ranges that the program named, whatever they are called."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.limits import TOLD_SHARE
from stepscope.names.xla_hosts import XlaRole
from stepscope.trace.forest import holding, inherit
from stepscope.trace.tables import F64, I32, Bools, Kind

WORK = (Kind.HOST_OP, Kind.RUNTIME_CALL, Kind.SYNC)


@dataclass(frozen=True, slots=True)
class InRanges:
    """Host time in ranges that the program named."""

    name: str
    """The one with most of it."""
    mostly: bool
    """Whether ``TOLD_SHARE`` of the time passes there."""


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
    frame, name = (
        np.append(inherit(np.where(chosen, slices.name, np.int32(-1)), slices.parent), -1)[inside]
        for chosen in (slices.kind == Kind.PYTHON_FRAME, annotation)
    )
    least = TOLD_SHARE * weight.sum()
    if weight[frame >= 0].sum() >= least or weight[name >= 0].sum() < least:
        return None
    total = np.bincount(name[name >= 0], weight[name >= 0])
    most = int(total.argmax())
    return InRanges(facts.trace.strings[most], bool(total[most] >= least))


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
