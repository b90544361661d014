"""Timelines say what their StepStats say, as far as the JSON goes; every event ends in a table or is counted."""

from __future__ import annotations

import copy
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.analysis.analyse import analyse
from stepscope.errors import InputError
from stepscope.formats.chrome import read as chrome
from stepscope.formats.chrome.scan import read_events
from stepscope.formats.tf1 import step_stats, timeline
from stepscope.inputs.source import Source
from stepscope.trace.trace import Trace
from tests.captures.environments import framework_python
from tests.kit import gpu_runs
from tests.kit.step_stats import CPU, EPOCH_US
from tests.kit.timelines import said
from tests.kit.traces import real_trace

Event = dict[str, Any]
Read = Callable[[list[Event]], Trace]
RUN = "timeline/tf1_run_metadata.pb"
TIMELINES = ("timeline/tf1_timeline.json", "timeline/tf1_timeline_memory.json", "timeline/tf1_timeline_nodataflow.json")


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Read:
    path = tmp_path_factory.mktemp("timeline") / "profile"

    def reading(events: list[Event]) -> Trace:
        path.write_text(json.dumps({"traceEvents": events}))
        return chrome.read(Source(path))

    return reading


def process(pid: int, name: str) -> Event:
    return {"name": "process_name", "ph": "M", "pid": pid, "args": {"name": name}}


def op(pid: int, tid: int, start: int, dur: int, name: str, kind: str, *inputs: str, **more: Any) -> Event:
    args = {"name": name, "op": kind, **{f"input{k}": given for k, given in enumerate(inputs)}, **more}
    place = {"ph": "X", "cat": "Op", "name": kind, "pid": pid, "tid": tid}
    return place | {"ts": EPOCH_US + start, "dur": dur, "args": args}


def tensor(phase: str, pid: int, tid: int, ts: int, name: str, number: int, described: str | None = None) -> Event:
    args = {} if described is None else {"args": {"snapshot": {"tensor_description": described}}}
    place = {"ph": phase, "cat": "Tensor", "name": name, "pid": pid, "tid": tid, "ts": EPOCH_US + ts, "id": number}
    return place | args


FLOAT = (
    "dtype: DT_FLOAT\nshape {\n  dim {\n    size: 4\n  }\n  dim {\n  }\n}\nallocation_description {\n"
    "  requested_bytes: 16\n  allocated_bytes: 256\n  allocator_name: cpu\n  ptr: 94813\n}\n"
)
TWO = [
    process(0, "Allocators"),
    process(1, f"{CPU} Compute"),
    process(2, f"{CPU} Tensors"),
    tensor("N", 2, 0, 0, "a", 0),
    tensor("O", 2, 0, 4, "a", 0, FLOAT),
    op(1, 0, 0, 5, "a", "Const"),
    op(1, 1, 3, 9, "b", "MatMul", "a", "w:1"),
    {"ph": "s", "cat": "DataFlow", "name": "a", "pid": 1, "tid": 0, "ts": EPOCH_US + 5, "id": 0},
    {"ph": "t", "cat": "DataFlow", "name": "a", "pid": 1, "tid": 1, "ts": EPOCH_US + 3, "id": 0},
    tensor("D", 2, 0, 11, "a", 0),
    {"ph": "C", "cat": "Memory", "name": "cpu", "pid": 0, "tid": 0, "ts": EPOCH_US, "args": {"cpu": 16}},
    {"ph": "C", "cat": "Memory", "name": "cpu", "pid": 0, "tid": 0, "ts": EPOCH_US + 11, "args": {"cpu": 0}},
]


