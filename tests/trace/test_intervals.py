"""Interval arithmetic against brute force: every instant of a small range is asked one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stepscope.trace import intervals as iv

END = 40
members = st.lists(st.tuples(st.integers(0, END), st.integers(-2, 12)), max_size=12)


def arrays(pairs):
    start = np.array([s for s, _ in pairs], np.int64)
    return start, start + np.array([d for _, d in pairs], np.int64)


def points(start, end) -> set[int]:
    return {t for s, e in zip(start.tolist(), end.tolist(), strict=True) for t in range(s, e)}


def assert_is_set(found: iv.Intervals) -> None:
    start, end = found
    assert (end > start).all()
    assert (start[1:] > end[:-1]).all() or (start[1:] >= end[:-1]).all()


@given(members)
def test_union_covers_what_any_member_covers(pairs):
    found = iv.union(*arrays(pairs))
    assert_is_set(found)
    assert (found[0][1:] > found[1][:-1]).all()
    assert points(*found) == points(*arrays(pairs))
    assert iv.measure(found) == len(points(*arrays(pairs)))


@given(st.lists(members, max_size=4))
def test_overlapping_covers_what_two_cover(sets):
    made = [iv.union(*arrays(pairs)) for pairs in sets]
    found = iv.overlapping(made)
    assert_is_set(found)
    covered = [points(*one) for one in made]
    assert points(*found) == {t for t in range(-2, 2 * END) if sum(t in one for one in covered) > 1}


@given(members, members)
def test_intersect_and_subtract_are_the_set_operations(first, second):
    a, b = iv.union(*arrays(first)), iv.union(*arrays(second))
    both, only = iv.intersect(a, b), iv.subtract(a, b)
    assert_is_set(both)
    assert_is_set(only)
    assert points(*both) == points(*a) & points(*b)
    assert points(*only) == points(*a) - points(*b)


@given(members, st.integers(0, END), st.integers(0, END))
def test_complement_and_clip_split_a_window(pairs, x, y):
    low, high = min(x, y), max(x, y)
    a = iv.union(*arrays(pairs))
    inside, outside = iv.clip(a, low, high), iv.complement(a, low, high)
    assert points(*inside) == {t for t in points(*a) if low <= t < high}
    assert points(*inside) | points(*outside) == set(range(low, high))
    assert iv.measure(inside) + iv.measure(outside) == high - low


@given(members, members)
def test_covered_between_counts_the_common_instants(pairs, windows):
    a = iv.union(*arrays(pairs))
    start, end = arrays([(s, max(d, 0)) for s, d in windows])
    expected = [len(points(*a) & set(range(s, e))) for s, e in zip(start.tolist(), end.tolist(), strict=True)]
    assert iv.covered_between(a, start, end).tolist() == expected


@given(st.lists(st.tuples(st.integers(0, END), st.integers(-1, 12), st.integers(0, 3)), max_size=14))
def test_sweep_gives_every_instant_to_the_lowest_class(members_of_class):
    start, end = arrays([(s, d) for s, d, _ in members_of_class])
    classes = np.array([c for _, _, c in members_of_class], np.uint8)
    found = iv.sweep(start, end, classes, 4)
    best: dict[int, int] = {}
    for s, e, c in zip(start.tolist(), end.tolist(), classes.tolist(), strict=True):
        for t in range(s, e):
            best[t] = min(c, best.get(t, 9))
    assert {t: c for s, e, c in zip(*(a.tolist() for a in found), strict=True) for t in range(s, e)} == best
    assert (found[0][1:] >= found[1][:-1]).all()
    merged = (found[0][1:] == found[1][:-1]) & (found[2][1:] == found[2][:-1])
    assert not merged.any()


def test_empty_sets():
    assert iv.measure(iv.union(*arrays([(3, 0), (5, -2)]))) == 0
    assert points(*iv.complement(iv.EMPTY, 2, 5)) == {2, 3, 4}
    assert points(*iv.subtract(iv.EMPTY, iv.EMPTY)) == set()
