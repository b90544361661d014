"""StepStats and RunMetadata: rows become lanes, devices and streams; nothing is counted twice or dropped."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stepscope
from stepscope.analysis.accounting import check
from stepscope.analysis.analyse import analyse
from stepscope.errors import InputError
from stepscope.formats import readers
from stepscope.formats.tf1 import step_stats
from stepscope.formats.tf1.recognise import recognise as is_step_stats
from stepscope.inputs.source import Source
from stepscope.trace.tables import LaunchBasis
from stepscope.trace.trace import Trace
from tests.kit import gpu_runs
from tests.kit.some import some
from tests.kit.step_stats import CPU, EPOCH_US, GPU, device, memory, message, node, number, output, run_metadata, text
from tests.kit.step_stats import step_stats as stats
from tests.kit.traces import real_trace

Read = Callable[[bytes], Trace]
US = 1_000


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Read:
    folder = tmp_path_factory.mktemp("step_stats")

    def reading(content: bytes) -> Trace:
        path = folder / "profile"
        path.write_bytes(content)
        return step_stats.read(Source(path))

    return reading


def slices_of(trace: Trace) -> pl.DataFrame:
    """The slices with their track's texts, times in microseconds."""
    tracks = trace.table("tracks").with_row_index("track").rename({"kind": "track_kind"})
    tracks = tracks.with_columns(pl.col("track").cast(pl.Int32))
    slices = trace.table("slices").with_row_index("slice").join(tracks, on="track")
    slices = slices.with_columns(pl.col("start_ns") / US, pl.col("dur_ns") / US)
    return slices.with_columns(pl.col(pl.Enum).cast(pl.String)).sort("slice")


def nodes_of(trace: Trace) -> dict[str, dict[str, Any]]:
    """Rows of ``nodes`` of the host by node."""
    found = trace.table("nodes").with_columns(pl.col(pl.Enum).cast(pl.String)).filter(pl.col("placement").is_not_null())
    return {row["node"]: row for row in found.to_dicts()}


def edges_of(trace: Trace) -> list[tuple[int, int]]:
    return sorted(zip(trace.flows.source.tolist(), trace.flows.target.tolist(), strict=True))


# --- what is recognised -------------------------------------------------------------------------------------------

ONE = device(CPU, node("a", 0, 1, "a = NoOp()"))
LONG = device(CPU, *(node(f"n{k}", k, 1, f"n{k} = Const()") for k in range(9000)))


@pytest.mark.parametrize("content", [run_metadata(ONE), stats(ONE), run_metadata(LONG), stats(LONG)], ids=str)
def test_recognised_by_content_whatever_the_name(tmp_path: Path, content: bytes) -> None:
    for name, packed in (("a.json", content), ("b", gzip.compress(content))):
        (tmp_path / name).write_bytes(packed)
        assert readers.recognise(Source(tmp_path / name)).name == "TensorFlow StepStats"


@pytest.mark.parametrize(
    "content",
    [
        message(1, number(1, 1), text(2, "/host:CPU")),  # XSpace
        message(1, text(2, "/device:GPU:0"), number(1, 3)),  # XSpace, the name first
        message(1, text(1, "/job")),
        message(1, text(1, "matmul"), text(2, "MatMul")),  # GraphDef
        message(1, message(1, message(1, message(1, text(1, CPU))))),
        b"\x0a",
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        b"{}",
        b"",
    ],
)
def test_nothing_else_is_recognised(content: bytes) -> None:
    assert not is_step_stats(content)


# --- the host -----------------------------------------------------------------------------------------------------


def test_nodes_of_a_cpu_are_host_ops_on_lanes(read: Read) -> None:
    trace = read(run_metadata(device(CPU, node("a", 0, 9, "a = Const()"), node("b", 3, 2, "b = MatMul(a, c)"))))
    found = slices_of(trace).select("name", "kind", "start_ns", "dur_ns", "track_kind", "label", "depth").rows()
    assert found == [
        ("Const", "host_op", 0, 9, "host_thread", "lane 0 (not a thread)", 0),
        ("MatMul", "host_op", 3, 2, "host_thread", "lane 1 (not a thread)", 0),
    ]
    assert nodes_of(trace)["b"]["inputs"] == "a, c"
    assert nodes_of(trace)["b"]["placement"] == CPU
    assert trace.info.origin_epoch_ns == EPOCH_US * US
    assert (trace.info.format, trace.info.framework) == ("TensorFlow StepStats", "TensorFlow")
    assert trace.completeness.rows == {"slices": 2}
    assert (trace.completeness.events, trace.completeness.complete) == (2, True)


