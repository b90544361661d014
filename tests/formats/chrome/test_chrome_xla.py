"""The JSON that JAX and XProf make of an XPlane: read as the XPlane is, as far as the JSON says."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.formats.chrome import xla
from tests.formats.chrome.chrome_files import Event, event, linked, losses, named, read, rows, slice_
from tests.support import real_profile

HOST = named("process_name", "/host:CPU"), named("thread_name", "python", tid=1), named("thread_name", "pool/7", tid=2)


def on(*events: Event) -> Any:
    """A trace of these events, on host threads named as XLA names them."""
    return read(*HOST, slice_("always", 0, 1000), *events)


def kinds(*events: Event) -> dict[str, str]:
    return dict(rows(on(*events), "slices", "name", "kind"))


def test_host_threads_and_what_runs_on_them():
    found = kinds(
        slice_("$train.py:12 step", 1, 90),
        slice_("$builtins len", 2, 1),
        slice_("train", 5, 50, args={"step_num": "10"}),
        slice_("my range", 6, 10, args={"batch": "3"}),
        slice_("my range in the pool", 6, 10, tid=2),
        slice_("CommonPjRtLoadedExecutable::Execute (jit_f)", 20, 5),
        slice_("a pass", 21, 1),
    )
    assert found == {
        "always": "annotation", "train.py(12): step": "python_frame", "<built-in function len>": "python_frame",
        "train": "step", "my range": "annotation", "my range in the pool": "host_op",
        "CommonPjRtLoadedExecutable::Execute (jit_f)": "runtime_call", "a pass": "host_op",
    }  # fmt: skip


def test_tracks_are_called_after_plane_and_line():
    trace = on(slice_("a", 1, 1, tid=2))
    tracks = rows(trace, "tracks", "kind", "process", "thread", "label")
    assert ("host_thread", "/host:CPU", "1", "python") in tracks
    assert ("host_thread", "/host:CPU", "2", "pool/7") in tracks


def test_steps_have_numbers_and_say_where_they_come_from():
    """The export drops what makes a step a root; where a version keeps it, it counts."""
    trace = on(
        slice_("train", 1, 9, args={"step_num": "10"}),
        slice_("train", 11, 9, args={"step_num": "11", "_r": "1"}),
        slice_("train", 21, 9, args={"step_num": "soon"}),
    )
    assert rows(trace, "step_marks", "source", "number") == [
        ("step_num", 10), ("step_num_root", 11), ("step_num", None),
    ]  # fmt: skip


def test_events_of_no_length_are_instants():
    trace = on(slice_("ThreadpoolListener::Record", 5, 9.9999999999999995e-07), slice_("a", 7, 0.001))
    assert rows(trace, "instants", "time_ns", "name") == [(5000, "ThreadpoolListener::Record")]
    assert trace.completeness.rows == {"slices": 2, "instants": 1, "metadata": 3}
    assert trace.completeness.complete


# --- devices --------------------------------------------------------------------------------------


def op(name: str, ts: float, dur: float, device: int, *, tid: int = 2, run: int = 5, **more: str) -> Event:
    args = {"hlo_op": name, "hlo_module": "jit_f", "device_ordinal": str(device), "run_id": str(run)} | more
    return slice_(name, ts, dur, tid=tid, args=args)


def test_ops_of_xla_on_the_cpu_move_to_their_device():
    trace = on(
        slice_("CommonPjRtLoadedExecutable::Execute (jit_f)", 3, 4, args={"run_id": "5"}),
        slice_("ThunkExecutor::Execute", 8, 40, tid=2),
        op("dot.4", 10, 5, 0), op("all-reduce.1", 16, 3, 1), op("tanh", 12, 2, 1, tid=1),
        op("infeed.2", 30, 2, 0, run=6),
    )  # fmt: skip
    assert [(device.id, device.kind) for device in trace.info.devices] == [(0, "cpu"), (1, "cpu")]
    columns = ("kind", "label", "device", "stream")
    tracks = [rows(trace, "tracks", *columns)[track] for (track,) in rows(trace, "slices", "track")]
    names = [name for (name,) in rows(trace, "slices", "name")]
    assert {name: track for name, track in zip(names, tracks, strict=True) if track[2] is not None} == {
        "dot.4": ("device_stream", "pool/7", 0, 0), "infeed.2": ("device_stream", "pool/7", 0, 0),
        "tanh": ("device_stream", "python", 1, 0), "all-reduce.1": ("device_stream", "pool/7", 1, 1),
    }  # fmt: skip
    assert linked(trace, "device_ops", "slice") == [("dot.4",), ("tanh",), ("all-reduce.1",)]
    assert rows(trace, "device_ops", "device", "stream") == [(0, 0), (1, 0), (1, 1)]
    assert dict(rows(trace, "slices", "name", "kind"))["all-reduce.1"] == "collective"
    assert linked(trace, "device_waits", "slice") == [("infeed.2",)]
    call = "CommonPjRtLoadedExecutable::Execute (jit_f)"
    assert set(linked(trace, "launches", "call", "op")) == {(call, made) for made in ("dot.4", "tanh", "all-reduce.1")}
    assert rows(trace, "launches", "basis") == [("execution",)] * 3
    found = {trace.name_of(row[0]): row[1:] for row in rows(trace, "xla_ops", "slice", "module", "run", "op")}
    assert found["dot.4"] == ("jit_f", 5, "dot.4")
    assert found["infeed.2"] == ("jit_f", 6, "infeed.2")


def test_an_op_that_names_no_device_stays_on_its_thread():
    trace = on(slice_("fusion", 5, 5, tid=2, args={"hlo_op": "fusion", "hlo_module": "cluster_0"}))
    assert dict(rows(trace, "slices", "name", "kind"))["fusion"] == "host_op"
    assert (len(trace.device_ops), len(trace.xla_ops), trace.info.devices) == (0, 1, ())


GPU = (
    named("process_name", "/device:GPU:1", pid=2),
    named("thread_name", "Stream #17(Kernel,MemcpyH2D)", pid=2, tid=17),
    named("thread_name", "XLA Modules", pid=2, tid=90),
    named("thread_name", "Launch Stats", pid=2, tid=91),
)


def test_streams_of_a_gpu():
    on_stream = {"pid": 2, "tid": 17}
    copied = {"memcpy_details": "kind_src:pinned kind_dst:device size:64 dest:0 async:1"}
    fusion = {"correlation_id": "7", "hlo_op": "fusion.3", "hlo_module": "jit_f"}
    trace = on(
        *GPU,
        slice_("cuLaunchKernel", 2, 1, args={"correlation_id": "7"}),
        slice_("fusion_3", 10, 5, args=fusion, **on_stream),
        slice_("MemcpyH2D", 20, 5, args=copied, **on_stream),
        slice_("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 30, 5, **on_stream),
        slice_("jit_f(1)", 10, 25, pid=2, tid=90),
        slice_("whatever", 10, 25, pid=2, tid=91),
    )  # fmt: skip
    assert [(device.id, device.kind) for device in trace.info.devices] == [(1, "gpu")]
    kind = dict(rows(trace, "slices", "name", "kind"))
    assert [kind[name] for name in ("cuLaunchKernel", "fusion_3", "MemcpyH2D", "jit_f(1)", "whatever")] == [
        "runtime_call", "kernel", "copy", "module", "device_annotation",
    ]  # fmt: skip
    columns = ("device", "stream", "bytes", "direction", "source_memory", "target_memory")
    assert rows(trace, "device_ops", *columns) == [
        (1, 17, None, "unknown", "unknown", "unknown"), (1, 17, 64, "h2d", "pinned", "device"),
        (1, 17, None, "unknown", "unknown", "unknown"),
    ]  # fmt: skip
    assert linked(trace, "launches", "call", "op") == [("cuLaunchKernel", "fusion_3")]
    assert rows(trace, "tracks", "kind", "device", "stream")[1:] == [
        ("device_stream", 1, 17), ("device_line", 1, None), ("device_line", 1, None),
    ]  # fmt: skip


def test_only_the_op_line_of_a_tpu_is_measured():
    lines = ("XLA Ops", "XLA Modules", "Steps", "Framework Ops", "Async XLA Ops")
    trace = read(
        named("process_name", "/device:TPU:3", pid=5),
        *(named("thread_name", line, pid=5, tid=tid) for tid, line in enumerate(lines)),
        *(slice_(str(40 + tid), 10 * tid, 5, pid=5, tid=tid) for tid in range(len(lines))),
        slice_("all-gather.1", 70, 5, pid=5, tid=0),
        slice_("outfeed", 80, 5, pid=5, tid=0),
    )
    assert [(device.id, device.kind) for device in trace.info.devices] == [(3, "tpu")]
    assert linked(trace, "device_ops", "slice") == [("40",), ("all-gather.1",)]
    assert rows(trace, "xla_ops", "op") == [("40",), ("all-gather.1",), ("outfeed",)]
    assert linked(trace, "device_waits", "slice") == [("outfeed",)]
    assert dict(rows(trace, "slices", "name", "kind")) == {
        "40": "kernel", "41": "module", "42": "step", "43": "device_annotation", "44": "device_annotation",
        "all-gather.1": "collective", "outfeed": "device_wait",
    }  # fmt: skip
    assert rows(trace, "step_marks", "source", "number") == [("steps_line", 42)]


# --- the export as a whole ------------------------------------------------------------------------


@pytest.mark.parametrize(("more", "capped"), [(0, True), (1, False)])
def test_an_export_with_as_many_events_as_it_may_have_says_so(monkeypatch: pytest.MonkeyPatch, more: int, capped: bool):
    monkeypatch.setattr(xla, "EVENT_CAPS", (3,))
    trace = on(*(slice_("a", i, 1) for i in range(2 + more)), event("M", "process_sort_index", args={"sort_index": 1}))
    assert ("event_cap" in losses(trace)) is capped
    assert trace.completeness.complete  # nothing is known to be missing


def test_events_without_a_duration_count_towards_the_cap(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(xla, "EVENT_CAPS", (3,))
    assert "event_cap" in losses(on(slice_("a", 0, 1), slice_("ThreadpoolListener::Record", 2, 0)))


def test_ops_that_name_no_device_are_told_and_where_it_is_told():
    trace = on(slice_("dot.3", 0, 5, args={"hlo_op": "dot.3", "hlo_module": "SyncTensorsGraph.7"}))
    assert losses(trace)["ops_unplaced"] == (1, 0)
    (loss,) = trace.completeness.losses
    assert "read the .xplane.pb beside it" in loss.text
    placed = on(slice_("dot.3", 0, 5, args={"hlo_op": "dot.3", "device_ordinal": "0"}))
    assert "ops_unplaced" not in losses(placed)


def test_a_thread_is_pythons_by_what_only_python_calls():
    """A TraceAnnotation is one also where the program is not called python and no frames were recorded."""
    ranges = slice_("load_batch", 0, 5), slice_("PjitFunction(step)", 6, 2)
    for names, kind in ((ranges, "annotation"), (ranges[:1], "host_op")):
        trace = read(named("process_name", "/host:CPU", pid=1), named("thread_name", "pytest", pid=1, tid=1), *names)
        assert dict(rows(trace, "slices", "name", "kind"))["load_batch"] == kind


@pytest.mark.real
def test_a_real_export_beside_an_xplane():
    """Four forced devices, three steps of one module with one all-reduce per device and step."""
    profile = real_profile("xplane/jax_cpu4_json/vm.trace.json.gz")
    trace = profile.trace
    assert trace.info.format == "XLA trace JSON"
    assert [device.kind for device in trace.info.devices] == ["cpu"] * 4
    assert rows(trace, "step_marks", "number") == [(10,), (11,), (12,)]
    kinds = [str(kind) for (kind,) in rows(trace, "slices", "kind")]
    assert (kinds.count("collective"), kinds.count("kernel")) == (12, 156)
    assert len(trace.launches) == len(trace.device_ops) == 168
    assert {trace.name_of(call) for (call,) in rows(trace, "launches", "call")} == {
        "CommonPjRtLoadedExecutable::Execute (jit_train_step)"
    }
    assert {module for (module,) in rows(trace, "xla_ops", "module")} == {"jit_train_step"}
    assert trace.completeness.complete
    assert sum(trace.completeness.rows.values()) + 1 == trace.completeness.events  # the writer's last, empty event
    document = profile.document()
    assert len(document["profile"]["devices"]) == 4
    for row in document["accounting"]:
        assert sum(row["parts"].values()) == row["dur_ns"]
