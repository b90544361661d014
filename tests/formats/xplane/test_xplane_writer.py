"""Traces as XPlane: every slice where XProf looks for it, with what the tables say of it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.errors import OutputError
from stepscope.formats.writers import WRITERS
from stepscope.formats.xplane.writing import write
from stepscope.formats.xplane.writing.distinct import distinct
from stepscope.formats.xplane.writing.wire import StatColumn, encode_events
from stepscope.trace import tables as t
from stepscope.trace.builder import TraceBuilder
from stepscope.trace.trace import Completeness, Device, Info, Loss, Trace
from tests.kit.drawing import draw
from tests.kit.random_traces import random_traces
from tests.kit.wire import message
from tests.kit.xspace import XEvent, XPlane, XSpace, read_xspace
from tests.support import trace_of
from tests.trace.traces import traces

LOOP = """
1 char = 10 us
main   |[S                   ][T                  ]
main   | [I   ][a] [b]          [c]       z
auto   |            d
gpu0/7 |         [a  ] [b    ]     [c  ][d  ]
gpu0/7 |         [m                 ]
gpu0/20|                                [w ] [z]
S = step 5
T = step 6
I = input
a = copy HtoD 4096 Pageable
b = kernel sgemm registers~per~thread=32 grid=[8,4,1] block=[128,1,1] shared~memory=1024
c = kernel elementwise
d = kernel ncclDevKernel_AllReduce_Sum_f32_RING_LL()
w = wait EventWait
z = memset 64
m = mark forward
"""

MAIN = "thread 4242 (python3)"


def written(trace: Trace, folder: Path) -> XSpace:
    path = folder / "host.xplane.pb"
    write(trace, path)
    assert [entry.name for entry in folder.iterdir()] == [path.name]
    return read_xspace(path.read_bytes())


def shown(event: XEvent) -> str:
    """The name people see."""
    return event.display or event.name


def event(plane: XPlane, name: str) -> XEvent:
    return next(found for line in plane.lines for found in line.events if shown(found) == name)


@pytest.fixture(scope="module")
def loop() -> Trace:
    return trace_of(draw(LOOP))


@pytest.fixture
def space(loop: Trace, tmp_path: Path) -> XSpace:
    return written(loop, tmp_path)


def test_the_writer_is_registered() -> None:
    assert [(w.name, w.suffixes) for w in WRITERS if w.write is write] == [("xplane", (".xplane.pb",))]


def test_planes_and_lines(space: XSpace) -> None:
    assert {plane.name: sorted(line.name for line in plane.lines) for plane in space.planes} == {
        "/device:GPU:0": ["Steps", "Stream #20(Memset)", "Stream #20(Wait)", "Stream #7(Annotation)",
                          "Stream #7(Compute,MemcpyH2D)"],
        "/host:CPU": ["Spans/PyTorch Profiler", MAIN, "thread 4243 (auto)"],
        "Task Environment": [],
    }  # fmt: skip
    device = space.plane("/device:GPU:0")
    assert [device.line(f"Stream #{name}").id for name in ("7(Compute,MemcpyH2D)", "20(Memset)")] == [7, 20]
    derived = range(0xDEADBEEF - (1 << 32), 0xDEADBEEF - (1 << 32) + 289)
    assert all(device.line(name).id in derived for name in ("Steps", "Stream #20(Wait)", "Stream #7(Annotation)"))


def test_device_ops_say_what_the_collectors_of_cupti_say(space: XSpace, loop: Trace) -> None:
    device, host = space.plane("/device:GPU:0"), space.plane("/host:CPU")
    launch = next(e for line in host.lines for e in line.events if shown(e) == "cudaMemcpyAsync")
    copy = event(device, "Memcpy HtoD (Pageable -> Device)")
    assert copy.name == "MemcpyHToD"
    assert copy.stats["correlation_id"] == launch.stats["correlation_id"]
    assert copy.stats["memcpy_details"] == "kind_src:pageable kind_dst:device size:4096 direction:H2D"
    assert (copy.start_ps, copy.dur_ps) == (90_000_000, 50_000_000)
    details = event(device, "sgemm").stats["kernel_details"]
    assert details == "regs:32 static_shared:1024 grid:8,4,1 block:128,1,1 occ_pct:50"
    assert event(device, "Memset (Device)").stats["Memset_details"] == "kind:unknown num_bytes:64"
    assert launch.stats["device_id"] == 0
    kinds = {shown(e): e.shared["stepscope_kind"] for line in device.lines for e in line.events}
    assert kinds["ncclDevKernel_AllReduce_Sum_f32_RING_LL()"] == "collective"
    assert (kinds["EventWait"], kinds["forward"]) == ("device_wait", "device_annotation")


def test_steps_as_step_trace_annotations_and_their_windows(space: XSpace, loop: Trace) -> None:
    main = space.plane("/host:CPU").line(MAIN)
    steps = [e for e in main.events if "_r" in e.stats]
    assert [(e.name, e.display, e.stats["_r"], e.stats["step_num"]) for e in steps] == [
        ("ProfilerStep", "ProfilerStep#5", 1, 5),
        ("ProfilerStep", "ProfilerStep#6", 1, 6),
    ]
    windows = space.plane("/device:GPU:0").line("Steps")
    assert [(e.stats["_ct"], e.stats["_c"]) for e in windows.events] == [(e.stats["_pt"], e.stats["_p"]) for e in steps]
    assert [(e.start_ps // 10**7, e.dur_ps // 10**7) for e in windows.events] == [(0, 37), (37, 3)]
    assert all(e.shared == {"stepscope_kind": "derived"} for e in windows.events)
    times = {line.time_ns for line in space.plane("/device:GPU:0").lines}
    assert len(times) == 1, "XProf sets the time of the line of steps to the least of the plane's"


def test_ranges_that_fetch_input_are_stages_of_the_input_pipeline(space: XSpace) -> None:
    host = space.plane("/host:CPU")
    stages = {shown(e) for line in host.lines for e in line.events if "_ipl_stage_name" in e.stats}
    assert stages == {"enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"}


def test_nothing_of_the_statistics_names_that_grouping_adds(space: XSpace) -> None:
    """XProf takes a file with a statistic of this name for one whose steps have been found already."""
    found = {key for plane in space.planes for line in plane.lines for e in line.events for key in e.stats}
    assert not found & {"group_id", "step_name", "is_eager"}


@given(events=random_traces(grain_ns=1))
def test_every_slice_is_written_once(events: list[object], tmp_path_factory: pytest.TempPathFactory) -> None:
    trace = trace_of(events)  # type: ignore[arg-type]
    if not len(trace.slices):
        return
    assert_slices(trace, written(trace, tmp_path_factory.mktemp("trace")))


@given(trace=traces())
def test_odd_texts_absent_facts_and_rows_without_sense_are_written(
    trace: Trace, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert_slices(trace, written(trace, tmp_path_factory.mktemp("trace")))


def assert_slices(trace: Trace, space: XSpace) -> None:
    slices = trace.slices
    expected = Counter(
        (trace.name_of(row).encode("utf-8", "replace").decode(), int(slices.start_ns[row]), int(slices.dur_ns[row]),
         t.Kind(slices.kind[row]).name.lower())
        for row in range(len(slices))
    )  # fmt: skip
    found = Counter(
        (shown(e), line.time_ns + e.start_ps // 1000, e.dur_ps // 1000, e.shared["stepscope_kind"])
        for plane in space.planes for line in plane.lines for e in line.events
    )  # fmt: skip
    assert {key: n for key, n in found.items() if key[3] != "derived"} == dict(expected)


def test_what_is_known_of_devices_the_host_and_the_time(tmp_path: Path) -> None:
    h100 = Device(0, "NVIDIA H100", 80 << 30, 132, (9, 0), "gpu", 1_980_000, 3_352 * 10**9)
    devices = (h100, Device(1, "AMD Instinct MI300X"), Device(2, "X"), Device(3))
    trace = small(Info("test", origin_epoch_ns=10**18, devices=devices, host="node7"))
    space = written(trace, tmp_path)
    assert space.plane("/device:GPU:0").stats == {
        "device_vendor": "Nvidia", "gpu_device_name": "NVIDIA H100", "clock_rate": 1_980_000, "core_count": 132,
        "memory_bandwidth": 3_352 * 10**9, "memory_size": 80 << 30,
        "compute_cap_major": 9, "compute_cap_minor": 0,
    }  # fmt: skip
    assert space.plane("/device:GPU:1").stats == {"device_vendor": "AMD", "gpu_device_name": "AMD Instinct MI300X"}
    assert space.plane("/device:GPU:2").stats == {"gpu_device_name": "X"}
    assert (space.plane("/device:GPU:3").stats, space.plane("/device:GPU:3").lines) == ({}, [])
    stats = dict(space.plane("Task Environment").stats)
    assert [device["id"] for device in json.loads(stats.pop("stepscope_run"))["devices"]] == [0, 1, 2, 3]
    assert stats == {"profile_start_time": 10**18, "profile_stop_time": 10**18 + 50}
    assert (space.hostnames, space.warnings) == (["node7"], ["2 events lost"])


def test_nothing_is_claimed_that_is_not_known(tmp_path: Path) -> None:
    space = written(small(Info("test")), tmp_path)
    assert [plane.name for plane in space.planes] == ["/host:CPU", "Task Environment"]
    assert set(space.plane("Task Environment").stats) == {"stepscope_run"}
    assert space.hostnames == []


def small(info: Info, **more: t.Table) -> Trace:
    builder = TraceBuilder()
    builder.track(t.TrackKind.HOST_THREAD, "1", "2", label="python")
    name = builder.text("work")
    builder.slices(track=np.zeros(1, np.int32), start_ns=np.array([40]), dur_ns=np.array([10]),
                   name=np.array([name]), kind=np.array([t.Kind.HOST_OP]))  # fmt: skip
    losses = (Loss("cut", 2, "events lost", lost_events=2), Loss("no_stacks", 1, "not recorded"))
    return builder.build(info, Completeness(3, {"slices": 1}, losses))


def test_devices_of_xla_and_others(tmp_path: Path) -> None:
    """A TPU's lines keep their names, a CPU's ops stand on the host with their device, other devices are custom."""
    builder = TraceBuilder()
    tracks = [
        builder.track(t.TrackKind.DEVICE_LINE, None, "Steps", device=0),
        builder.track(t.TrackKind.DEVICE_STREAM, None, "XLA Ops", device=0),
        builder.track(t.TrackKind.DEVICE_STREAM, None, "tf_XLAEigen/7", device=1),
        builder.track(t.TrackKind.DEVICE_STREAM, None, "queue", device=2),
        builder.track(t.TrackKind.DEVICE_STREAM, None, None, stream=12),
        builder.track(t.TrackKind.OTHER, "Spans", "profiler"),
        builder.track(t.TrackKind.HOST_THREAD, None, "tf_XLAEigen/7"),
    ]
    kinds = np.array([t.Kind.STEP, *[t.Kind.KERNEL] * 4, t.Kind.OTHER, t.Kind.HOST_OP], np.uint8)
    names = np.array([builder.text(name) for name in ("7", "fusion.1", "dot.2", "k", "k", "span", "call")], np.int32)
    count = len(tracks)
    builder.slices(track=np.array(tracks, np.int32), start_ns=np.array([0, 1, 2, 3, 4, 5, 1]),
                   dur_ns=np.full(count, 5), name=names, kind=kinds)  # fmt: skip
    text = builder.text
    builder.table(
        t.XlaOps(
            slice=np.array([1, 2], np.int32), module=np.array([text("jit_f")] * 2, np.int32),
            program=np.array([4, 4]), run=np.array([-7, 9]), op=names[1:3],
            category=np.array([text("fusion"), -1], np.int32), scope=np.array([text("jit(f)/dot"), -1], np.int32),
            flops=np.array([100, t.NULL]), bytes_accessed=np.array([t.NULL, 3]),
            source=np.array([text("a.py:3"), -1], np.int32), replica_groups=np.array([-1, text("{{0,1}}")], np.int32),
        )
    )  # fmt: skip
    devices = (Device(0, "TPU v5e", kind="tpu"), Device(1, kind="cpu"), Device(2, kind="mtia"))
    space = written(builder.build(Info("test", devices=devices), Completeness(count, {"slices": count})), tmp_path)
    assert {plane.name: [line.name for line in plane.lines] for plane in space.planes} == {
        "/device:TPU:0": ["Steps", "XLA Ops"],
        "/host:CPU": ["tf_XLAEigen/7", "Spans/profiler"],
        "/device:CUSTOM:MTIA:2": ["queue"],
        "/device:CUSTOM:undetermined": [""],
        "Task Environment": [],
    }
    thread = space.plane("/host:CPU").lines[0]
    assert [(e.name, e.stats.get("device_ordinal")) for e in thread.events] == [("call", None), ("dot.2", 1)]
    fusion, dot = event(space.plane("/device:TPU:0"), "fusion.1"), event(space.plane("/host:CPU"), "dot.2")
    assert fusion.stats == {"hlo_op": "fusion.1", "hlo_module": "jit_f", "program_id": 4, "run_id": -7}
    assert fusion.shared == {"stepscope_kind": "kernel", "hlo_category": "fusion", "tf_op": "jit(f)/dot",
                             "source": "a.py:3", "flops": 100}  # fmt: skip
    assert dot.stats == {"hlo_op": "dot.2", "hlo_module": "jit_f", "program_id": 4, "run_id": 9,
                         "replica_groups": "{{0,1}}", "device_ordinal": 1}  # fmt: skip
    assert dot.shared == {"stepscope_kind": "kernel", "bytes_accessed": 3}


def test_flows_between_threads_are_producers_and_consumers(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for thread in ("main", "autograd"):
        builder.track(t.TrackKind.HOST_THREAD, "1", thread)
    name = builder.text("op")
    builder.slices(track=np.array([0, 0, 1, 1], np.int32), start_ns=np.array([0, 10, 20, 30]),
                   dur_ns=np.full(4, 5), name=np.full(4, name), kind=np.full(4, t.Kind.HOST_OP))  # fmt: skip
    builder.table(t.Flows(np.array([0, 2, 2], np.uint8), np.array([0, 1, 1], np.int32), np.array([2, 3, 2], np.int32)))
    trace = builder.build(Info("test"), Completeness(4, {"slices": 4}))
    host = written(trace, tmp_path).plane("/host:CPU")
    assert [e.stats for e in host.line("Host Threads/main").events] == [
        {"_pt": 1000, "_p": 0}, {"_pt": 1002, "_p": 1},
    ]  # fmt: skip
    assert [e.stats for e in host.line("Host Threads/autograd").events] == [
        {"_ct": 1000, "_c": 0}, {"_ct": 1002, "_c": 1},
    ]  # fmt: skip


def test_times_that_do_not_fit_and_nothing_to_write(tmp_path: Path) -> None:
    builder = TraceBuilder()
    empty = builder.build(Info("test"), Completeness(0, {}))
    with pytest.raises(OutputError, match="no slices"):
        write(empty, tmp_path / "empty.xplane.pb")
    builder = TraceBuilder()
    builder.track(t.TrackKind.HOST_THREAD, "1", "1")
    builder.slices(track=np.zeros(1, np.int32), start_ns=np.zeros(1, np.int64), dur_ns=np.array([1 << 53]),
                   name=np.array([builder.text("x")]), kind=np.zeros(1, np.uint8))  # fmt: skip
    with pytest.raises(OutputError, match="53 days"):
        write(builder.build(Info("test"), Completeness(1, {})), tmp_path / "long.xplane.pb")
    assert list(tmp_path.iterdir()) == []


NUMBERS = st.one_of(st.integers(0, 300), st.integers(-(1 << 63), (1 << 63) - 1))


@given(
    st.lists(st.tuples(st.integers(1, 1 << 20), st.integers(-(1 << 52), 1 << 52), st.integers(0, 1 << 52),
                       st.dictionaries(st.sampled_from([1, 200]), NUMBERS)), max_size=6)
)  # fmt: skip
def test_events_are_encoded_as_protobuf_says(events: list[tuple[int, int, int, dict[int, int]]]) -> None:
    columns = []
    for key, kind in ((1, 4), (200, 7)):
        rows = [row for row, (*_, stats) in enumerate(events) if key in stats]
        values = np.array([events[row][3][key] for row in rows], np.int64)
        columns.append(StatColumn(key, kind, np.array(rows, np.int64), values))
    encoded = encode_events(*(np.array([e[k] for e in events], np.int64) for k in range(3)), columns)
    assert encoded.tobytes() == message(
        *(
            (4, message(
                (1, name), (2, start * 1000), (3, dur * 1000),
                *((4, message((1, key), (kind, stats[key]))) for key, kind in ((1, 4), (200, 7)) if key in stats),
            ))
            for name, start, dur, stats in events
        )
    )  # fmt: skip


@given(
    st.lists(st.tuples(st.integers(-5, 5), st.integers(-(1 << 63), (1 << 63) - 1),
                       st.one_of(st.just(float("nan")), st.floats(0, 3))), min_size=1)
)  # fmt: skip
def test_distinct_rows(rows: list[tuple[int, int, float]]) -> None:
    types = (np.int32, np.int64, np.float64)
    columns = [np.array(column, dtype) for column, dtype in zip(zip(*rows, strict=True), types, strict=True)]
    first, group = distinct(columns)
    texts = [repr(row) for row in rows]
    assert len(first) == len(set(texts))
    assert [texts[first[number]] for number in group.tolist()] == texts
