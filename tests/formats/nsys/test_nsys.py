"""Nsight Systems exports of three generations: tables, truth beside the Kineto form, damage, several processes."""

from __future__ import annotations

import gzip
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope import pipeline
from stepscope.analysis.analyse import analyse
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.engine import diagnose
from stepscope.errors import Exit, InputError
from stepscope.formats import readers
from stepscope.formats.nsys import read as nsys
from stepscope.formats.nsys import schema
from stepscope.formats.nsys.nvtx import crossing
from stepscope.inputs.source import Source
from stepscope.trace.tables import Kind, LaunchBasis, TrackKind
from stepscope.trace.trace import Trace
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event, Stream, Thread
from tests.kit.kineto_writer import write_kineto
from tests.kit.nsys_schema import TABLES
from tests.kit.nsys_writer import (
    EPOCH_NS,
    GRAPH_ID,
    PID,
    SESSION_NS,
    Export,
    edited,
    global_id,
    merged,
    representable,
    write_nsys,
    write_tables,
)  # fmt: skip
from tests.kit.planted import CASES
from tests.kit.random_traces import random_traces
from tests.support import planted_case, trace_of_bytes

GENERATIONS = ("2021", "2024", "2026")
MAIN = global_id(PID, PID)


@pytest.fixture
def read(tmp_path):
    def from_bytes(data: bytes) -> Trace:
        path = tmp_path / "report.sqlite"
        path.write_bytes(data)
        source = Source(path)
        assert readers.recognise(source).name == "Nsight Systems SQLite"
        return nsys.read(source)

    return from_bytes


def small() -> TraceDrawing:
    d = TraceDrawing()
    d.step(12, 0, 100)
    d.host("aten::mm", 10, 20, **{"Sequence number": 5})
    launch = d.launch(12, 5)
    d.kernel(launch, "void gemm<float>(float*)", 40, 30)
    copy = d.call("cudaMemcpyAsync", 50, 4)
    d.copy(copy, "HtoD", 70, 10, size=4096, memory="Pageable")
    clear = d.call("cudaMemsetAsync", 55, 2)
    d.memset(clear, 82, 3, size=64)
    d.sync(60, 25, stream=Stream())
    return d


def attempt(path: Path) -> Trace | str:
    """The trace, or the sentence that refuses it."""
    try:
        return nsys.read(Source(path))
    except InputError as error:
        return str(error)


def losses(trace: Trace) -> dict[str, int]:
    return {loss.code: loss.count for loss in trace.completeness.losses}


def range_row(start: int, end: int | None, **more: Any) -> dict[str, Any]:
    return {"start": start, "end": end, "eventType": 59, "globalTid": MAIN, "text": "range"} | more


def kernel_row(start: int, end: int, **more: Any) -> dict[str, Any]:
    names = {"demangledName": 1, "shortName": 1}
    place = {"deviceId": 0, "streamId": 7, "globalPid": global_id(PID)}
    return {"start": start, "end": end} | names | place | more


# --- what becomes of the tables -----------------------------------------------------------------------------------


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_row_becomes_what_it_is(read, generation):
    trace = read(write_nsys(small().events(), Export(generation)))
    assert trace.completeness.complete
    assert losses(trace) == {}
    slices = trace.table("slices").select("name", "kind", "start_ns", "dur_ns").rows()
    assert sorted(slices) == sorted(
        [
            ("ProfilerStep#12", "step", 0, 100_000),
            ("aten::mm", "host_op", 10_000, 20_000),
            ("cudaLaunchKernel_v7000", "runtime_call", 12_000, 5_000),
            ("cudaMemcpyAsync", "runtime_call", 50_000, 4_000),
            ("cudaMemsetAsync", "runtime_call", 55_000, 2_000),
            ("cudaStreamSynchronize_v3020", "sync", 60_000, 25_000),
            ("void gemm<float>(float*)", "kernel", 40_000, 30_000),
            ("Memcpy HtoD (Pageable -> Device)", "copy", 70_000, 10_000),
            ("Memset" if generation == "2021" else "Memset (Device)", "memset", 82_000, 3_000),
            ("Stream Sync", "device_wait", 60_000, 25_000),
        ]
    )
    ops = trace.table("device_ops").drop("launch", "slice").rows(named=True)
    kernel, copy, memset = ({name: value for name, value in op.items() if value not in (None, "unknown")} for op in ops)
    place = {"device": 0, "stream": 7}
    assert kernel == place | {
        "grid": "[160, 1, 1]", "block": "[128, 1, 1]", "registers": 32, "shared_memory": 3072,
    }  # fmt: skip
    assert copy == place | {
        "bytes": 4096, "direction": "h2d", "source_memory": "pageable", "target_memory": "device",
    }  # fmt: skip
    assert memset == place | {"bytes": 64}
    assert [trace.name_of(call) for call in trace.device_ops.launch] == [
        "cudaLaunchKernel_v7000", "cudaMemcpyAsync", "cudaMemsetAsync",
    ]  # fmt: skip
    assert trace.table("host_ops").select("sequence").rows() == [(5,)]


