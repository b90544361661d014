"""TensorFlow's Timeline, B1-B21: what a session's run metadata tells."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.capture.test_frameworks import script
from tests.formats.beside.test_summaries import TAG, write_run
from tests.guides.shown import Shown, shown, stepscope
from tests.guides.tf_steps import GEMM, MATMUL, drained, marked
from tests.kit.gpu_runs import old
from tests.kit.step_stats import CPU, GPU, device, memory, node, output, run_metadata
from tests.kit.tf_gpu import TfGpuJob
from tests.kit.traces import real_trace

US, MS = 1_000, 1_000_000


def ran(data: bytes) -> Shown:
    return shown(data, "run.pb")


def csv(found: Shown, query: str) -> list[list[str]]:
    """The rows of a query."""
    lines = stepscope("query", found.path, "--format", "csv", query).splitlines()
    return [line.split(",") for line in lines[1:]]


@pytest.mark.real
def test_b1_run_metadata_is_read() -> None:
    found = Shown(real_trace("timeline/tf1_run_metadata.pb"))
    assert found.report["profile"]["format"] == "TensorFlow StepStats"
    top = found.analyses["ops"]["by_type"][0]
    assert (top["op"], top["count"]) == ("MatMul", 5)
    assert "step time 347 µs on the host" in " ".join(found.text().split())


@pytest.mark.real
@pytest.mark.parametrize("variant", ["timeline", "timeline_memory", "timeline_nodataflow"])
def test_b2_every_variant_of_a_timeline_is_read(variant: str) -> None:
    found = Shown(real_trace(f"timeline/tf1_{variant}.json"))
    top = found.analyses["ops"]["by_type"][0]
    assert (found.report["profile"]["framework"], top["op"], top["count"]) == ("TensorFlow", "MatMul", 5)
    assert ("Memory" in found.verbose.splitlines()) == (variant == "timeline_memory")


@pytest.mark.slow
def test_b3_run_records_sessions_of_a_script_that_knows_nothing_of_it(tmp_path: Path) -> None:
    told = script(tmp_path, "tensorflow", "tf_session.py")
    assert told.manifest["framework"] == "tensorflow_session"
    assert len(told.manifest["files"]) == told.manifest["window"]["steps"] >= 6
    assert "MatMul" in told.stderr or "step time" in told.stderr


def test_b4_a_first_step_that_warms_up_is_told() -> None:
    lengths = iter((20_000, 2_000, 2_000, 2_000, 2_000, 2_000))

    def step(job: TfGpuJob) -> None:
        with job.function():
            with job.executing():
                job.op(MATMUL, GEMM, next(lengths))
            drained(job)

    text = marked(step).notices()["profile_warm_up"]
    assert text.startswith("The first step took 20.1 ms, the others about 2.")
    assert "Let the profiler wait a few steps longer." in text


def test_b5_run_metadata_becomes_a_timeline(tmp_path: Path) -> None:
    written = tmp_path / "run.timeline.json"
    stepscope("convert", ran(old()).path, written)
    events = json.loads(written.read_text())["traceEvents"]
    processes = {event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert {"/job:localhost/replica:0/task:0/gpu:0 Compute", "/gpu:0/stream:7 Compute"} <= processes
    conv = [event for event in events if event["ph"] == "X" and event["args"].get("name") == "conv/Conv2D"]
    assert sorted(event["dur"] for event in conv) == [20, 200]


def test_b6_every_device_has_its_rows() -> None:
    rows = csv(ran(old()), "SELECT process, kind FROM tracks")
    job = "/job:localhost/replica:0/task:0"
    assert {(process, kind) for process, kind in rows} == {
        (f"{job}/device:CPU:0", "host_thread"), (f"{job}/gpu:0", "host_thread"), ("/gpu:0/stream:7", "device_stream"),
        ("/gpu:0/stream:8", "device_stream"), ("/gpu:0/stream:9", "device_stream"),
    }  # fmt: skip


def test_b7_the_row_of_a_gpu_is_the_launching_of_its_nodes() -> None:
    found = ran(old())
    conv = next(row for row in found.analyses["ops"]["by_type"] if row["op"] == "Conv2D")
    assert (conv["side"], conv["total_ns"], conv["device_ns"]) == ("device", 20 * US, 200 * US)
    assert found.parts()["compute"] == (200 + 40 + 100) * US  # not the 35 us of the row


def test_b8_the_row_of_all_streams_counts_once() -> None:
    kinds = csv(ran(old()), "SELECT kind, COUNT(*) FROM ops GROUP BY kind ORDER BY kind")
    assert dict(kinds) == {"copy": "2", "kernel": "3"}


def test_b9_streams_of_a_second_gpu_under_the_first_one_s_name_are_not_told_apart() -> None:
    text = ran(old(gpus=2)).notices()["profile_device_not_determined"]
    assert "nodes ran on 2 GPUs, and this TensorFlow wrote the streams of all of them under one" in text
    assert "GPU not determined" in ran(old(gpus=2)).text()


def test_b10_a_gpu_without_kernels_is_told_to_lack_cupti() -> None:
    only_launches = run_metadata(device(GPU, node("conv/Conv2D", 30, 20_000, "conv/Conv2D = Conv2D(x, w)")))
    text = " ".join(ran(only_launches).text().split())
    assert "CUPTI" in text or "libcupti" in text


def test_b11_lanes_are_not_taken_for_threads() -> None:
    labels = {label for (label,) in csv(ran(old()), "SELECT label FROM tracks WHERE kind = 'host_thread'")}
    assert labels == {"lane 0 (not a thread)", "lane 1 (not a thread)"}


def alexnet() -> Shown:
    """Convolution, normalisation and a dense layer; the normalisation takes longest."""
    layers = (("conv1/Conv2D", "Conv2D", 2_000), ("norm1/LRN", "LRN", 3_000), ("fc/MatMul", "MatMul", 1_000))
    nodes, kernels, at = [], [], 100
    for name, op, dur in layers:
        nodes.append(node(name, at - 50, 40, f"{name} = {op}(x)"))
        kernels.append(node(f"{name}:{op}", at, dur))
        at += dur
    return ran(run_metadata(device("/job:localhost/replica:0/task:0/gpu:0", *nodes),
                            device("/gpu:0/stream:all", *kernels), device("/gpu:0/stream:7", *kernels)))  # fmt: skip


def test_b12_what_takes_longest_stands_first() -> None:
    rows = alexnet().analyses["ops"]["by_type"]
    assert [(row["op"], row["device_ns"]) for row in rows] == [("LRN", 3 * MS), ("Conv2D", 2 * MS), ("MatMul", 1 * MS)]
    (first, *_) = alexnet().analyses["kernels"]
    assert (first["name"], first["share"]) == ("LRN", 0.5)


def test_b13_layers_have_their_costs() -> None:
    text = alexnet().flat
    assert "norm1 3.00 ms 50.0 % 1 3.00 ms conv1 2.00 ms 33.3 % 1 2.00 ms fc 1.00 ms 16.7 % 1 1.00 ms" in text


def test_b14_nodes_have_their_placement() -> None:
    rows = csv(ran(old()), "SELECT node, placement FROM nodes WHERE placement IS NOT NULL")
    job = "/job:localhost/replica:0/task:0"
    assert ["input", f"{job}/device:CPU:0"] in rows
    assert ["conv/Conv2D", f"{job}/gpu:0"] in rows


def towers(*, joined: bool = False) -> Shown:
    """Two chains of kernels, their ops in turn on the only stream; neither needs the other, unless they are joined."""
    nodes, kernels = [], []
    for tower in range(2):
        for k in range(6):
            at = 100 + 1_000 * (2 * k + tower)
            before = f"tower_{tower}/conv_{k - 1}/Conv2D" if k else "input"
            before += f", tower_0/conv_{k}/Conv2D" if joined and tower else ""
            name = f"tower_{tower}/conv_{k}/Conv2D"
            nodes.append(node(name, at - 60 + tower, 40, f"{name} = Conv2D({before}, w)"))
            kernels.append(node(f"{name}:Conv2D", at, 1_000))
    given = (node("input", 0, 1, "input = Placeholder()"), node("w", 1, 1, "w = VariableV2()"))
    return ran(run_metadata(device(CPU, *given), device("/job:localhost/replica:0/task:0/gpu:0", *nodes),
                            device("/gpu:0/stream:all", *kernels), device("/gpu:0/stream:7", *kernels)))  # fmt: skip


def test_b15_independent_parts_of_a_graph_that_share_a_stream_are_told() -> None:
    text = towers().notices()["independent_branches"]
    assert "`tower_0` (6 ops, 6.00 ms)" in text
    assert "`tower_1` (6 ops, 6.00 ms)" in text
    assert "do not need each other, and run one after another: TensorFlow gives a device one stream" in text
    assert "independent_branches" not in towers(joined=True).notices()


@pytest.mark.parametrize(("place", "side"), [(CPU, "host"), (GPU, "device")])
def test_b16_of_a_resize_it_is_told_whether_the_cpu_or_the_gpu_does_it(place: str, side: str) -> None:
    name = "resize/ResizeBilinear"
    launches = [node("conv/Conv2D", 5_100, 20, "conv/Conv2D = Conv2D(x, w)")]
    kernels = [node("conv/Conv2D:Conv2D", 5_150, 2_000)]
    resize = node(name, 10, 5_000 if side == "host" else 20, f"{name} = ResizeBilinear(images, size)")
    if side == "device":
        kernels.insert(0, node(f"{name}:ResizeBilinear", 40, 300))
    rows = (device(CPU, resize), device(GPU, *launches)) if side == "host" else (device(GPU, resize, *launches),)
    found = ran(run_metadata(*rows, device("/device:GPU:0/stream:13", *kernels)))
    told = {row["op"]: (row["side"], row["total_ns"]) for row in found.analyses["ops"]["by_type"]}
    assert told["ResizeBilinear"] == (side, 5 * MS if side == "host" else 20 * US)
    assert place in (CPU, GPU)


def starved(tmp_path: Path, *fills: tuple[float, str, float]) -> Shown:
    """A run that waits 90 ms to dequeue a batch, with or without summaries beside it."""
    return Shown(write_run(tmp_path, *fills))


def test_b17_waiting_to_dequeue_is_input_and_names_the_node(tmp_path: Path) -> None:
    found = starved(tmp_path)
    finding = found.finding("input_bound")
    assert finding["cost_ns_per_step"] == 90 * MS
    assert "`batch`" in finding["why"]
    assert finding["where"][0]["op"] == "QueueDequeueManyV2"


def test_b18_producers_that_are_too_slow_are_to_be_more(tmp_path: Path) -> None:
    fix = starved(tmp_path).finding("input_bound")["fix"]
    assert "the producers do not keep up" in fix
    assert "tf.train.batch([example], batch_size, num_threads=8, capacity=10 * batch_size)" in fix


def test_b19_the_fill_of_a_queue_is_read_from_summaries(tmp_path: Path) -> None:
    found = starved(tmp_path, (-2.0, TAG, 0.5), (-1.0, TAG, 0.25))
    assert found.analyses["input"]["queues"] == [{"name": TAG, "readings": 2, "mean": 0.375, "least": 0.25}]
    assert f"{TAG} was 37.5 % full on average, 25.0 % at the least" in found.flat


def test_b20_nodes_have_what_they_put_out_and_allocated() -> None:
    parts = [output(0, 1, [64, 128], 32_768, "GPU_0_bfc"), memory("GPU_0_bfc", [(35, 32_768)], in_use=1 << 20)]
    made = node("conv/Conv2D", 30, 20, "conv/Conv2D = Conv2D(x, w)", parts=parts)
    found = ran(run_metadata(device(GPU, made), device("/device:GPU:0/stream:13", node("conv/Conv2D:Conv2D", 60, 900))))
    rows = stepscope("query", found.path, "--format", "csv", "SELECT shape, requested, allocator FROM tensors")
    assert rows.splitlines()[1] == '"[64,128]",32768,GPU_0_bfc'
    (pool,) = found.analyses["memory"]["pools"]
    assert (pool["allocator"], pool["peak"]["allocated_bytes"]) == ("GPU_0_bfc", 1 << 20)


def test_b21_remedies_are_those_of_tensorflow_1(tmp_path: Path) -> None:
    nodes = [node(f"op_{k}/Add", 100 + 60 * k, 50, f"op_{k}/Add = Add(x, y)") for k in range(60)]
    kernels = [node(f"op_{k}/Add:Add", 145 + 60 * k, 5) for k in range(60)]
    found = ran(run_metadata(device("/job:localhost/replica:0/task:0/gpu:0", *nodes),
                             device("/gpu:0/stream:all", *kernels), device("/gpu:0/stream:7", *kernels)))  # fmt: skip
    fixes = [found.told("launch_bound")["fix"], starved(tmp_path).finding("input_bound")["fix"]]
    assert "session.run" in fixes[0]
    assert not any(word in fix for fix in fixes for word in ("model.compile", "tf.function", "OneDeviceStrategy"))
