"""Waits in Python for another thread, a process, or what comes in: no work of the thread that waits, and no saving of
it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stepscope.analysis.facts import Facts
from stepscope.diagnosis.finding import Finding
from stepscope.names.hosts import awaits_others
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, mapped
from stepscope.trace.forest import outermost
from stepscope.trace.shared import shared
from stepscope.trace.tables import Bools, Kind


@shared
def awaiting(facts: Facts) -> Bools:
    """Which slices are, or lie in, such a wait."""
    slices, strings = facts.trace.slices, facts.trace.strings
    names = np.where(slices.kind == Kind.PYTHON_FRAME, slices.name, np.int32(-1))
    return outermost(mapped(names, strings, awaits_others, np.bool_), slices.parent) >= 0


def awaited_ns(facts: Facts, window: tuple[int, int]) -> int:
    """How long the loop's thread waits so in a stretch of time."""
    start, end = (np.array([at], np.int64) for at in window)
    return iv.measure(iv.intersect(_awaited(facts), (start, end)))


@shared
def _awaited(facts: Facts) -> iv.Intervals:
    slices = facts.trace.slices
    return iv.of(slices, np.flatnonzero(awaiting(facts) & among(slices.track, facts.host.loop)))


def of_unknown_gain(finding: Finding) -> Finding:
    """A finding on waits: they go as far as what they are for comes sooner, of which the thread that waits tells
    nothing."""
    why = "how soon what it waits for can come is not in this profile"
    return replace(finding, saving_ns_per_step=None, change=None, prediction_basis=None, not_determined=why)
