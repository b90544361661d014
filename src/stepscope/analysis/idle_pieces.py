"""Idle time in pieces, each of one cause."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.categories import CATEGORIES, Category
from stepscope.analysis.device_gaps import Gaps
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.tables import I32, I64, U8


@record
class Pieces:
    """Idle time partitioned by cause, in time order. ``gap`` is the position of the gap each piece belongs to."""

    start: I64
    end: I64
    category: U8
    gap: I32

    def cut_at(self, bounds: I64) -> Pieces:
        """The same time, with a new piece at each bound that lies within one: then each is of one step."""
        if not self.start.size:
            return self
        within = np.searchsorted(self.start, bounds) - 1
        cuts = (within >= 0) & (bounds < self.end[within])
        piece = np.append(np.arange(self.start.size), within[cuts])
        start = np.append(self.start, bounds[cuts])
        order = np.lexsort((start, piece))
        piece, start = piece[order], start[order]
        end = self.end[piece]
        again = np.flatnonzero(piece[:-1] == piece[1:])
        end[again] = start[again + 1]
        return Pieces(start, end, self.category[piece], self.gap[piece])


def pieces_of(spans: iv.Intervals, category: Category) -> Pieces:
    """Spans of one cause; which gap each lies in is told by ``in_order``."""
    size = len(spans[0])
    return Pieces(spans[0], spans[1], np.full(size, category.code, np.uint8), np.empty(size, np.int32))


def kept(start: I64, end: I64) -> iv.Intervals:
    """The spans that have a length."""
    keep = end > start
    return start[keep], end[keep]


def in_order(parts: list[Pieces], gaps: Gaps) -> Pieces:
    """All parts in time order, each with the gap it lies in."""
    start = np.concatenate([part.start for part in parts])
    end = np.concatenate([part.end for part in parts])
    category = np.concatenate([part.category for part in parts])
    order = np.argsort(start, kind="stable")
    gap = np.searchsorted(gaps.start, start[order], "right") - 1
    return Pieces(start[order], end[order], category[order], gap.astype(np.int32))


def columns(pieces: Pieces) -> tuple[I64, I64, U8, I32]:
    """What pieces are made of."""
    return pieces.start, pieces.end, pieces.category, pieces.gap


def without(pieces: list[Pieces], spans: iv.Intervals) -> list[Pieces]:
    """The pieces but for some time."""
    if not len(spans[0]):
        return pieces
    return [
        pieces_of(iv.subtract((part.start, part.end), spans), CATEGORIES[part.category[0]])
        for part in pieces
        if part.category.size
    ]


def told_by_device(pieces: list[Pieces], told: dict[Category, iv.Intervals]) -> list[Pieces]:
    """Idle time in which the device itself says what it waits for is that, whatever the host did."""
    for cause, spans in told.items():
        divided: list[Pieces] = []
        for part in pieces:
            if part.category.size:
                mine: iv.Intervals = (part.start, part.end)
                divided.append(pieces_of(iv.subtract(mine, spans), CATEGORIES[part.category[0]]))
                divided.append(pieces_of(iv.intersect(mine, spans), cause))
        pieces = divided
    return pieces
