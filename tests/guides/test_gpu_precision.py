"""TensorFlow's GPU guide, A40-A53: tensor cores, mixed precision and XLA."""

from __future__ import annotations

import pytest

from tests.diagnosis.test_efficiency_rules import (
    A100,
    HALF,
    HALF_GEMM,
    PLAIN_HALF,
    SGEMM,
    V100,
    WIDE,
    Op,
    header,
    pointwise,
    product,
    stepping,
)
from tests.guides import tf_steps
from tests.guides.shown import Shown, shown, stepscope
from tests.guides.tf_steps import EIGEN, GEMM, MATMUL, drained, keras, marked
from tests.kit.kineto_writer import write_kineto
from tests.kit.tf_gpu import TfGpuJob
from tests.kit.traces import REPOSITORY
from tests.support import planted_file

US, MS = 1_000, 1_000_000
OTHER: Op = ("aten::custom", [], [], "mystery_kernel", 1_500)


def running(*ops: Op, device: str = A100) -> Shown:
    """Steps of nothing but the kernels of these ops."""
    return shown(write_kineto(stepping(*ops), header=header(device)))


def one_product() -> Shown:
    """A Keras step that is one fp32 product of 4 ms."""

    def step(job: TfGpuJob) -> None:
        job.op(MATMUL, GEMM, 4_000)

    return keras(step)


def test_a40_of_each_kernel_it_is_told_whether_tensor_cores_could_run_it_and_do() -> None:
    job = running(product(SGEMM, 900), product(HALF_GEMM, 500, type_="c10::Half"), pointwise("relu", WIDE))
    told = {row["name"]: (row["tensor_core"], row["tensor_core_eligible"]) for row in job.analyses["kernels"]}
    assert told[SGEMM] == ("no", True)
    assert told[HALF_GEMM] == ("yes", True)
    assert sorted(told.values())[0] == ("no", False)
    assert "precision fp32, tensor cores no, could use them yes" in job.flat


def test_a41_of_each_kernel_its_launch_is_told() -> None:
    (row,) = one_product().analyses["kernels"]
    assert row["launch"] == {"grid": [160, 1, 1], "block": [256, 1, 1], "blocks": 160, "registers": 32,
                             "shared_memory": 0, "occupancy_pct": 50.0}  # fmt: skip
    text = one_product().flat
    assert (
        "kernel grid block registers shared memory occupancy volta_sgemm_128x64_nn 160×1×1 256×1×1 32 0 B 50 %" in text
    )


def odd(op: str, kernel: str, type_: list[str]) -> Op:
    return op, [[4096, 1024], [1024, 1001]], type_, kernel, 500


def test_a42_16_bit_products_that_miss_the_tensor_cores_are_told() -> None:
    job = running(odd("aten::mm", PLAIN_HALF, HALF), OTHER, device=V100)
    finding = job.finding("alignment")
    assert finding["cost_ns_per_step"] == 500 * US
    assert {row["name"]: row["tensor_core"] for row in job.analyses["kernels"]}[PLAIN_HALF] == "no"


def test_a43_sizes_are_to_be_multiples_of_8_or_for_8_bits_of_16() -> None:
    finding = running(odd("aten::mm", PLAIN_HALF, HALF), OTHER, device=V100).finding("alignment")
    assert "(1001 no multiple of 8)" in finding["why"]
    assert "multiples of 8" in finding["fix"]
    advice = running(product(PLAIN_HALF, 500, 1024, "c10::Half"), OTHER, device=V100).finding("tensor_cores_unused")
    assert "multiples of 8 (fp16, bf16) or 16 (fp8)" in advice["fix"]


def test_a44_convolutions_need_no_padding() -> None:
    conv: Op = ("aten::cudnn_convolution", [[64, 3, 224, 224], [67, 3, 7, 7]], HALF, PLAIN_HALF, 500)
    job = running(conv, OTHER, device=V100)
    assert "alignment" not in [one["rule"] for one in job.all_findings()]


CHAIN = 48


