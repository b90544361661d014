"""Chrome JSON: viewers keep every slice of it, and stepscope reads the trace back."""

from __future__ import annotations

import gzip
import json
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stepscope
from stepscope.errors import OutputError
from stepscope.formats.chrome.writing import LACKS, slices, write
from stepscope.trace import tables as t
from stepscope.trace.builder import TraceBuilder
from stepscope.trace.trace import Completeness, Info, Trace
from tests.formats.chrome.chrome_files import event, named, read, slice_
from tests.formats.chrome.perfetto import dropped, load
from tests.kit.random_traces import random_traces
from tests.kit.some import some
from tests.kit.traces import OF_KINDS, real_trace
from tests.support import real_profile, trace_of

ORDERED = ("tracks", "slices", "device_ops", "memory", "counters", "instants")
"""Tables whose rows have an order; those of the others mean the same in any."""
UNSAID = {"offset", "category"}
"""Columns about the file itself."""


def again(trace: Trace, folder: Path, name: str = "out.json") -> tuple[Trace, dict[str, Any]]:
    """A trace written and read back, and the file's content."""
    write(trace, folder / name)
    return stepscope.open(folder / name).trace, load(folder / name)


def assert_same(one: Trace, other: Trace, but: tuple[str, ...] = ("programs", "nodes", "tensors")) -> None:
    for name in t.TABLES:
        if name in but:
            continue
        pair = [trace.table(name).with_columns(pl.col(pl.Enum).cast(pl.String)) for trace in (one, other)]
        left_out = {column.removeprefix("memory.") for lack in LACKS for column in lack.columns if name == "memory"}
        frames = [frame.drop((UNSAID | left_out) & set(frame.columns)).rows() for frame in pair]
        if name not in ORDERED:
            frames = [sorted(frame, key=repr) for frame in frames]
        assert frames[0] == frames[1], name


def assert_same_run(one: Info, other: Info) -> None:
    for fact in ("framework", "origin_epoch_ns", "resolution_ns", "devices", "rank", "world_size", "process_groups",
                 "host", "options"):  # fmt: skip
        assert getattr(one, fact) == getattr(other, fact), fact


# --- real profiles --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OF_KINDS)
def test_a_real_profile_is_read_back_and_nothing_of_it_dropped(name: str, tmp_path: Path):
    trace = real_profile(name).trace
    back, document = again(trace, tmp_path)
    assert dropped(document) == []
    assert len([event for event in document["traceEvents"] if event["ph"] == "X"]) == len(trace.slices)
    assert_same(trace, back)
    assert_same_run(trace.info, back.info)
    categories = trace.table("slices")["category"].cast(pl.String)
    assert back.table("slices")["category"].cast(pl.String).equals(categories)
    assert back.completeness.complete
    assert not [loss for loss in back.completeness.losses if loss.code != "category_unknown"]


@pytest.mark.real
@pytest.mark.parametrize(
    "name", some(["mtia_inference", "b200_eager_rank0_of_8", "mi300_resnet_checkpointing_rank0_of_8"], 1)
)
def test_profilers_themselves_write_slices_that_are_dropped(name: str):
    """Else the rule would have nothing to say about the files above."""
    assert dropped(load(real_trace(f"kineto/{name}.json.gz")))


@pytest.mark.real
@pytest.mark.parametrize(
    "name",
    ["xplane/jax_cpu4_json/vm.trace.json.gz", "xplane/mi300_jax_conv.xplane.pb", "timeline/tf1_timeline_memory.json",
     "timeline/tf1_run_metadata.pb"],
)  # fmt: skip
def test_profiles_of_other_formats_become_kineto(name: str, tmp_path: Path):
    trace = real_profile(name).trace
    back, document = again(trace, tmp_path, "out.json.gz")
    assert back.info.format == "Kineto JSON"
    assert dropped(document) == []
    assert_same(trace, back)
    assert_same_run(trace.info, back.info)


