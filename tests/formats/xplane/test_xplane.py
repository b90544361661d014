"""XPlane profiles: what every kind of plane, line and statistic becomes."""

from __future__ import annotations

import math

import pytest

from stepscope.errors import InputError
from stepscope.formats.xplane import read as xplane
from stepscope.formats.xplane import wire
from stepscope.inputs.source import Source
from stepscope.trace.tables import I64, NULL, U8, Kind, TrackKind
from tests.formats.xplane.xplane_files import US, host, kinds, nvidia, read, rows
from tests.kit.wire import message
from tests.kit.xplanes import Ev, Inline, Line, Plane, Unsigned, line, space

MS = 1_000_000_000


# --- times ------------------------------------------------------------------------------------------------------------


def test_picoseconds_become_nanoseconds_at_both_ends() -> None:
    """Events that touch in picoseconds touch in nanoseconds, whatever their durations round to."""
    trace = read(space(host(Ev("a", 1_999, 1_500), Ev("b", 3_499, 1_501), Ev("c", 5_000, 999), Ev("d", 7_000, 0))))
    assert rows(trace, "name", "start_ns", "dur_ns") == [("a", 0, 2), ("b", 2, 2), ("c", 4, 0)]
    assert rows(trace, "name", "time_ns", table="instants") == [("d", 6)]


@pytest.mark.parametrize("session", [1_700_000_000_000_000_000, None])
@pytest.mark.parametrize("first", [5_000, 1_700_000_000_000_005_000])
def test_the_origin_is_told_whether_lines_count_from_the_session_or_from_1970(session: int | None, first: int) -> None:
    task = Plane("Task Environment", stats={} if session is None else {"profile_start_time": Unsigned(session)})
    trace = read(space(Plane("/host:CPU", (line("python", Ev("a", 2_000, 1_000), time_ns=first),)), task))
    known = session is not None or first > 10**18
    assert trace.info.origin_epoch_ns == (1_700_000_000_000_005_002 if known else None)


def test_lines_that_began_before_the_session_count_from_1970_beside_others() -> None:
    session = 1_700_000_000_000_000_000
    lines = (line("python", Ev("a", 0, US), time_ns=300, id=1),
             line("pool", Ev("b", 0, US), time_ns=session - 200, id=2))  # fmt: skip
    trace = read(space(Plane("/host:CPU", lines), Plane("Task Environment", stats={"profile_start_time": session})))
    assert sorted(rows(trace, "name", "start_ns")) == [("a", 500), ("b", 0)]
    assert trace.info.origin_epoch_ns == session - 200


def test_a_tpu_s_own_clock_places_its_events() -> None:
    """Both stamps of two ops; the host's copy of the second is 300 ns off."""

    def own(start: int, dur: int) -> dict[str, int]:
        return {"device_offset_ps": start, "device_duration_ps": dur}

    ops = line("XLA Ops", Ev("a", 100 * US, 9 * US, own(5_100 * US, 10 * US)),
               Ev("b", 110_300_000, 9 * US, own(5_110 * US, 10 * US)),
               Ev("c", 120 * US, 9 * US, own(5_120 * US, 8 * US)))  # fmt: skip
    trace = read(space(Plane("/device:TPU:0", (ops,))))
    assert rows(trace, "name", "start_ns", "dur_ns") == [("a", 0, 10_000), ("b", 10_000, 10_000), ("c", 20_000, 8_000)]
    apart = line("XLA Ops", Ev("a", 0, 9 * US, own(0, 10 * US)), Ev("b", 10 * US, 9 * US, own(5_000 * US, 10 * US)))
    assert [dur for (dur,) in rows(read(space(Plane("/device:TPU:0", (apart,)))), "dur_ns")] == [10_000, 10_000]


# --- tracks -----------------------------------------------------------------------------------------------------------


