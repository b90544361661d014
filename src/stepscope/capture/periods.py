"""Step times between the windows of a long run, in bounded memory."""

from __future__ import annotations

import statistics
import time
from collections import deque
from typing import Any

BLOCKS = 8
"""Parts of a period that are told apart: steps that follow each other are alike, so few and long ones."""
_KEPT_TIMES = 128
"""Steps of a block whose times are kept, for their median: validation and checkpoints are no drift."""
_SLOWER = 8
"""Steps may become this many times slower before a period lasts longer than it should."""
KEPT_PERIODS = 64
"""Periods that the manifest keeps; the tool beside the job has read older ones."""


class Period:
    """The steps from one window to the next, none of them recorded."""

    def __init__(self, number: int, seconds: float, first_step: int) -> None:
        self._number, self._first_step = number, first_step
        self._ns = max(1, int(seconds * 1e9))
        self._start_ns = time.time_ns()
        self._total_ns, self._steps = 0, 0
        self._blocks: list[list[int]] = [[] for _ in range(BLOCKS)]

    @property
    def is_over(self) -> bool:
        """Whether its steps took as long as it lasts."""
        return self._total_ns >= self._ns

    @property
    def may_pass(self) -> int:
        """Steps that end before the period does, also where they become slower."""
        mean = self._total_ns // self._steps if self._steps else 0
        return (self._ns - self._total_ns) // (_SLOWER * mean) if mean else 0

    def add(self, dur_ns: int) -> None:
        """One step."""
        block = self._blocks[min(BLOCKS * self._total_ns // self._ns, BLOCKS - 1)]
        if len(block) < _KEPT_TIMES:
            block.append(dur_ns)
        self._total_ns += dur_ns
        self._steps += 1

    def facts(self) -> dict[str, Any]:
        """For the manifest: ``step_ns`` is the mean, ``block_ns`` the median of each block that has steps."""
        return {
            "number": self._number,
            "start_ns": self._start_ns,
            "first_step": self._first_step,
            "steps": self._steps,
            "step_ns": self._total_ns // self._steps if self._steps else None,
            "block_ns": [int(statistics.median(block)) for block in self._blocks if block],
        }


class Periods:
    """One period after the other."""

    def __init__(self, seconds: float) -> None:
        self.over: deque[dict[str, Any]] = deque(maxlen=KEPT_PERIODS)
        """Facts of those that are over."""
        self._seconds, self._number = seconds, 0
        self._current: Period | None = None

    def begin(self, first_step: int, times: list[int]) -> None:
        """A period begins, in which some steps have been timed already."""
        self._current = Period(self._number, self._seconds, first_step)
        self._number += 1
        for dur in times:
            self._current.add(dur)

    def add(self, dur_ns: int) -> bool:
        """One step; whether the period is over with it."""
        if self._current is None:
            return False
        self._current.add(dur_ns)
        return self._current.is_over

    def may_pass(self) -> int:
        """Steps that end before the period does."""
        return self._current.may_pass if self._current is not None else 0

    def end(self) -> None:
        """The period ends here, if one runs."""
        if self._current is not None:
            self.over.append(self._current.facts())
            self._current = None