def test_the_run_is_described(read):
    extra = {
        "MPI_RANKS": [{"globalTid": global_id(99, 99), "rank": 1}, {"globalTid": MAIN, "rank": 3}],
        "TARGET_INFO_GPU": [{"id": 5, "name": "NVIDIA H100", "smCount": 132, "computeMajor": 9}],
        "TARGET_INFO_CUDA_DEVICE": [{"gpuId": 5, "cudaId": 0, "pid": PID}, {"gpuId": 0, "cudaId": 0, "pid": 99}],
        "META_DATA_CAPTURE": [{"name": "CAPTURE_EVENT", "value": "x"}],
    }
    trace = read(write_nsys(small().events(), Export(extra=extra)))
    info = trace.info
    assert (info.format, info.framework, info.rank, info.host) == ("Nsight Systems SQLite", "PyTorch", 3, "node-7")
    assert info.origin_epoch_ns == EPOCH_NS + SESSION_NS
    (device,) = info.devices
    # The process sees the machine's GPU 5 as its first.
    assert (device.id, device.name, device.multiprocessors) == (0, "NVIDIA H100", 132)
    assert device.compute_capability is None, "the minor version is not there"
    assert info.header["export"] == {"EXPORT_SCHEMA_VERSION": "3.28.1"}
    assert info.header["capture"] == {"CAPTURE_EVENT": "x"}
    labels = trace.table("tracks").select("process", "thread", "label").rows()
    assert (str(PID), str(PID), "python3") in labels


def test_the_oldest_generation_has_neither_epoch_nor_rank(read):
    info = read(write_nsys(small().events(), Export("2021"))).info
    assert (info.origin_epoch_ns, info.rank, info.header["export"]) == (None, None, {})
    assert info.devices[0].multiprocessors == 108


@pytest.mark.parametrize("kind", range(1, 14))
def test_copies_have_their_direction(read, kind):
    row = kernel_row(10, 20, bytes=8, copyKind=kind, srcKind=1, dstKind=7)
    trace = read(write_tables({schema.COPIES: [row]}))
    wanted = {1: "h2d", 2: "d2h", 3: "h2d", 4: "d2h", 9: "h2h", 10: "p2p", 11: "h2d", 12: "d2h"}.get(kind, "d2d")
    assert trace.table("device_ops").select("direction", "source_memory", "target_memory").rows() == [
        (wanted, "pinned", "unknown")
    ]


def test_nodes_of_a_graph_and_whole_graphs_point_to_the_launch(read):
    events = CASES["graph_launched"]().events
    nodes, whole = read(write_nsys(events)), read(write_nsys(events, Export(graphs=True)))
    for trace in (nodes, whole):
        assert (trace.launches.basis == LaunchBasis.GRAPH).all()
        assert len(trace.launches) == len(trace.device_ops)
        assert set(trace.device_ops.graph.tolist()) == {GRAPH_ID}
    assert losses(nodes) == {}
    assert losses(whole) == {"graphs_whole": 8}
    assert {trace.name_of(s) for s in whole.device_ops.slice} == {f"CUDA graph {GRAPH_ID}"}
    assert whole.completeness.complete
    upper_half = read(edited(write_nsys(events), "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET graphId = NULL"))
    assert set(upper_half.device_ops.graph.tolist()) == {GRAPH_ID}


