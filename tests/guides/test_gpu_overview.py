"""TensorFlow's GPU guide, A1-A12: before one begins, and the overview of a step."""

from __future__ import annotations

import pytest

from tests.diagnosis.loops import CALL, loop
from tests.guides.shown import Shown, shown, stepscope
from tests.guides.tf_steps import EIGEN, GEMM, HALF_GEMM, MATMUL, keras, marked
from tests.kit.builder import TraceDrawing
from tests.kit.events import Stream
from tests.kit.kineto_writer import write_kineto
from tests.kit.planted import CASES
from tests.kit.tf_gpu import TfGpuJob
from tests.kit.traces import real_trace
from tests.support import planted_file

US, MS = 1_000, 1_000_000


def test_a1_a_small_model_is_told_that_launching_costs_more_than_computing() -> None:
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        for k in range(100):
            at = start + 20 * k
            drawing.host("aten::add", at, 18)
            drawing.kernel(drawing.launch(at + 10, 5), "k", at + 16, 2)

    found = shown(write_kineto(loop(2_000, step))).finding("too_little_work")
    assert found["title"] == "Too little work for this device"
    assert "on the CPU: for a model this small it may be faster" in " ".join(found["fix"].split())
    assert "too_little_work" not in shown(planted_file("healthy")).rules()


def several(case: str) -> Shown:
    return shown(planted_file(case))


def test_a2_the_report_says_in_which_order_to_work() -> None:
    job = several("input_and_callback")
    assert job.rules() == ["between_steps", "input_bound"]  # what gains most stands first
    assert job.report["plan"] == ["input_bound.1", "between_steps.1"]  # but one begins with the input
    assert (
        "Work in this order, one change at a time, and record again after each: 2) The device waits for input data; "
        "1) Steps wait for Python code that launches nothing." in job.flat
    )


def test_a3_what_one_gpu_does_alone_comes_before_what_many_exchange() -> None:
    job = several("compiling_and_three")
    assert job.report["plan"] == ["recompilation.1", "sync_bound.1", "allocator_bound.1", "exposed_collective.1"]


def test_a4_ops_that_run_eagerly_are_told_apart_from_a_tf_function() -> None:
    def eager(job: TfGpuJob) -> None:
        for _ in range(100):
            with job.range("TFE_Py_FastPathExecute_C"), job.range("EagerLocalExecute: MatMul"):
                job.spend(60)
                job.op("MatMul", GEMM, 40)

    job = marked(eager)
    finding = job.told("running_eagerly")
    assert finding["cost_ns_per_step"] == pytest.approx(per_step_idle(job), rel=0.05)
    assert "@tf.function" in finding["fix"]
    assert "run_eagerly=True" in finding["fix"]
    # What is known of any launches is of the same time, and leads to the same: it is no finding of its own.
    assert "launch_bound" not in job.rules()
    (general,) = [one for one in job.all_findings() if one["rule"] == "launch_bound"]
    assert "the whole step in one `tf.function`" in general["fix"]

    def graph(job: TfGpuJob) -> None:
        for _ in range(100):
            job.op(MATMUL, GEMM, 40)

    assert "running_eagerly" not in [one["rule"] for one in keras(graph).all_findings()]


def per_step_idle(job: Shown) -> int:
    return sum(ns for part, ns in job.parts().items() if part in ("launch", "launch_latency"))


def test_a5_the_overview_gives_the_step_time_and_where_it_goes() -> None:
    planted = CASES["input_bound"]()
    job = shown(write_kineto(planted.events))
    summary = job.summary
    assert summary["step_time_ns"]["mean"] == pytest.approx(planted.truth.mean_step_ns(), rel=0.001)
    assert sum(summary["parts_ns_per_step"].values()) == pytest.approx(summary["step_time_ns"]["mean"], rel=0.001)
    assert summary["parts_ns_per_step"]["input"] == pytest.approx(planted.saving_ns, rel=0.05)
    first = job.text().splitlines()
    assert "the device waits for input data" in first[1]
    assert first[3].startswith("step time ")


def test_a6_the_overview_gives_the_device_s_share_of_the_step() -> None:
    def step(job: TfGpuJob) -> None:
        job.op(MATMUL, GEMM, 4_000)
        job.spend(1_900)

    job = keras(step)
    share = 4_000_000 / job.summary["step_time_ns"]["mean"]
    assert job.summary["device_busy_share"] == pytest.approx(share)
    assert f"device busy {100 * share:.1f} % of the step time" in job.flat