def test_lines_of_equal_id_are_one_thread_in_every_plane_of_calls() -> None:
    planes = (
        Plane("/host:CPU", (line("python", Ev("a", 0, US), id=7), line("python", Ev("b", 2 * US, US), id=7),
                            line("x", Ev("c", 0, US)), line("y", Ev("d", 0, US)))),
        Plane("/host:CUPTI", (line("Host Threads/7", Ev("cudaMemcpy", 4 * US, US), id=7),)),
        Plane("/host:CUPTI [12]", (line("Host Threads/7", Ev("other process", 4 * US, US), id=7),)),
        Plane("Syscalls", (line("cpu 0", Ev("futex", 0, US), id=7),)),
    )  # fmt: skip
    trace = read(space(*planes))
    tracks = {}
    for name, track in rows(trace, "name", "track"):
        tracks.setdefault(track, []).append(name)
    assert sorted(tracks.values()) == [["a", "b", "cudaMemcpy"], ["c"], ["d"], ["futex"], ["other process"]]
    assert set(trace.tracks.kind.tolist()) == {TrackKind.HOST_THREAD}
    assert kinds(trace)["futex"] is Kind.OTHER


def test_a_line_is_labelled_as_it_is_shown() -> None:
    trace = read(space(Plane("/host:CPU", (line("tf_data/3", Ev("a", 0, US), id=-3, shown="tf_data"),))))
    assert rows(trace, "process", "thread", "label", table="tracks") == [("/host:CPU", "-3", "tf_data")]


# --- GPUs -------------------------------------------------------------------------------------------------------------


