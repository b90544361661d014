"""One recorded stretch of a job: which steps, what they took, and why it ends."""

from __future__ import annotations

import time
from typing import Any

from .beside import ThreadsBeside
from .machine import children, machine
from .options import HARD, SETTLED_STEPS, Options
from .place import resident_bytes
from .worker_lines import worker_lines

_PREFETCHED = 2
"""Batches that each worker of a PyTorch loader makes ahead, unless it is told otherwise."""
_LONG = 3
"""A step that takes as many times as long as the usual one holds something that those do not. Chosen."""
_MOST_TOLD = 1_000
"""Steps whose times a manifest has, of each kind."""


class Window:
    """What is known of it, from before it is open until steps after it have been timed."""

    def __init__(self, options: Options) -> None:
        self.first: int | None = None
        """Its first step."""
        self.recorded: list[int] = []
        """Times of its steps."""
        self.after: list[int] = []
        """Times of steps after it, with nothing recorded."""
        self._ended: str | None = None
        self._ahead = 0
        """Steps after it whose batches were made while the profile was written, more than one per step."""
        self.must_end: str | None = None
        """Why it ends with the step that runs, as the watchdog found."""
        self.workers: int | None = None
        """Child processes when it opened: those of a loader."""
        self._beside: ThreadsBeside | None = None
        self._ran_beside: list[dict[str, Any]] | None = None
        self._worker_lines: dict[str, Any] | None = None
        self._options = options
        self._opened = 0.0
        self._memory: int | None = None

    def open(self, first: int | None) -> None:
        """Recording begins, with this step where there are any."""
        self.first = first
        self._opened, self._memory, self.workers = time.monotonic(), resident_bytes(), children()
        self._ahead = _PREFETCHED * (self.workers or 0)
        self._beside = ThreadsBeside()
        if self._options.stacks:
            worker_lines.open()

    @property
    def ended(self) -> str | None:
        """Why it ended, or never began."""
        return self._ended

    @ended.setter
    def ended(self, why: str) -> None:
        """From the first time on threads beside it are no longer counted."""
        self._ended = why
        worker_lines.close()
        if self._beside is not None and self._ran_beside is None:
            self._ran_beside = self._beside.told()

    def gather(self) -> None:
        """Take up what the workers of a loader saw: waits a little until they have written it."""
        self._worker_lines = worker_lines.told()

    def passed_after(self, dur: int) -> None:
        """A step after it took so long: those that find their batch made ahead tell nothing of the ones that follow."""
        if self._ahead:
            self._ahead -= 1
        else:
            self.after.append(dur)

    def limit(self) -> str | None:
        """Why it ends with a step that just ended, or None."""
        if len(self.recorded) >= self._options.active:
            return "recorded"
        lasted = time.monotonic() - self._opened
        if len(self.recorded) >= self._options.enough and lasted > self._options.budget:
            return "recorded"
        if lasted > self._options.max_seconds:
            return f"the window reached its {self._options.max_seconds:g} s"
        return self.must_end

    def overdue(self) -> str | None:
        """Why it must not wait for its step to end; None while it may."""
        if time.monotonic() - self._opened > HARD * self._options.max_seconds:
            return f"no step ended within {HARD * self._options.max_seconds:g} s"
        now = resident_bytes()
        if now is None or self._memory is None or now - self._memory < self._options.max_memory:
            return None
        return f"the job grew by {now - self._memory} bytes while it was recorded"

    def facts(self, before: list[int], *, settled: bool) -> dict[str, Any]:
        """For the manifest: the window, and what recording cost by the steps ``before`` or after it."""
        # Means: steps come in bursts where loaders give batches so.
        bare = self.after if len(self.after) >= SETTLED_STEPS else before
        unrecorded, recorded = _unrecorded(bare, self.recorded), _mean(self.recorded)
        steps = {"first_step": self.first, "steps": len(self.recorded), "settled": settled, "ended": self.ended}
        return {
            "window": None if self.first is None else steps,
            "ended": self.ended,
            "step_ns": {
                "unrecorded": unrecorded,
                "recorded": recorded,
                "timed_after": len(self.after),
                "each": {"unrecorded": bare[:_MOST_TOLD], "recorded": self.recorded[:_MOST_TOLD]},
            },
            "overhead": recorded / unrecorded if recorded and unrecorded else None,
            "machine": {**machine(), "workers": self.workers, "threads": self._ran_beside},
            "worker_lines": self._worker_lines,
        }


def _unrecorded(bare: list[int], recorded: list[int]) -> int | None:
    """What a step takes unrecorded. Where too few were timed to hold what every few recorded ones have (workers that
    start anew, a checkpoint), that counts as much as while recorded: the others tell how much longer recording makes
    steps."""
    mean, longest = _mean(bare), _LONG * sorted(recorded)[len(recorded) // 2] if recorded else 0
    usual = [ns for ns in recorded if ns <= longest]
    long = len(recorded) - len(usual)
    if mean is None or not long or len(bare) * long >= len(recorded) or max(bare) > longest:
        return mean
    return mean * sum(recorded) // len(recorded) * len(usual) // sum(usual)


def _mean(times: list[int]) -> int | None:
    return sum(times) // len(times) if times else None