def test_waits_know_the_record_they_wait_for(read):
    d = TraceDrawing()
    first, second, other = Stream(0, 7), Stream(0, 20), Stream(0, 21)
    early = d.call("cudaEventRecord", 1, 1)
    d.stream_wait(3, second, first, early)
    late = d.call("cudaEventRecord", 10, 1)
    d.stream_wait(12, second, other, late)
    d.kernel(d.launch(20), "k", 30, 5)
    wanted = [(20, 7, early), (20, 21, late)]
    for generation in ("2024", "2026"):
        trace = read(write_nsys(d.events(), Export(generation)))
        found = trace.table("device_waits").select("stream", "wait_on_stream", "wait_on_correlation").rows()
        assert found == wanted, generation
    # One event recorded twice, as programs do: the last record before the wait counts.
    again = edited(
        write_nsys(d.events(), Export("2024")),
        *(f"UPDATE {table} SET eventId = 4" for table in (schema.SYNCS, schema.EVENTS)),
    )
    assert read(again).table("device_waits").select("stream", "wait_on_stream", "wait_on_correlation").rows() == wanted
    lost = read(edited(again, f"UPDATE {schema.EVENTS} SET correlationId = 999"))
    assert lost.table("device_waits")["wait_on_correlation"].to_list() == [None, None]


def test_names_fall_back_and_missing_ones_are_counted(read):
    rows = [
        kernel_row(10, 20, demangledName=99, shortName=2),
        kernel_row(30, 40, demangledName=99, shortName=98, mangledName=3),
        kernel_row(50, 60, demangledName=99, shortName=98, mangledName=97),
    ]
    strings = [{"id": 2, "value": "short"}, {"id": 3, "value": "_Z7mangled"}]
    trace = read(write_tables({schema.KERNELS: rows, schema.STRINGS: strings}))
    assert [trace.name_of(s) for s in trace.device_ops.slice] == ["short", "_Z7mangled", "StringIds[99]"]
    assert losses(trace) == {"name_missing": 1}
    assert trace.completeness.complete


def test_calls_whose_names_are_missing_are_kept(read):
    trace = read(write_nsys(small().events(), Export(left_out=("cudaLaunchKernel_v7000",))))
    assert losses(trace) == {"name_missing": 1}
    assert len(trace.launches) == 3


# --- NVTX ---------------------------------------------------------------------------------------------------------


def test_ranges_marks_and_what_pytorch_writes_into_them(read):
    texts = [
        ("step 12", "step", "step 12"),
        ("aten::mm, seq = 31, op_id = 7, sizes = [[2, 3], [3, 4]], input_op_ids = [(3,0)]", "host_op", "aten::mm"),
        ("AddmmBackward0, seq = 31, op_id = 8", "host_op", "AddmmBackward0"),
        ("mylib::custom, op_id = 9", "host_op", "mylib::custom"),
        ("forward, op_id = 10", "annotation", "forward"),
        ("mylib::range", "annotation", "mylib::range"),
        ("data, seq = x", "annotation", "data"),
        ("", "annotation", ""),
    ]
    rows = [range_row(100 * k + 100, 100 * k + 150, text=text) for k, (text, _, _) in enumerate(texts)]
    mark = range_row(5000, None, eventType=34, text=None, textId=1)
    trace = read(write_tables({schema.RANGES: [*rows, mark], schema.STRINGS: [{"id": 1, "value": "here"}]}))
    assert trace.table("slices").select("kind", "name").rows() == [(kind, name) for _, kind, name in texts]
    assert trace.table("host_ops").select("sequence", "input_dims").rows() == [
        (31, "[[2, 3], [3, 4]]"), (31, None),
    ]  # fmt: skip
    assert trace.table("instants").select("time_ns", "name").rows() == [(4900, "here")]