def test_a_node_without_a_label_is_called_by_its_name(read: Read) -> None:
    trace = read(stats(device(CPU, node("RecvTensor", 0, 9, "[8B] x from /job:a to /job:b"), node("a", 10, 1))))
    assert slices_of(trace).select("name", "kind").rows() == [("RecvTensor", "other"), ("a", "host_op")]
    assert nodes_of(trace)["a"]["op"] is None


def test_times_are_the_finest_recorded(read: Read) -> None:
    precise, coarse = node("a", 1, 2, "a = A()", nanos=(1_234, 2_345)), node("b", 10, 2, "b = B()")
    trace = read(stats(device(CPU, precise, coarse)))
    assert trace.table("slices").select("start_ns", "dur_ns").rows() == [(0, 2_345), (8_766, 2_000)]
    assert trace.info.resolution_ns == US
    assert read(stats(device(CPU, precise))).info.resolution_ns == 1


def test_when_a_node_was_ready_and_when_its_kernel_ran(read: Read) -> None:
    body = number(3, 4) + number(4, 6)  # op_start_rel_micros, op_end_rel_micros
    trace = read(stats(device(CPU, node("a", 10, 0, "a = A()", scheduled=3, parts=[body, number(5, 9)]))))
    row = nodes_of(trace)["a"]
    assert (row["scheduled_ns"], row["op_start_ns"], row["op_end_ns"]) == (-7 * US, 4 * US, 6 * US)
    unknown = nodes_of(read(stats(device(CPU, text_only("a", 10)))))["a"]
    assert (unknown["scheduled_ns"], unknown["op_start_ns"], unknown["op_end_ns"]) == (None, None, None)


def text_only(name: str, start: int) -> bytes:
    """A node that says when it began and no more."""
    return text(1, name) + number(2, EPOCH_US + start)


def test_outputs(read: Read) -> None:
    parts = [output(0, 1, [2, 0, 3], 24), output(3, 103, None, 0, "gpu_bfc"), output(4, 77, [], 4)]
    trace = read(stats(device(CPU, node("a", 0, 1, "a = A()", parts=parts))))
    columns = ["slot", "dtype", "shape", "requested", "allocated", "allocator", "buffer"]
    assert trace.table("tensors").select(columns).rows() == [
        (0, "DT_FLOAT", "[2,0,3]", 24, None, "cpu", None),
        (3, "DT_INT32_REF", None, 0, None, "gpu_bfc", None),
        (4, "77", "[]", 4, None, "cpu", None),
    ]


def test_memory_by_record_and_what_the_allocator_then_held(read: Read) -> None:
    used = [memory("cpu", [(2, 64), (5, -64)], in_use=900), memory("old", live=32), memory("silent")]
    trace = read(stats(device(CPU, node("a", 1, 6, "a = A()", parts=used))))
    found = trace.table("memory").select(pl.col("time_ns") / US, "allocator", "bytes", "allocated", "device")
    assert found.sort("time_ns", "allocator").rows() == [
        (1, "cpu", 64, None, None),
        (4, "cpu", -64, None, None),
        (6, "cpu", None, 900, None),
        (6, "old", 32, None, None),
    ]


def test_tensors_flow_along_inputs_also_in_loops_and_between_parts_of_a_graph(read: Read) -> None:
    trace = read(
        stats(
            device(
                CPU,
                node("enter", 0, 1, "enter = Enter()"),
                node("merge", 2, 1, "merge = Merge(enter, next)"),
                node("next", 4, 1, "next = NextIteration(merge:1, ^other, missing)"),
                node("merge", 6, 1, "merge = Merge(enter, next)"),
                node("next", 8, 1, "next = NextIteration(merge)"),
            ),
            device("/job:localhost/replica:0/task:0/device:CPU:1", node("out", 10, 1, "out = Neg(next/_7, next/_7)")),
        )
    )
    assert edges_of(trace) == [(0, 1), (0, 3), (1, 2), (2, 3), (3, 4), (4, 5)]
    assert set(trace.table("flows")["kind"]) == {"dataflow"}