def elementwise() -> Shown:
    """A step of 48 elementwise kernels in a row, as the issue of the guide has it: nothing waits."""

    def step(job: TfGpuJob) -> None:
        for k in range(CHAIN // 2):
            job.op(f"model/mul_{k}/Mul:Mul", EIGEN.format("product"), 100)
            job.op(f"model/add_{k}/AddV2:AddV2", EIGEN.format("sum"), 100)

    return keras(step, waits=False)


def test_a45_memory_bound_ops_in_a_row_are_told_to_be_fused_by_xla() -> None:
    finding = elementwise().told("memory_bound_chain")
    assert finding["cost_ns_per_step"] == pytest.approx(CHAIN * 100 * US, rel=0.01)
    assert "jit_compile=True" in finding["fix"]
    assert "XLA" in elementwise().text()


def test_a46_the_16_bit_policy_fits_the_device() -> None:
    """Compute capability 7.0 has no bfloat16; an A100 has."""
    fix = one_product().told("tensor_cores_unused")["fix"]
    assert 'set_global_policy("mixed_float16")' in fix
    assert "bfloat16" not in fix

    def step(job: TfGpuJob) -> None:
        job.op(MATMUL, SGEMM, 4_000)

    assert 'set_global_policy("mixed_bfloat16")' in keras(step, device=tf_steps.A100).told("tensor_cores_unused")["fix"]


def test_a47_one_change_at_a_time_is_compared_with_the_run_before() -> None:
    profiles = REPOSITORY / "examples" / "profiles"
    told = stepscope("compare", profiles / "simulated_masked_loss_before.json.gz",
                     profiles / "simulated_masked_loss_one.json.gz")  # fmt: skip
    assert "step time" in told
    assert "13.1 ms" in told
    assert "Work in this order, one change at a time" in shown(planted_file("five")).flat


def test_a48_what_16_bits_would_gain_is_predicted_from_an_xplane_without_a_device_name() -> None:
    """A V100 by its clock, cores and memory: 15.7 TFLOP/s in fp32, 125 on tensor cores."""
    finding = one_product().finding("tensor_cores_unused")
    assert finding["saving_ns_per_step"] == pytest.approx(4 * MS * (1 - 15.7 / 125), rel=0.03)


def test_a49_of_memory_bound_products_16_bits_gain_no_more_than_memory_allows() -> None:
    """34.6 MB at 2.04 TB/s take 17 us; the ratio of the peaks would say 6 of 100."""
    op: Op = ("aten::mm", [[64, 4096], [4096, 4096]], ["float"] * 2, SGEMM, 100)
    least = (2 * 64 * 4096 + 4096 * 4096) * 2 / 2039e9 * 1e9
    assert running(op, OTHER).told("tensor_cores_unused")["saving_ns_per_step"] == pytest.approx(
        100 * US - least, abs=2
    )


def test_a50_static_against_dynamic_loss_scaling_is_told() -> None:
    """In every step the host reads whether the gradients are finite, then launches the update."""

    def step(job: TfGpuJob) -> None:
        job.op(MATMUL, GEMM, 4_000)
        with job.range("LossScaleOptimizer/cond/_12:_HostRecv"):
            job.copy("MemcpyD2H", 3, 1, blocks=True, op="LossScaleOptimizer/cond/_12:_HostRecv")
        job.op("LossScaleOptimizer/Adam/update:ResourceApplyAdam", EIGEN.format("sum"), 500, host=800)

    finding = keras(step).told("loss_scaling")
    assert finding["cost_ns_per_step"] > 500 * US
    assert "dynamic=False" in finding["fix"]

    def branch(job: TfGpuJob) -> None:
        with job.range("LossScaleOptimizer/cond:If"):
            job.spend(900)
        job.op("sgd/update:ResourceApplyGradientDescent", EIGEN.format("product"), 500)

    # The time lies between two launches, so it is launching, too: its own cure is told first.
    found = keras(lambda job: job.op(MATMUL, HALF_GEMM, 3_000), branch)
    assert found.rules()[:2] == ["loss_scaling", "launch_bound"]


@pytest.mark.parametrize(("type_", "told"), [("c10::Half", True), ("c10::BFloat16", False)])
def test_a51_a_softmax_in_fp16_is_told_to_be_kept_in_fp32(type_: str, told: bool) -> None:
    kernel = f"void (anonymous namespace)::softmax_warp_forward<{type_}, {type_}, float, 10, false>({type_}*)"
    job = running(("aten::_softmax", [[64, 1024], [], []], [type_, "Scalar", "Scalar"], kernel, 500), device=V100)
    assert ("softmax_in_fp16" in job.notices()) is told


def test_a52_the_levels_of_xla_s_clustering_and_their_memory_are_told() -> None:
    fix = elementwise().told("memory_bound_chain")["fix"]
    assert "--tf_xla_auto_jit=2" in fix
    assert "-1 none" in fix
    assert "memory" in fix


def test_a53_shapes_that_change_are_told_to_make_xla_compile_anew() -> None:
    def step(job: TfGpuJob) -> None:
        job.host("tf.function-graph_building", 1_000)
        job.host("XlaCompile", 2_000)
        with job.function():
            with job.executing():
                job.op(MATMUL, GEMM, 4_000)
            drained(job)

    finding = marked(step).finding("recompilation")
    assert finding["cost_ns_per_step"] == pytest.approx(3 * MS, rel=0.02)
    assert "Pad or bucket inputs to a few fixed shapes" in finding["fix"]
