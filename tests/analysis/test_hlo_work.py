"""What programs say of ops reaches the kernels that ran: once per execution, under the roof of what they compute."""

from __future__ import annotations

import json

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.facts import Facts
from stepscope.analysis.roofline import OpRoof, op_roofs, utilisation
from stepscope.formats.xplane import read as xplane
from stepscope.inputs.source import Source
from stepscope.trace.trace import Trace
from tests.formats.xplane.xplane_files import US, read
from tests.kit.hlo import dot_numbers, op, program
from tests.kit.traces import real_trace
from tests.kit.xplanes import Ev, Plane, Unsigned, line, space

GEMM = json.dumps({"gemm_backend_config": {"dot_dimension_numbers": {
    "lhs_contracting_dimensions": ["1"], "rhs_contracting_dimensions": ["0"]}}})  # fmt: skip
A, B = op("a", "parameter", "bf16[4096,4096]"), op("b", "parameter", "bf16[4096,4096]", more=((9, 1),))
PRODUCT = op("gemm.1", "custom-call", "(bf16[4096,4096], s8[64])", "a", "b",
             more=((28, "__cublas$gemm"), (43, GEMM)))  # fmt: skip
FLOPS, BYTES = 2 * 4096**3, 3 * 2 * 4096**2


def gpu(proto: bytes, *kernels: tuple[str, str, int], name: str = "NVIDIA A100-SXM4-80GB") -> Trace:
    """A device that ran kernels (name, op, duration in µs) of one program one behind the other, in one step."""
    events, launches, at = [], [], 100
    for number, (kernel, instruction, took) in enumerate(kernels, 1):
        stats = {"hlo_op": instruction, "hlo_module": "jit_f", "program_id": 1, "correlation_id": Unsigned(number)}
        events.append(Ev(kernel, at * US, took * US, stats))
        launches.append(Ev("cuLaunchKernel", number * US, US // 2, {"correlation_id": Unsigned(number)}))
        at += took
    device = Plane(
        "/device:GPU:0",
        (line("Stream #7(Kernel)", *events, id=7),),
        {"device_vendor": "Nvidia", "gpu_device_name": name, "compute_cap_major": 8, "compute_cap_minor": 0},
    )
    host = Plane("/host:CPU", (line("python", Ev("train", 0, at * US, {"_r": 1, "step_num": 1}), *launches, id=1),))
    metadata = Plane("/host:metadata", shared={"jit_f(1)": {"Hlo Proto": proto}}, extra_names=("jit_f(1)",))
    return read(space(device, host, metadata))


def roofs(trace: Trace) -> dict[str, OpRoof]:
    return {one.name: one for work in analyse(trace).work for one in op_roofs(work)}


def test_kernels_of_one_execution_share_its_cost() -> None:
    neg = op("neg", "negate", "bf16[4096,4096]", "a")
    runs = [("split", "gemm.1", 10), ("main", "gemm.1", 90), ("neg", "neg", 20)] * 3
    found = roofs(gpu(program(A, B, PRODUCT, neg), *runs))
    roof = found["gemm.1"].roof
    assert (found["gemm.1"].kernel, found["gemm.1"].dims) == ("main", "bf16[4096,4096], bf16[4096,4096]")
    assert (roof.count, roof.ns, roof.flops, roof.bytes) == (3, 300_000, 3 * FLOPS, 3 * BYTES)
    assert found["neg"].roof.flops == 3 * 4096**2


def test_a_kernel_that_runs_twice_in_one_execution_does_not_make_two() -> None:
    neg = op("neg", "negate", "bf16[4096,4096]", "a")
    runs = [("main", "gemm.1", 50), ("main", "gemm.1", 50), ("neg", "neg", 20)] * 2
    assert roofs(gpu(program(A, B, PRODUCT, neg), *runs))["gemm.1"].roof.count == 2


def test_executions_of_a_program_of_one_op_are_told_by_their_first_kernel() -> None:
    runs = [("split", "gemm.1", 10), ("main", "gemm.1", 90)] * 4
    assert roofs(gpu(program(A, B, PRODUCT), *runs))["gemm.1"].roof.count == 4


def test_an_op_of_a_loop_counts_each_time() -> None:
    loop = op("w", "while", "bf16[4096,4096]", "a", calls=("body",))
    runs = [("neg", "inner", 20)] * 5 + [("other", "a", 1)]
    body = [op("p", "parameter", "bf16[4096,4096]"), op("inner", "negate", "bf16[4096,4096]", "p")]
    proto = program(A, loop, body=body)
    assert roofs(gpu(proto, *runs))["inner"].roof.count == 5


def test_a_product_stands_under_the_matrix_roof_whatever_its_kernel_is_called() -> None:
    dot = op("dot.1", "dot", "bf16[4096,4096]", "a", "b", more=(dot_numbers((1,), (0,)),))
    found = roofs(gpu(program(A, B, dot), ("some_kernel_7", "dot.1", 1000)))["dot.1"].roof
    assert (found.matrix_units, found.precision) == (True, "bf16")
    assert found.flops_share == pytest.approx(FLOPS / 1e-3 / 312e12, rel=1e-6)
    assert found.bound == "neither"


def test_utilisation_counts_products_and_knows_that_the_rest_has_none() -> None:
    neg = op("neg", "negate", "bf16[4096,4096]", "a")
    (work,) = analyse(gpu(program(A, B, PRODUCT, neg), ("k1", "gemm.1", 1000), ("k2", "neg", 1000))).work
    found = utilisation(work)
    assert found is not None
    assert (found.flops, found.counted_share, found.reason) == (FLOPS, 1.0, None)


def test_an_unknown_call_takes_the_utilisation_with_it() -> None:
    call = op("mine", "custom-call", "bf16[4096,4096]", "a", more=((28, "my_kernel"),))
    (work,) = analyse(gpu(program(A, B, PRODUCT, call), ("k1", "gemm.1", 1000), ("k2", "mine", 9000))).work
    found = utilisation(work)
    assert found is not None
    assert (found.counted_share, found.share) == (pytest.approx(0.1), None)
    assert {one.name: one.roof.flops for one in op_roofs(work)}["mine"] is None


def test_what_the_profile_says_of_an_op_counts_before_its_program() -> None:
    name = "%neg = f32[8]{0} negate(f32[8]{0} %p)"
    told = {name: {"hlo_category": "elementwise", "flops": 77, "bytes_accessed": 99}}
    chip = Plane(
        "/device:TPU:0",
        (line("XLA Modules", Ev("jit_f(1)", 0, 50 * US), id=1), line("XLA Ops", Ev(name, 0, 50 * US), id=2)),
        shared=told,
        shown={name: "neg"},
    )
    proto = program(op("p", "parameter", "f32[8]"), op("neg", "negate", "f32[8]", "p"))
    metadata = Plane("/host:metadata", shared={"jit_f(1)": {"Hlo Proto": proto}}, extra_names=("jit_f(1)",))
    host = Plane("/host:CPU", (line("python", Ev("train", 0, 60 * US, {"_r": 1, "step_num": 1}), id=1),))
    roof = roofs(read(space(chip, metadata, host)))["neg"].roof
    assert (roof.flops, roof.bytes) == (77, 99)


@pytest.mark.real
def test_the_convolution_of_a_real_profile() -> None:
    facts: Facts = analyse(xplane.read(Source(real_trace("xplane/mi300_jax_conv.xplane.pb"))))
    found = {one.name: one for work in facts.work for one in op_roofs(work)}["cudnn-conv.1.0"]
    assert (found.roof.flops or 0) / found.roof.count == 32_715_571_200  # as XProf counts one execution
    assert found.roof.flops_per_s == pytest.approx(106e12, rel=0.01)


@pytest.mark.real
def test_the_products_of_a_real_profile() -> None:
    facts: Facts = analyse(xplane.read(Source(real_trace("xplane/mi300_jax_attention.xplane.pb"))))
    found = {one.name: one for one in op_roofs(facts.work[0])}["gemm_fusion_dot_general.1"].roof
    # XProf: 286.65 TFLOP/s and 1433.88 GiB/s over all three steps, of which one is set apart here as a slow one.
    assert found.flops_per_s == pytest.approx(286.65e12, rel=0.03)
    assert found.bytes_per_s == pytest.approx(1433.88 * (1 << 30), rel=0.03)
    assert (found.flops or 0) / (found.bytes or 1) == pytest.approx(286.65e12 / (1433.88 * (1 << 30)), rel=1e-3)
