"""Kineto events in, declared tables out, one topic each. Times in the events are µs, in the tables ns."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stepscope
from stepscope.errors import Exit
from stepscope.formats.limits import FAR_NS
from stepscope.trace.trace import Loss, Trace
from tests.support import trace_of_bytes

Raw = dict[str, Any]
EPOCH = 1_700_000_000_000_000
"""A Unix time in µs."""


def x(name: str, cat: str = "cpu_op", ts: Any = 0, dur: Any = 1, *, pid: Any = 1, tid: Any = 1, **args: Any) -> Raw:
    """An event with a duration; a blank in an argument's name is ``__``."""
    event = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur}
    return event | ({"args": {key.replace("__", " "): value for key, value in args.items()}} if args else {})


def kernel(name: str = "k", ts: Any = 0, dur: Any = 1, *, cat: str = "kernel", **args: Any) -> Raw:
    return x(name, cat, ts, dur, pid=0, tid=7, **args)


def point(name: str, phase: str = "i", ts: Any = 0, **more: Any) -> Raw:
    return {"ph": phase, "name": name, "pid": 1, "tid": 1, "ts": ts} | more


def data(events: Sequence[Raw], **root: Any) -> bytes:
    return json.dumps({"schemaVersion": 1, **root, "traceEvents": events}).encode()


def read(*events: Raw, **root: Any) -> Trace:
    return trace_of_bytes(data(events, **root))


def rows(trace: Trace, table: str, *columns: str) -> list[tuple[Any, ...]]:
    return trace.table(table).select(columns).rows()


def losses(trace: Trace) -> dict[str, tuple[int, int | None, int]]:
    """Code -> how many, where first, how many of them lost."""
    return {loss.code: (loss.count, loss.first_offset, loss.lost_events) for loss in trace.completeness.losses}


# --- times ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "ns"),
    [
        ("1705000000123456.789", 1705000000123456789),  # 19 digits: a double is 150 ns off
        ("1705000000123456.7", 1705000000123456700),
        ("1705000000123456", 1705000000123456000),
        ('"1705000000123456.789"', 1705000000123456789),
        ("1705000000123456.7894", 1705000000123456789),
        ("1705000000123456.7896", 1705000000123456790),
    ],
)
def test_a_time_is_exact_to_the_nanosecond(written: str, ns: int):
    text = data([x("a", ts=0)]).decode().replace('"ts": 0', f'"ts": {written}')
    assert trace_of_bytes(text.encode()).info.origin_epoch_ns == ns


def test_times_count_from_the_first_slice_and_keep_the_epoch():
    trace = read(x("b", ts=3.25, dur=0.5), x("a", ts=1.001, dur=2.002), baseTimeNanoseconds=10**18)
    assert rows(trace, "slices", "name", "start_ns", "dur_ns") == [("a", 0, 2002), ("b", 2249, 500)]
    assert trace.info.origin_epoch_ns == 10**18 + 1001
    assert trace.info.resolution_ns == 1


def test_relative_times_without_a_base_have_no_epoch():
    trace = read(x("a", ts=1), x("b", ts=2))
    assert trace.info.origin_epoch_ns is None
    assert trace.info.resolution_ns == 1000


def test_what_runs_before_time_zero_is_kept_where_the_base_allows_it():
    trace = read(x("a", ts=-5, dur=5), x("b", ts=3), baseTimeNanoseconds=10**18)
    assert rows(trace, "slices", "name", "start_ns") == [("a", 0), ("b", 8000)]
    assert trace.info.origin_epoch_ns == 10**18 - 5000


# --- tracks ---------------------------------------------------------------------------------------


def test_text_and_numbers_name_the_same_thread_and_stream():
    """2021 wrote thread ids as text, and arrows with the same ids as numbers."""
    trace = read(
        x("op", ts=0, dur=9, pid=42, tid="42"),
        x("inner", ts=1, pid="42", tid=42),
        kernel("by name", 2) | {"tid": "stream 7"},
        kernel("by number", 4) | {"pid": "0", "tid": 7},
        kernel("by argument", 6, device=1, stream=9) | {"pid": "GPU", "tid": "compute"},
    )
    assert rows(trace, "tracks", "kind", "process", "thread", "device", "stream") == [
        ("host_thread", "42", "42", None, None),
        ("device_stream", "0", "stream 7", 0, 7),
        ("device_stream", "0", "7", 0, 7),
        ("device_stream", "GPU", "compute", 1, 9),
    ]
    assert rows(trace, "slices", "name", "depth", "parent") == [
        ("op", 0, None), ("inner", 1, 0), ("by name", 0, None), ("by number", 0, None), ("by argument", 0, None),
    ]  # fmt: skip
    assert rows(trace, "device_ops", "device", "stream") == [(0, 7), (0, 7), (1, 9)]