# --- any profile ----------------------------------------------------------------------------------


@given(random_traces(grain_ns=1))
def test_any_profile_is_read_back(events: list[Any]):
    if not events:
        return
    trace = trace_of(events)
    with tempfile.TemporaryDirectory() as folder:
        back, document = again(trace, Path(folder))
    assert dropped(document) == []
    assert_same(trace, back)


spans = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 20)), min_size=1, max_size=25)


@given(spans, st.sampled_from(["kernel", "cpu_op"]))
def test_no_overlap_is_dropped(found: list[tuple[int, int]], category: str):
    trace = read(*(slice_(f"s{i}", ts, dur, cat=category) for i, (ts, dur) in enumerate(found)))
    with tempfile.TemporaryDirectory() as folder:
        back, document = again(trace, Path(folder))
    assert dropped(document) == []
    assert_same(trace, back)


def test_overlapping_slices_go_to_threads_called_after_the_first(tmp_path: Path):
    kernels = [slice_(f"k{i}", 2 * i, 5, cat="kernel", pid=0, tid=7, args={"device": 0, "stream": 7}) for i in range(3)]
    back, document = again(read(*kernels), tmp_path)
    events = document["traceEvents"]
    threads = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    lanes = [event["tid"] for event in events if event["ph"] == "X"]
    assert [threads[tid] for tid in lanes] == ["stream 7", "stream 7 (2)", "stream 7 (3)"]
    assert len(set(lanes)) == 3
    assert len(back.tracks) == 1


# --- what the text says ---------------------------------------------------------------------------


def test_an_event_as_pytorch_writes_it(tmp_path: Path):
    call = {"correlation": 11, "External id": 4}
    _, document = again(
        read(
            slice_("aten::mm", 100, 9.5, cat="cpu_op", pid=40, tid=41, args={"External id": 4, "Sequence number": 2,
                   "Fwd thread id": 0, "Input Dims": [[2, 3], []], "Input type": ["float", ""]}),
            slice_("cudaLaunchKernel", 101.25, 2, cat="cuda_runtime", pid=40, tid=41, args=call),
            slice_("gemm", 110.001, 3, cat="kernel", pid=0, tid=7, args=call | {"device": 0, "stream": 7,
                   "grid": [8, 1, 1], "block": [128, 1, 1], "registers per thread": 32, "shared memory": 0,
                   "est. achieved occupancy %": 37.5}),
            baseTimeNanoseconds=10**18, schemaVersion=1, with_stack=1, record_shapes=0,
            deviceProperties=[{"id": 0, "name": "A100", "totalGlobalMem": 5, "numSms": 108, "computeMajor": 8,
                               "computeMinor": 0}],
            distributedInfo={"backend": "nccl", "rank": 3, "world_size": 8, "pg_config": [{"pg_name": "0"}]},
        ),
        tmp_path,
    )  # fmt: skip
    op, launch, kernel = (event for event in document["traceEvents"] if event["ph"] == "X")
    assert op == {
        "ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 40, "tid": 41, "ts": Decimal("0.000"),
        "dur": Decimal("9.500"), "args": {"External id": 4, "Sequence number": 2, "Fwd thread id": 0,
                                          "Input Dims": [[2, 3], []], "Input type": ["float", ""]},
    }  # fmt: skip
    assert (launch["cat"], launch["ts"], launch["args"]) == ("cuda_runtime", Decimal("1.250"), call)
    assert (kernel["pid"], kernel["tid"], kernel["ts"]) == (0, 7, Decimal("10.001"))
    assert kernel["args"] == call | {
        "device": 0, "stream": 7, "grid": [8, 1, 1], "block": [128, 1, 1], "registers per thread": 32,
        "shared memory": 0, "est. achieved occupancy %": Decimal("37.5"),
    }  # fmt: skip
    arrows = [event for event in document["traceEvents"] if event["ph"] in "sf"]
    assert [(arrow["ph"], arrow["cat"], arrow["id"], arrow["ts"]) for arrow in arrows] == [
        ("s", "ac2g", 11, Decimal("1.250")), ("f", "ac2g", 11, Decimal("10.001")),
    ]  # fmt: skip
    root = {key: value for key, value in document.items() if key not in ("traceEvents", "stepscope")}
    assert root == {
        "baseTimeNanoseconds": 10**18 + 100_000, "schemaVersion": 1, "displayTimeUnit": "ms", "with_stack": 1,
        "record_shapes": 0,
        "deviceProperties": [{"id": 0, "name": "A100", "totalGlobalMem": 5, "numSms": 108, "computeMajor": 8,
                              "computeMinor": 0}],
        "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8, "pg_config": [{"pg_name": "0"}]},
    }  # fmt: skip


