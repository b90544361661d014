"""Where a job's steps end and begin, found in the calls that every iteration makes."""

from __future__ import annotations

from collections.abc import Hashable

EXPLICIT, BATCH, OPTIMIZER, REQUEST, CALL = range(5)
"""Sources of steps, best first: the job says that one ends, a training loop of a library does, an optimizer stepped,
which ends one; a server is about to run a batch of requests, or a model or compiled function is about to be called,
which begin one: its device work may begin after it has returned."""
SOURCES = {
    EXPLICIT: "stepscope.step",
    BATCH: "Keras batches",
    OPTIMIZER: "optimizer steps",
    REQUEST: "batches of requests",
    CALL: "repeated calls",
}

REPEATED = 3
"""Calls of one object that make it a candidate: two could be set-up and first step."""
OCCASIONAL = 8
"""What is called this many times less often than another is no step: validation, logging, checkpoints. (Discriminators
take five steps for one of the generator.)"""
MOST_OBJECTS = 64
"""A job that calls more objects than this keeps making new ones; the rest are not looked at."""


class StepFinder:
    """Decides which calls are the edge of two steps.

    Of the objects called again and again in an iteration (several optimizers, several compiled functions) one is the
    anchor: the least frequent one that is not occasional, and of equals the outermost within the iteration: the first
    where calls begin steps, the last where they end them. So an iteration counts once, with however many calls in it,
    and gradient accumulation, many model calls per optimizer step, is one step.
    """

    def __init__(self, weakest: int = CALL) -> None:
        self.weakest = weakest
        """Sources that are worse than this are not looked at."""
        self.source: int | None = None
        self.anchor: Hashable | None = None
        self._frozen = False
        self._counts: dict[Hashable, int] = {}

    @property
    def steps(self) -> int:
        """Steps that have ended, or begun where calls begin them."""
        return self._counts.get(self.anchor, 0) if self.anchor is not None else 0

    @property
    def most(self) -> int:
        """Calls of what was called most, be it a step or not."""
        return max(self._counts.values(), default=0)

    @property
    def begins(self) -> bool:
        """Whether calls begin steps."""
        return self.source in (REQUEST, CALL)

    @property
    def number(self) -> int:
        """The step that begins now, counted from 0."""
        return self.steps - self.begins

    @property
    def is_certain(self) -> bool:
        """Whether every call of the anchor is an edge while nothing else is called."""
        return self.anchor is not None and (self._frozen or len(self._counts) == 1)

    def passed(self, steps: int) -> None:
        """The anchor was called so many times more."""
        if self.anchor in self._counts:
            self._counts[self.anchor] += steps

    def freeze(self) -> None:
        """Keep the anchor from now on: a window must not change what it calls a step."""
        self._frozen = True

    def thaw(self) -> None:
        """Look for a better one again."""
        self._frozen = False

    def is_edge(self, source: int, key: Hashable) -> tuple[bool, bool]:
        """Whether one step ends here and the next begins, and whether the anchor changed, which voids earlier times."""
        if source > self.weakest:
            return False, False
        if self.source is None or (source < self.source and not self._frozen):
            self.source, self.anchor, self._counts = source, None, {}
        if source != self.source:
            return False, False
        if self._frozen or len(self._counts) == 1:  # Nothing else can become the anchor.
            if key == self.anchor:
                self._counts[key] += 1
                return True, False
            if self._frozen:
                return False, False
        if key in self._counts or len(self._counts) < MOST_OBJECTS:
            self._counts[key] = self._counts.get(key, 0) + 1
        before, self.anchor = self.anchor, self._best()
        return key == self.anchor, self.anchor != before

    def _best(self) -> Hashable | None:
        if self.source in (EXPLICIT, BATCH):
            return next(iter(self._counts), None)
        most = max(self._counts.values(), default=0)
        candidates = [
            (order if self.begins else -order, count, key)
            for order, (key, count) in enumerate(self._counts.items())
            if count >= REPEATED and count * OCCASIONAL >= most
        ]
        fewest = min((count for _, count, _ in candidates), default=0)
        # Within an iteration some have been called once more than others.
        equals = [each for each in candidates if each[1] <= fewest + 1]
        # A job with one optimizer has its steps from the first on.
        alone = next(iter(self._counts)) if len(self._counts) == 1 and self.source == OPTIMIZER else None
        return min(equals, key=lambda each: each[0])[2] if equals else alone