def test_domains_name_the_category_and_naming_events_are_metadata(read):
    naming = [range_row(10, None, eventType=kind, domainId=5, text=f"name {kind}") for kind in schema.NAMING_EVENTS]
    naming[2]["text"] = "NCCL"
    trace = read(write_tables({schema.RANGES: [*naming, range_row(20, 30, domainId=5), range_row(40, 50)]}))
    assert trace.completeness.rows == {"slices": 2, "metadata": 4}
    assert trace.table("slices")["category"].to_list() == ["NCCL", "NVTX"]


@pytest.mark.parametrize("open_end", [None, 0, -1])
def test_open_ranges_end_with_the_session(read, open_end):
    trace = read(write_tables({schema.RANGES: [range_row(10, open_end), range_row(20, 90)]}))
    assert losses(trace) == {"range_open": 1}
    assert trace.completeness.complete
    assert sorted(trace.slices.dur_ns.tolist()) == [70, 80]


def tracks_of(trace: Trace) -> dict[str, str]:
    kinds = [TrackKind(kind) for kind in trace.tracks.kind[trace.slices.track].tolist()]
    return {trace.name_of(row): kind.name for row, kind in enumerate(kinds)}


def test_start_end_ranges_that_cross_lie_beside_their_thread(read):
    free = {"eventType": 60, "rangeId": 1}
    rows = [
        range_row(10, 50, text="pushed"),
        range_row(30, 80, text="request", **free),
        range_row(32, 40, text="inner", **free),
        range_row(5, 90, text="Iteration 4", **free),
    ]
    assert tracks_of(read(write_tables({schema.RANGES: rows}))) == {
        "pushed": "HOST_THREAD", "request": "OTHER", "inner": "OTHER", "Iteration 4": "HOST_THREAD",
    }  # fmt: skip
    rows[1] |= {"end": 45}
    assert tracks_of(read(write_tables({schema.RANGES: rows})))["request"] == "HOST_THREAD"
    rows[1] |= {"endGlobalTid": global_id(PID, PID + 1)}
    assert tracks_of(read(write_tables({schema.RANGES: rows}))) == {
        "pushed": "HOST_THREAD", "request": "OTHER", "inner": "HOST_THREAD", "Iteration 4": "HOST_THREAD",
    }  # fmt: skip


SPANS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 12), st.integers(0, 6)), max_size=12)


@given(SPANS)
def test_crossing_is_told_as_by_comparing_every_pair(spans):
    thread, start, dur = (np.array(column, np.int64) for column in zip(*spans, strict=True)) if spans else (
        np.empty(0, np.int64),
    ) * 3  # fmt: skip
    end = start + dur
    found = crossing(thread, start, end)
    pairs = [
        (i, j) for i in range(len(spans)) for j in range(len(spans))
        if thread[i] == thread[j] and start[i] < start[j] < end[i] < end[j]
    ]  # fmt: skip
    assert set(np.flatnonzero(found).tolist()) <= {at for pair in pairs for at in pair} | _beside(pairs, thread)
    # Whoever crosses, the thread is told.
    assert {thread[i] for i, _ in pairs} == set(thread[found].tolist())


def _beside(pairs: list[tuple[int, int]], thread: Any) -> set[int]:
    """Ranges of a thread on which anything crosses: which of them is named does not matter."""
    return {k for i, _ in pairs for k in range(len(thread)) if thread[k] == thread[i]}


# --- other tables -------------------------------------------------------------------------------------------------


