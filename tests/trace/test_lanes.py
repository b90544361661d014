"""Lanes for overlapping slices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.trace import lanes
from stepscope.trace.lanes import lanes_of

Spans = list[tuple[int, int, int]]
spans = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 12), st.integers(0, 8)), max_size=20).map(
    lambda found: sorted(found, key=lambda span: (span[0], span[1], -span[2]))
)


def lanes_for(found: Spans, *, nesting: bool) -> list[int]:
    columns = np.array(found, np.int64).reshape(-1, 3)
    return lanes_of(columns[:, 0].astype(np.int32), columns[:, 1], columns[:, 2], nesting=nesting).tolist()


@given(spans, st.booleans())
def test_slices_of_a_lane_nest_or_follow(found: Spans, nesting: bool):
    chosen = lanes_for(found, nesting=nesting)
    for i, (track, start, dur) in enumerate(found):
        for j, (other_track, other_start, other_dur) in enumerate(found[:i]):
            if (track, chosen[i]) == (other_track, chosen[j]) and start < other_start + other_dur:
                assert nesting
                assert start + dur <= other_start + other_dur


@given(spans)
def test_what_needs_no_second_lane_gets_none(found: Spans):
    """A slice moves only where each lane before has one it crosses."""
    chosen = lanes_for(found, nesting=True)
    for i, (track, start, dur) in enumerate(found):
        for lane in range(chosen[i]):
            around = [f for f, c in zip(found[:i], chosen, strict=False) if (f[0], c) == (track, lane)]
            assert any(s <= start < s + d < start + dur for _, s, d in around)


@pytest.mark.parametrize(("nesting", "expected"), [(True, [0, 0, 1, 0]), (False, [0, 1, 2, 0])])
def test_lanes_are_used_again(nesting: bool, expected: list[int]):
    assert lanes_for([(0, 0, 10), (0, 2, 5), (0, 4, 8), (0, 12, 3)], nesting=nesting) == expected


def test_many_lanes_and_the_limit_of_looking(monkeypatch: pytest.MonkeyPatch):
    found = [(0, i, 1000 + i) for i in range(200)]
    assert lanes_for(found, nesting=True) == list(range(200))
    plain = getattr(lanes._lanes_of, "py_func", lanes._lanes_of)
    monkeypatch.setattr(lanes, "MOST_TRIED", 2)
    columns = np.array([(0, 0, 9), (0, 1, 9), (0, 2, 9), (0, 3, 9), (0, 40, 1)], np.int64)
    assert plain(columns[:, 0].astype(np.int32), columns[:, 1], columns[:, 2], True).tolist() == [0, 1, 2, 3, 0]