@pytest.mark.parametrize("name", ['say "hi"', "C:\\new\\t", "a\nb\x01", "é — 火", "", "</script>", "\ufffd"])
def test_names_are_text_whatever_they_hold(tmp_path: Path, name: str):
    stack = f"{name}.py(3): f"
    trace = read(slice_(name, 0, 5, cat="cpu_op", args={"Call stack": stack}), named("thread_name", f"{name}!"))
    back, document = again(trace, tmp_path)
    (op,) = (event for event in document["traceEvents"] if event["ph"] == "X")
    assert (op["name"], op["args"]["Call stack"]) == (name, stack)
    assert_same(trace, back)


@pytest.mark.parametrize("text", ["[1, 2]", "{}", "12", "-3", "007", "1e5", "[1", "true", "0x7f", '"', "9" * 30])
def test_recorded_values_come_back_as_they_were(tmp_path: Path, text: str):
    trace = read(slice_("a", 0, 5, cat="cpu_op", args={"Input Dims": text, "Call stack": text}))
    assert_same(trace, again(trace, tmp_path)[0])


def test_times_are_exact(tmp_path: Path):
    base = "1705000000123456.789"
    trace = read(slice_("a", base, 0.001, cat="cpu_op"), slice_("b", "1705000000123456.790", "999999999.999", cat="x"),
                 event("i", "before", "1705000000123000.001"))  # fmt: skip
    back, document = again(trace, tmp_path)
    times = [(event["name"], event["ts"], event.get("dur")) for event in document["traceEvents"] if event["ph"] in "Xi"]
    assert times == [
        ("a", Decimal("0.000"), Decimal("0.001")), ("b", Decimal("0.001"), Decimal("999999999.999")),
        ("before", Decimal("-456.788"), None),
    ]  # fmt: skip
    assert back.info.origin_epoch_ns == 1705000000123456789
    assert_same(trace, back)


def test_points_counters_and_arrows(tmp_path: Path):
    allocated = {"Device Type": 1, "Device Id": 0, "Addr": 4096, "Bytes": 512, "Total Allocated": 512,
                 "Total Reserved": 1024}  # fmt: skip
    trace = read(
        slice_("a", 0, 50, cat="cpu_op"), slice_("inner", 0, 5, cat="cpu_op"), slice_("b", 60, 9, cat="cpu_op", tid=2),
        event("i", "[memory]", 3, args=allocated), event("i", "mark", 4, cat="user"), event("i", "bare", 4),
        event("C", "queue", 5, args={"depth": 3}), event("C", "mem", 6, args={"a": 1.5, "b": 2}), event("C", "no", 7),
        *(event(phase, cat, ts, id=1, cat=cat, tid=tid, bp="e")
          for cat in ("fwdbwd", "dataflow", "mine") for phase, ts, tid in (("s", 9, 1), ("f", 61, 2))),
    )  # fmt: skip
    back, document = again(trace, tmp_path)
    assert len(trace.flows) == 3
    assert_same(trace, back)
    starts = {event["cat"]: event["ts"] for event in document["traceEvents"] if event["ph"] == "s"}
    assert starts == dict.fromkeys(("fwdbwd", "dataflow", "arrow"), Decimal("50.000"))  # where `a` alone runs


