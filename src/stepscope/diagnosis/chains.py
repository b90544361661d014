"""Waits that cost nothing yet: with the first of a chain gone the next one waits, so that it must go too."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import or_

from stepscope.analysis.limits import FINDING_SHARE
from stepscope.diagnosis.finding import Finding, FixPart
from stepscope.diagnosis.limits import CHAINED_SHARE
from stepscope.whatif.change import Change
from stepscope.whatif.predictor import Predictor


def completed(replayed: Predictor | str, finding: Finding) -> Finding:
    """The finding with those of its ``next_waits`` in the fix set without which the fix would gain less.

    All are taken out at once; one stays where taking it out too gains less than a finding's share of the whole. A fix
    set of one is none.
    """
    needed = _needed(replayed, finding) if isinstance(replayed, Predictor) else []
    if needed and finding.change is not None:
        change = _together(finding.change, needed)
        return replace(finding, change=change, fix_set=(*finding.fix_set, *needed)).saying(f" {_CHAIN}")
    return replace(finding, fix_set=()) if len(finding.fix_set) == 1 else finding


def together(finding: Finding) -> Finding:
    """The finding, saying so where its parts alone gain clearly less than all of them."""
    alone = sum(part.saving_alone_ns_per_step or 0 for part in finding.fix_set)
    if len(finding.fix_set) < 2 or alone >= CHAINED_SHARE * (finding.saving_ns_per_step or 0):
        return finding
    return finding.saying(" Fix them together: removing one alone moves the wait to the next.")


def _needed(replayed: Predictor, finding: Finding) -> list[FixPart]:
    if finding.change is None or not finding.next_waits:
        return []
    needed = list(finding.next_waits)
    whole = replayed.saving_ns(_together(finding.change, needed))
    least = FINDING_SHARE * whole
    if whole - replayed.saving_ns(finding.change) < least:
        return []
    for part in finding.next_waits:
        others = [one for one in needed if one is not part]
        if whole - replayed.saving_ns(_together(finding.change, others)) < least:
            needed = others
    return needed


_CHAIN = "The waits that cost next to nothing now are next: with the others gone the host waits there."


def _together(change: Change, parts: list[FixPart]) -> Change:
    return reduce(or_, (part.change for part in parts), change)
