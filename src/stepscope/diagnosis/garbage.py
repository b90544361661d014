"""Garbage that Python collects while it makes input or compiles: objects made there set it off, and go with it."""

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
"""So much of it must lie in one of them. Chosen: collections come where most objects are made."""
_GOES = "it goes with the objects that are made there"
_WITHIN = {
    Category.INPUT: (
        "input_bound",
        "while it makes input",
        f"passes while input is made: {_GOES}: what makes input cheaper makes fewer, and worker processes collect "
        "theirs themselves.",
    ),
    Category.COMPILE: ("recompilation", "while it compiles", f"passes while code is compiled: {_GOES}."),
}
"""By what the host does: the rule that tells of it, how the title ends, and what is said."""


def of_garbage(facts: Facts, finding: Finding) -> Finding:
    """A finding on garbage, which says where it is collected while input is made, or code compiled."""
    for cause, (rule, title, says) in _WITHIN.items():
        share = _share_in(facts, cause)
        if share >= _MOST:
            said = finding.saying(f" {format_share(share)} of it {says}")
            return replace(said, title=f"{finding.title} {title}", within=rule)
    return finding


def _share_in(facts: Facts, cause: Category) -> float:
    slices, causes = facts.trace.slices, facts.host.causes
    mine = among(slices.track, facts.host.loop)
    collecting = iv.of(slices, np.flatnonzero(mine & (causes == Category.GC.code)))
    around = iv.of(slices, np.flatnonzero(mine & (causes == cause.code)))
    return iv.measure(iv.intersect(collecting, around)) / max(iv.measure(collecting), 1)
