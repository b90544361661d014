"""Garbage that Python collects while it makes input: objects made there set it off, and with them it goes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.finding import Finding
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among
from stepscope.units import format_share

_MOST = 0.5
"""So much of it must lie in input. Chosen: collections come where most objects are made."""
_SAYS = (
    "it goes with the objects that are made there: what makes input cheaper makes fewer, and worker processes collect "
    "theirs themselves."
)


def of_garbage(facts: Facts, finding: Finding) -> Finding:
    """A finding on garbage, which says where it is collected while input is made."""
    share = _share_in_input(facts)
    if share < _MOST:
        return finding
    said = finding.saying(f" {format_share(share)} of it passes while input is made: {_SAYS}")
    return replace(said, title=f"{finding.title} while it makes input", within="input_bound")


def _share_in_input(facts: Facts) -> float:
    slices, causes = facts.trace.slices, facts.host.causes
    mine = among(slices.track, facts.host.loop)
    collecting = iv.of(slices, np.flatnonzero(mine & (causes == Category.GC.code)))
    making = iv.of(slices, np.flatnonzero(mine & (causes == Category.INPUT.code)))
    return iv.measure(iv.intersect(collecting, making)) / max(iv.measure(collecting), 1)
