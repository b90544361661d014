"""How much of collectives and copies other work of the device hides: what overlapping them gains."""

from __future__ import annotations

from typing import Literal

from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among

WHAT: dict[Literal["collectives", "copies"], tuple[Category, ...]] = {
    "collectives": (Category.COLLECTIVE,),
    "copies": (Category.COPY_H2D, Category.COPY_D2H, Category.COPY_P2P),
}
"""Categories that other work can hide. Time in which several are under way goes to compute before collectives before
copies (``accounting``), so that what is booked for one is what nothing before it hides."""


@record
class Overlap:
    """Of the used steps on all devices in use; instants in which a device does several of a kind count once."""

    what: Literal["collectives", "copies"]
    ns: int
    hidden_ns: int

    @property
    def hidden_share(self) -> float:
        """Share of the time that other work hides; 1 is all of it."""
        return self.hidden_ns / self.ns


def overlaps(facts: Facts) -> list[Overlap]:
    """What took time on devices in the used steps; none without a device, or where activity of it is lost."""
    if facts.device_lost:
        return []
    hidden = []
    for what, categories in WHAT.items():
        codes = [category.code for category in categories]
        total = exposed = 0
        for activity, account in facts.devices:
            if activity.device in facts.unused:
                continue
            chosen = among(activity.category, codes)
            spans = iv.union(activity.start[chosen], activity.end[chosen])
            total += int(iv.covered_between(spans, *facts.used_windows(account)).sum())
            exposed += int(account.parts[facts.used_rows(account)][:, codes].sum())
        if total:
            hidden.append(Overlap(what, total, total - exposed))
    return hidden
