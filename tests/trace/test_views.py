"""Views: joins with the numbers by which tables refer to each other."""

from __future__ import annotations

import polars as pl
from hypothesis import given

from stepscope.trace import tables as t
from stepscope.trace import views
from stepscope.trace.builder import TraceBuilder
from stepscope.trace.forest import on_host_threads
from stepscope.trace.trace import Completeness, Info
from tests.kit.builder import TraceDrawing
from tests.support import trace_of
from tests.trace.traces import traces

EMPTY = TraceBuilder().build(Info("test"), Completeness(0, {}))


def test_tables_that_others_refer_to_are_numbered():
    assert set(views.NUMBERED) == {"slices", "tracks"}
    assert views.numbered(EMPTY, "slices").columns[0] == "id"
    assert views.numbered(EMPTY, "launches").columns[0] == "call"


@given(traces())
def test_a_numbered_table_is_the_declared_one(trace):
    for name in t.TABLES:
        frame = views.numbered(trace, name)
        assert pl.Enum not in frame.dtypes
        texts = [column for column, kind in trace.table(name).schema.items() if kind == pl.Enum]
        declared = trace.table(name).with_columns(pl.col(texts).cast(pl.String))
        assert frame.drop("id", strict=False).equals(declared)
        if name in views.NUMBERED:
            assert frame["id"].to_list() == list(range(frame.height))


@given(traces())
def test_the_views_hold_what_the_tables_say(trace):
    slices = views.numbered(trace, "slices")
    ops = views.ops(trace)
    assert ops.columns == list(views.OPS)
    for row, declared in zip(ops.rows(named=True), trace.table("device_ops").rows(named=True), strict=True):
        own = slices.row(declared["slice"], named=True)
        assert [row[name] for name in ("id", "name", "kind", "start_ns")] == [
            own[name] for name in ("id", "name", "kind", "start_ns")
        ]
        assert (row["device"], row["bytes"], row["launch"]) == (
            declared["device"], declared["bytes"], declared["launch"]
        )  # fmt: skip
        call = None if row["launch"] is None else slices.row(row["launch"], named=True)
        assert row["launch_name"] == (call and call["name"])
        assert row["launch_start_ns"] == (call and call["start_ns"])
    host = views.host(trace)
    assert host.columns == list(views.HOST)
    tracks = trace.table("tracks")
    on_host = [id for id, track in slices.select("id", "track").rows() if tracks["kind"][track] == "host_thread"]
    assert host["id"].to_list() == on_host
    assert (host["self_ns"] <= host["dur_ns"]).all()


def test_a_launch_and_its_thread_stand_beside_the_op():
    drawing = TraceDrawing()
    op = drawing.host("aten::mm", 0, 20)
    drawing.kernel(drawing.launch(5, 5), "gemm", 50, 10)
    drawing.kernel(None, "lonely", 70, 10)
    trace = trace_of(drawing.events())
    known, unknown = sorted(views.ops(trace).rows(named=True), key=lambda row: row["start_ns"])
    assert (known["name"], known["launch_name"], known["launch_start_ns"]) == ("gemm", "cudaLaunchKernel", 5_000)
    thread = views.host(trace).filter(name=op.name)["thread"][0]
    assert known["launch_thread"] == thread
    assert [unknown[name] for name in views.OPS if name.startswith("launch")] == [None] * 4
    own = views.host(trace).filter(pl.col("name").is_in(["aten::mm", "cudaLaunchKernel"])).sort("start_ns")
    assert own["self_ns"].to_list() == [15_000, 5_000]


def test_views_of_nothing_are_empty():
    assert views.ops(EMPTY).columns == list(views.OPS)
    assert views.host(EMPTY).columns == list(views.HOST)
    assert views.ops(EMPTY).height == views.host(EMPTY).height == 0


@given(traces())
def test_the_slices_of_host_threads_are_those_whose_track_is_one(trace):
    on_host = trace.tracks.kind[trace.slices.track] == t.TrackKind.HOST_THREAD
    assert on_host_threads(trace).tolist() == on_host.tolist()