def test_libraries_lie_on_the_thread_and_the_operating_system_beside_it(read):
    call = {"globalTid": MAIN, "nameId": 1, "eventClass": 0}
    trace = read(
        write_tables(
            {
                schema.STRINGS: [{"id": 1, "value": "name"}],
                "CUBLAS_EVENTS": [call | {"start": 10, "end": 20}],
                "CUPTI_ACTIVITY_KIND_JIT": [call | {"start": 30, "end": 40}],
                "MPI_COLLECTIVES_EVENTS": [{"start": 50, "end": 60, "globalTid": MAIN, "textId": 1}],
                "OSRT_API": [call | {"start": 5, "end": 900}],
                "CUPTI_ACTIVITY_KIND_OVERHEAD": [call | {"start": 70, "end": 80}],
            }
        )
    )
    kinds = trace.table("slices")["kind"].to_list()
    lanes = [TrackKind(kind).name for kind in trace.tracks.kind[trace.slices.track].tolist()]
    assert sorted(zip(kinds, lanes, strict=True)) == [
        ("annotation", "HOST_THREAD"), ("compile", "HOST_THREAD"), ("host_op", "HOST_THREAD"),
        ("other", "OTHER"), ("overhead", "OTHER"),
    ]  # fmt: skip
    assert trace.info.framework is None


def test_os_calls_do_not_change_the_accounting(read):
    planted = CASES["input_bound"]()
    events = [event for event in planted.events if representable(event)]
    call = {"eventClass": 27, "globalTid": MAIN, "nameId": 1}
    starts = range(SESSION_NS, SESSION_NS + 99_000, 1000)
    extra = {"OSRT_API": [call | {"start": start, "end": start + 900} for start in starts]}
    plain, traced = analyse(read(write_nsys(events))), analyse(read(write_nsys(events, Export(extra=extra))))
    assert_same_accounting(plain, traced)


def test_allocations_are_bytes_on_the_thread_that_called(read):
    row = {"start": SESSION_NS + 61_000, "globalPid": global_id(PID), "deviceId": 0, "address": 512, "bytes": 100}
    extra = {
        schema.MEMORY: [
            row | {"memKind": 2, "memoryOperationType": 0, "correlationId": 1},
            row | {"memKind": 1, "memoryOperationType": 1, "correlationId": 777},
        ]
    }
    trace = read(write_nsys(small().events(), Export(extra=extra)))
    table = trace.table("memory").select("time_ns", "device_type", "device", "address", "bytes")
    assert table.rows() == [(61_000, 1, 0, 512, 100), (61_000, 0, 0, 512, -100)]
    kinds = trace.tracks.kind[trace.memory.track].tolist()
    assert kinds == [TrackKind.HOST_THREAD, TrackKind.OTHER]


def test_what_is_not_used_and_what_the_profiler_says_is_told(read):
    extra = {
        "COMPOSITE_EVENTS": [{"id": k, "start": k, "globalTid": MAIN} for k in range(1, 8)],
        "GPU_METRICS": [{"timestamp": k, "rawTimestamp": k} for k in range(3)],
        "ENUM_DIAGNOSTIC_SEVERITY_LEVEL": [
            {"id": number, "label": label} for number, label in enumerate(("Info", "Warning", "Error"), 1)
        ],
        "DIAGNOSTIC_EVENT": [
            {"severity": severity, "text": text}
            for severity, text in ((1, "fine"), (2, "Not all events."), (2, "Not all events."), (3, "Dropped\x1b[31m"))
        ],
    }  # fmt: skip
    trace = read(write_nsys(small().events(), Export(extra=extra)))
    texts = {loss.code: (loss.count, loss.text) for loss in trace.completeness.losses if "message" not in loss.code}
    assert texts == {"tables_unread": (2, "tables that are not used: COMPOSITE_EVENTS (7 rows), GPU_METRICS (3 rows)")}
    said = [(loss.count, loss.text) for loss in trace.completeness.losses if loss.code == "nsight_message"]
    assert said == [
        (1, "Nsight Systems reports (error): Dropped\x1b[31m"), (2, "Nsight Systems reports (warning): Not all events"),
    ]  # fmt: skip
    assert trace.completeness.complete


# --- truth --------------------------------------------------------------------------------------------------------


def assert_same_accounting(first: Facts, second: Facts) -> None:
    assert first.markers.numbers == second.markers.numbers
    assert first.used == second.used
    assert first.step_ns.tolist() == second.step_ns.tolist()
    assert first.sampling.sampled == second.sampling.sampled
    assert len(first.accounts) == len(second.accounts)
    for one, other in zip(first.accounts, second.accounts, strict=True):
        assert (one.rows.device, one.rows.steps, one.rows.phases) == (
            other.rows.device, other.rows.steps, other.rows.phases,
        )  # fmt: skip
        assert np.diff(one.rows.bounds).tolist() == np.diff(other.rows.bounds).tolist()
        assert one.parts.tolist() == other.parts.tolist()


