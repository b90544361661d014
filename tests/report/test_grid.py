"""Frames as text: everything fits, nothing acts on the terminal, CSV and JSON are exact."""

from __future__ import annotations

import csv
import io
import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from stepscope.report import grid

FRAME = pl.DataFrame(
    {"name": ["aten::mm", None, "\x1b[31mred\x07\n"], "dur_ns": [1_234_567_890, 0, None], "share": [0.25, 1 / 3, None]}
)


def test_numbers_stand_to_the_right_as_they_are():
    lines = grid.table(FRAME, 80).splitlines()
    assert lines == [
        "name                   dur_ns     share",
        "aten::mm           1234567890      0.25",
        "null                        0  0.333333",
        "\\x1b[31mred\\x07\\n        null      null",
    ]


def test_long_texts_are_shortened_to_fit():
    frame = pl.DataFrame({"name": ["x" * 300], "other": ["y" * 300], "short": ["z"], "ns": [1 << 60]})
    (header, line) = grid.table(frame, 80).splitlines()
    assert len(line) == 80
    assert "…" in line
    assert "1152921504606846976" in line
    assert header.endswith("ns")


def test_what_does_not_fit_is_written_one_value_to_a_line():
    frame = pl.DataFrame({f"column_{i}": ["text" * 20] for i in range(12)})
    lines = grid.table(frame, 80).splitlines()
    assert lines[0].startswith("column_0   texttext")
    assert len(lines) == 12
    two = grid.table(pl.concat((frame, frame)), 80)
    assert two.count("\n\n") == 1


@given(
    st.lists(st.tuples(st.text(max_size=40), st.none() | st.integers(-(1 << 60), 1 << 60)), max_size=5),
    st.integers(40, 200),
)
def test_no_line_is_wider_than_the_terminal_or_acts_on_it(rows, width):
    frame = pl.DataFrame(rows, schema={"name": pl.String, "ns": pl.Int64}, orient="row")
    text = grid.table(frame, width)
    for line in text.splitlines():
        assert cell_len(line) <= width
    assert all(char.isprintable() or char == "\n" for char in text)


@given(st.lists(st.tuples(st.text(max_size=8), st.none() | st.integers(-9, 1 << 60), st.floats()), max_size=5))
def test_json_is_exact_and_in_ascii(rows):
    frame = pl.DataFrame(rows, schema={"name": pl.String, "ns": pl.Int64, "x": pl.Float64}, orient="row")
    text = "".join(grid.jsons(frame))
    assert text.isascii()
    expected = [
        {"name": name, "ns": ns, "x": x if abs(x) < float("inf") else None}  # NaN compares as not less
        for name, ns, x in rows
    ]
    assert json.loads(text) == expected


@given(st.lists(st.tuples(st.text("a,\"\n\x1b'", max_size=8), st.none() | st.integers(-9, 1 << 60)), max_size=5))
def test_csv_is_exact(rows):
    frame = pl.DataFrame(rows, schema={"name": pl.String, "ns": pl.Int64}, orient="row")
    read = list(csv.reader(io.StringIO("".join(grid.csv(frame)), newline="")))
    assert read == [["name", "ns"], *([name, "" if ns is None else str(ns)] for name, ns in rows)]


def test_csv_for_a_terminal_is_escaped():
    text = "".join(grid.csv(FRAME, escaped=True))
    assert all(char.isprintable() or char == "\n" for char in text)
    assert "\\x1b[31mred\\x07" in text


@pytest.mark.parametrize("write", [grid.csv, grid.jsons])
def test_many_rows_come_in_parts(write, monkeypatch):
    frame = pl.DataFrame({"n": range(7)})
    whole = "".join(write(frame))
    monkeypatch.setattr(grid, "_BATCH", 3)
    assert "".join(write(frame)) == whole
    assert len(list(write(frame))) > 2