# --- GPUs ---------------------------------------------------------------------------------------------------------


def test_streams_are_device_tracks_and_what_repeats_them_is_counted_once(read: Read) -> None:
    trace = read(gpu_runs.old())
    assert trace.completeness.rows == {"slices": 11, "duplicates": 5}
    assert trace.completeness.losses == ()
    ops = slices_of(trace).join(trace.table("device_ops").with_columns(pl.col("slice").cast(pl.UInt32)), on="slice")
    found = ops.select("name", "kind", "start_ns", "device", "stream_right", "bytes", "direction").sort("start_ns")
    assert found.rows() == [
        ("MEMCPYHtoD", "copy", 20, 0, 8, 4096, "h2d"),
        ("Conv2D", "kernel", 60, 0, 7, None, "unknown"),
        ("Relu", "kernel", 262, 0, 7, None, "unknown"),
        ("MatMul", "kernel", 400, 0, 7, None, "unknown"),
        ("MEMCPYDtoH", "copy", 520, 0, 9, 4, "d2h"),
    ]
    copy = trace.table("device_ops").row(0, named=True)
    assert (copy["source_memory"], copy["target_memory"]) == ("pageable", "device")
    assert [device.id for device in trace.info.devices] == [0]


def test_the_host_row_of_a_gpu_is_launching_never_the_gpus_time(read: Read) -> None:
    trace = read(gpu_runs.old())
    (launches,) = set(slices_of(trace).filter(process=GPU.replace("device:GPU", "gpu"))["kind"])
    assert launches == "runtime_call"
    (activity,) = analyse(trace).activities
    assert (activity.end - activity.start).sum() == (200 + 40 + 100 + 30 + 10) * US


def test_a_kernel_is_launched_by_the_node_it_is_named_after(read: Read) -> None:
    trace = read(gpu_runs.old())
    named = {int(row["slice"]): row["node"] for row in trace.table("nodes").to_dicts()}
    pairs = [(named[call], named[op]) for call, op in trace.table("launches").select("call", "op").rows()]
    assert pairs == [(name, name) for name in ("conv/Conv2D", "conv/Relu", "loss/MatMul")]
    assert set(trace.launches.basis.tolist()) == {LaunchBasis.NODE}


def test_kernels_of_a_node_in_a_loop_belong_to_its_executions_in_turn(read: Read) -> None:
    """The second iteration is launched before the first one's kernels run."""
    kernels = [node("loop/MatMul:MatMul", start, 9) for start in (30, 40, 50, 60)]
    launches = [node("loop/MatMul", start, 5, "loop/MatMul = MatMul(a)") for start in (0, 10)]
    trace = read(stats(device(GPU, *launches), device("/gpu:0/stream:7", *kernels)))
    calls = trace.table("slices")["start_ns"].gather(trace.launches.call.tolist()) / US
    assert calls.to_list() == [0, 0, 10, 10]


def test_a_recorded_launch_time_decides(read: Read) -> None:
    launches = [node("n/A", start, 5, "n/A = A()") for start in (0, 10)]
    kernels = [node("n/A:A", start, 9, scheduled=at) for start, at in ((30, 11), (40, 12))]
    trace = read(stats(device(GPU, *launches), device("/device:GPU:0/stream:7", *kernels)))
    assert (trace.table("slices")["start_ns"].gather(trace.launches.call.tolist()) / US).to_list() == [10, 10]


def test_without_rows_of_streams_those_of_all_count(read: Read) -> None:
    kernel, copy = node("a:A", 5, 9), node("w:MEMCPYDtoH", 20, 1, "MEMCPYDtoH 4 bytes")
    trace = read(stats(device("/gpu:0/stream:all", kernel), device("/gpu:0/memcpy", copy)))
    found = slices_of(trace).select("name", "kind", "stream").rows()
    assert found == [("A", "kernel", None), ("MEMCPYDtoH", "copy", None)]
    assert trace.completeness.rows == {"slices": 2}