NEEDS_EVENT_RECORDS = ("device_waits", "input_bound_pipeline")
"""Cases whose accounting rests on which record a stream waits for, which exports of 2021 do not tell."""


@pytest.mark.parametrize(
    ("name", "generation"),
    [
        pytest.param(name, generation, marks=() if (newest and at < 7) or name == "healthy" else pytest.mark.slow)
        for at, name in enumerate(CASES)
        for generation in GENERATIONS
        for newest in (generation == GENERATIONS[-1],)
    ],
)
def test_the_accounting_is_that_of_the_kineto_profile_of_the_same_run(read, name, generation):
    if generation == "2021" and name in NEEDS_EVENT_RECORDS:
        pytest.skip("the export does not say what streams wait for")
    events = [event for event in planted_case(name).events if representable(event)]
    kineto = analyse(trace_of_bytes(write_kineto(events)))
    trace = read(write_nsys(events, Export(generation)))
    assert losses(trace) == {}
    assert_same_accounting(kineto, analyse(trace))


@given(events=random_traces(), generation=st.sampled_from(GENERATIONS))
def test_any_trace_is_read_and_every_row_has_a_place(tmp_path_factory, events, generation):
    path = tmp_path_factory.mktemp("any") / "report.sqlite"
    path.write_bytes(write_nsys(events, Export(generation)))
    trace = attempt(path)
    if isinstance(trace, str):
        assert "no usable event" in trace or "without CUDA or NVTX events" in trace
        return
    completeness = trace.completeness
    lost = sum(loss.lost_events for loss in completeness.losses)
    assert completeness.events == sum(completeness.rows.values()) + lost
    assert completeness.rows["slices"] == len(trace.slices)
    held = [event for event in events if representable(event)]
    zero = [e for e in held if e.dur_ns is None]
    assert len(trace.slices) + lost == len(held) - len(zero)


def test_a_planted_cause_is_found_with_steps_named_by_nvtx(tmp_path):
    planted = CASES["input_bound"]()
    events = [
        replace(event, name=event.name.replace("ProfilerStep#", "step ")) for event in planted.events
        if representable(event)
    ]  # fmt: skip
    path = tmp_path / "report.sqlite"
    path.write_bytes(write_nsys(events))
    profile = pipeline.open(path)
    assert profile.document()["profile"]["format"] == "Nsight Systems SQLite"
    assert profile.steps["number"].to_list() == list(range(10, 18))
    assert [finding.rule for finding in profile.findings] == ["input_bound"]
    assert profile.exit_status == Exit.OK


# --- several processes --------------------------------------------------------------------------------------------


def test_of_several_processes_the_busiest_is_read_and_the_others_are_counted(read):
    busy, idle = small(), TraceDrawing()
    busy.kernel(busy.launch(90), "last", 95, 4)
    idle.kernel(idle.launch(1), "other", 5, 400)  # The same correlation ids as the other process.
    idle.annotation("worker", 0, 600)
    data = merged(write_nsys(idle.events(), Export(pid=77, first_number=1000)), write_nsys(busy.events()))
    trace = read(data)
    assert len(trace.device_ops) == 4
    assert trace.slices.dur_ns.max() == 100_000
    (loss,) = trace.completeness.losses
    assert (loss.code, loss.count, loss.lost_events) == ("other_processes", 3, 0)
    assert "process 4242 (python3)" in loss.text
    assert "77 (python3): 1 device ops, 3 events" in loss.text
    assert trace.completeness.complete
    assert trace.completeness.events == len(busy.events())


def test_rows_that_name_no_process_belong_to_the_one_there_is(read):
    data = edited(write_nsys(small().events()), f"UPDATE {schema.KERNELS} SET globalPid = NULL")
    trace = read(data)
    assert len(trace.device_ops) == len(trace.launches) == 3