def test_names_of_threads_become_labels():
    named = {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "thread 1 (python3) "}}
    trace = read(named, x("a"), x("b", tid=2))
    assert rows(trace, "tracks", "thread", "label") == [("1", "thread 1 (python3)"), ("2", None)]
    assert trace.completeness.rows == {"slices": 2, "metadata": 1}


def test_the_profilers_own_lanes_are_no_threads():
    trace = read(
        x("a"),
        x("Activity Buffer Request", "overhead", 5, pid=-1, tid=0),
        x("PyTorch Profiler (0)", "Trace", pid="Spans", tid="PyTorch Profiler"),
    )
    assert rows(trace, "tracks", "kind", "process") == [("host_thread", "1"), ("other", "-1"), ("other", "Spans")]
    assert rows(trace, "slices", "kind", "name")[1:] == [
        ("overhead", "Activity Buffer Request"),
        ("other", "PyTorch Profiler (0)"),
    ]


# --- kinds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("category", "name", "kind"),
    [
        ("cpu_op", "aten::add", "host_op"),
        ("Operator", "aten::add", "host_op"),
        ("user_annotation", "forward", "annotation"),
        ("user_annotation", "ProfilerStep#4", "step"),
        ("python_function", "train.py(3): main", "python_frame"),
        ("python_function", "nn.Module: Linear_0", "module"),
        ("cuda_runtime", "cudaLaunchKernel", "runtime_call"),
        ("Runtime", "cudaStreamSynchronize", "sync"),
        ("cuda_runtime", "hipMalloc", "allocation"),
        ("cuda_runtime", "cudaFree", "allocation"),
        ("cuda_driver", "cuModuleLoadData", "compile"),
        ("cuda_driver", "cuLaunchKernel", "runtime_call"),
        ("xpu_runtime", "urEnqueueKernelLaunch", "runtime_call"),
        ("mtia_runtime", "runFunction - job_prep", "runtime_call"),
        ("overhead", "Buffer Flush", "overhead"),
        ("kernel", "sgemm", "kernel"),
        ("Kernel", "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "collective"),
        ("collective_comm", "anything", "collective"),
        ("gpu_memcpy", "Memcpy DtoD (Device -> Device)", "copy"),
        ("Memcpy", "Memcpy HtoD (Pinned -> Device)", "copy"),
        ("Memset", "Memset (Device)", "memset"),
        ("gpu_user_annotation", "forward", "device_annotation"),
        ("cuda_sync", "Event Sync", "device_wait"),
        ("mtia_ccp_events", "event_wait", "device_wait"),
        ("mtia_ccp_events", "dma_request: HOST_TO_DEVICE", "copy"),
        ("mtia_ccp_events", "job_prep", "kernel"),
    ],
)
def test_the_category_and_the_name_say_what_a_slice_is(category: str, name: str, kind: str):
    assert rows(read(x(name, category)), "slices", "kind", "name") == [(kind, name)]


