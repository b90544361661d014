"""Slices that cross each other, as no thread's do: nested as ever, in time that grows as their number does."""

from __future__ import annotations

import numpy as np
import pytest

from stepscope.trace import forest
from stepscope.trace.forest import nest


def expected(track: list[int], start: list[int], end: list[int], grain: int) -> list[int]:
    """The parent of each: the last before it that has not ended and ends no earlier, but for the grain."""
    return [
        next(
            (j for j in range(i - 1, -1, -1)
             if track[j] == track[i] and end[j] > start[i] and end[j] + grain >= end[i]), -1,
        )
        for i in range(len(track))
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_the_parent_is_the_last_that_holds_a_slice(seed: int) -> None:
    random = np.random.default_rng(seed)
    track, start, dur = random.integers(0, 2, 60), random.integers(0, 60, 60), random.integers(0, 25, 60)
    order = np.lexsort((-dur, start, track))
    track, start, dur = track[order].astype(np.int32), start[order], dur[order]
    for grain in (0, 2):
        parent, depth = nest(track, start, dur, np.zeros(60, np.bool_), grain)
        assert parent.tolist() == expected(track.tolist(), start.tolist(), (start + dur).tolist(), grain)
        assert depth.tolist() == [0 if up < 0 else depth[up] + 1 for up in parent.tolist()]


class Counted(list[int]):
    """A column that counts how often it is looked into."""

    looks = 0

    def __getitem__(self, at: object) -> int:  # type: ignore[override]
        self.looks += 1
        return super().__getitem__(at)  # type: ignore[index, no-any-return]


@pytest.mark.parametrize("reach", [3, 5_000])
def test_a_chain_of_crossing_slices_is_walked_once(reach: int) -> None:
    count = 2_000
    start, dur = Counted(range(count)), Counted([reach] * count)
    forest._nest.py_func(np.zeros(count, np.int32), start, dur, np.zeros(count, np.bool_), 0)  # type: ignore[attr-defined]
    assert dur.looks < 6 * count


def test_a_mark_of_a_step_holds_only_what_the_function_that_it_crosses_does_not() -> None:
    # update [0, 50) with an op; from 10 on the step, to 90, in which the next update [60, 120) begins with an op.
    start, dur = np.array([0, 10, 20, 52, 60, 70]), np.array([50, 80, 10, 5, 60, 10])
    track, marks = np.zeros(6, np.int32), np.array([0, 1, 0, 0, 0, 0], np.bool_)
    assert nest(track, start, dur, marks, 1)[0].tolist() == [-1, -1, 0, 1, -1, 4]
    assert nest(track, start, dur, ~marks & False, 1)[0].tolist() == [-1, -1, 1, 1, -1, 4]
