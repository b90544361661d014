"""The same events in every generation, vendor, layout and container of the format: the same tables come out.

``EXPECTED`` is what the 2025 form gives, in full. What another form cannot record is taken out of the scene
(``representable``), what it spells or knows less of is listed in ``blurred``; everything else must be equal.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.trace.trace import Trace
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event, Stream
from tests.kit.kineto_form import WHOLE_MICROSECONDS
from tests.kit.kineto_writer import FORMS, Form, representable, write_kineto, zero_ns
from tests.kit.random_traces import random_traces
from tests.support import trace_of_bytes

COPY_STREAM = Stream(1, 21)


def scene() -> list[Event]:
    """One of everything the format holds; times in µs."""
    d = TraceDrawing()
    d.step(3, 0, 400)
    d.python("train.py(12): main", 0, 390)
    d.input_wait(10, 20)
    forward = d.host("aten::linear", 40, 30, **{"Input Dims": [[8, 4]], "Sequence number": 5})
    d.kernel(d.launch(45), "sgemm_128x128", 60, 50)
    d.copy(d.call("cudaMemcpyAsync", 80, 5), "HtoD", 90, 40, 4096, "Pageable", COPY_STREAM)
    d.memset(d.call("cudaMemsetAsync", 90, 5), 135, 5)
    d.collective(d.launch(100, name="cudaLaunchKernelExC"), 140, 60)
    backward = d.host(
        "autograd::engine::evaluate_function: AddmmBackward0",
        120,
        40,
        thread="autograd",
        **{"Input Dims": [], "Sequence number": 5},
    )
    d.backward_of(forward, backward)
    graph = d.launch(165, name="cudaGraphLaunch")
    d.kernel(graph, "graph_a", 205, 10, **{"graph id": 9})
    d.kernel(graph, "graph_b", 216, 10, **{"graph id": 9})
    record = d.call("cudaEventRecord", 172, 5)
    d.stream_wait(180, COPY_STREAM, recorded_on=Stream(0, 7), record=record)
    d.kernel(None, "unlaunched", 230, 20, COPY_STREAM)
    d.sync(190, 60, "cudaDeviceSynchronize", Stream(0, 7))
    d.call("cudaMalloc", 260, 10)
    d.call("cuLaunchKernel", 280, 5, cat="cuda_driver")
    d.memory(262, 512, address=4096, total=512)
    d.overhead(290, 15)
    d.add(Event("gpu_user_annotation", "forward", Stream(0, 7), 60_000, 50_000))
    return d.events()


EXPECTED: dict[str, list[Any]] = {
    "slices": [  # track, start and duration in µs, kind, name, name of the parent
        ("4242", 0, 400, "step", "ProfilerStep#3", None),
        ("4242", 0, 390, "python_frame", "train.py(12): main", "ProfilerStep#3"),
        ("4242", 10, 20, "annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
         "train.py(12): main"),
        ("4242", 40, 30, "host_op", "aten::linear", "train.py(12): main"),
        ("4242", 45, 5, "runtime_call", "cudaLaunchKernel", "aten::linear"),
        ("4242", 80, 5, "runtime_call", "cudaMemcpyAsync", "train.py(12): main"),
        ("4242", 90, 5, "runtime_call", "cudaMemsetAsync", "train.py(12): main"),
        ("4242", 100, 5, "runtime_call", "cudaLaunchKernelExC", "train.py(12): main"),
        ("4242", 165, 5, "runtime_call", "cudaGraphLaunch", "train.py(12): main"),
        ("4242", 172, 5, "runtime_call", "cudaEventRecord", "train.py(12): main"),
        ("4242", 180, 5, "runtime_call", "cudaStreamWaitEvent", "train.py(12): main"),
        ("4242", 190, 60, "sync", "cudaDeviceSynchronize", "train.py(12): main"),
        ("4242", 260, 10, "allocation", "cudaMalloc", "train.py(12): main"),
        ("4242", 280, 5, "runtime_call", "cuLaunchKernel", "train.py(12): main"),
        ("4243", 120, 40, "host_op", "autograd::engine::evaluate_function: AddmmBackward0", None),
        ("lane 0", 290, 15, "overhead", "Activity Buffer Request", None),
        ("lane PyTorch Profiler", 0, 400, "other", "PyTorch Profiler (0)", None),
        ("device 0 stream 7", 60, 50, "device_annotation", "forward", "sgemm_128x128"),
        ("device 0 stream 7", 60, 50, "kernel", "sgemm_128x128", None),
        ("device 0 stream 7", 135, 5, "memset", "Memset (Device)", None),
        ("device 0 stream 7", 190, 60, "device_wait", "Context Sync", None),
        ("device 0 stream 7", 205, 10, "kernel", "graph_a", "Context Sync"),
        ("device 0 stream 7", 216, 10, "kernel", "graph_b", "Context Sync"),
        ("device 0 stream 20", 140, 60, "collective",
         "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", None),
        ("device 1 stream 21", 90, 40, "copy", "Memcpy HtoD (Pageable -> Device)", None),
        ("device 1 stream 21", 180, 5, "device_wait", "Stream Wait Event", None),
        ("device 1 stream 21", 230, 20, "kernel", "unlaunched", None),
    ],
    "device_ops": [  # device, stream, name, launching call, bytes, direction, source, target, graph, collective
        (0, 7, "sgemm_128x128", "cudaLaunchKernel", None, "unknown", "unknown", "unknown", None, None),
        (0, 7, "Memset (Device)", "cudaMemsetAsync", 4, "unknown", "unknown", "unknown", None, None),
        (0, 20, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
         "cudaLaunchKernelExC", None, "unknown", "unknown", "unknown", None, "allreduce"),
        (0, 7, "graph_a", "cudaGraphLaunch", None, "unknown", "unknown", "unknown", 9, None),
        (0, 7, "graph_b", "cudaGraphLaunch", None, "unknown", "unknown", "unknown", 9, None),
        (1, 21, "Memcpy HtoD (Pageable -> Device)", "cudaMemcpyAsync", 4096, "h2d", "pageable", "device", None, None),
        (1, 21, "unlaunched", None, None, "unknown", "unknown", "unknown", None, None),
    ],
    "launches": [
        ("cudaGraphLaunch", "graph_a", "graph"),
        ("cudaGraphLaunch", "graph_b", "graph"),
        ("cudaLaunchKernel", "sgemm_128x128", "correlation"),
        ("cudaLaunchKernelExC", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
         "correlation"),
        ("cudaMemcpyAsync", "Memcpy HtoD (Pageable -> Device)", "correlation"),
        ("cudaMemsetAsync", "Memset (Device)", "correlation"),
    ],
    "flows": [
        ("forward_backward", "aten::linear", "autograd::engine::evaluate_function: AddmmBackward0"),
    ],
    "device_waits": [  # device, stream, awaited stream, call that recorded the awaited event
        (0, 7, None, None),
        (1, 21, 7, "cudaEventRecord"),
    ],
    "memory": [(262, 1, 0, 4096, 512, 512, 1024)],
    "instants": [(0, "Iteration Start: PyTorch Profiler"), (400, "Record Window End")],
    "host_ops": [(5, "[[8,4]]"), (5, "[]")],
}  # fmt: skip
"""Every table of the scene as the newest generation gives it."""


def tables(trace: Trace) -> dict[str, list[Any]]:
    """What a trace holds, without what no two forms share: row numbers, offsets and the spelling of categories."""
    slices = trace.table("slices").to_dicts()
    tracks = [_track(row) for row in trace.table("tracks").to_dicts()]
    names = [row["name"] for row in slices]
    calls = {row["correlation"]: row["name"] for row in slices if row["kind"] in ("runtime_call", "sync")}

    def name(at: int | None) -> str | None:
        return None if at is None else names[at]

    return {
        "slices": _sorted(
            (tracks[row["track"]], row["start_ns"] / 1000, row["dur_ns"] / 1000, row["kind"], row["name"],
             name(row["parent"]))
            for row in slices
        ),
        "device_ops": _sorted(
            (row["device"], row["stream"], name(row["slice"]), name(row["launch"]), row["bytes"], row["direction"],
             row["source_memory"], row["target_memory"], row["graph"], row["collective"])
            for row in trace.table("device_ops").to_dicts()
        ),
        "launches": _sorted(
            (name(row["call"]), name(row["op"]), row["basis"]) for row in trace.table("launches").to_dicts()
        ),
        "flows": _sorted(
            (row["kind"], name(row["source"]), name(row["target"])) for row in trace.table("flows").to_dicts()
        ),
        "device_waits": _sorted(
            (row["device"], row["stream"], row["wait_on_stream"], calls.get(row["wait_on_correlation"]))
            for row in trace.table("device_waits").to_dicts()
        ),
        "memory": [
            (row["time_ns"] / 1000, row["device_type"], row["device"], row["address"], row["bytes"], row["allocated"],
             row["reserved"])
            for row in trace.table("memory").to_dicts()
        ],
        "instants": _sorted((row["time_ns"] / 1000, row["name"]) for row in trace.table("instants").to_dicts()),
        "host_ops": _sorted(
            (row["sequence"], "".join(row["input_dims"].split()))
            for row in trace.table("host_ops").to_dicts()
            if row["input_dims"] is not None
        ),
    }  # fmt: skip


def _track(row: dict[str, Any]) -> str:
    if row["kind"] == "device_stream":
        return f"device {row['device']} stream {row['stream']}"
    return row["thread"] if row["kind"] == "host_thread" else f"lane {row['thread']}"


def _sorted(rows: Any) -> list[Any]:
    return sorted(rows, key=lambda row: json.dumps(row))


def blurred(wanted: dict[str, list[Any]], form: Form) -> dict[str, list[Any]]:
    """The tables with what the vendor spells differently or does not say: AMD's calls are HIP's, and its copies do
    not tell pageable host memory from pinned."""
    if form.vendor == "nvidia":
        return wanted
    text = json.dumps(wanted).replace('"cudaLaunchKernelExC"', '"hipExtLaunchKernel"')
    text = text.replace('"cuLaunchKernel"', '"hipModuleLaunchKernel"').replace('"cuda', '"hip')
    text = text.replace("(Pageable ->", "(Host ->").replace('"pageable"', '"unknown"')
    return {key: _sorted(tuple(row) for row in rows) for key, rows in json.loads(text).items()}


def test_the_newest_form_gives_these_tables() -> None:
    assert tables(trace_of_bytes(write_kineto(scene()))) == {key: _sorted(rows) for key, rows in EXPECTED.items()}


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_every_form_gives_the_same_tables(form: Form) -> None:
    recorded = [event for event in scene() if representable(event, form)]
    wanted = blurred(tables(trace_of_bytes(write_kineto(recorded))), form)
    found = tables(trace_of_bytes(write_kineto(scene(), form)))
    for name in EXPECTED.keys() - {"flows"}:
        assert found[name] == wanted[name], name


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_every_form_binds_backward_to_forward(form: Form) -> None:
    assert tables(trace_of_bytes(write_kineto(scene(), form)))["flows"] == EXPECTED["flows"]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_every_form_is_read_whole_and_knows_its_grain_and_epoch(form: Form) -> None:
    trace = trace_of_bytes(write_kineto(scene(), form))
    assert trace.completeness.complete
    # Calls that launched nothing end an arrow of their own.
    assert {loss.code for loss in trace.completeness.losses} <= {"flow_open"}
    assert trace.info.resolution_ns == (1000 if form.generation in WHOLE_MICROSECONDS else 1)
    assert trace.info.origin_epoch_ns == (None if is_nameless(form) else zero_ns(form))
    model = {"nvidia": "NVIDIA A100-SXM4-80GB", "amd": "AMD Instinct MI300X"}[form.vendor]
    known = None if form.root == "list" else model
    assert [(device.id, device.name) for device in trace.info.devices] == [(0, known), (1, known)]


def is_nameless(form: Form) -> bool:
    """Whether the file holds times relative to a base that it does not name."""
    return form.root == "list" and form.generation == "2025"


FINE = [form for form in FORMS if form.generation not in WHOLE_MICROSECONDS and not is_nameless(form)]


@given(random_traces(grain_ns=1), st.sampled_from(FINE))
def test_times_are_exact_to_the_nanosecond(events: list[Event], form: Form) -> None:
    trace = trace_of_bytes(write_kineto(events, form))
    slices, origin = trace.table("slices").to_dicts(), trace.info.origin_epoch_ns
    assert origin is not None
    found = sorted((origin + row["start_ns"], row["dur_ns"]) for row in slices if row["category"] != "Trace")
    recorded = [event for event in events if representable(event, form) and event.dur_ns is not None]
    assert found == sorted((zero_ns(form) + event.start_ns, event.dur_ns) for event in recorded)


@given(random_traces(), st.sampled_from(FORMS))
def test_every_event_of_any_trace_is_in_a_table_or_in_the_completeness_record(events: list[Event], form: Form) -> None:
    record = trace_of_bytes(write_kineto(events, form)).completeness
    assert record.complete
    assert sum(record.rows.values()) + sum(loss.count for loss in record.losses) == record.events