# --- odd rows, damage, what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("SET start = NULL", "time_missing"),
        ("SET start = 'soon'", "time_missing"),
        ("SET start = 1.5", "time_missing"),
        ("SET end = x'00'", "duration_missing"),
        ("SET end = start - 1", "duration_negative"),
        ("SET start = 0, end = 0", "time_out_of_range"),
        ("SET start = 9e17, end = 9e17", "time_out_of_range"),
        ("SET end = 9223372036854775807", "time_out_of_range"),
        ("SET start = -9223372036854775808", "time_missing"),
        ("SET start = -9223372036854775807", "time_missing"),
        ("SET deviceId = -1", "device_missing"),
        ("SET deviceId = 'gpu'", "device_missing"),
    ],
)
def test_unusable_rows_are_counted(read, change, code):
    table = "CREATE TABLE k AS SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL"
    data = edited(
        write_nsys(small().events()), table, f"DROP TABLE {schema.KERNELS}",
        f"CREATE TABLE {schema.KERNELS} ({TABLES['2026'][schema.KERNELS].replace(' NOT NULL', '')})",
        f"INSERT INTO {schema.KERNELS} SELECT * FROM k", "DROP TABLE k", f"UPDATE {schema.KERNELS} {change}",
    )  # fmt: skip
    trace = read(data)
    (loss,) = trace.completeness.losses
    assert (loss.code, loss.count, loss.lost_events) == (code, 1, 1)
    assert loss.first_offset is not None
    assert not trace.completeness.complete
    assert len(trace.device_ops) == 2
    assert trace.completeness.events == sum(trace.completeness.rows.values()) + 1


def test_absurd_values_count_as_absent(read):
    data = edited(
        write_nsys(small().events()),
        f"UPDATE {schema.KERNELS} SET streamId = 'a', registersPerThread = 2.5, correlationId = 'x'",
        f"UPDATE {schema.COPIES} SET copyKind = 99, srcKind = -5, bytes = 'many'",
        f"UPDATE {schema.RANGES} SET globalTid = 'main' WHERE textId = 2",
    )  # fmt: skip
    trace = read(data)
    kernel, copy, _ = trace.table("device_ops").rows(named=True)
    assert (kernel["stream"], kernel["registers"], kernel["launch"]) == (None, None, None)
    assert (copy["direction"], copy["source_memory"], copy["bytes"]) == ("unknown", "unknown", None)


def test_any_table_may_be_missing(read):
    data = write_nsys(CASES["exposed_collective"]().events)
    with sqlite3.connect(":memory:") as connection:
        connection.deserialize(data)
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master").fetchall()]
    for table in tables:
        trace = read(edited(data, f"DROP TABLE {table}"))
        assert len(trace.slices) > 0
        analyse(trace)