def test_only_what_a_stream_repeats_is_left_out(read: Read) -> None:
    """Equal kernels at the same time are two; one that only the row of all streams holds is kept."""
    twice, alone = node("a:A", 5, 9), node("b:B", 50, 9)
    trace = read(stats(device("/gpu:0/stream:all", twice, twice, alone), device("/gpu:0/stream:7", twice, twice)))
    assert slices_of(trace).select("name", "stream").sort("name").rows() == [("A", 7), ("A", 7), ("B", None)]
    assert trace.completeness.rows == {"slices": 3, "duplicates": 2}


def test_a_copy_is_told_by_the_row_of_copies_where_its_own_texts_do_not_say(read: Read) -> None:
    copy = node("w:Const", 5, 9)
    trace = read(stats(device("/gpu:0/memcpy", copy), device("/gpu:0/stream:7", copy, node("b:B", 20, 1))))
    assert slices_of(trace).select("name", "kind").rows() == [("Const", "copy"), ("B", "kernel")]


def test_labels_threads_and_synchronisation(read: Read) -> None:
    trace = read(gpu_runs.new())
    found = slices_of(trace).select("name", "kind", "process", "thread", "label").rows()
    assert ("cuStreamSynchronize", "sync", "/device:GPU:0/sync", "77", None) in found
    assert ("SessionRun", "annotation", "/host:CPU", "77", "tf_inter_op") in found
    assert [(name, kind) for name, kind, process, *_ in found if "stream" in process] == [
        ("MemcpyH2D", "copy"),
        ("void gemm<float>(int)", "kernel"),
        ("void relu()", "kernel"),
        ("ncclDevKernel_AllReduce_Sum", "collective"),
        ("Memset", "memset"),
        ("Overhead", "other"),
    ]
    gemm = trace.table("device_ops").filter(registers=32).row(0, named=True)
    assert (gemm["shared_memory"], gemm["grid"], gemm["block"], gemm["occupancy_pct"]) == (1024, "2,1,1", "256,1,1", 50)
    assert trace.completeness.rows == {"slices": 11, "duplicates": 4}


def test_streams_of_gpus_that_were_all_called_gpu_0_have_no_device(read: Read) -> None:
    trace = read(gpu_runs.old(gpus=2))
    (device,) = trace.info.devices
    assert device.name == "GPU not determined"
    assert device.id not in (0, 1)
    assert set(trace.device_ops.device.tolist()) == {device.id}
    (loss,) = trace.completeness.losses
    assert (loss.code, loss.count, loss.lost_events, loss.damaged) == ("device_not_determined", 8, 0, False)
    assert trace.table("memory")["device"].unique().sort().to_list() == [0, 1]
    assert len(trace.launches) == 6


def test_streams_of_several_gpus_stay_apart(read: Read) -> None:
    rows = [device(GPU.replace("GPU:0", f"GPU:{n}"), node(f"t{n}/A", 0, 5, f"t{n}/A = A()")) for n in (0, 1)]
    streams = [device(f"/device:GPU:{n}/stream:7", node(f"t{n}/A:A", 9 + n, 9)) for n in (0, 1)]
    trace = read(stats(*rows, *streams))
    assert sorted(trace.device_ops.device.tolist()) == [0, 1]
    assert trace.completeness.losses == ()


def test_gpus_of_several_tasks_are_several_devices(read: Read) -> None:
    tasks = [f"/job:worker/replica:0/task:{n}" for n in (0, 1)]
    rows = [device(f"{task}/device:GPU:0/stream:7", node(f"a{n}:A", 9, 9)) for n, task in enumerate(tasks)]
    trace = read(stats(*rows))
    assert sorted(trace.device_ops.device.tolist()) == [0, 1]


def test_nodes_on_a_gpu_without_its_kernels_say_so(read: Read) -> None:
    trace = read(stats(device(GPU, node("a", 0, 5, "a = A()"), node("b", 6, 5, "b = B()"))))
    (loss,) = trace.completeness.losses
    assert (loss.code, loss.count, loss.lost_events) == ("accelerator_missing", 2, 0)
    (account,) = analyse(trace).accounts
    assert account.rows.device is None
    check(account)


