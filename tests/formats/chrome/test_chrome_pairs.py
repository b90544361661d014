"""Begins and ends become slices: nested, crossing, nameless, unmatched, in any order, synchronous or not."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.formats.chrome import pairs
from tests.formats.chrome.chrome_files import Event, event, losses, read, read_bytes, rows, slice_, slices

ALWAYS = slice_("always", 0, 1, tid=9)
"""A trace without any slice is none."""


def pair(*events: Event) -> list[tuple[str, int, int]]:
    return [found for found in slices(read(ALWAYS, *events)) if found[0] != "always"]


def test_a_begin_and_its_end_are_one_slice():
    trace = read(event("B", "load", 1, args={"n": 3}), event("E", "load", 4.5))
    assert slices(trace) == [("load", 0, 3500)]
    assert trace.completeness.rows == {"slices": 2}
    assert trace.completeness.complete


@pytest.mark.parametrize("name", [None, "inner"])
def test_ends_close_the_innermost_with_or_without_a_name(name: str | None):
    assert pair(
        event("B", "outer", 0), event("B", "inner", 2), event("E", name, 3), event("E", None, 9),
    ) == [("outer", 0, 9000), ("inner", 2000, 1000)]  # fmt: skip


def test_an_end_with_a_name_closes_the_innermost_of_that_name():
    """Ranges that cross: what tools write whose ranges are not scopes."""
    assert pair(
        event("B", "a", 0), event("B", "b", 2), event("E", "a", 5), event("E", "b", 7),
    ) == [("a", 0, 5000), ("b", 2000, 5000)]  # fmt: skip


def test_a_name_again_inside_itself():
    assert pair(
        event("B", "f", 0), event("B", "f", 1), event("E", "f", 2), event("E", "f", 9),
    ) == [("f", 0, 9000), ("f", 1000, 1000)]  # fmt: skip


def test_threads_do_not_meet():
    begin, other_end = event("B", "a", 0), event("E", "a", 5, tid=2)
    trace = read(ALWAYS, begin, other_end, event("E", "a", 7))
    assert ("a", 0, 7000) in slices(trace)
    assert losses(trace) == {"end_unmatched": (1, 1)}
    assert not trace.completeness.complete


def test_the_order_in_the_file_does_not_matter():
    events = [event("B", "a", 0), event("B", "b", 2), event("E", None, 5), event("E", None, 9)]
    assert pair(*events[::-1]) == pair(*events) == [("a", 0, 9000), ("b", 2000, 3000)]


@pytest.mark.parametrize("name", [None, "a"])
def test_an_end_written_before_the_begin_of_the_same_instant_closes_it(name: str | None):
    assert pair(event("E", name, 5), event("B", "a", 5)) == [("a", 5000, 0)]


def test_one_range_may_end_when_the_next_begins():
    events = event("B", "a", 0), event("E", None, 5), event("B", "b", 5), event("E", None, 8)
    assert pair(*events) == [("a", 0, 5000), ("b", 5000, 3000)]


def test_a_begin_that_nothing_ends_lasts_until_the_last_event_of_its_thread():
    trace = read(event("B", "a", 0), slice_("b", 3, 4), event("i", "mark", 6), slice_("other", 0, 50, tid=2))
    assert slices(trace) == [("a", 0, 7000), ("b", 3000, 4000), ("other", 0, 50_000)]
    assert losses(trace) == {"begin_unclosed": (1, 0)}
    assert trace.completeness.complete


def test_what_the_begin_lacks_is_counted_with_both_events():
    """A slice without a name is none; its end is lost with it."""
    trace = read(ALWAYS, event("B", None, 1), event("E", None, 2))
    assert losses(trace) == {"name_missing": (1, 1), "end_unmatched": (1, 1)}


def test_begins_of_kineto_files_keep_their_category():
    trace = read(event("B", "ProfilerStep#3", 0, cat="user_annotation"), event("E", None, 5))
    assert trace.info.format == "Kineto JSON"
    assert rows(trace, "slices", "name", "kind", "category") == [("ProfilerStep#3", "step", "user_annotation")]


# --- asynchronous ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("begin", "end"), ["be", "SF"])
def test_asynchronous_operations_lie_on_tracks_of_their_own(begin: str, end: str):
    trace = read(
        slice_("work", 0, 9),
        event(begin, "request", 1, cat="net", id="0x1"),
        event(end, "request", 7, cat="net", id="0x1", tid=5),
    )
    assert slices(trace) == [("work", 0, 9000), ("request", 1000, 6000)]
    assert rows(trace, "slices", "kind", "parent") == [("annotation", None), ("annotation", None)]
    assert rows(trace, "tracks", "kind", "thread") == [("host_thread", "1"), ("other", "net (async)")]


def test_operations_are_told_apart_by_process_category_and_id():
    def operation(start: int, **key: Any) -> list[Event]:
        return [event("b", "x", start, **key), event("e", "x", start + 10, **key)]

    keys = [{"cat": "a", "id": 1}, {"cat": "a", "id": 2}, {"cat": "b", "id": 1}, {"cat": "a", "id": 1, "pid": 2},
            {"cat": "a", "id2": {"local": "0x1"}}, {"cat": "a", "id": "z"}]  # fmt: skip
    events = [one for start, key in enumerate(keys) for one in operation(start, **key)]
    assert sorted(pair(*events)) == [("x", 1000 * start, 10_000) for start in range(len(keys))]


def test_overlapping_operations_get_lanes_and_nested_ones_stay_inside():
    def operation(name: str, start: int, end: int, number: int) -> list[Event]:
        return [event("b", name, start, cat="rpc", id=number), event("e", name, end, cat="rpc", id=number)]

    trace = read(
        ALWAYS, *operation("first", 0, 10, 1), *operation("part", 2, 4, 1), *operation("second", 3, 12, 2),
        *operation("third", 11, 13, 3),
    )  # fmt: skip
    tracks = [thread for (thread,) in rows(trace, "tracks", "thread")]
    found = {name: (tracks[track], depth) for name, track, depth in rows(trace, "slices", "name", "track", "depth")}
    assert found == {
        "always": ("9", 0), "first": ("rpc (async)", 0), "part": ("rpc (async)", 1), "second": ("rpc (async) (2)", 0),
        "third": ("rpc (async)", 0),
    }  # fmt: skip


def test_steps_of_asynchronous_operations_are_instants():
    trace = read(ALWAYS, *(event(phase, "tick", 3, cat="c", id=1) for phase in "nTp"))
    assert rows(trace, "instants", "time_ns", "name") == [(3000, "tick")] * 3


# --- any input ------------------------------------------------------------------------------------

names = st.sampled_from(["a", "b", None])
moments = st.lists(st.tuples(st.sampled_from("BBE"), st.integers(0, 12), names), max_size=14)


@given(moments)
def test_every_begin_is_a_slice_and_every_end_is_counted_once(found: list[tuple[str, int, str | None]]):
    begins = [(name, ts) for phase, ts, name in found if phase == "B" and name]
    trace = read(slice_("always", 0, 1), *(event(phase, name, ts) for phase, ts, name in found))
    kept = [(name, start // 1000) for name, start, _ in slices(trace) if name != "always"]
    assert sorted(kept) == sorted(begins)
    lost = sum(count for _, count in losses(trace).values())
    assert sum(trace.completeness.rows.values()) + lost == trace.completeness.events == len(found) + 1


@st.composite
def scopes(draw: st.DrawFn, low: int = 0, high: int = 4000, depth: int = 3) -> list[tuple[str, int, int]]:
    """Properly nested ranges, no two edges at one time."""
    edges = sorted(draw(st.sets(st.integers(low + 1, high - 1), max_size=6)))
    found = []
    for start, end in zip(edges[::2], edges[1::2], strict=False):
        found.append((draw(st.sampled_from(["f", "g"])), start, end))
        if depth and end - start > 3:
            found += draw(scopes(start, end, depth - 1))
    return found


@given(scopes(), st.booleans(), st.randoms(use_true_random=False))
def test_nested_ranges_are_found_again_from_shuffled_edges(found: list[tuple[str, int, int]], named: bool, random: Any):
    edges = [event("B", name, start) for name, start, _ in found]
    edges += [event("E", name if named else None, end) for name, _, end in found]
    random.shuffle(edges)
    assert sorted(pair(*edges)) == sorted((name, 1000 * start, 1000 * (end - start)) for name, start, end in found)


@given(moments)
def test_the_kernel_does_the_same_without_numba(found: list[tuple[str, int, str | None]]):
    place = np.zeros(len(found), np.int32)
    group = np.array(["ab".index(name) if name else 2 for _, _, name in found], np.int32)
    ts = np.sort(np.array([ts for _, ts, _ in found], np.int64))
    is_end = np.array([phase == "E" for phase, _, _ in found], np.bool_)
    wild = is_end & (group == 2)
    plain = getattr(pairs._match, "py_func", pairs._match)
    assert pairs._match(place, group, ts, is_end, wild).tolist() == plain(place, group, ts, is_end, wild).tolist()


def test_many_begins_that_nothing_ends_take_no_time():
    """Looking for the begin of an end must not walk over all that are open."""
    count = 40_000
    opened = ",".join(f'{{"ph":"B","name":"n{i}","pid":1,"tid":1,"ts":{i}}}' for i in range(count))
    closed = ",".join(f'{{"ph":"E","name":"m","pid":1,"tid":1,"ts":{count + i}}}' for i in range(count))
    trace = read_bytes(f"[{opened},{closed}]".encode())
    assert losses(trace) == {"end_unmatched": (count, count), "begin_unclosed": (count, 0)}
    assert json.dumps(trace.completeness.rows) == json.dumps({"slices": count})