def test_gzip_is_read_and_a_cut_one_up_to_the_cut(read):
    data = write_nsys(CASES["healthy"]().events, Export(page_size=512))
    whole, packed = read(data), gzip.compress(data)
    assert read(packed).slices.start_ns.tolist() == whole.slices.start_ns.tolist()
    cut = read(packed[: len(packed) // 3])
    assert "gzip_truncated" in losses(cut)
    assert 0 < len(cut.slices) < len(whole.slices)
    assert not cut.completeness.complete


DAMAGED = write_nsys(CASES["healthy"]().events, Export(page_size=1024))


@given(cut=st.integers(1, len(DAMAGED) - 1))
def test_a_file_cut_anywhere_is_read_or_refused_in_a_sentence(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("cut") / "report.sqlite"
    path.write_bytes(DAMAGED[:cut])
    trace = attempt(path)
    if isinstance(trace, str):
        assert trace.startswith(str(path))
        assert "\n" not in trace
        return
    found = losses(trace)
    assert found["truncated"] == 1
    assert not trace.completeness.complete


NOISE = st.tuples(st.integers(16, len(DAMAGED) - 1), st.binary(min_size=1, max_size=64))


@given(st.lists(NOISE, min_size=1, max_size=9))
def test_overwritten_bytes_never_fail(tmp_path_factory, changes):
    data = bytearray(DAMAGED)
    for at, noise in changes:
        data[at : at + len(noise)] = noise[: len(data) - at]
    path = tmp_path_factory.mktemp("noise") / "report.sqlite"
    path.write_bytes(data)
    trace = attempt(path)
    if isinstance(trace, str):
        assert "\n" not in trace
        return
    analyse(trace)
    completeness = trace.completeness
    lost = sum(loss.lost_events for loss in completeness.losses)
    assert completeness.events == sum(completeness.rows.values()) + lost


def test_a_damaged_table_costs_only_itself(read):
    with sqlite3.connect(":memory:") as connection:
        connection.deserialize(DAMAGED)
        query = f"SELECT rootpage FROM sqlite_master WHERE name = '{schema.RANGES}'"
        (root,) = connection.execute(query).fetchone()
    data = bytearray(DAMAGED)
    data[(root - 1) * 1024 : root * 1024] = bytes(1024)
    trace = read(bytes(data))
    (loss,) = trace.completeness.losses
    assert (loss.code, loss.damaged, loss.lost_bytes) == ("table", True, 1024)
    assert loss.first_offset == (root - 1) * 1024
    assert loss.text == "damaged in table NVTX_EVENTS: 1 page; the rest was read"
    assert len(trace.device_ops) > 0


def test_a_damaged_table_of_kernels_leaves_nothing_to_say_of_the_device(read):
    with sqlite3.connect(":memory:") as connection:
        connection.deserialize(DAMAGED)
        query = f"SELECT rootpage FROM sqlite_master WHERE name = '{schema.KERNELS}'"
        (root,) = connection.execute(query).fetchone()
    trace = read(DAMAGED[: (root - 1) * 1024] + bytes(1024) + DAMAGED[root * 1024 :])
    assert losses(trace)["device_table"] == 1
    found = diagnose(analyse(trace))
    assert (found.bottleneck, found.findings, found.minor) == ("unknown", (), ())
    assert found.verdict.endswith("part of the file is missing, and device activity with it.")


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        (["CREATE TABLE users (id)", "CREATE TABLE orders (id)"], "its tables are orders, users"),
        ([], "it has no tables"),
        ([f"CREATE TABLE t{k} (a)" for k in range(9)], "t0, t1, t2, t3 and 5 more"),
        (["CREATE TABLE StringTable (a)", "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (a)"], "nvprof"),
        (["CREATE TABLE TARGET_INFO_GPU (id)"], "--trace=cuda,nvtx"),
        (["CREATE TABLE NVTX_EVENTS (start INT)"], "holds no usable event"),
        (["CREATE VIEW NVTX_EVENTS AS SELECT 1 AS start, 2 AS end"], "it has no tables"),
    ],
)
def test_other_databases_are_refused_in_a_sentence(read, statements, words):
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE TABLE made (a)")
        connection.execute("DROP TABLE made")
        for statement in statements:
            connection.execute(statement)
        data = connection.serialize()
    with pytest.raises(InputError, match=words):
        read(data)


def test_a_report_that_was_not_exported_is_told_how(tmp_path):
    path = tmp_path / "run.nsys-rep"
    path.write_bytes(bytes(range(256)) * 8)
    with pytest.raises(InputError, match="nsys export --type sqlite"):
        readers.recognise(Source(path))


def test_a_name_with_special_characters_is_a_name(tmp_path):
    path = Path(tmp_path / "a?mode=rwc#b%20.sqlite")
    path.write_bytes(write_nsys(small().events()))
    assert len(nsys.read(Source(path)).slices) == 10


def test_threads_of_one_process_stay_apart(read):
    events = [
        Event("user_annotation", "one", Thread("main"), 0, 10), Event("user_annotation", "two", Thread("loader"), 5, 10)
    ]  # fmt: skip
    trace = read(write_nsys(events))
    assert trace.table("tracks").select("thread", "label").rows() == [("4242", "python3"), ("4243", "loader")]
    assert (trace.slices.kind == Kind.ANNOTATION).all()
