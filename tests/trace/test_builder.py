"""The builder sorts, nests, renumbers and checks; nesting is compared with a brute-force definition."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.errors import TraceInvariantError
from stepscope.trace import tables as t
from stepscope.trace.builder import TraceBuilder, check
from stepscope.trace.forest import inherit, innermost_at
from stepscope.trace.trace import Completeness, Info

slices_on_tracks = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 20), st.integers(0, 10)), min_size=1, max_size=14
)


def build(rows, *, resolution_ns=1):
    """A trace of slices (track, start, duration), named by their position in ``rows``."""
    builder = TraceBuilder([f"s{i}" for i in range(len(rows))])
    for track in (0, 1):
        builder.track(t.TrackKind.HOST_THREAD, "1", str(track))
    track, start, dur = (np.array(column) for column in zip(*rows, strict=True))
    builder.slices(
        track=track.astype(np.int32),
        start_ns=start.astype(np.int64),
        dur_ns=dur.astype(np.int64),
        name=np.arange(len(rows), dtype=np.int32),
        kind=np.full(len(rows), t.Kind.HOST_OP, np.uint8),
    )
    return builder, Info("test", resolution_ns=resolution_ns), Completeness(len(rows), {"slices": len(rows)})


@given(slices_on_tracks)
def test_the_parent_is_the_innermost_earlier_slice_that_contains_the_whole(rows):
    builder, info, completeness = build(rows)
    slices = builder.build(info, completeness).slices
    start, end = slices.start_ns, slices.start_ns + slices.dur_ns
    for i in range(len(slices)):
        # ``rows`` are sorted, so earlier rows start earlier or last longer.
        around = [j for j in range(i) if slices.track[j] == slices.track[i] and end[j] + 1 >= end[i]]
        strictly = [j for j in around if end[j] > start[i]]
        assert int(slices.parent[i]) == max(strictly, default=-1)
    assert sorted(slices.name.tolist()) == list(range(len(rows)))


@given(slices_on_tracks, st.lists(st.tuples(st.integers(0, 1), st.integers(0, 30)), min_size=1, max_size=5))
def test_innermost_at_finds_a_slice_around_the_point_if_there_is_one(rows, places):
    builder, info, completeness = build(rows)
    slices = builder.build(info, completeness).slices
    tracks, times = (np.array(column) for column in zip(*places, strict=True))
    found = innermost_at(slices, tracks.astype(np.int32), times.astype(np.int64))
    for at, track, time in zip(found.tolist(), tracks.tolist(), times.tolist(), strict=True):
        if at >= 0:
            assert slices.track[at] == track
            assert slices.start_ns[at] <= time <= slices.start_ns[at] + slices.dur_ns[at]


def test_slice_ids_of_other_tables_follow_the_sorting():
    builder, info, completeness = build([(1, 5, 2), (0, 9, 1), (0, 3, 4)])
    builder.table(t.Launches(call=np.array([2], np.int32), op=np.array([0], np.int32), basis=np.zeros(1, np.uint8)))
    trace = builder.build(info, completeness)
    assert (trace.name_of(int(trace.launches.call[0])), trace.name_of(int(trace.launches.op[0]))) == ("s2", "s0")


def test_a_child_may_end_one_grain_after_its_parent():
    builder, info, completeness = build([(0, 0, 5000), (0, 1000, 5000)], resolution_ns=1000)
    assert builder.build(info, completeness).slices.parent.tolist() == [-1, 0]
    builder, info, completeness = build([(0, 0, 5000), (0, 1000, 5000)], resolution_ns=1)
    assert builder.build(info, completeness).slices.parent.tolist() == [-1, -1]


def test_values_are_inherited_from_the_innermost_slice_that_has_one():
    values = inherit(np.array([7, -1, 3, -1, -1], np.int32), np.array([-1, 0, 1, 2, -1], np.int32))
    assert values.tolist() == [7, 7, 3, 3, -1]


def test_columns_are_read_only_and_tables_become_frames_with_real_nulls():
    builder, info, completeness = build([(0, 1, 2), (1, 1, 3)])
    trace = builder.build(info, completeness)
    with pytest.raises(ValueError, match="read-only"):
        trace.slices.start_ns[0] = 5
    frame = trace.table("slices")
    assert frame["name"].to_list() == ["s0", "s1"]
    assert frame["kind"].to_list() == ["host_op", "host_op"]
    assert frame["correlation"].null_count() == 2
    assert trace.table("tracks")["device"].to_list() == [None, None]
    with pytest.raises(KeyError, match="there are tracks, slices"):
        trace.table("nonsense")


@pytest.mark.parametrize(
    ("column", "value", "complaint"),
    [
        ("dur_ns", -5, "negative duration"),
        ("track", 7, "out of range"),
        ("name", 99, "out of range"),
        ("start_ns", t.NULL, "absent in a row"),
        ("kind", 250, "out of range"),
    ],
)
def test_the_check_names_a_broken_promise(column, value, complaint):
    builder, info, completeness = build([(0, 1, 2), (0, 4, 2), (1, 1, 3)])
    trace = builder.build(info, completeness)
    broken = getattr(trace.slices, column).copy()
    broken[1] = value
    with pytest.raises(TraceInvariantError, match=complaint):
        check(dataclasses.replace(trace, slices=dataclasses.replace(trace.slices, **{column: broken})))


def test_every_table_can_be_empty():
    trace = TraceBuilder().build(Info("test"), Completeness(0, {}))
    for name, table in t.TABLES.items():
        assert trace.table(name).columns == [f.name for f in dataclasses.fields(table)]
