"""TensorFlow's GPU guide, A27-A39: launching, ops, placement and copies."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.diagnosis.loops import CALL, loop
from tests.guides.shown import Shown, shown, stepscope
from tests.guides.tf_steps import GEMM, MATMUL, keras, per_step
from tests.kit.builder import TraceDrawing
from tests.kit.kineto_writer import write_kineto
from tests.kit.tf_gpu import TfGpuJob

US, MS = 1_000, 1_000_000


def pipelined(latency_us: int, ops: int = 800, every_us: int = 20) -> Shown:
    """One launch each 20 us, of an op of 2.5 us that begins so long after it."""
    step_us = ops * every_us

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        for k in range(ops):
            at = start + every_us * k
            drawing.host("aten::add", at, every_us - 1)
            drawing.kernel(drawing.launch(at + 5, CALL), "k", at + 5 + latency_us, 2.5)

    return shown(write_kineto(loop(step_us, step)))


@pytest.mark.parametrize("latency_us", [9, 40])
def test_a27_the_latency_from_launch_to_start_is_measured(latency_us: int) -> None:
    (row,) = pipelined(latency_us, ops=50, every_us=60).analyses["launch_delay"]
    assert (row["median_ns"], row["p95_ns"]) == (latency_us * US, latency_us * US)


@pytest.mark.parametrize("latency_us", [9, 20, 40])
def test_a28_the_share_waiting_for_launches_does_not_depend_on_the_latency(latency_us: int) -> None:
    job = pipelined(latency_us, ops=200)
    assert job.summary["launch_wait_share"] == pytest.approx(1 - 2.5 / 20, abs=0.02)
    assert job.finding("launch_bound")["cost_ns_per_step"] == pytest.approx(200 * 17.5 * US, rel=0.03)


def launch_bound() -> Shown:
    """100 ops of TensorFlow, each 5 us on the device and 40 to launch."""

    def step(job: TfGpuJob) -> None:
        for _ in range(100):
            job.op(MATMUL, GEMM, 5, host=40)

    return keras(step)


def test_a29_small_gaps_between_kernels_are_counted_and_sized() -> None:
    finding = launch_bound().finding("launch_bound")
    assert "99 times per step the device runs dry" in finding["why"] or "100 times per step" in finding["why"]
    assert "half of its ops take under 5.00 µs, and half of these waits take over 35.0 µs" in finding["why"]
    assert 35 * US in {seen["dur_ns"] for seen in finding["evidence"]}


def test_a30_ops_have_count_total_mean_and_whether_they_are_tiny() -> None:
    def step(job: TfGpuJob) -> None:
        for _ in range(20):
            job.op("model/add/AddV2:AddV2", "k", 4, host=40)
        job.op(MATMUL, GEMM, 1_000, host=100)

    ops = {row["op"]: row for row in keras(step).analyses["ops"]["by_type"]}
    small, large = ops["AddV2"], ops["MatMul"]
    assert (small["count"], small["total_ns"], small["mean_ns"]) == (80, 80 * 40 * US, 40 * US)  # of four steps
    assert (small["device_ns"], small["launch_sized"]) == (80 * 4 * US, True)
    assert (large["count"], large["device_ns"], large["launch_sized"]) == (4, 4 * MS, False)


def test_a31_many_small_ops_are_to_be_concatenated_and_vectorised() -> None:
    fix = launch_bound().finding("launch_bound")["fix"]
    assert "tf.concat" in fix
    assert "tf.vectorized_map" in fix


def test_a32_launch_bound_steps_are_told_of_jit_compile() -> None:
    job = launch_bound()
    finding = job.finding("launch_bound")
    assert "jit_compile=True" in finding["fix"]
    assert finding["cost_ns_per_step"] == pytest.approx(per_step(job) - 500 * US, rel=0.1)


def placed() -> Shown:
    """``Unique`` computes on the host for 3 ms of each step, ``MatMul`` on the device."""

    def step(job: TfGpuJob) -> None:
        job.op("model/unique/Unique:Unique", None, 3_000)
        job.op(MATMUL, GEMM, 2_000)

    return keras(step)


def test_a33_of_a_single_op_it_is_told_where_it_ran() -> None:
    job = placed()
    sides = {row["op"]: row["side"] for row in job.analyses["ops"]["by_type"]}
    assert (sides["Unique"], sides["MatMul"]) == ("host", "device")
    launched = stepscope("query", job.path, "--format", "csv", "SELECT name, device FROM ops LIMIT 1")
    assert launched.splitlines()[1] == f"{GEMM},0"


def test_a34_ops_on_the_host_are_told_of_the_placement_log(tmp_path: Path) -> None:
    job = placed()
    finding = job.finding("ops_on_host")
    assert finding["cost_ns_per_step"] == pytest.approx(3 * MS, rel=0.02)
    assert "tf.debugging.set_log_device_placement(True)" in finding["fix"]
    assert "log of device placement beside" not in finding["why"]
    # What it wrote is read where it lies beside the profile.
    at = "/job:localhost/replica:0/task:0/device:"
    nodes = f"unique/Unique: (Unique): {at}CPU:0\nother/Unique: (Unique): {at}GPU:0\nfc/MatMul: (MatMul): {at}GPU:0\n"
    (tmp_path / "placement.log").write_text(nodes)
    beside = Shown(tmp_path / job.path.name)
    beside.path.write_bytes(job.path.read_bytes())
    why = beside.finding("ops_on_host")["why"]
    assert f"has them on {at}CPU:0: `model/unique/Unique:Unique`." in why
    assert f"others of the same type on a device: `Unique` ({at}GPU:0)" in why
    (row,) = beside.analyses["logged_placement"]
    assert (row["name"], row["per_step"], row["ns_per_step"]) == ("model/unique/Unique:Unique", 1, 3 * MS)
    assert "Ops on the CPU by the log of device placement" in beside.verbose


def test_a35_unique_is_named_and_one_device_strategy_advised() -> None:
    finding = placed().finding("ops_on_host")
    assert "Unique" in finding["title"]
    assert "`tf.unique`" in finding["fix"]
    assert 'tf.distribute.OneDeviceStrategy("/gpu:0")' in finding["fix"]


COPIES, COPY = 30, 80


def copying() -> Shown:
    """Executor threads copy 30 small tensors back and forth in every step, 80 us each, with nothing beside them."""

    def step(job: TfGpuJob) -> None:
        job.op(MATMUL, GEMM, 5_000)
        for k in range(COPIES):
            kind = "MemcpyD2H" if k % 2 else "MemcpyH2D"
            with job.range(f"model/where/{'_HostRecv' if k % 2 else '_HostSend'}:Copy"):
                job.spend(3)
                job.copy(kind, COPY, 4_096, op="model/where/Copy:Copy")

    return keras(step)


def test_a36_excessive_copies_are_a_finding() -> None:
    """Once: as copies of which there are many, and not again as copies that nothing hides."""
    found = [one for one in copying().report["findings"] if "opies" in one["title"]]
    assert [one["title"] for one in found] == [
        "Copies from host to device that nothing hides", "Copies from device to host that nothing hides"
    ]  # fmt: skip
    assert all("15 of 4.00 KiB each come from `model/where/_Host" in one["why"] for one in found)
    assert "Copy once: concatenate the small arrays" in found[0]["fix"]
    assert "Read all values of a step with one copy" in found[1]["fix"]
    assert sum(one["cost_ns_per_step"] for one in found) == COPIES * COPY * US
    assert sum(one["saving_ns_per_step"] for one in found) == pytest.approx(COPIES * COPY * US, rel=0.1)


def test_a37_copies_that_nothing_hides_are_measured() -> None:
    job = copying()
    assert job.parts()["copy_h2d"] == COPIES // 2 * COPY * US
    assert job.parts()["copy_d2h"] == COPIES // 2 * COPY * US
    (overlap,) = (one for one in job.analyses["overlap"] if one["what"] == "copies")
    assert (overlap["ns_per_step"], overlap["hidden_share"]) == (COPIES * COPY * US, 0)


def test_a38_a_copy_leads_to_the_op_that_made_it() -> None:
    ops = {row["direction"]: row["op"] for row in copying().analyses["copies"]}
    assert ops == {"h2d": "model/where/_HostSend:Copy", "d2h": "model/where/_HostRecv:Copy"}


def test_a39_copies_that_recur_in_every_step_are_told_from_those_that_do_not() -> None:
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        for name, often in (("aten::to", 1), ("aten::item", 4)):
            if number % often == 0:
                drawing.host(name, start, 30)
                drawing.copy(drawing.call("cudaMemcpyAsync", start + 5, CALL), "HtoD", start + 20, 100, 4 * often)
            start += 200
        drawing.kernel(drawing.launch(start, CALL), "k", start + CALL, 9_000)

    rows = {row["op"]: row["every_step"] for row in shown(write_kineto(loop(9_500, step))).analyses["copies"]}
    assert rows == {"aten::to": True, "aten::item": False}
