"""Relations between executions, against what they mean, said plainly."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stepscope.formats.tf1.relations import MOST_TRIED, latest_before, launching, repeated, timeline_lanes
from stepscope.trace.tables import NULL

SPANS = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 30), st.integers(0, 9)), max_size=40)


@given(SPANS)
def test_lanes_are_those_of_a_timeline(spans: list[tuple[int, int, int]]) -> None:
    """tensorflow/python/client/timeline.py, _assign_lanes: the first lane that ended before the execution begins."""
    ends: dict[int, list[int]] = {}
    expected = []
    for row, start, dur in spans:
        lanes = ends.setdefault(row, [0])
        lane = next((k for k, end in enumerate(lanes) if start > end), len(lanes))
        lanes[lane:] = [start + dur, *lanes[lane + 1 :]]
        expected.append(lane)
    row, start, dur = np.array(spans, np.int64).reshape(-1, 3).T
    assert timeline_lanes(row.astype(np.int32), start, start + dur).tolist() == expected


def test_however_many_overlap_the_work_is_bounded() -> None:
    count = MOST_TRIED + 500
    lanes = timeline_lanes(np.zeros(count, np.int32), np.arange(1, count + 1), np.full(count, 10**6))
    assert lanes.tolist() == list(range(count))


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.booleans()), max_size=30))
def test_each_entry_repeats_one_other_at_most(entries: list[tuple[int, int, bool]]) -> None:
    a, b = (np.array([entry[k] for entry in entries], np.int64) for k in (0, 1))
    again = np.array([entry[2] for entry in entries], np.bool_)
    mask, partner = repeated((a, b), again)
    others = Counter((x, y) for x, y, repeats in entries if not repeats)
    listed = Counter((x, y) for x, y, repeats in entries if repeats)
    assert mask.sum() == sum((others & listed).values())
    assert again[mask].all()
    assert not again[partner].any()
    assert len(set(partner.tolist())) == partner.size
    assert [entries[at][:2] for at in np.flatnonzero(mask)] == [entries[at][:2] for at in partner]


POINTS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), max_size=20)


@given(POINTS, POINTS)
def test_the_latest_by_then(queries: list[tuple[int, int]], members: list[tuple[int, int]]) -> None:
    (qg, qt), (mg, mt) = (np.array(points, np.int64).reshape(-1, 2).T for points in (queries, members))
    found = latest_before((qg.astype(np.int32), mg.astype(np.int32)), (qt, mt))
    for (group, time), at in zip(queries, found.tolist(), strict=True):
        before = [t for g, t in members if g == group and t <= time]
        assert (members[at] if at >= 0 else None) == ((group, max(before)) if before else None)


def test_launches_by_time_by_turn_and_by_order() -> None:
    """Node 0 runs twice and has four kernels; node 1 twice and three; node 2 says when it launched."""
    ops = np.array([0, 0, 0, 0, 1, 1, 1, 2, 3], np.int32)
    calls = np.array([0, 0, 1, 1, 2, 2], np.int32)
    begun = np.array([100, 110, 120, 130, 15, 25, 35, 90, 5], np.int64)
    called = np.array([0, 10, 10, 20, 0, 50], np.int64)
    scheduled = np.full(ops.size, NULL, np.int64)
    scheduled[7] = 40
    found = launching((ops, calls), (begun, called), scheduled)
    assert found.tolist() == [0, 0, 1, 1, 2, 3, 3, 4, -1]
