"""TensorFlow's GPU guide, A54-A71: many GPUs, memory, and reading what Keras wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.diagnosis.loops import CALL, loop
from tests.diagnosis.test_many_devices import devices
from tests.guides.shown import Shown, shown, stepscope
from tests.guides.tf_steps import GEMM, MATMUL, NCCL, keras, per_step
from tests.kit.builder import TraceDrawing
from tests.kit.events import Stream
from tests.kit.kineto_writer import write_kineto
from tests.kit.loop import run
from tests.kit.plan import Plan
from tests.kit.tf_gpu import EXECUTORS, TfGpuJob
from tests.kit.traces import REPOSITORY
from tests.kit.xplanes import Unsigned
from tests.support import planted_file

US, MS = 1_000, 1_000_000
GRADIENT = "gradient_tape/model/dense/MatMul/MatMul:MatMul"
RANKS = REPOSITORY / "examples" / "ranks"


def planned(**plan: object) -> Path:
    """The profile of a simulated loop."""
    return shown(write_kineto(run(Plan(**plan)).machine.events())).path  # type: ignore[arg-type]


def test_a54_scaling_from_one_gpu_to_several_has_an_efficiency_and_what_eats_the_rest() -> None:
    one, two = planned(steps=12), planned(steps=12, devices=2, kernel_us=250)
    text = " ".join(stepscope("compare", one, two).split())
    assert (
        "With the same batch on each device, 2 devices do 1.6 times the work of 1 per second (80.1 % efficiency). "
        "A step takes longer by: work of the devices themselves +700 µs." in text
    )


def reduced(count: int = 60, us: int = 60) -> Shown:
    """Many small all-reduces from executor threads, with nothing beside them."""

    def computes(job: TfGpuJob) -> None:
        job.op(GRADIENT, GEMM, 5_000)

    def reduces(job: TfGpuJob) -> None:
        for k in range(count):
            job.op(f"CollectiveReduceV2_{k}:CollectiveReduceV2", NCCL, us, stream=22)

    return keras(computes, reduces)


def test_a55_the_share_of_communication_is_told() -> None:
    job = reduced()
    share = job.parts()["collective"] / per_step(job)
    assert job.parts()["collective"] == 60 * 60 * US
    assert job.summary["parts_share"]["collective"] == pytest.approx(share)
    assert f"{100 * share:.1f} %" in job.text()


def test_a56_concatenating_and_splitting_gradients_around_nccl_is_told() -> None:
    def step(job: TfGpuJob) -> None:
        job.op(GRADIENT, GEMM, 5_000)
        for k in range(4):
            job.op(f"gradient_tape/ConcatV2_{k}:ConcatV2", "void tensorflow::concat_variable_kernel<float, int>", 80)
            job.op(f"NcclAllReduce_{k}:NcclAllReduce", NCCL, 500)
            job.op(f"gradient_tape/split_{k}:SplitV", "void tensorflow::split_v_kernel<float, int>", 80)

    finding = keras(step).told("collective_copies")
    assert finding["cost_ns_per_step"] == 8 * 80 * US
    assert "bytes_per_pack" in finding["fix"]


GIB, MIB = 1 << 30, 1 << 20


def allocating(before: int) -> Shown:
    """A job on a V100 of 16 GB: what it has from before, an activation of 64 MiB and a gradient of 32 in each step."""

    def note(job: TfGpuJob, in_use: int, size: int, address: int, op: str, *, takes: bool) -> None:
        limit = 15 * GIB + 512 * MIB
        told = {"tf_op": op, "region_type": "output", "data_type": 19, "shape": f"[{size // MIB},1024,512]"}
        none = {"tf_op": "", "region_type": "", "data_type": 0, "shape": ""}
        job.host("MemoryAllocation" if takes else "MemoryDeallocation", 0, allocator_name="GPU_0_bfc",
                 bytes_reserved=0, bytes_allocated=Unsigned(in_use), bytes_available=Unsigned(limit - in_use),
                 addr=address, allocation_bytes=Unsigned(size), fragmentation=0.125,
                 peak_bytes_in_use=Unsigned(before + 96 * MIB), **(told if takes else none))  # fmt: skip

    def step(job: TfGpuJob) -> None:
        note(job, before + 64 * MIB, 64 * MIB, 4096, "model/dense/MatMul", takes=True)
        job.op(MATMUL, GEMM, 1_000)
        note(job, before + 96 * MIB, 32 * MIB, 8192, GRADIENT.split(":")[0], takes=True)
        job.op(GRADIENT, GEMM, 2_000)
        job.spend(500)
        note(job, before + 32 * MIB, 64 * MIB, 4096, "", takes=False)
        note(job, before, 32 * MIB, 8192, "", takes=False)

    return keras(step)


def test_a57_memory_that_is_nearly_full_is_told() -> None:
    """15.0 of 16 GiB, with all that TensorFlow may take."""
    text = allocating(14 * GIB + 928 * MIB).notices()["memory_full"]
    assert "15.0 GiB" in text
    assert "memory_full" not in allocating(4 * GIB).notices()


def test_a58_all_reduces_are_counted_so_that_one_sees_those_that_are_not_needed() -> None:
    finding = reduced().finding("exposed_collective")
    assert finding["cost_ns_per_step"] == 60 * 60 * US
    assert "60 all-reduces per step" in finding["why"]


def ranks() -> Shown:
    return Shown(RANKS)


def test_a59_of_an_all_reduce_waiting_is_told_from_transfer() -> None:
    """Each takes 0.7 ms once all are there; rank 2 comes 5.8 ms late to the first."""
    rows = ranks().analyses["collectives"]
    assert [row["kind"] for row in rows] == ["all_reduce"]
    assert rows[0]["transfer_ns"] == pytest.approx(700 * US, rel=0.03)
    assert 4 * rows[0]["wait_ns"] > 3 * MS
    assert "is waiting for the last rank, 1.75 ms transfer" in ranks().flat


def test_a60_a_replica_that_is_late_is_named_with_its_cause() -> None:
    finding = ranks().finding("straggler")
    assert finding["title"] == "The other ranks wait for rank 2: it waits for input longer"
    assert "It spends 5.85 ms per step more than they do on waiting for input" in finding["why"]


def test_a61_gpus_that_compute_one_after_another_are_told() -> None:
    job = shown(write_kineto(devices([(0, 0, 20, 1_900), (1, 20, 1_950, 1_900)])))
    finding = job.finding("devices_serialised")
    assert finding["title"] == "Devices 0, 1 compute one after another"
    assert finding["saving_ns_per_step"] == 1_900 * US


def test_a62_all_reduces_are_a_phase_of_their_own() -> None:
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.annotation("forward", start, 100)
        drawing.kernel(drawing.launch(start + 10), "k", start + 20, 3_000)
        drawing.collective(drawing.launch(start + 50), start + 3_020, 1_500)

    phases = shown(write_kineto(loop(5_000, step))).summary["phases_ns_per_step"]
    assert (phases["forward"], phases["communication"]) == (3 * MS, 1_500 * US)


def test_a63_an_all_reduce_s_time_is_estimated_with_a_bandwidth_that_is_given() -> None:
    """Devices without a known link, or of several hosts: 25 million parameters of 4 bytes at 10 GB/s take 10 ms."""
    job = reduced()
    text = " ".join(stepscope("diagnose", job.path, "--params", "25M", "--bandwidth", "10GB/s").split())
    assert "25,000,000 parameters × 4 B" in text
    assert "10.0 ms" in text


def test_a64_gradients_of_tensorflow_have_four_bytes_whatever_the_precision() -> None:
    assert "350,000,000 parameters × 4 B = 1.30 GiB per step" in " ".join(reduced().text("--params", "0.35B").split())

    # Forward is what is no other part: where replicas reduce something that says nothing of its purpose.
    def step(job: TfGpuJob) -> None:
        job.op(MATMUL, GEMM, 5_000)
        job.op("Nccl/NcclAllReduce:NcclAllReduce", NCCL, 500)

    assert "gradients" in keras(step).text("--params", "0.35B")

    def alone(job: TfGpuJob) -> None:
        job.op(MATMUL, GEMM, 5_000)

    asked = " ".join(keras(alone).text("--params", "0.35B").split())
    assert "350,000,000 parameters × 4 B = 1.30 GiB per step" in asked
    assert "gradients" not in keras(alone).text()


def test_a65_a_larger_batch_is_predicted() -> None:
    path = shown(planted_file("launch_bound")).path
    text = stepscope("what-if", path, "--batch", "2")
    # Kernels of 3 us behind launches of 17: twice the work costs nothing.
    assert "With a batch 2 times as large a step takes about 3.43 ms instead of 3.43 ms: 1.72 ms for as many" in text


def in_turn(*threads: str) -> Shown:
    """GPU 0 is given all its work, then GPU 1: 100 short ops, which take 2 ms to launch, a long one and an exchange."""

    def step(job: TfGpuJob) -> None:
        for device, thread in enumerate(threads):
            with job.on(thread), job.range("ExecutorState::Process"):
                for k in range(100):
                    job.op(f"replica_{device}/dense_{k}/MatMul:MatMul", GEMM, 18, host=20, device=device)
                job.op(f"replica_{device}/long/MatMul:MatMul", GEMM, 5_000, host=20, device=device)
                # The first to come waits for the other in the exchange.
                job.op("NcclAllReduce:NcclAllReduce", NCCL, 2_540 - 2_040 * device, host=20, device=device)

    return keras(step, devices=2)


def test_a66_gpus_that_wait_for_one_another_s_launching_threads_are_told() -> None:
    finding = in_turn("tf_gpu_private_0/1", "tf_gpu_private_1/2").finding("launched_in_turn")
    assert finding["cost_ns_per_step"] == pytest.approx(2 * MS, rel=0.1)


def test_a67_all_gpus_stand_on_one_axis_so_that_their_skew_is_seen() -> None:
    """GPU 1 begins each step 700 us after GPU 0, and with it its wait for the launch."""
    path = shown(write_kineto(devices([(0, 0, 20, 2_000), (1, 700, 720, 2_000)]))).path
    rows = stepscope(
        "query", path, "--format", "csv", "SELECT device, MIN(start_ns) FROM ops GROUP BY device ORDER BY device"
    )
    (_, first), (_, second) = (row.split(",") for row in rows.splitlines()[1:])
    assert int(second) - int(first) == 700 * US


def test_a68_the_threads_of_a_gpu_are_told_with_their_number() -> None:
    """GPU 1 begins 2 ms late, and GPU 0 waits that long for it in the exchange: threads of their own save it all."""
    finding = in_turn(EXECUTORS[0], EXECUTORS[0]).finding("launched_in_turn")
    assert finding["cost_ns_per_step"] == pytest.approx(2 * MS, rel=0.1)
    assert finding["saving_ns_per_step"] == pytest.approx(2 * MS, rel=0.1)
    assert "The others wait for it where they exchange data." in finding["why"]
    assert "TF_GPU_THREAD_MODE=gpu_private TF_GPU_THREAD_COUNT=2" in finding["fix"]


def test_a69_what_keras_wrote_for_tensorboard_is_read_from_its_log_directory(tmp_path: Path) -> None:
    def step(job: TfGpuJob) -> None:
        job.op(MATMUL, GEMM, 4_000)

    run_of_tensorboard = tmp_path / "logs" / "plugins" / "profile" / "2026_11_23_07_00_00"
    run_of_tensorboard.mkdir(parents=True)
    (run_of_tensorboard / "trainer.xplane.pb").write_bytes(keras(step).path.read_bytes())
    found = Shown(tmp_path / "logs")
    assert found.report["profile"]["format"] == "XPlane"
    assert [step["number"] for step in found.report["steps"]] == [10, 11, 12, 13, 14, 15]


def test_a70_memory_has_phases_shapes_types_and_fragmentation() -> None:
    found = allocating(4 * GIB)
    (pool,) = (one for one in found.analyses["memory"]["pools"] if one["device"] == 0)
    held = pool["peak"]["by_category"]
    assert (held["before_profile"], held["activation"], held["gradient"]) == (4 * GIB, 64 * MIB, 32 * MIB)
    text = found.flat
    assert "[64,1024,512]" in text
    assert "DT_HALF" in text
    assert "12.5 %" in text


def test_a71_copies_within_and_between_devices_are_listed() -> None:
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        for k, (direction, size) in enumerate((("DtoD", 1 << 20), ("PtoP", 1 << 22))):
            call = drawing.call("cudaMemcpyAsync", start + 300 * k, CALL)
            drawing.copy(call, direction, start + 10 + 300 * k, 200, size, stream=Stream())  # type: ignore[arg-type]
        drawing.kernel(drawing.launch(start + 600), "k", start + 610, 4_000)

    rows = {row["direction"]: row for row in shown(write_kineto(loop(5_000, step))).analyses["copies"]}
    assert (rows["d2d"]["bytes_per_step"], rows["d2d"]["exposed_ns_per_step"]) == (1 << 20, 200 * US)
    assert (rows["p2p"]["bytes_per_step"], rows["p2p"]["exposed_ns_per_step"]) == (1 << 22, 200 * US)