def test_steps_and_launches_that_no_name_tells(tmp_path: Path):
    ops = [
        slice_(f"op.{i}", 20 + i, 1, tid=2, args={"hlo_op": f"op.{i}", "hlo_module": "jit_f", "run_id": "5",
                                                 "device_ordinal": str(i % 2)}) for i in range(4)
    ]  # fmt: skip
    call = slice_("CommonPjRtLoadedExecutable::Execute (jit_f)", 5, 3, args={"run_id": "5"})
    trace = read(named("process_name", "/host:CPU"), slice_("train", 0, 90, args={"step_num": "7"}), call, *ops)
    back, document = again(trace, tmp_path)
    assert len(trace.launches) == 4
    assert_same(trace, back)
    assert_same_run(trace.info, back.info)
    assert {event["cat"] for event in document["traceEvents"] if event["ph"] == "X"} == {
        "user_annotation", "cuda_runtime", "kernel",
    }  # fmt: skip


def test_the_name_decides_whether_the_file_is_compressed(tmp_path: Path):
    trace = read(slice_("a", 0, 5))
    for name in ("a.json", "a.json.gz"):
        write(trace, tmp_path / name)
    plain = (tmp_path / "a.json").read_bytes()
    assert gzip.decompress((tmp_path / "a.json.gz").read_bytes()) == plain
    json.loads(plain)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "a.json.gz"]


def test_a_trace_without_slices_is_refused_and_leaves_nothing(tmp_path: Path):
    empty = TraceBuilder().build(Info("test"), Completeness(0, {}))
    with pytest.raises(OutputError, match="no slices"):
        write(empty, tmp_path / "out.json")
    assert list(tmp_path.iterdir()) == []


def test_more_slices_than_are_written_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    some = [{"External id": i} if i % 3 else {} for i in range(50)]
    trace = read(*(slice_(f"s{i % 7}", i, 3, cat="cpu_op", args=args) for i, args in enumerate(some)))
    whole = again(trace, tmp_path)[1]
    monkeypatch.setattr(slices, "AT_ONCE", 8)
    assert again(trace, tmp_path)[1] == whole


# --- our own root key in other hands --------------------------------------------------------------


@pytest.mark.parametrize(
    "root",
    [5, {}, {"tracks": 5}, {"tracks": [{"kind": "sideways", "lanes": []}]}, {"tracks": [{"kind": "other"}]},
     {"tracks": [{"kind": "device_stream", "lanes": [[1, 1]], "device": 1 << 40}]},
     {"tracks": [{"kind": "host_thread", "lanes": [[1, 1]], "stream": -(1 << 63)}]},
     {"tracks": [], "device_kinds": {"0": 7}}],
)  # fmt: skip
def test_a_root_key_that_makes_no_sense_is_left_aside(root: Any):
    trace = read(slice_("a", 0, 5, cat="cpu_op"), stepscope=root)
    assert [(str(kind), thread) for kind, thread in trace.table("tracks").select("kind", "thread").rows()] == [
        ("host_thread", "1")
    ]


def test_threads_that_the_root_key_does_not_know_are_read_too():
    known = {"kind": "host_thread", "lanes": [[1, 1]], "process": "p", "thread": "t"}
    trace = read(slice_("a", 0, 5), slice_("b", 0, 5, tid=2), stepscope={"tracks": [known]})
    assert trace.table("tracks").select("kind", "process", "thread").rows() == [
        ("host_thread", "p", "t"), ("other", "1", "2"),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["kernel", "nothing", 5, None])
def test_a_stated_kind_counts_where_it_is_one(kind: Any):
    trace = read(slice_("a", 0, 5, cat="cpu_op", args={"stepscope kind": kind}))
    (found,) = np.unique(trace.slices.kind).tolist()
    assert t.Kind(found) is (t.Kind.KERNEL if kind == "kernel" else t.Kind.HOST_OP)