def test_ranges_that_2021_wrote_as_operators_become_annotations():
    trace = read(
        x("ProfilerStep#7", "Operator", 0, 20),
        x("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "Operator", 1),
        x("my#range", "Operator", 3),
        x("forward pass", "Operator", 5),
        x("aten::linear", "Operator", 7, Input__Dims=[[2, 2]]),
        x("aten::detach", "Operator", 9),
        x("AddmmBackward", "Operator", 11, Input__Dims=[[2]]),
    )
    assert [kind for (kind,) in rows(trace, "slices", "kind")] == [
        "step", "annotation", "annotation", "annotation", "host_op", "host_op", "host_op",
    ]  # fmt: skip


def test_without_recorded_shapes_an_unknown_operator_stays_an_operator():
    """Only shapes tell a range from an operator; where none were recorded, torch's own ranges are known by name."""
    trace = read(x("AddmmBackward", "Operator"), x("ProfilerStep#7", "Operator", 5), x("my#range", "Operator", 9))
    assert rows(trace, "slices", "kind") == [("host_op",), ("step",), ("annotation",)]


def test_an_unknown_category_is_kept_named_and_no_loss():
    trace = read(x("a"), x("b", "quantum_op", 5), x("c", "quantum_op", 9), {**x("d", ts=12), "cat": None})
    assert rows(trace, "slices", "name", "kind", "category")[1:] == [
        ("b", "other", "quantum_op"),
        ("c", "other", "quantum_op"),
        ("d", "other", None),
    ]
    first, second = (data_offset(trace, name) for name in ("b", "d"))
    assert set(trace.completeness.losses) == {
        Loss("category_unknown", 2, "events of unknown category 'quantum_op', kept as other", first),
        Loss("category_unknown", 1, "events of unknown category 'none', kept as other", second),
    }
    assert trace.completeness.complete


def data_offset(trace: Trace, name: str) -> int:
    return int(dict(rows(trace, "slices", "name", "offset"))[name])


# --- what became of every event -------------------------------------------------------------------


BROKEN = {
    "time_missing": [{"ph": "X", "name": "a", "pid": 1, "tid": 1, "dur": 1}, x("b", ts="soon")],
    "time_out_of_range": [x("zeroed", ts=0), x("a year later", ts=EPOCH + 365 * 86_400_000_000)],
    "name_missing": [
        {"ph": "X", "cat": "kernel", "pid": 0, "tid": 7, "ts": EPOCH, "dur": 1},
        {"ph": "C", "pid": 1, "tid": 1, "ts": EPOCH},
        {"ph": "i", "pid": 1, "tid": 1, "ts": EPOCH},
    ],
    "duration_missing": [point("a", "X", EPOCH), x("b", ts=EPOCH, dur=None)],
    "duration_negative": [x("a", ts=EPOCH, dur=-1), x("b", ts=EPOCH, dur=-0.001)],
    "phase_missing": [{"cat": "kernel", "name": "a", "pid": 0, "tid": 7, "ts": EPOCH, "dur": 1}],
    "phase_unsupported": [point("a", phase, EPOCH, id=1) for phase in "NODP"],
    "end_unmatched": [point("a", "E", EPOCH), point("a", "e", EPOCH, id=1)],
}
"""Events that no table takes, by what is wrong with them."""


@pytest.mark.parametrize("code", BROKEN)
def test_what_cannot_become_a_row_is_counted_with_its_offset(tmp_path: Path, code: str):
    good = [x("one", ts=EPOCH), x("two", ts=EPOCH + 5), x("three", ts=EPOCH + 9)]
    text = data([*good, *BROKEN[code]])
    count = len(BROKEN[code])
    path = tmp_path / "trace.json"
    path.write_bytes(text)
    profile = stepscope.open(path)
    assert losses(profile.trace) == {code: (count, text.index(json.dumps(BROKEN[code][0]).encode()), count)}
    assert [name for (name,) in rows(profile.trace, "slices", "name")] == ["one", "two", "three"]
    assert profile.trace.completeness.events == 3 + count
    assert profile.exit_status is Exit.PARTIAL


def test_one_bad_event_of_each_sort_is_counted_once():
    everything = [event for events in BROKEN.values() for event in events]
    trace = read(*(x("good", ts=EPOCH + i) for i in range(9)), *everything)
    assert {code: count for code, (count, _, _) in losses(trace).items()} == {c: len(e) for c, e in BROKEN.items()}
    assert sum(trace.completeness.rows.values()) + len(everything) == trace.completeness.events


@pytest.mark.parametrize(("late_us", "near"), [(FAR_NS // 1000 - 1, True), (FAR_NS // 1000, False)])
def test_a_day_from_the_middle_of_the_file_is_too_far(late_us: int, near: bool):
    for start in (EPOCH + late_us, EPOCH - late_us):
        trace = read(x("a", ts=EPOCH), x("b", ts=EPOCH), x("c", ts=start))
        assert len(trace.slices) == (3 if near else 2)
        assert trace.completeness.complete is near


def test_zeroed_times_are_lost_even_where_most_are_zeroed():
    trace = read(*(x("zeroed", ts=0) for _ in range(9)), x("good", ts=EPOCH))
    assert losses(trace)["time_out_of_range"][::2] == (9, 9)
    assert rows(trace, "slices", "name", "start_ns") == [("good", 0)]


def test_zero_durations_are_rows_and_zero_times_too_where_times_are_relative():
    trace = read(x("a", ts=0, dur=0), x("b", ts=0, dur=5), x("c", ts=5, dur=0), kernel("k", 0, 0))
    assert trace.completeness.complete
    assert rows(trace, "slices", "name", "start_ns", "dur_ns") == [
        ("b", 0, 5000), ("a", 0, 0), ("c", 5000, 0), ("k", 0, 0),
    ]  # fmt: skip


@pytest.mark.parametrize("events", [[], [point("[memory]")], [point("queue", "C")], BROKEN["duration_missing"]])
def test_a_profile_without_any_slice_is_read(events: list[Raw]):
    trace = read(*events)
    assert len(trace.slices) == 0
    assert trace.completeness.events == len(events)


def test_work_of_a_device_that_the_profile_does_not_number_is_kept():
    trace = read(kernel("k") | {"pid": "GPU", "tid": "compute"})
    assert len(trace.device_ops) == 1


def test_an_empty_object_among_the_events_is_no_loss():
    """Some writers end the list with one."""
    trace = read(x("a"), {})
    assert losses(trace)["event_empty"][::2] == (1, 0)
    assert trace.completeness.complete


any_event = st.fixed_dictionaries(
    {},
    optional={
        "ph": st.sampled_from(["X", "X", "X", "i", "I", "R", "C", "M", *"stfBBEEbben", "", "?"]),
        "cat": st.sampled_from(["cpu_op", "kernel", "cuda_runtime", "ac2g", "fwdbwd", "Operator", "new", ""]),
        "name": st.sampled_from(["a", "[memory]", "thread_name", "cudaLaunchKernel", "ProfilerStep#1", ""]),
        "pid": st.sampled_from([0, 1, "1", "Spans"]),
        "tid": st.sampled_from([7, "stream 7", "main"]),
        "ts": st.one_of(st.integers(0, 50), st.sampled_from([1e15, "7", "x", None, 10**17])),
        "dur": st.one_of(st.integers(-2, 50), st.sampled_from(["7", "x", None])),
        "id": st.integers(0, 3),
        "args": st.fixed_dictionaries(
            {"device": st.integers(0, 1), "stream": st.integers(7, 8)}, optional={"correlation": st.integers(0, 3)}
        ),
    },
)


@given(st.lists(any_event.map(lambda event: event | {"args": {"device": 0, "stream": 7}}), max_size=12))
def test_every_event_is_in_a_table_or_in_the_completeness_record(events: list[Raw]):
    trace = read(*[x("always", ts=25)] * 13, *events)
    found = trace.completeness
    kept = ("category_unknown", "begin_unclosed")
    outside = sum(loss.count for loss in found.losses if loss.code not in kept and not loss.damaged)
    assert sum(found.rows.values()) + outside == found.events == 13 + len(events)
    assert len(trace.slices) <= found.rows["slices"] <= 2 * len(trace.slices)  # an end is part of its slice
    for table in ("memory", "instants"):
        assert found.rows.get(table, 0) == len(trace.table(table))
    assert found.rows.get("counters", 0) == trace.counters.offset.size / 2  # device and stream


# --- points in time -------------------------------------------------------------------------------


def test_memory_instants():
    allocated = {"Device Type": 1, "Device Id": 0, "Addr": 4096, "Bytes": 512, "Total Allocated": 512}
    freed = {"Device Type": 0, "Device Id": -1, "Addr": 4096, "Bytes": -512}
    trace = read(
        x("a", ts=10),
        point("[memory]", ts=14, args=freed),
        point("[memory]", ts=12, args=allocated | {"Total Reserved": 2048}),
    )
    columns = ("time_ns", "device_type", "device", "address", "bytes", "allocated", "reserved")
    assert rows(trace, "memory", *columns) == [
        (2000, 1, 0, 4096, 512, 512, 2048),
        (4000, 0, -1, 4096, -512, None, None),
    ]
    assert trace.completeness.rows == {"slices": 1, "memory": 2}


def test_counters_and_instants():
    trace = read(
        x("a", ts=10),
        point("queue", "C", 11, args={"depth": 3}),
        point("mark", "i", 12, cat="user"),
        point("old", "I", 13),
        point("older", "R", 14),
    )
    assert rows(trace, "counters", "time_ns", "name") == [(1000, "queue")]
    assert rows(trace, "instants", "time_ns", "name", "category") == [
        (2000, "mark", "user"),
        (3000, "old", None),
        (4000, "older", None),
    ]


# --- launches and flows ---------------------------------------------------------------------------


def names(trace: Trace, table: str, *columns: str) -> list[tuple[str, ...]]:
    """Columns of slice ids as names."""
    return [tuple(trace.name_of(at) for at in row) for row in rows(trace, table, *columns)]


def test_a_launch_is_found_by_its_correlation():
    trace = read(
        x("cudaLaunchKernel", "cuda_runtime", 1, correlation=11),
        x("cudaMemcpyAsync", "cuda_runtime", 3, correlation="12"),
        x("cudaEventQuery", "cuda_runtime", 5),
        kernel("k", 7, correlation=11),
        kernel("Memcpy HtoD (Pinned -> Device)", 9, cat="gpu_memcpy", correlation=12),
        kernel("of before", 0, correlation=3),
    )
    assert names(trace, "launches", "call", "op") == [
        ("cudaLaunchKernel", "k"),
        ("cudaMemcpyAsync", "Memcpy HtoD (Pinned -> Device)"),
    ]
    assert rows(trace, "device_ops", "launch")[0] == (None,)


@pytest.mark.parametrize("graph", ["cudaGraphLaunch", "hipGraphLaunch", "cuGraphLaunch"])
def test_one_graph_launch_owns_all_its_ops(graph: str):
    trace = read(
        x(graph, "cuda_runtime", 0, correlation=5),
        *(kernel(f"k{i}", 5 + 2 * i, correlation=5, graph__id=77) for i in range(3)),
    )
    assert names(trace, "launches", "call", "op") == [(graph, f"k{i}") for i in range(3)]
    assert rows(trace, "launches", "basis") == [("graph",)] * 3
    assert rows(trace, "device_ops", "graph") == [(77,)] * 3


def test_of_a_driver_call_inside_a_runtime_call_the_outer_one_is_the_launch():
    trace = read(
        x("cuLaunchKernel", "cuda_driver", 2, 3, correlation=5),
        x("cudaLaunchKernel", "cuda_runtime", 1, 5, correlation=5),
        kernel("k", 9, correlation=5),
    )
    assert names(trace, "launches", "call", "op") == [("cudaLaunchKernel", "k")]


def flow(number: int, phase: str, ts: Any, tid: Any = 1, cat: str = "fwdbwd") -> Raw:
    return {"ph": phase, "id": number, "cat": cat, "name": cat, "pid": 1, "tid": tid, "ts": ts, "bp": "e"}


def test_arrows_bind_the_innermost_op_at_their_ends():
    trace = read(
        x("step", "user_annotation", 0, 40),
        x("aten::linear", ts=1, dur=4),
        x("aten::relu", ts=10, dur=4),
        x("ReluBackward0", ts=20, dur=4, tid=2),
        x("AddmmBackward0", ts=30, dur=4, tid=2),
        *(flow(1, "s", 1), flow(2, "s", 10), flow(1, "f", 30, 2), flow(2, "f", 20, 2)),
    )
    assert sorted(names(trace, "flows", "source", "target")) == [
        ("aten::linear", "AddmmBackward0"),
        ("aten::relu", "ReluBackward0"),
    ]
    assert trace.completeness.rows == {"slices": 5, "flows": 4}
    assert losses(trace) == {}


def test_launch_arrows_repeat_the_correlation_and_open_ones_are_counted():
    trace = read(
        x("cudaLaunchKernel", "cuda_runtime", 1, correlation=11),
        kernel("k", 7, correlation=11),
        *(flow(11, "s", 1, cat="ac2g"), flow(11, "f", 7, 7, "ac2g")),
        *(flow(12, "f", 3, cat="async"), flow(9, "s", 1)),
    )
    assert trace.completeness.rows == {"slices": 2, "launches": 2}
    assert losses(trace)["flow_open"][::2] == (2, 0)
    assert trace.completeness.complete


# --- device work ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "args", "found"),
    [
        ("Memcpy HtoD (Pageable -> Device)", {}, ("h2d", "pageable", "device")),
        ("Memcpy HtoD (Pinned -> Device)", {}, ("h2d", "pinned", "device")),
        ("Memcpy DtoH (Device -> Pageable)", {}, ("d2h", "device", "pageable")),
        ("Memcpy DtoH (Device -> Pinned)", {}, ("d2h", "device", "pinned")),
        ("Memcpy DtoD (Device -> Device)", {}, ("d2d", "device", "device")),
        ("Memcpy PtoP (Device -> Device)", {}, ("p2p", "device", "device")),
        ("Memcpy HtoH (Pageable -> Pinned)", {}, ("h2h", "pageable", "pinned")),
        ("Memcpy DtoD (Managed -> Unknown)", {}, ("d2d", "managed", "unknown")),
        ("Memcpy DeviceToHost", {}, ("d2h", "unknown", "unknown")),
        ("CopyHostToDevice", {}, ("h2d", "unknown", "unknown")),
        ("Memcpy (Host -> Device)", {"kind": "HtoD"}, ("h2d", "unknown", "device")),
        ("copyBuffer", {"kind": "DeviceToHost"}, ("d2h", "unknown", "unknown")),
        ("dma_request", {"direction": "DEVICE_TO_HOST"}, ("d2h", "unknown", "unknown")),
        ("copyBuffer", {}, ("unknown", "unknown", "unknown")),
        ("Memcpy HtoD (Pinned -> Device)", {"kind": "DtoH"}, ("h2d", "pinned", "device")),
    ],
)
def test_where_a_copy_goes_and_from_what_memory(name: str, args: Raw, found: tuple[str, str, str]):
    trace = read(kernel(name, cat="gpu_memcpy", bytes=4096, **args))
    assert rows(trace, "device_ops", "direction", "source_memory", "target_memory", "bytes") == [(*found, 4096)]


def test_a_kernel_has_no_direction_and_its_size_is_not_recorded():
    trace = read(kernel("copy_device_to_host_kernel"))
    assert rows(trace, "device_ops", "direction", "bytes", "launch", "graph") == [("unknown", None, None, None)]


def test_what_a_kernel_says_of_itself():
    trace = read(
        kernel("full", 0, grid=[160, 1, 1], block=[128, 1, 1], registers__per__thread=32, shared__memory=49152,
               **{"est. achieved occupancy %": 37.5}),
        kernel("bare", 5),
    )  # fmt: skip
    columns = ("grid", "block", "registers", "shared_memory", "occupancy_pct")
    full, bare = rows(trace, "device_ops", *columns)
    assert [json.loads(full[0]), json.loads(full[1]), *full[2:]] == [[160, 1, 1], [128, 1, 1], 32, 49152, 37.5]
    assert bare == (None,) * 5


def test_collectives_are_known_by_their_arguments_and_by_their_names():
    said = {
        "Collective name": "allreduce", "Process Group Name": "0", "dtype": "Float", "In msg nelems": 1024,
        "Group size": 8,
    }  # fmt: skip
    trace = read(
        kernel("fused_ring_kernel", 0, **said),
        kernel("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 5),
        kernel("gemm", 9),
    )
    assert rows(trace, "slices", "kind") == [("collective",), ("collective",), ("kernel",)]
    columns = ("collective", "process_group", "dtype", "message_elements", "group_size")
    assert rows(trace, "device_ops", *columns) == [("allreduce", "0", "Float", 1024, 8), (None,) * 5, (None,) * 5]


def test_waits_on_the_device_are_rows_of_their_own_and_no_work():
    trace = read(
        kernel("Stream Wait Event", 0, cat="cuda_sync", wait_on_stream=20, wait_on_cuda_event_record_corr_id=44,
               stream=7, device=1),
        kernel("Event Sync", 5, cat="cuda_sync", stream=-1),
    )  # fmt: skip
    columns = ("device", "stream", "wait_on_stream", "wait_on_correlation")
    assert rows(trace, "device_waits", *columns) == [(1, 7, 20, 44), (0, -1, None, None)]
    assert len(trace.device_ops) == 0
    assert trace.info.devices == ()


def test_mtia_copies_have_a_direction_and_its_waits_are_no_work():
    trace = read(
        x("dma_request: HOST_TO_DEVICE", "mtia_ccp_events", 0, pid=0, tid=3, size=64),
        x("dma_request", "mtia_ccp_events", 5, pid=0, tid=3, direction="DEVICE_TO_HOST"),
        x("event_wait", "mtia_ccp_events", 7, pid=0, tid=3),
        x("event_record", "mtia_ccp_events", 9, pid=0, tid=3),
        x("job_prep", "mtia_ccp_events", 11, pid=0, tid=3),
    )
    assert names(trace, "device_ops", "slice") == [("dma_request: HOST_TO_DEVICE",), ("dma_request",), ("job_prep",)]
    assert rows(trace, "device_ops", "direction", "bytes") == [("h2d", 64), ("d2h", None), ("unknown", None)]
    assert names(trace, "device_waits", "slice") == [("event_wait",), ("event_record",)]


# --- ops and the run ------------------------------------------------------------------------------


def test_what_an_op_says_of_itself():
    trace = read(
        x("aten::mm", ts=0, Sequence__number=9, Fwd__thread__id=2, **{
            "Input Dims": [[2, 3], [3, 4]], "Input type": ["float", "float"], "Concrete Inputs": ["", "1"],
            "Call stack": "a.py(3): f;b.py(4): g"}),
        x("aten::relu", ts=5, External__id=4),
        x("aten::old", ts=9, external__id=5),
    )  # fmt: skip
    (op,) = trace.table("host_ops").drop("input_dims", "input_types", "concrete_inputs").rows()
    assert op == (0, 9, 2, "a.py(3): f;b.py(4): g")
    texts = trace.table("host_ops").select("input_dims", "input_types", "concrete_inputs").row(0)
    assert [json.loads(text) for text in texts] == [[[2, 3], [3, 4]], ["float", "float"], ["", "1"]]
    assert rows(trace, "slices", "external_id") == [(None,), (4,), (5,)]


def test_the_run_is_described_as_far_as_the_file_does():
    trace = read(
        kernel("k"),
        deviceProperties=[{"id": 0, "name": "NVIDIA A100", "totalGlobalMem": 2**36, "numSms": 108, "computeMajor": 8,
                           "computeMinor": 0}, {"id": 1, "name": "never used"}],
        distributedInfo={"rank": "3", "world_size": 8, "pg_config": [{"pg_name": "0"}]},
        with_stack=1, record_shapes=0, host_name="node7",
    )  # fmt: skip
    info = trace.info
    (device,) = info.devices
    assert (device.id, device.name, device.memory_bytes, device.multiprocessors) == (0, "NVIDIA A100", 2**36, 108)
    assert device.compute_capability == (8, 0)
    assert (info.rank, info.world_size, info.host, len(info.process_groups)) == (3, 8, "node7", 1)
    assert info.options == {"stacks": True, "shapes": False}
    assert info.header["schemaVersion"] == 1


def test_an_accelerator_of_amd_without_a_name_is_called_by_its_figures_or_its_family():
    properties = {"id": 0, "name": "", "computeMajor": 9, "computeMinor": 4, "warpSize": 64}
    assert read(kernel("k"), deviceProperties=[properties]).info.devices[0].name == "AMD Instinct MI300 series"
    figures = properties | {"numSms": 304, "totalGlobalMem": 206_141_652_992}
    assert read(kernel("k"), deviceProperties=[figures]).info.devices[0].name == "AMD Instinct MI300X"
    other = figures | {"warpSize": 32}
    assert read(kernel("k"), deviceProperties=[other]).info.devices[0].name is None


MI300X = {"name": "AMD Instinct MI300X", "totalGlobalMem": 2**37, "numSms": 304, "computeMajor": 9, "computeMinor": 4}
NAMELESS = {"name": "", "computeMajor": 9, "computeMinor": 4, "warpSize": 64}


@pytest.mark.parametrize(
    ("listed", "ops_on", "names"),
    [
        ([MI300X], [2], ["AMD Instinct MI300X"]),
        ([NAMELESS], [9], ["AMD Instinct MI300 series"]),
        ([MI300X, MI300X], [1, 5], ["AMD Instinct MI300X", "AMD Instinct MI300X"]),
        ([MI300X, MI300X | {"name": "AMD Instinct MI210"}], [2], [None]),
        ([MI300X, MI300X | {"name": "AMD Instinct MI210"}], [1], ["AMD Instinct MI210"]),
        ([MI300X], [0, 2], ["AMD Instinct MI300X", "AMD Instinct MI300X"]),
        ([MI300X], [2, 3], ["AMD Instinct MI300X", "AMD Instinct MI300X"]),
        ([MI300X, MI300X | {"name": "AMD Instinct MI210"}], [2, 3, 4], [None, None, None]),
        ([], [2], [None]),
    ],
    ids=[
        *("one listed", "without a name", "two alike", "two kinds", "listed itself", "more than listed"),
        *("none of them listed", "more than two kinds listed", "none listed"),
    ],
)
def test_ops_of_a_device_that_is_not_listed_ran_on_the_model_that_is(
    listed: list[Raw], ops_on: list[int], names: list[str | None]
):
    """ROCm numbers the ops' devices as the node does and lists those that the process sees, from 0 on."""
    events = [kernel("k", 2 * at, device=device) for at, device in enumerate(ops_on)]
    found = read(*events, deviceProperties=[{"id": i} | one for i, one in enumerate(listed)]).info.devices
    assert [(device.id, device.name) for device in found] == list(zip(ops_on, names, strict=True))
    known = [device for device in found if device.name == MI300X["name"]]
    assert all((one.memory_bytes, one.multiprocessors) == (2**37, 304) for one in known)


@pytest.mark.parametrize(("ops_on", "assumed"), [([2, 3], 2), ([0, 2, 3], 2), ([2], 0), ([0], 0)])
def test_that_more_devices_work_than_are_listed_is_said(ops_on: list[int], assumed: int):
    events = [kernel("k", 2 * at, device=device) for at, device in enumerate(ops_on)]
    losses = read(*events, deviceProperties=[{"id": 0} | MI300X]).completeness.losses
    assert [(loss.count, loss.damaged) for loss in losses if loss.code == "device_unlisted"] == (
        [(assumed, False)] if assumed else []
    )


def test_devices_of_one_model_may_differ_in_memory():
    listed = [{"id": 0} | MI300X, {"id": 1} | MI300X | {"totalGlobalMem": 2**37 - 4096}]
    (device,) = read(kernel("k", device=5), deviceProperties=listed).info.devices
    assert (device.name, device.memory_bytes) == (MI300X["name"], None)


@pytest.mark.parametrize(
    "root",
    [
        {"deviceProperties": "none", "distributedInfo": [1], "host_name": 5, "baseTimeNanoseconds": "soon"},
        {"deviceProperties": [7, {"name": "no id"}, {"id": "x"}], "distributedInfo": {"rank": None, "pg_config": 1}},
        {"deviceProperties": [{"id": 0, "name": "  ", "totalGlobalMem": "many", "computeMajor": True}]},
    ],
)
def test_a_header_that_says_nothing_useful_leaves_facts_absent(root: Raw):
    info = read(kernel("k"), **root).info
    assert [(device.id, device.name, device.compute_capability) for device in info.devices] == [(0, None, None)]
    assert (info.rank, info.world_size, info.host, info.origin_epoch_ns, info.process_groups) == (
        None, None, None, None, (),
    )  # fmt: skip


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_everything_else_the_file_says_of_a_slice_is_read_on_demand(tmp_path: Path, pack: Callable[[bytes], bytes]):
    text = data([x("a", ts=0, nested={"deep": [1, "ü"]}, number=0.5), x("b", ts=5), kernel("k", 9, stream=7)])
    path = tmp_path / "trace"
    path.write_bytes(pack(text))
    profile = stepscope.open(path)
    wanted = [{"stream": 7}, {}, {"nested": {"deep": [1, "ü"]}, "number": 0.5}]
    assert profile.arguments([2, 1, 0]) == wanted
    assert profile.arguments([]) == []
