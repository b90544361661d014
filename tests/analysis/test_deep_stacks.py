"""Stacks that nest without end: the same answers, in about as many steps as there are slices."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from stepscope.analysis import climbing
from stepscope.trace import forest
from stepscope.trace.tables import I32, Bools

DEEP = 3_000


class Counted:
    """An array that counts how often it is read."""

    def __init__(self, values: npt.NDArray[Any]) -> None:
        self.values = values
        self.size = values.size
        self.reads = 0

    def __getitem__(self, at: Any) -> Any:
        self.reads += 1
        return self.values[at]


def plain(function: Any) -> Any:
    return getattr(function, "py_func", function)


def forest_of(rng: np.random.Generator, size: int) -> I32:
    """Parents of slices, before their children: stacks and bushes."""
    back = np.where(rng.random(size) < 0.7, 1, rng.integers(1, 20, size))
    return np.maximum(np.arange(size) - back, -1).astype(np.int32)


def climbed_within(slice: int, function: int, is_python: Bools, parent: I32) -> int:
    """What the answer is, by its definition."""
    outermost = -1
    while slice >= 0 and slice != function:
        outermost = slice if is_python[slice] else outermost
        slice = int(parent[slice])
    return outermost if slice >= 0 else -1


@pytest.mark.parametrize("seed", range(20))
def test_answers_are_those_of_climbing_however_many_are_asked_for(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parent = forest_of(rng, 200)
    chosen = rng.random(200) < rng.choice([0.02, 0.3, 1.0])
    slices = rng.integers(-1, 200, 2_000).astype(np.int32)
    functions = rng.integers(-1, 200, 2_000).astype(np.int32)
    above = parent[np.maximum(slices, 0)]
    functions = np.where(rng.random(2_000) < 0.5, above, functions).astype(np.int32)
    functions = np.where(rng.random(2_000) < 0.5, parent[np.maximum(above, 0)], functions).astype(np.int32)
    asked = zip(slices.tolist(), functions.tolist(), strict=True)
    expected = [climbed_within(one, around, chosen, parent) if around >= 0 else -1 for one, around in asked]
    assert climbing.outermost_call_in(slices, functions, chosen, parent).tolist() == expected
    jumped = climbing._jump_within(slices, functions, *forest.ladders(parent, chosen), parent)
    assert jumped.tolist() == expected
    nearest = forest.inherit(np.where(chosen, np.arange(200), -1).astype(np.int32), parent)
    at = np.where(slices >= 0, nearest[slices], -1)
    assert climbing.nearest_chosen(slices, chosen, parent).tolist() == at.tolist()


def test_climbing_ends_when_it_has_taken_as_many_steps_as_there_are_slices() -> None:
    parent = Counted(np.arange(-1, DEEP - 1, dtype=np.int32))
    bottom, top = np.full(DEEP, DEEP - 1, np.int32), np.zeros(DEEP, np.int32)
    none, chosen = np.zeros(DEEP, np.bool_), np.zeros(DEEP, np.bool_)
    chosen[1] = True
    _, done = plain(climbing._climb)(bottom, none, parent)
    assert done < 3
    assert parent.reads < 3 * DEEP
    parent.reads = 0
    _, done = plain(climbing._climb_within)(bottom, top, chosen, parent)
    assert done < 3
    assert parent.reads < 3 * DEEP


def test_a_slice_far_above_is_reached_in_few_steps() -> None:
    chain = np.arange(-1, DEEP - 1, dtype=np.int32)
    parent, chosen = Counted(chain), np.zeros(DEEP, np.bool_)
    chosen[1] = True
    bottom, top = np.full(DEEP, DEEP - 1, np.int32), np.zeros(DEEP, np.int32)
    made = plain(climbing._jump_within)(bottom, top, *forest.ladders(chain, chosen), parent)
    assert (made == 1).all()
    assert parent.reads < 100 * DEEP  # of 3,000 levels


def test_points_behind_a_stack_climb_it_once() -> None:
    parent = Counted(np.arange(-1, DEEP - 1, dtype=np.int32))
    start = np.arange(DEEP, dtype=np.int64)
    dur = DEEP - start
    dur[0] = 10 * DEEP
    times = np.arange(2 * DEEP, 3 * DEEP, dtype=np.int64)
    rows = plain(forest._climb)(np.full(DEEP, DEEP - 1, np.int32), times, start, dur, parent)
    assert (rows == 0).all()
    assert parent.reads < 2 * DEEP
