"""Where a job's steps end, found in the calls that every iteration makes."""

from __future__ import annotations

from collections.abc import Hashable

EXPLICIT, OPTIMIZER, CALL = range(3)
"""Sources of step ends, best first: the job says so, an optimizer stepped, a model or compiled function was called."""
SOURCES = {EXPLICIT: "stepscope.step", OPTIMIZER: "optimizer steps", CALL: "repeated calls"}

REPEATED = 3
"""Calls of one object that make it a candidate: two could be set-up and first step."""
OCCASIONAL = 8
"""What is called this many times less often than another is no step: validation, logging, checkpoints. (Discriminators
take five steps for one of the generator.)"""
MOST_OBJECTS = 64
"""A job that calls more objects than this keeps making new ones; the rest are not looked at."""


class StepFinder:
    """Decides which calls end a step.

    Of the objects called again and again in an iteration (several optimizers, several compiled functions) one is the
    anchor: the least frequent one that is not occasional, and of equals the last within the iteration. So an iteration
    counts once, with however many calls in it. Gradient accumulation makes many model calls per optimizer step.
    """

    def __init__(self) -> None:
        self.source: int | None = None
        self.anchor: Hashable | None = None
        self._frozen = False
        self._counts: dict[Hashable, int] = {}

    @property
    def steps(self) -> int:
        """Steps that have ended."""
        return self._counts.get(self.anchor, 0) if self.anchor is not None else 0

    def freeze(self) -> None:
        """Keep the anchor from now on: a window must not change what it calls a step."""
        self._frozen = True

    def ends_step(self, source: int, key: Hashable) -> tuple[bool, bool]:
        """Whether this call ends a step, and whether the anchor changed with it, so that earlier times say nothing."""
        if self.source is None or (source < self.source and not self._frozen):
            self.source, self.anchor, self._counts = source, None, {}
        if source != self.source:
            return False, False
        if self._frozen:
            if key != self.anchor:
                return False, False
            self._counts[key] += 1
            return True, False
        if key in self._counts or len(self._counts) < MOST_OBJECTS:
            self._counts[key] = self._counts.get(key, 0) + 1
        before, self.anchor = self.anchor, self._best()
        return key == self.anchor, self.anchor != before

    def _best(self) -> Hashable | None:
        if self.source == EXPLICIT:
            return next(iter(self._counts), None)
        most = max(self._counts.values(), default=0)
        candidates: list[tuple[int, int, Hashable]] = [
            (count, -order, key)
            for order, (key, count) in enumerate(self._counts.items())
            if count >= REPEATED and count * OCCASIONAL >= most
        ]
        # A job with one optimizer has its steps from the first on.
        alone = next(iter(self._counts)) if len(self._counts) == 1 and self.source == OPTIMIZER else None
        return min(candidates, key=lambda each: each[:2])[2] if candidates else alone