def test_a7_the_overview_gives_the_share_of_ops_on_the_device() -> None:
    def step(job: TfGpuJob) -> None:
        job.op("model/unique/Unique:Unique", None, 1_000)
        job.op(MATMUL, GEMM, 9_000)

    share = keras(step).summary["device_ops_share"]
    assert share["by_count"] == 0.5
    assert share["by_time"] == pytest.approx(0.9, rel=0.01)


def test_a8_the_overview_gives_the_share_of_16_bit_kernels() -> None:
    def step(job: TfGpuJob) -> None:
        job.op(MATMUL, HALF_GEMM, 3_000)
        job.op(MATMUL, GEMM, 1_000)

    assert "16-bit kernels 75.0 % by time, 50.0 % by count" in keras(step).flat


@pytest.mark.real
def test_a9_the_trace_has_the_rows_of_name_scopes_and_ops() -> None:
    rows = stepscope("query", real_trace("xplane/v100_many_processes.xplane.pb"), "--format", "csv",
                     "SELECT tracks.label, COUNT(*) AS n FROM slices JOIN tracks ON slices.track = tracks.id "
                     "WHERE tracks.kind = 'device_line' AND tracks.device = 4 GROUP BY tracks.label")  # fmt: skip
    found = dict(row.split(",") for row in rows.splitlines()[1:])
    assert int(found["TensorFlow Name Scope"]) > 0
    assert int(found["TensorFlow Ops"]) > 0


PHASES = {
    "forward": ("model/dense/MatMul:MatMul", 2_000),
    "loss": ("sparse_categorical_crossentropy/SparseSoftmaxCrossEntropyWithLogits:SparseSoftmaxCrossEntropyWithLogits",
             500),
    "backward": ("gradient_tape/model/dense/MatMul/MatMul:MatMul", 4_000),
    "optimizer": ("Adam/Adam/update/ResourceApplyAdam:ResourceApplyAdam", 1_000),
}  # fmt: skip
"""What a step of Keras does, by the name scopes of its ops."""


def test_a10_forward_loss_backward_and_optimizer_are_told_apart() -> None:
    def step(job: TfGpuJob) -> None:
        for op, us in PHASES.values():
            job.op(op, GEMM if op.endswith("MatMul") else EIGEN.format("product"), us)

    phases = keras(step).summary["phases_ns_per_step"]
    assert {name: phases[name] for name in PHASES} == {name: us * US for name, (_, us) in PHASES.items()}


def test_a11_what_each_stream_does_is_told() -> None:
    def step(job: TfGpuJob) -> None:
        job.copy("MemcpyH2D", 1_000, 1 << 20, stream=21)
        job.op(MATMUL, GEMM, 4_000)

    path = keras(step).path
    rows = stepscope("query", path, "--format", "csv", "SELECT label, stream FROM tracks WHERE device = 0")
    assert {"Stream #20(Kernel),20", "Stream #21(MemcpyH2D),21"} <= set(rows.splitlines())
    kinds = stepscope("query", path, "--format", "csv",
                      "SELECT stream, kind, COUNT(*) AS n FROM ops GROUP BY stream, kind ORDER BY stream")  # fmt: skip
    assert kinds.splitlines()[1:] == ["20,kernel,6", "21,copy,6"]


def test_a12_a_busy_device_with_hidden_copies_and_no_gaps_is_called_healthy() -> None:
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        early = start - 300 if number else start
        drawing.copy(drawing.call("cudaMemcpyAsync", early, CALL), "HtoD", start + 120, 500, stream=Stream(0, 21))
        drawing.host("aten::mm", early + 100, 12)
        drawing.kernel(drawing.launch(early + 105, CALL), "volta_fp16_s884gemm_fp16_nn", start + 112, 4_999)

    job = shown(write_kineto(loop(5_000, step)))
    assert "Nothing to fix was found: the device's own work sets the step time." in job.text()
    assert job.summary["device_busy_share"] > 0.99
    (copies,) = (one for one in job.analyses["overlap"] if one["what"] == "copies")
    assert copies["hidden_share"] == 1