def test_every_event_ends_in_a_table(read: Read) -> None:
    trace = read(TWO)
    assert (trace.info.format, trace.info.framework) == ("TensorFlow Timeline", "TensorFlow")
    assert trace.completeness.rows == {"slices": 2, "counters": 2, "flows": 2, "tensors": 3, "metadata": 3}
    assert trace.completeness.events == len(TWO)
    assert trace.completeness.complete
    assert trace.table("slices").select("start_ns", "dur_ns", "name", "kind").rows() == [
        (0, 5_000, "Const", "host_op"),
        (3_000, 9_000, "MatMul", "host_op"),
    ]
    assert trace.table("nodes").select("node", "op", "inputs", "placement").rows() == [
        ("a", "Const", None, CPU),
        ("b", "MatMul", "a, w:1", CPU),
    ]
    assert trace.table("flows").select("source", "target").rows() == [(0, 1)]
    assert trace.table("tensors").row(0) == (0, 0, "DT_FLOAT", "[4,0]", 16, 256, "cpu", 94813)
    assert trace.table("counters").select("time_ns", "name", "value").rows() == [(0, "cpu", 16.0), (11_000, "cpu", 0.0)]


def test_lanes_are_not_threads(read: Read) -> None:
    labels = read(TWO).table("tracks").filter(kind="host_thread")["label"]
    assert labels.to_list() == ["lane 0 (not a thread)", "lane 1 (not a thread)"]
    host = read([*TWO, process(9, "/host:CPU Compute"), op(9, 0, 0, 3, "SessionRun", "unknown")])
    (track,) = host.table("tracks").filter(process="/host:CPU").to_dicts()
    assert track["label"] == "lane 0 (not a thread)"


def test_arrows_need_no_flow_events(read: Read) -> None:
    without = [event for event in TWO if event["ph"] not in "st"]
    assert read(without).table("flows").rows() == read(TWO).table("flows").rows()


def test_an_output_beside_the_first(read: Read) -> None:
    trace = read([*TWO, tensor("N", 2, 1, 3, "b:2", 1), tensor("O", 2, 1, 11, "b:2", 1, "dtype: DT_INT64\n")])
    row = trace.table("tensors").row(1, named=True)
    assert (row["slice"], row["slot"], row["dtype"], row["shape"], row["requested"]) == (1, 2, "DT_INT64", None, None)


def test_a_tensor_that_no_execution_put_out_is_counted(read: Read) -> None:
    trace = read([*TWO, tensor("O", 2, 0, 4, "b", 1, FLOAT), tensor("O", 2, 0, 77, "c", 1, FLOAT)])
    assert {loss.code: loss.lost_events for loss in trace.completeness.losses} == {"tensor_unmatched": 2}


@pytest.mark.parametrize(
    ("event", "code"),
    [
        ({"ph": "v", "pid": 1, "ts": 3, "name": "dump"}, "phase_unsupported"),
        (op(1, 0, 99, -3, "c", "Const"), "duration_negative"),
        ({**op(1, 0, 99, 3, "c", "Const"), "ts": 0}, "time_out_of_range"),
        ({**op(1, 0, 99, 3, "c", "Const"), "dur": None}, "time_out_of_range"),
        ({"ph": "C", "name": "cpu", "pid": 0, "tid": 0, "args": {"cpu": 16}}, "counter_damaged"),
    ],
)
def test_what_cannot_become_a_row_is_counted(read: Read, event: Event, code: str) -> None:
    trace = read([*TWO, event])
    (loss,) = trace.completeness.losses
    assert (loss.code, loss.lost_events) == (code, 1)
    assert sum(trace.completeness.rows.values()) == len(TWO)


def test_kernels_of_rocm_have_their_names(read: Read) -> None:
    gpu = [process(3, "/device:GPU:0/stream:7 Compute"), op(3, 0, 9, 3, "b", "MatMul", kernel="Cijk_gemm regs:8 shm:0")]
    trace = read([*TWO, *gpu])
    assert trace.table("slices").filter(kind="kernel")["name"].to_list() == ["Cijk_gemm"]
    assert trace.table("device_ops")["registers"].to_list() == [8]


def test_very_many_inputs_are_kept_in_part_and_it_says_so(read: Read) -> None:
    trace = read([*TWO, op(1, 0, 20, 3, "all", "ConcatV2", *(f"x{k}" for k in range(40)))])
    assert trace.table("nodes")["inputs"][2].split(", ") == [f"x{k}" for k in range(32)]
    assert [loss.code for loss in trace.completeness.losses] == ["inputs_many"]