def test_rows_of_unknown_kind_are_kept_and_named(read: Read) -> None:
    trace = read(stats(device(CPU, node("a", 0, 5, "a = A()")), device("/device:GPU:0/fan", node("x", 0, 5))))
    assert slices_of(trace).select("name", "kind", "track_kind").rows()[1] == ("x", "other", "other")
    assert [loss.code for loss in trace.completeness.losses] == ["row_unknown"]


# --- damage -------------------------------------------------------------------------------------------------------


def test_executions_without_a_usable_time_are_lost_and_counted(read: Read) -> None:
    early = text(1, "early") + number(2, 5)
    trace = read(
        stats(
            device(
                CPU,
                node("a", 0, 5, "a = A()"),
                node("b", 1, -4, "b = B()"),
                text(1, "c"),
                early,
                node("d", 3, 1 << 60, "d = D()"),
            )
        )
    )
    assert slices_of(trace)["name"].to_list() == ["A"]
    assert trace.completeness.events == 5
    lost = {loss.code: loss.lost_events for loss in trace.completeness.losses}
    assert lost == {"time_out_of_range": 3, "duration_negative": 1}


WHOLE = [gpu_runs.new(), gpu_runs.old(), stats(ONE, LONG[:600])]


@pytest.mark.parametrize(
    ("content", "stride"), some(zip(WHOLE, (7, 5, 1), strict=True), 2, several=True), ids=["new", "old", "each byte"]
)
def test_a_file_cut_anywhere_gives_its_whole_executions(read: Read, content: bytes, stride: int) -> None:
    """Never fewer than a shorter file gave, and the cut is on record wherever it can be seen."""
    before, unseen = 0, 0
    for end in range(1, len(content), stride):
        try:
            trace = read(content[:end])
        except InputError:
            assert before == 0
            continue
        found = sum(trace.completeness.rows.values())
        assert found >= before
        before = found
        unseen += trace.completeness.complete
        lost = sum(loss.lost_events for loss in trace.completeness.losses)
        assert trace.completeness.events == found + lost
    whole = read(content)
    assert before >= sum(whole.completeness.rows.values()) - 1 - (stride > 1)
    assert unseen <= 2  # between two rows of StepStats, between the statistics and the graphs behind them


