"""The bar: its cells add up and stay in proportion, and what is too small to see is folded, not lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stepscope.report import bar
from tests.report import documents


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=12), st.integers(12, 200))
def test_cells_fill_the_width_and_every_part_is_seen(weights: list[int], width: int):
    counts = bar.cells(weights, width)
    assert sum(counts) == width
    assert min(counts) >= 1


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=12), st.integers(12, 200))
def test_cells_are_in_proportion_but_for_what_the_smallest_parts_need(weights: list[int], width: int):
    counts = bar.cells(weights, width)
    total = sum(weights)
    lent = sum(1 for weight in weights if weight * width < total)
    for weight, count in zip(weights, counts, strict=True):
        assert -1 - lent < count - weight * width / total <= 1


def test_fewer_cells_than_parts():
    assert bar.cells([5, 3, 2], 2) == [1, 1, 0]


def test_parts_are_busy_first_and_largest_first_with_glyphs_of_their_own():
    parts = bar.parts_of(documents.input_bound()["summary"])
    assert [(part.busy, part.words) for part in parts] == [
        (True, "computing (kernels)"),
        (True, "copying host to device"),
        (True, "clearing memory (memset)"),
        (False, "waiting for input data"),
        (False, "host launching work"),
        (False, "host blocked by a sync"),
        (False, "other (3 small parts)"),
    ]
    assert len({part.glyph for part in parts}) == len(parts)


def test_small_parts_are_folded_and_their_time_kept():
    summary = documents.input_bound()["summary"]
    parts = bar.parts_of(summary)
    assert sum(part.ns for part in parts) == sum(summary["parts_ns_per_step"].values())
    assert (parts[-1].folded, parts[-1].ns) == (3, 910_000 + 204_000 + 64_000)


def test_the_largest_part_of_a_side_keeps_its_name_however_small():
    summary = documents.base({"compute": 3, "memset": 2, "copy_h2d": 1, "launch": 1_000_000})["summary"]
    assert [part.words for part in bar.parts_of(summary)] == [
        "computing (kernels)",
        "other (2 small parts)",
        "host launching work",
    ]


def test_one_small_part_keeps_its_name():
    summary = documents.base({"compute": 1_000_000, "memset": 10, "gc": 10})["summary"]
    assert [part.words for part in bar.parts_of(summary)] == [
        "computing (kernels)",
        "clearing memory (memset)",
        "Python garbage collector",
    ]


def test_more_large_parts_than_glyphs_are_folded_too():
    names = ("input", "sync", "launch", "python", "compile", "gc", "profiler", "dependency")
    parts = bar.parts_of(documents.base(dict.fromkeys(names, 1000))["summary"])
    assert len(parts) == 6
    assert (parts[-1].words, parts[-1].ns) == ("other (3 small parts)", 3000)


def test_a_profile_without_time_has_no_bar():
    assert bar.parts_of(documents.no_steps()["summary"]) == []
