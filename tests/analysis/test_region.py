"""A stretch of time: every nanosecond of each device and thread once, under the name of what ran."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.analysis.region import REGION, region
from stepscope.errors import UsageError
from tests.kit.builder import TraceDrawing
from tests.kit.random_traces import random_traces
from tests.support import facts_of

OWNER = ["device", "process", "thread", "label"]


@given(random_traces(), st.integers(-1_000, 60_000), st.integers(1, 60_000))
def test_the_rows_of_each_device_and_thread_sum_to_the_range(events, start, length):
    found = region(facts_of(events), start, start + length)
    assert found.schema == REGION
    sums = found.group_by(OWNER).agg(pl.col("self_ns").sum(), pl.col("share").sum())
    assert (sums["self_ns"] == length).all()
    assert ((sums["share"] - 1).abs() < 1e-9).all()
    assert (found["self_ns"] > 0).all()


def loop() -> TraceDrawing:
    drawing = TraceDrawing()
    drawing.step(1, 0, 200)
    drawing.input_wait(0, 60)
    drawing.host("aten::mm", 60, 40)
    launch = drawing.launch(70, 10)
    drawing.kernel(launch, "gemm", 90, 60)
    drawing.host("aten::item", 20, 30, thread="loader")
    return drawing


def rows(frame: pl.DataFrame, *columns: str) -> list[tuple[object, ...]]:
    return frame.select(columns).rows()


def test_what_ran_is_listed_largest_first():
    found = region(facts_of(loop().events()), 50_000, 110_000)
    device = found.filter(pl.col("device").is_not_null())
    assert device["self_ns"].to_list() == [20_000, 20_000, 10_000, 10_000]
    assert set(rows(device, "kind", "name", "self_ns", "count")) == {
        ("busy", "compute", 20_000, 1),
        ("idle", "launch", 20_000, 2),  # before the call in aten::mm, and the call itself
        ("idle", "launch_latency", 10_000, 1),
        ("idle", "input", 10_000, 1),
    }
    main = found.filter(pl.col("device").is_null())
    assert main["name"][0] == "aten::mm"
    assert set(rows(main, "name", "kind", "self_ns", "count")) == {
        ("aten::mm", "host_op", 30_000, 1),
        ("cudaLaunchKernel", "runtime_call", 10_000, 1),
        ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "annotation", 10_000, 1),
        ("ProfilerStep#1", "step", 10_000, 1),
    }
    assert main["share"][0] == 0.5


def test_only_threads_that_did_something_are_listed_the_busiest_first():
    facts = facts_of(loop().events())
    threads = region(facts, 0, 60_000).filter(pl.col("device").is_null())
    assert threads["thread"].n_unique() == 2
    assert threads.filter(pl.col("name").is_null())["self_ns"].to_list() == [30_000]
    assert threads["name"].to_list()[-2:] == ["aten::item", None]
    assert region(facts, 60_000, 90_000).filter(pl.col("device").is_null())["thread"].n_unique() == 1


def test_time_outside_of_what_a_device_recorded_has_no_name():
    found = region(facts_of(loop().events()), 140_000, 170_000)
    assert rows(found.filter(pl.col("device").is_not_null()), "kind", "name", "self_ns", "count") == [
        ("busy", "compute", 10_000, 1),
        (None, None, 20_000, None),
    ]


def test_an_empty_range_is_refused():
    with pytest.raises(UsageError, match="ends after it starts"):
        region(facts_of(loop().events()), 5, 5)
