"""Chrome traces of nobody in particular: which dialect reads them, and what becomes of their events."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path

import pytest

import stepscope
from stepscope.formats.chrome.generic import python_name
from tests.formats.chrome.chrome_files import event, linked, losses, named, read, read_bytes, rows, slice_, slices

# --- dialects -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("events", "dialect"),
    [
        ([slice_("a", 0, 1, cat="cpu_op")], "Kineto JSON"),
        ([slice_("a", 0, 1, cat="Kernel"), slice_("b", 5, 1, cat="mine")], "Kineto JSON"),
        ([slice_("a", 0, 1), named("process_name", "/host:CPU")], "XLA trace JSON"),
        ([slice_("a", 0, 1), named("process_name", "/device:TPU:0")], "XLA trace JSON"),
        ([slice_("a", 0, 1), named("process_name", "/job:x/device:CPU:0")], "Chrome trace JSON"),
        ([slice_("a", 0, 1, args={"name": "/host:CPU"})], "Chrome trace JSON"),
        ([slice_("f (a.py:3)", 0, 1, cat="FEE")], "Chrome trace JSON"),
    ],
)
def test_the_events_tell_the_dialect(events: list[dict[str, object]], dialect: str):
    assert read(*events).info.format == dialect
    assert read_bytes(json.dumps(events).encode()).info.format == dialect


def test_nothing_is_guessed_to_be_a_device():
    trace = read(slice_("kernel", 0, 5, pid=0, tid=7, args={"stream": 7, "device": 0, "correlation": 3}))
    assert (len(trace.device_ops), trace.info.devices, trace.info.framework) == (0, (), None)
    assert rows(trace, "tracks", "kind", "device", "stream") == [("host_thread", None, None)]


def test_the_report_says_that_no_device_was_recorded(tmp_path: Path):
    path = tmp_path / "trace.json"
    steps = [slice_(f"train {i}", 100 * i, 90) for i in range(6)]
    loads = [slice_("load_batch", 100 * i + 5, 60) for i in range(6)]
    path.write_text(json.dumps({"traceEvents": steps + loads}))
    profile = stepscope.open(path)
    document = profile.document()
    (told,) = (notice.text for notice in profile.notices if notice.code == "profile_functions_only")
    assert "no device" in told
    assert document["profile"]["devices"] == []
    assert [step["number"] for step in document["steps"]] == [0, 1, 2, 3, 4, 5]
    (row,) = [row for row in document["accounting"] if row["step"] == 3]
    assert row["parts"]["input"] == 60_000
    assert row["device"] is None


# --- tracks ---------------------------------------------------------------------------------------


def test_processes_and_threads_are_called_by_their_names():
    trace = read(
        named("process_name", "server"), named("thread_name", "main", tid=1),
        slice_("a", 0, 1), slice_("b", 1, 1, tid=2),
        named("process_name", "worker", pid=2), named("process_name", "worker", pid=3),
        slice_("c", 2, 1, pid=2), slice_("d", 3, 1, pid=3), slice_("e", 4, 1, pid=4),
    )  # fmt: skip
    of_slice = [trace.table("tracks").row(track, named=True) for (track,) in rows(trace, "slices", "track")]
    assert [(track["process"], track["thread"], track["label"]) for track in of_slice] == [
        ("server", "1", "main"), ("server", "2", None), ("worker (2)", "1", None), ("worker (3)", "1", None),
        ("4", "1", None),
    ]  # fmt: skip
    assert {str(track["kind"]) for track in of_slice} == {"host_thread"}


def test_kinds_and_steps():
    trace = read(slice_("load", 0, 1), slice_("train 7", 2, 1), slice_("ProfilerStep#3", 4, 1, cat="any"))
    assert rows(trace, "slices", "kind", "category") == [("annotation", None), ("step", None), ("step", "any")]


def test_unix_times_are_kept():
    assert read(slice_("a", "1705000000123456.789", 1)).info.origin_epoch_ns == 1705000000123456789
    assert read(slice_("a", 5, 1)).info.origin_epoch_ns is None


# --- VizTracer ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("step (/srv/train.py:12)", "/srv/train.py(12): step"),
        ("Net.forward (net.py:3)", "net.py(3): Net.forward"),
        ("f.<locals>.<lambda> (a (b).py:4)", "a (b).py(4): f.<locals>.<lambda>"),
        ("<module> (<frozen os>:5)", "<frozen os>(5): <module>"),
        ("f (C:\\Program Files (x86)\\a.py:6)", "C:\\Program Files (x86)\\a.py(6): f"),
        ("builtins.len", "<built-in function len>"),
        ("gc.collect", "<built-in function collect>"),
        ("time.sleep", "time.sleep"),
        ("train 3 (train.py:9)", "train 3"),
        ("my range (train.py:9)", "my range (train.py:9)"),
        ("odd (no line)", "odd (no line)"),
        ("", ""),
    ],
)
def test_names_of_functions(written: str, name: str):
    assert python_name(written) == name


def test_functions_of_viztracer_are_python_frames():
    events = [
        slice_("__next__ (/site-packages/torch/utils/data/dataloader.py:700)", 0, 50, cat="FEE"),
        slice_("train 4 (train.py:9)", 60, 5, cat="FEE"),
        slice_("my range (train.py:9)", 70, 5, cat="FEE"),
        slice_("train 5", 80, 5),
    ]
    trace = read(*events, viztracer_metadata={"version": "1.1.1", "baseTimeNanoseconds": 10**18})
    assert rows(trace, "slices", "kind", "name") == [
        ("python_frame", "/site-packages/torch/utils/data/dataloader.py(700): __next__"),
        ("step", "train 4"), ("annotation", "my range (train.py:9)"), ("step", "train 5"),
    ]  # fmt: skip
    assert trace.info.origin_epoch_ns == 10**18


# --- counters -------------------------------------------------------------------------------------


def counters(*events: dict[str, object]) -> list[tuple[int, str, float]]:
    return rows(read(slice_("always", 0, 1), *events), "counters", "time_ns", "name", "value")


def test_a_counter_has_a_row_per_series():
    assert counters(
        event("C", "queue", 1, args={"depth": 3}),
        event("C", "memory", 2, args={"used": 7, "free": 1.5}),
        event("C", "memory", 4, args={"used": 8}),
    ) == [(1000, "queue", 3), (2000, "memory: used", 7), (2000, "memory: free", 1.5), (4000, "memory: used", 8)]


def test_values_may_be_text_and_names_have_instances():
    assert counters(
        event("C", "heap", 1, id="0x1", args={"bytes": "12"}), event("C", "heap", 2, id=2, args={"bytes": -1e3}),
    ) == [(1000, "heap[0x1]", 12), (2000, "heap[2]", -1000)]  # fmt: skip


@pytest.mark.parametrize("args", [{}, {"a": "many"}, {"a": [1]}, {"a": None}, {"a": True}, None])
def test_a_counter_without_a_number_is_kept(args: object):
    ((_, name, value),) = counters(event("C", "n", 1, args=args))
    assert (name, value) == ("n", None)


def test_counters_with_and_without_numbers_stand_side_by_side():
    found = counters(event("C", "a", 1, args={"v": 1}), event("C", "b", 2), event("C", "a", 3, args={}))
    assert found == [(1000, "a", 1), (2000, "b", None), (3000, "a", None)]


def test_counters_of_a_large_compressed_file_with_damage_among_them():
    """More than one block of the file, and events that must be read one by one."""
    texts = [json.dumps(event("C", "n", i, args={"v": i, "text": "é" * 400})) for i in range(6000)]
    texts[10] = texts[10].replace('"text": "', '"text": "C:\\new')
    damaged = f"[{json.dumps(slice_('a', 0, 1))}, {', '.join(texts)}]".encode()
    for data in (damaged, gzip.compress(damaged)):
        found = [value for (value,) in rows(read_bytes(data), "counters", "value")]
        assert found[:20] == list(range(20))
        assert (len(found), sum(found)) == (12_000 // 2, 5999 * 3000)


def test_values_beyond_a_double_are_no_numbers():
    ((_, _, value),) = counters(event("C", "n", 1, args={"v": 10**400}))
    assert value is None or math.isinf(value)


# --- arrows ---------------------------------------------------------------------------------------


def flow(phase: str, ts: float, tid: int = 1, **more: object) -> dict[str, object]:
    return event(phase, "hand over", ts, tid=tid, **{"id": 1, "cat": "queue"} | more)


WORK = slice_("make", 0, 4), slice_("use", 10, 4, tid=2), slice_("inner", 11, 1, tid=2)


def arrows(*events: dict[str, object]) -> list[tuple[str, ...]]:
    trace = read(*WORK, *events)
    assert {str(kind) for (kind,) in rows(trace, "flows", "kind")} <= {"arrow"}
    return linked(trace, "flows", "source", "target")


def test_an_end_touches_the_next_slice_or_the_one_around_it():
    assert arrows(flow("s", 1), flow("f", 5, 2)) == [("make", "use")]
    assert arrows(flow("s", 1), flow("f", 10.5, 2)) == [("make", "inner")]
    assert arrows(flow("s", 1), flow("f", 10.5, 2, bp="e")) == [("make", "use")]
    assert arrows(flow("s", 1), flow("f", 5, 2, bp="e")) == []


def test_steps_make_a_chain_in_the_order_of_time():
    last = slice_("last", 30, 5)
    assert arrows(flow("f", 31, bp="e"), flow("t", 10.5, 2), flow("s", 1), last) == [("make", "use"), ("use", "last")]


def test_arrows_are_told_apart_by_category_name_and_id():
    for other in ({"cat": "x"}, {"name": "x"}, {"id": 2}, {"id": "1x"}):
        assert arrows(flow("s", 1), flow("f", 11, 2) | other) == []
    assert arrows(flow("s", 1, id="0xa"), flow("f", 10.5, 2, id="0xa", bp="e")) == [("make", "use")]


def test_open_arrows_are_counted_and_no_loss():
    trace = read(*WORK, flow("s", 1), flow("f", 5, 2, id=7), flow("s", 1, id=8), flow("f", 5, 2, id=8))
    assert losses(trace) == {"flow_open": (2, 0)}
    assert trace.completeness.rows == {"slices": 3, "flows": 2}
    assert trace.completeness.complete


def test_the_category_of_an_arrow_may_say_what_it_means():
    events = [flow("s", 1, cat="dataflow"), flow("f", 11, 2, cat="dataflow", bp="e")]
    assert rows(read(*WORK, *events), "flows", "kind") == [("dataflow",)]


# --- the rest -------------------------------------------------------------------------------------


def test_what_is_not_read_is_counted():
    others = [event(phase, "o", 1, id=1) for phase in "NODPvVc"]
    trace = read(slice_("a", 0, 1), *others, event("i", "mark", 2, s="g"), event("I", None, 3))
    assert losses(trace) == {"phase_unsupported": (7, 7), "name_missing": (1, 1)}
    assert rows(trace, "instants", "time_ns", "name") == [(2000, "mark")]


def test_arguments_are_read_when_asked_for(tmp_path: Path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps([event("B", "a", 0, args={"n": [1]}), event("E", "a", 5, args={"m": 2})]))
    assert stepscope.open(path).arguments([0]) == [{"n": [1]}]


def test_a_trace_of_every_phase_is_accounted_for():
    events = [event(phase, "a", i, id=1, dur=1, cat="c", args={}) for i, phase in enumerate("XBEbneSTFCiIRstfMNODPvVc")]
    found = read(*events).completeness
    assert found.events == len(events)
    outside = sum(loss.count for loss in found.losses if loss.code != "begin_unclosed")
    assert sum(found.rows.values()) + outside == found.events


def test_slices_keep_their_order_and_offsets():
    texts = [json.dumps(slice_(name, ts, 5)) for name, ts in (("late", 9), ("early", 1))]
    data = f"[{', '.join(texts)}]"
    trace = read_bytes(data.encode())
    assert slices(trace) == [("early", 0, 5000), ("late", 8000, 5000)]
    assert [offset for (offset,) in rows(trace, "slices", "offset")] == [data.index(texts[1]), data.index(texts[0])]
