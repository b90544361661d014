"""The step-time bar: which parts are shown, and how many terminal cells each gets.

Layout only, apart from one sum: parts too small to see are folded into one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stepscope.record import record
from stepscope.report import labels

if TYPE_CHECKING:
    from stepscope.document.steps import SummaryEntry

_BUSY_GLYPHS = "█▓▒#%"
_IDLE_GLYPHS = "░·-~+:"
"""Without colour, dense glyphs mean that the device works and light ones that it does not."""

_SMALL = 200
"""Parts under one in this many of a step's nanoseconds are folded into "other"."""


@record
class BarPart:
    """One segment of the bar: its words, length, look, and how many categories were folded into it."""

    words: str
    busy: bool
    ns: int
    share: float
    glyph: str
    colour: str
    folded: int = 0


def parts_of(summary: SummaryEntry) -> list[BarPart]:
    """The parts of the mean step, busy ones first, each side largest first; zeros are left out."""
    entries = [
        (name, ns, summary["parts_share"].get(name, 0.0)) for name, ns in summary["parts_ns_per_step"].items() if ns > 0
    ]
    entries.sort(key=lambda entry: -entry[1])
    smallest = sum(ns for _, ns, _ in entries) // _SMALL
    busy = [entry for entry in entries if labels.works(entry[0])]
    idle = [entry for entry in entries if not labels.works(entry[0])]
    sides = ((busy, _BUSY_GLYPHS), (idle, _IDLE_GLYPHS))
    return [part for side in sides for part in _side(*side, smallest, summary["bottleneck"])]


def _side(entries: list[tuple[str, int, float]], glyphs: str, smallest: int, bottleneck: str) -> list[BarPart]:
    large = sum(entry[1] >= smallest for entry in entries)
    shown = entries[: min(max(large, 1), len(glyphs) - 1)]  # The largest keeps its name however small it is.
    small = entries[len(shown) :]
    if len(small) == 1:  # Folding a single part would hide its name and save nothing.
        shown, small = entries, []
    parts = [
        BarPart(labels.words(name, bottleneck), labels.works(name), ns, share, glyph, labels.CATEGORIES[name].colour)
        for (name, ns, share), glyph in zip(shown, glyphs, strict=False)
    ]
    if small:
        ns, share = sum(entry[1] for entry in small), sum(entry[2] for entry in small)
        words = f"other ({len(small)} small parts)"
        parts.append(BarPart(words, labels.works(small[0][0]), ns, share, glyphs[len(shown)], "white", len(small)))
    return parts


def cells(weights: Sequence[int], width: int) -> list[int]:
    """Share ``width`` cells out in proportion to positive weights; every weight gets at least one.

    Largest remainders get the cells left over; what the least weights need comes from the largest, so that
    the cells always sum to ``width``. With more weights than cells the last ones get none.
    """
    if width <= len(weights):
        return [1 if at < width else 0 for at in range(len(weights))]
    total = sum(weights)
    counts = [max(1, weight * width // total) for weight in weights]
    owed = [at for at, weight in enumerate(weights) if weight * width >= total]  # The rest got more.
    by_remainder = sorted(owed, key=lambda at: -(weights[at] * width % total))
    for at in by_remainder[: max(0, width - sum(counts))]:
        counts[at] += 1
    while sum(counts) > width:
        counts[counts.index(max(counts))] -= 1
    return counts
