"""The frames SQL finds: each column has a sentence, and a range of time narrows them all."""

from __future__ import annotations

import pytest

from stepscope.errors import UsageError
from stepscope.report import frames
from stepscope.report.labels import CATEGORIES
from stepscope.report.schema import load
from stepscope.trace import tables as t
from tests.kit.builder import TraceDrawing
from tests.report import documents
from tests.support import trace_of


def test_steps_and_accounting_have_the_columns_of_the_report():
    properties = load()["properties"]
    step, row = (properties[name]["items"] for name in ("steps", "accounting"))
    definitions = load()["$defs"]
    step, row = (definitions[part["$ref"].split("/")[-1]] if "$ref" in part else part for part in (step, row))
    document = documents.input_bound()
    assert set(frames.steps(document).columns) == set(step["properties"])
    assert set(frames.accounting(document).columns) == set(row["properties"]) - {"parts"} | set(CATEGORIES)
    assert frames.steps(document).height == len(document["steps"])
    first = frames.accounting(document).row(0, named=True)
    assert sum(first[name] or 0 for name in CATEGORIES) == first["dur_ns"]
    assert {name for name in CATEGORIES if first[name] is None} == {"collective_wait", "collective_transfer"}


def test_every_column_has_a_type_and_a_sentence():
    found = frames.columns()
    assert set(found["table"]) == {*t.TABLES, "ops", "host", "steps", "accounting", "critical_path"}
    assert found["type"].unique().sort().to_list() == ["boolean", "integer", "number", "text"]
    assert found["holds"].str.ends_with(".").all()
    listing = frames.listing(found)
    assert "\nslices: Every event with a duration" in listing
    assert "  self_ns" in listing


def test_a_range_of_time_narrows_every_table():
    drawing = TraceDrawing()
    for step in range(3):
        drawing.step(step, 100 * step, 100)
        drawing.host("aten::mm", 100 * step + 10, 50)
        drawing.memory(100 * step + 20, 512)
    document = {
        "steps": [
            dict.fromkeys(("rank", "number", "host_dur_ns", "basis", "inferred", "complete"))
            | {"index": at, "start_ns": 100_000 * at, "dur_ns": 100_000}
            for at in range(3)
        ],
        "accounting": [],
    }
    trace = trace_of(drawing.events())
    found = frames.by_name(trace, lambda: document, (110_000, 200_000), dict)
    assert found["host"]().filter(name="aten::mm").height == 1
    assert found["memory"]().height == 1
    assert found["steps"]()["index"].to_list() == [1]
    assert found["accounting"]().height == 0
    opened = frames.by_name(trace, lambda: document, (110_000, None), dict)
    assert opened["steps"]()["index"].to_list() == [1, 2]
    with pytest.raises(UsageError, match="holds nothing of the time"):
        frames.by_name(trace, lambda: document, (10**12, None), dict)