@given(st.data())
def test_no_damage_makes_it_crash(read: Read, data: st.DataObject) -> None:
    content = bytearray(data.draw(st.sampled_from(WHOLE)))
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(content) - 1))
        if data.draw(st.booleans()):
            content[at : at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
        elif at < len(content):
            content[at] = data.draw(st.integers(0, 255))
        if not content:
            return
    try:
        trace = read(bytes(content))
    except InputError:
        return
    for account in analyse(trace).accounts:
        check(account)


@pytest.mark.parametrize(
    "content",
    [
        message(1, text(1, CPU), b"\x12\x00" * 1_100_000),
        device(CPU, node("a", 0, 1, parts=[b"\x3a\x00" * 1_100_000])),
        device(CPU, node("a", 0, 1, parts=[b"\x32\x00" * 1_100_000])),
        device(CPU, node("a", 0, 1, parts=[message(7, message(3, message(2, b"\x12\x00" * 1_100_000)))])),
    ],
    ids=["nodes", "outputs", "memory", "dimensions"],
)
def test_millions_of_empty_messages_are_refused(read: Read, content: bytes) -> None:
    with pytest.raises(InputError, match="this is no profile"):
        read(content)


@pytest.mark.parametrize("content", [device(CPU), device(CPU, text(1, "a")), run_metadata(device(CPU))])
def test_a_file_without_executions_is_refused_in_a_sentence(read: Read, content: bytes) -> None:
    with pytest.raises(InputError, match="holds no usable event"):
        read(content)


def test_all_that_the_file_says_of_an_execution(tmp_path: Path) -> None:
    parts = [output(1, 1, [2], 8), memory("cpu", [(1, -8)]), message(12, number(3, 64))]
    (tmp_path / "a").write_bytes(stats(device(CPU, node("a", 0, 5, "a = A()", parts=parts))))
    profile = stepscope.open(tmp_path / "a")
    (said,) = profile.arguments([0])
    assert said["timeline_label"] == "a = A()"
    assert said["memory_stats"] == {"persistent_memory_size": 64}
    assert said["memory"][0]["allocation_records"] == [{"alloc_micros": EPOCH_US + 1, "alloc_bytes": -8}]
    assert said["output"][0]["tensor_description"]["shape"] == {"dim": [{"size": 2}]}


# --- a wait for producers -----------------------------------------------------------------------------------------


def run_of(*nodes: bytes) -> bytes:
    return stats(device(CPU, node("_SOURCE", 0, 10, "_SOURCE = NoOp()"), *nodes))


@pytest.mark.parametrize("op", ["QueueDequeueManyV2", "QueueDequeueUpToV2", "QueueDequeueV2", "IteratorGetNext"])
def test_a_long_dequeue_is_input_starvation(tmp_path: Path, op: str) -> None:
    waits = node("batch", 20, 80_000, f"batch = {op}(queue, n)")
    computes = node("loss", 80_030, 20_000, "loss = MatMul(batch)")
    (tmp_path / "run.pb").write_bytes(run_of(waits, computes))
    profile = stepscope.open(tmp_path / "run.pb")
    (row,) = profile.document()["accounting"]
    assert (row["parts"]["input"], row["parts"]["host_compute"]) == (80_000 * US, 20_010 * US)
    (finding,) = [finding for finding in profile.findings if finding.rule == "input_bound"]
    assert "(node `batch`)" in finding.why
    assert ("producers" in finding.why) == op.startswith("Queue")
    assert finding.cost_ns_per_step == 80_000 * US


def test_a_dequeue_beside_other_nodes_waits_only_where_nothing_computes(tmp_path: Path) -> None:
    nodes = [
        node("next_batch", 20, 80_000, "next_batch = QueueDequeueManyV2(queue, n)"),
        node("loss", 30, 60_000, "loss = MatMul(staged)"),
        node("received", 20, 79_000, "received = _Recv(edge_1 @/device:GPU:0)"),
    ]
    (tmp_path / "run.pb").write_bytes(run_of(*nodes))
    (row,) = stepscope.open(tmp_path / "run.pb").document()["accounting"]
    assert row["parts"]["input"] == (80_020 - 60_030 + 10) * US
    assert row["parts"]["host_compute"] == 60_010 * US


def test_a_gpu_that_waits_for_a_dequeue_waits_for_input(tmp_path: Path) -> None:
    content = run_metadata(
        device(CPU, node("a", 0, 5, "a = Const()"), node("input", 10, 50_000, "input = QueueDequeueManyV2(q, n)")),
        device(GPU, node("w", 6, 3, "w = Const()"), node("m/MatMul", 50_020, 10, "m/MatMul = MatMul(input/_3, w)")),
        device("/gpu:0/stream:7", node("w:Const", 12, 5), node("m/MatMul:MatMul", 50_040, 30_000)),
    )
    (tmp_path / "run.pb").write_bytes(content)
    profile = stepscope.open(tmp_path / "run.pb")
    parts = [row["parts"] for row in profile.document()["accounting"] if row["device"] == 0 and row["phase"] == "step"]
    waited = sum(part.get("input", 0) for part in parts)
    assert waited >= 49_900 * US
    assert [finding.title for finding in profile.findings if finding.rule == "input_bound"] == [
        "The device waits for input data"
    ]


def test_ops_are_counted_where_they_were_placed(read: Read) -> None:
    facts = analyse(read(gpu_runs.old()))
    assert facts.placement is not None
    # The dequeue computes nothing anywhere.
    assert (facts.placement.host_ops, facts.placement.device_ops) == (2, 3)
    assert facts.placement.device_ns == (200 + 40 + 100) * US


# --- real files ---------------------------------------------------------------------------------------------------


@pytest.mark.real
def test_a_real_run() -> None:
    trace = step_stats.read(Source(real_trace("timeline/tf1_run_metadata.pb")))
    assert trace.completeness.rows == {"slices": 33}
    assert trace.completeness.complete
    relu = nodes_of(trace)["model/Relu"]
    assert (relu["op"], relu["inputs"]) == ("Relu", "model/MatMul")
    assert len(trace.tensors) == 29
    assert trace.info.resolution_ns == 1