def test_a_gpu_of_nvidia() -> None:
    trace = read(nvidia())
    (gpu,) = trace.info.devices
    assert (gpu.id, gpu.name, gpu.kind) == (1, "NVIDIA A100-SXM4-80GB", "gpu")
    assert (gpu.memory_bytes, gpu.multiprocessors, gpu.compute_capability) == (85_000_000_000, 108, (8, 0))
    assert rows(trace, "slice", "device", "stream", "launch", table="device_ops") == [
        ("MemcpyH2D", 1, 13, "cuMemcpyHtoDAsync_v2"),
        ("ampere_sgemm_128x64_nn", 1, 13, "ampere_sgemm_128x64_nn"),
        ("Memset", 1, 13, "cuMemsetD8Async"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", 1, 14, "ncclKernel"),
        ("fusion", 1, 13, "cuGraphLaunch"),
    ]
    assert rows(trace, "bytes", "direction", "source_memory", "target_memory", table="device_ops")[:3] == [
        (4096, "h2d", "pageable", "device"), (None, "unknown", "unknown", "unknown"),
        (64, "unknown", "unknown", "unknown"),
    ]  # fmt: skip
    details = ("grid", "block", "registers", "shared_memory", "occupancy_pct", "graph")
    assert rows(trace, *details, table="device_ops")[1] == ("[8, 1, 1]", "[256, 1, 1]", 32, 1024, 62.5, None)
    assert rows(trace, *details, table="device_ops")[4] == ("[8, 1, 1]", "[256, 1, 1]", 32, 1024, 50, 5)
    found = kinds(trace)
    assert found["Memset"] is Kind.MEMSET
    assert found["ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)"] is Kind.COLLECTIVE
    assert found["cuStreamSynchronize"] is Kind.SYNC
    assert found["cuGraphLaunch"] is Kind.RUNTIME_CALL
    basis = dict(rows(trace, "op", "basis", table="launches"))
    assert (basis["fusion"], basis["Memset"]) == ("graph", "correlation")
    assert rows(trace, "slice", "module", "program", "op", "scope", table="xla_ops") == [
        ("ampere_sgemm_128x64_nn", "jit_step", 7, "dot.1", "jit(step)/dot_general"),
        ("fusion", None, None, None, "model/dense/MatMul:MatMul"),
    ]


def test_lines_that_repeat_a_gpu_s_work_are_never_busy() -> None:
    trace = read(nvidia())
    found = kinds(trace)
    assert found["jit_step(7)"] is Kind.MODULE
    assert found["kernel 1"] is found["model"] is Kind.DEVICE_ANNOTATION
    assert found["Buffer Flush"] is Kind.OVERHEAD
    lines = dict(rows(trace, "label", "kind", table="tracks"))
    assert lines["XLA Modules"] == lines["Launch Stats"] == lines["CUPTI overhead"] == "device_line"
    assert lines["Stream #14(Kernel)"] == "device_stream"
    assert len(trace.device_ops) == 5


@pytest.mark.parametrize(("plane", "beside", "kind"), [
    ("/device:GPU:0", "Stream #1(Kernel)", Kind.DEVICE_ANNOTATION), ("/device:GPU:0", "another", Kind.KERNEL),
    ("/device:TPU:0", "another", Kind.DEVICE_ANNOTATION), ("/device:CUSTOM:NPU:0", "another", Kind.KERNEL),
])  # fmt: skip
def test_lines_of_unknown_name_are_work_only_where_nothing_else_is(plane: str, beside: str, kind: Kind) -> None:
    """A plug-in calls its queues as it likes."""
    trace = read(space(Plane(plane, (line("queue 7", Ev("thing", 0, US), id=7), line(beside, Ev("k", 0, US), id=1)))))
    assert kinds(trace)["thing"] is kind


def test_of_a_statistic_written_twice_the_last_counts() -> None:
    keys = [message((1, id), (2, message((1, id), (2, name)))) for id, name in ((1, "step_num"), (2, "_r"))]
    stats = [message((1, 1), (4, 7)), message((1, 2), (4, 1)), message((1, 1), (4, 8))]
    events = message((1, 1), (2, 0), (3, 5_000), *((4, stat) for stat in stats))
    plane = message((2, "/host:CPU"), (3, message((2, "python"), (4, events))), *((5, key) for key in keys))
    assert rows(read(message((1, plane))), "number", table="step_marks") == [(8,)]


def test_what_a_profiler_never_wrote_is_absent() -> None:
    """ROCm has left registers and shared memory unset, and writes 0 where it does not know the occupancy."""
    details = "regs:2191500840 static_shared:32462 dynamic_shared:0 grid:1280,1,1 block:256,1,1 occ_pct:0"
    stream = line("Stream #2", Ev("loop_fusion", 0, US, {"kernel_details": details, "theoretical_occupancy_pct": 0.0}),
                  Ev("CopyHostToDevice", 2 * US, US, {"memcpy_details": Inline("kind:Unknown size:64 dest:2 async:1")}),
                  Ev("Cijk_Alik", 3 * US, US, {"kernel_details": " grid:16,1,1 block:512,1,1 group_mem:64 occ_pct:0"}),
                  )  # fmt: skip
    stats = {"device_vendor": "AMD", "compute_cap_major": 9, "compute_cap_minor": 4}
    trace = read(space(Plane("/device:GPU:0", (stream,), stats)))
    ops = trace.device_ops
    assert [(NULL if math.isnan(p) else p) for p in ops.occupancy_pct] == [NULL, NULL, NULL]
    assert ops.registers.tolist() == [NULL, NULL, NULL]
    assert ops.shared_memory.tolist() == [NULL, NULL, 64]
    assert rows(trace, "direction", "bytes", table="device_ops")[1] == ("h2d", 64)
    assert trace.info.devices[0].compute_capability is None
    assert trace.info.devices[0].name == "AMD Instinct MI300 series"
    assert trace.launches.call.size == 0


def test_calls_of_another_process_launched_nothing_here() -> None:
    gpus = [Plane(f"/device:GPU:0{suffix}", (line("Stream #1(Kernel)", Ev("k", 9 * US, US, {"correlation_id": 1})),))
            for suffix in ("", " [12]")]  # fmt: skip
    calls = Plane("/host:CPU [12]", (line("t", Ev("cuLaunchKernel", 0, US, {"correlation_id": 1}), id=1),))
    trace = read(space(*gpus, calls))
    assert rows(trace, "device", "launch", table="device_ops") == [(0, None), (1, "cuLaunchKernel")]


# --- hosts ------------------------------------------------------------------------------------------------------------


def test_python_frames_are_named_as_pytorch_names_them() -> None:
    names = ["$api.py:12 <lambda>", "$builtins len", "$<unknown> __exit__", "$time sleep", "$/a b/c.py:3 f g"]
    trace = read(space(host(*(Ev(name, at * US, US) for at, name in enumerate(names)))))
    assert [name for (name,) in rows(trace, "name")] == [
        "api.py(12): <lambda>", "<built-in function len>", "<unknown> __exit__", "<built-in function sleep>",
        "/a b/c.py(3): f g",
    ]  # fmt: skip
    assert set(kinds(trace).values()) == {Kind.PYTHON_FRAME}


@pytest.mark.parametrize(("name", "thread", "kind"), [
    ("my loop", "python", Kind.ANNOTATION), ("my loop", "tf_Compute/3", Kind.HOST_OP),
    ("dense/MatMul:MatMul", "python", Kind.HOST_OP), ("ExecutorState::Process", "python", Kind.HOST_OP),
    ("ProfilerStep#3", "python", Kind.STEP), ("cudaMalloc", "python", Kind.ALLOCATION),
    ("cuModuleLoadData", "python", Kind.COMPILE), ("PjitFunction(f)", "python", Kind.HOST_OP),
    ("my loop", "MainThread", Kind.ANNOTATION),
])  # fmt: skip
def test_kinds_of_host_events(name: str, thread: str, kind: Kind) -> None:
    assert kinds(read(space(host(Ev(name, 0, US), name=thread)))) == {name: kind}


def test_a_thread_that_holds_frames_runs_python() -> None:
    trace = read(space(host(Ev("$a.py:1 f", 0, 9 * US), Ev("mine", US, US), name="worker")))
    assert kinds(trace)["mine"] is Kind.ANNOTATION


def test_which_events_are_steps() -> None:
    """FunctionRun is a root of TensorFlow's without a number; Keras numbers steps that are no roots."""
    events = [Ev("train", 0, US, {"_r": 1, "step_num": 4}), Ev("Profiled batch", 2 * US, US, {"step_num": "5"}),
              Ev("FunctionRun", 4 * US, US, {"_r": 1, "id": 9})]  # fmt: skip
    trace = read(space(host(*events)))
    assert rows(trace, "slice", "source", "number", table="step_marks") == [
        ("train", "step_num_root", 4), ("Profiled batch", "step_num", 5)]  # fmt: skip
    assert kinds(trace)["FunctionRun"] is Kind.HOST_OP


def test_hand_overs_between_threads_are_flows() -> None:
    big = (1 << 64) - 3
    lines = (
        line("a", Ev("A::out", 0, 9 * US, {"_pt": 2, "_p": Unsigned(big)}),
             Ev("A::again", 20 * US, 9 * US, {"_pt": 2, "_p": Unsigned(big)}),
             Ev("A::lonely", 40 * US, US, {"_pt": 2, "_p": 5}), id=1),
        line("b", Ev("B::in", 5 * US, 2 * US, {"_ct": 2, "_c": -3}),
             Ev("B::in2", 25 * US, 2 * US, {"_ct": 2, "_c": -3}),
             Ev("B::other type", 30 * US, US, {"_ct": 3, "_c": -3}), id=2),
    )  # fmt: skip
    trace = read(space(Plane("/host:CPU", lines)))
    assert rows(trace, "source", "target", table="flows") == [("A::out", "B::in"), ("A::again", "B::in2")]


def test_counters() -> None:
    counters = line("_counters_", Ev("power_mw", 0, 0, {"power_mw": 250.5}), Ev("temp_c", US, 0, {"temp_c": 61}))
    trace = read(space(Plane("/device:GPU:0", (counters, line("Stream #1(Kernel)", Ev("k", 0, US), id=1)))))
    assert rows(trace, "name", "time_ns", "value", table="counters") == [("power_mw", 0, 250.5), ("temp_c", 1000, 61)]


# --- the run ----------------------------------------------------------------------------------------------------------


def test_what_is_known_of_the_run() -> None:
    options = message((1, 1), (2, 2), (4, 1), (5, 1))
    task = Plane("Task Environment", stats={"profile_start_time": Unsigned(1_700_000_000_000_000_000),
                                            "profile_options": options})  # fmt: skip
    metadata = Plane("/host:metadata", stats={"jax_version": "0.10.2"})
    trace = read(space(host(Ev("a", 0, US)), metadata, task, errors=("no device",), warnings=("1 event dropped",),
                       hosts=("vm-1", "vm-2")))  # fmt: skip
    info = trace.info
    assert (info.format, info.framework, info.host, info.options) == ("XPlane", "JAX", "vm-1", {"stacks": True})
    assert info.header["planes"]["/host:metadata"] == {"jax_version": "0.10.2"}
    assert info.header["profile_options"]["python_tracer_level"] == 1
    assert [(loss.code, loss.text) for loss in trace.completeness.losses] == [
        ("reader_warning", "the profiler wrote: no device"),
        ("reader_warning", "the profiler wrote: 1 event dropped"),
    ]
    assert trace.completeness.complete


@pytest.mark.parametrize(("name", "framework"), [
    ("PjitFunction(f)", "JAX"), ("ExecutorState::Process", "TensorFlow"), ("aten::mul", "PyTorch"),
    ("StepMarker", "PyTorch/XLA"), ("mine", None),
])  # fmt: skip
def test_the_framework_is_told_by_names(name: str, framework: str | None) -> None:
    assert read(space(host(Ev(name, 0, US)))).info.framework == framework


def test_everything_a_file_says_of_an_event(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("args") / "x.pb"
    stats = {"text": "referred", "own": Inline("written"), "number": -3, "big": Unsigned((1 << 64) - 1), "share": 0.5,
             "blob": b"\x00\x01"}  # fmt: skip
    shared = Plane("/host:CPU", (line("t", Ev("a", 0, US, stats), id=9),), shared={"a": {"note": "of all"}})
    path.write_bytes(space(host(Ev("other", 0, US, {"number": 1})), shared))
    trace = xplane.read(Source(path))
    names = [trace.strings[code] for code in trace.slices.name]
    offsets = [int(trace.slices.offset[names.index(name)]) for name in ("a", "other")]
    assert xplane.arguments(Source(path), [*offsets, 3]) == [
        {"note": "of all", "text": "referred", "own": "written", "number": -3, "big": (1 << 64) - 1, "share": 0.5,
         "blob": "<2 bytes>"}, {"number": 1}, {}]  # fmt: skip


def test_texts_of_equal_hash_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    places = wire.text_spans

    def collide(data: U8, at: I64) -> tuple[I64, I64, I64]:
        start, end, _ = places(data, at)
        return start, end, end - start

    monkeypatch.setattr(wire, "text_spans", collide)
    texts = ["one", "two", "one", "three", "two"]
    events = [Ev("MemoryAllocation", at, 0, {"allocator_name": Inline(text)}) for at, text in enumerate(texts)]
    assert rows(read(space(host(*events))), "allocator", table="memory") == [(text,) for text in texts]


def test_a_file_without_events_is_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("empty") / "x.pb"
    path.write_bytes(space(Plane("/host:CPU", (Line("python"),)), Plane("Task Environment")))
    assert xplane.recognise(path.read_bytes())
    with pytest.raises(InputError, match="holds no"):
        xplane.read(Source(path))