@pytest.mark.parametrize(
    "events",
    [
        [{**event, "cat": "op"} for event in TWO if event["ph"] in "XM"],
        [event for event in TWO if event["ph"] == "X"],
        [*(event for event in TWO if event["ph"] == "X"), process(1, "python Compute")],
        [*(event for event in TWO if event["ph"] == "M"), op(7, 0, 0, 1, "a", "Const")],
    ],
    ids=["other category", "no processes", "no device", "in another process"],
)
def test_other_traces_are_no_timelines(tmp_path: Path, events: list[Event]) -> None:
    (tmp_path / "a").write_text(json.dumps({"traceEvents": events}))
    assert not timeline.recognise(read_events(Source(tmp_path / "a")))


@given(st.data())
def test_no_values_make_it_crash(read: Read, data: st.DataObject) -> None:
    odd = st.sampled_from([None, "", "text", -1, 0, 1 << 70, 3.5, [], {}, {"a": 1}, "\ud800", True])
    events = copy.deepcopy(TWO)
    for _ in range(data.draw(st.integers(1, 6))):
        event = data.draw(st.sampled_from(events))
        inside = event.get("args")
        target = inside if isinstance(inside, dict) and inside and data.draw(st.booleans()) else event
        target[data.draw(st.sampled_from(sorted(target)))] = copy.deepcopy(data.draw(odd))
    try:
        facts = analyse(read(events))
    except InputError:
        return
    assert all((account.parts.sum(axis=1) == account.duration_ns).all() for account in facts.accounts)


@pytest.mark.parametrize("name", TIMELINES)
@pytest.mark.real
def test_a_real_timeline_says_what_its_run_metadata_say(name: str) -> None:
    run, trace = step_stats.read(Source(real_trace(RUN))), chrome.read(Source(real_trace(name)))
    expected, found = said(run), said(trace)
    if "memory" not in name:
        expected["tensors"] = []
    assert found == expected
    assert trace.completeness.complete
    assert (len(trace.counters) > 0) == ("memory" in name)


TIMELINE_OF = """
import sys
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import timeline
run = config_pb2.RunMetadata.FromString(open(sys.argv[1], "rb").read())
open(sys.argv[2], "w").write(timeline.Timeline(run.step_stats).generate_chrome_trace_format(show_memory=True))
"""


Make = Callable[[Path], Path]


@pytest.fixture
def made_by_tensorflow() -> Make:
    """The Timeline that TensorFlow itself makes of RunMetadata."""
    python = framework_python("tensorflow")

    def making(run: Path) -> Path:
        made = run.with_suffix(".json")
        subprocess.run((python, "-c", TIMELINE_OF, run, made), check=True, capture_output=True, timeout=300)
        return made

    return making


@pytest.mark.slow
@pytest.mark.parametrize("gpus", [1, 2])
def test_gpus_in_tensorflows_own_timeline(tmp_path: Path, made_by_tensorflow: Make, gpus: int) -> None:
    run = tmp_path / "run.pb"
    run.write_bytes(gpu_runs.old(gpus))
    trace = chrome.read(Source(made_by_tensorflow(run)))
    assert said(trace) == said(step_stats.read(Source(run)))
    assert trace.completeness.rows["duplicates"] == 2 + 3 * gpus


@pytest.mark.slow
def test_what_tensorflows_own_timeline_leaves_out(tmp_path: Path, made_by_tensorflow: Make) -> None:
    """Names of kernels, times of launches and threads."""
    run = tmp_path / "run.pb"
    run.write_bytes(gpu_runs.new())
    trace, whole = chrome.read(Source(made_by_tensorflow(run))), step_stats.read(Source(run))
    assert trace.table("slices").filter(kind="kernel")["name"].to_list() == ["MatMul", "Relu"]
    for one in (trace, whole):
        assert sorted(one.slices.kind.tolist()) == sorted(whole.slices.kind.tolist())
        assert one.table("launches").height == 2
