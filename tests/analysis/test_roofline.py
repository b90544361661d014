"""Where work stands under the roofline, utilisation, and how kernels were launched."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.analysis.facts import Facts
from stepscope.analysis.roofline import Roof, Utilisation, kernel_roofs, op_roofs, utilisation
from tests.diagnosis.loops import CALL, facts_with, loop
from tests.kit.builder import TraceDrawing
from tests.kit.traces import KINETO_TRACES
from tests.support import real_facts

V100 = "Tesla V100-SXM2-16GB"
HALF_GEMM = "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn"
SGEMM = "volta_sgemm_128x128_nn"
RELU = "void at::native::vectorized_elementwise_kernel<4, at::native::Functor<float>, std::array<char*, 2ul>>()"
HALF = ["c10::Half"] * 2

Op = tuple[str, list[Any], list[str], str, int]


def facts_of_ops(*ops: Op, device: str = V100) -> Facts:
    """Steps of ops with one kernel of so many µs each."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        at = start + CALL
        for i, (name, dims, types, kernel, dur) in enumerate(ops):
            drawing.host(name, start + CALL * i, CALL, **{"Input Dims": dims, "Input type": types})
            drawing.kernel(drawing.launch(start + CALL * i, CALL), kernel, at, dur)
            at += dur

    events = loop(CALL + sum(op[4] for op in ops), step)
    return facts_with(events, deviceProperties=[{"id": 0, "name": device}])


def product(size: int, kernel: str, dur: int, types: list[str] = HALF) -> Op:
    return "aten::mm", [[size, size], [size, size]], types, kernel, dur


def roof(*ops: Op, device: str = V100) -> Roof:
    (work,) = facts_of_ops(*ops, device=device).work
    return op_roofs(work)[0].roof


def test_a_large_product_is_bound_by_compute():
    """137 GFLOP in 2 ms is 68.7 of 125 TFLOP/s; 100 MB in 2 ms is 50 of 900 GB/s."""
    found = roof(product(4096, HALF_GEMM, 2_000))
    assert found.flops_share == pytest.approx(2 * 4096**3 / 2e-3 / 125e12)
    assert found.bandwidth_share == pytest.approx(3 * 4096**2 * 2 / 2e-3 / 900e9)
    assert (found.bound, found.matrix_units, found.doubt) == ("compute", True, None)
    assert found.intensity == pytest.approx(4096 / 3)
    assert found.ridge == pytest.approx(125e12 / 900e9)


def test_the_peak_is_that_of_the_format_and_units_used():
    """The same product in fp32 on ordinary lanes is held against 15.7 TFLOP/s."""
    found = roof(product(4096, SGEMM, 10_000, ["float"] * 2))
    assert found.peak_flops == 15_700_000_000_000
    assert found.flops_share == pytest.approx(2 * 4096**3 / 10e-3 / 15.7e12)
    assert not found.matrix_units


def test_elementwise_work_is_bound_by_memory():
    found = roof(("aten::relu", [[4096, 1024]], ["float"], RELU, 42))
    assert found.bandwidth_share == pytest.approx(2 * 4096 * 1024 * 4 / 42e-6 / 900e9)
    assert found.bound == "memory"


def test_small_work_is_bound_by_neither():
    assert roof(product(128, HALF_GEMM, 5)).bound == "neither"


def test_above_the_peak_it_says_so():
    assert "formula or the peak" in (roof(product(4096, HALF_GEMM, 1_000)).doubt or "")
    cached = roof(("aten::relu", [[1024, 1024]], ["float"], RELU, 5))
    assert "caches" in (cached.doubt or "")


def test_without_peaks_nothing_is_said_of_them():
    found = roof(product(4096, HALF_GEMM, 2_000), device="A card of the future")
    assert found.flops_per_s == pytest.approx(2 * 4096**3 / 2e-3)
    assert (found.flops_share, found.bandwidth_share, found.bound, found.ridge) == (None, None, None, None)


def test_only_kernels_that_did_all_of_an_op_have_a_roof():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.host("aten::mm", start, 20, **{"Input Dims": [[64, 64], [64, 64]], "Input type": HALF})
        drawing.kernel(drawing.launch(start, CALL), HALF_GEMM, start + CALL, 100)
        drawing.kernel(drawing.launch(start + CALL, CALL), "splitKreduce_kernel", start + 105, 10)

    (work,) = facts_with(loop(200, step), deviceProperties=[{"id": 0, "name": V100}]).work
    assert kernel_roofs(work) == []
    (op,) = op_roofs(work)
    assert (op.kernel, op.roof.count, op.roof.ns) == (HALF_GEMM, 4, 4 * 110_000)


def mfu(*ops: Op, device: str = V100) -> Utilisation:
    (work,) = facts_of_ops(*ops, device=device).work
    found = utilisation(work)
    assert found is not None
    return found


def test_utilisation_is_ideal_time_over_step_time():
    relu: Op = ("aten::relu", [[4096, 1024]], ["float"], RELU, 995)
    found = mfu(product(4096, HALF_GEMM, 2_000), relu)
    assert found.share == pytest.approx(2 * 4096**3 / 125e12 / 3e-3)
    assert (found.flops, found.counted_share, found.reason) == (4 * 2 * 4096**3, 1.0, None)


def test_each_product_is_held_against_the_peak_of_its_own_format():
    found = mfu(product(4096, HALF_GEMM, 2_000), product(4096, SGEMM, 7_995, ["float"] * 2))
    assert found.share == pytest.approx(2 * 4096**3 * (1 / 125e12 + 1 / 15.7e12) / 10e-3)


@pytest.mark.parametrize(("unknown", "known"), [(110, True), (120, False)])
def test_where_too_little_was_counted_there_is_no_utilisation(unknown: int, known: bool):
    found = mfu(product(1024, HALF_GEMM, 1_000), ("aten::mm", [], [], HALF_GEMM, unknown))
    assert (found.share is not None) is known
    assert (found.reason is None) is known
    assert found.counted_share == pytest.approx(1_000 / (1_000 + unknown))


def test_what_to_record_is_said_only_where_it_was_not():
    without_numbers = mfu(("aten::mm", [], [], HALF_GEMM, 1_000)).reason or ""
    assert "record_shapes" not in without_numbers
    assert without_numbers.endswith("newer ones do")

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.host("aten::mm", start, CALL)
        drawing.kernel(drawing.launch(start, CALL), HALF_GEMM, start + CALL, 1_000)

    (work,) = facts_with(loop(1_000 + CALL, step)).work
    without_shapes = utilisation(work)
    assert without_shapes is not None
    assert (without_shapes.reason or "").endswith("record_shapes=True tells most of them")


def test_without_peaks_there_is_no_utilisation():
    found = mfu(product(1024, HALF_GEMM, 1_000), device="A card of the future")
    assert (found.share, found.reason) == (None, "the device's peaks are not known")


# --- kernels -----------------------------------------------------------------------------------------------


def test_how_kernels_were_launched():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.host("aten::mm", start, 20)
        shape = {"grid": [8, 4, 1], "block": [128, 1, 1], "registers per thread": 90, "shared memory": 49152}
        drawing.kernel(drawing.launch(start, CALL), SGEMM, start + CALL, 100, **shape,
                       **{"est. achieved occupancy %": 0})  # fmt: skip
        drawing.kernel(drawing.launch(start + CALL, CALL), SGEMM, start + 105, 50)

    (use,) = facts_with(loop(200, step)).kernels.uses
    assert (use.count, use.total_ns, use.min_ns, use.max_ns, use.op) == (8, 600_000, 50_000, 100_000, "aten::mm")
    assert (use.shape.grid, use.shape.blocks, use.shape.block) == ((8, 4, 1), 32, (128, 1, 1))
    assert (use.shape.registers, use.shape.shared_memory) == (90, 49152)
    # Kineto writes 0 % where a kernel asks for more shared memory than it looks at.
    assert use.shape.occupancy_pct is None


# --- real traces -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KINETO_TRACES)
def test_no_share_is_above_one_without_a_doubt(name: str):
    for work in real_facts(name).work:
        for one in (*op_roofs(work), *kernel_roofs(work)):
            assert one.roof.doubt or (one.roof.share or 0) <= 1
            assert (one.roof.flops or 0) >= 0
        found = utilisation(work)
        assert found is None or 0 <= found.counted_share <= 1
        assert found is None or found.share is None or 0 <= found.share <= 1


@pytest.mark.real
def test_a_language_model_by_hand():
    """Qwen1.5-0.5B over 16 x 559 tokens: 24 layers of 4 square projections, three of 1024 x 2816, causal attention and
    the rotary angles. The head is not among them: only hidden states were asked for.
    """
    (work,) = real_facts("kineto/h100_qwen05b.json.gz").work
    tokens, width, inner = 16 * 559, 1024, 2816
    layer = 2 * tokens * width * (4 * width + 3 * inner)
    attention = 2 * 16 * 16 * (559 * 560 // 2) * (64 + 64)
    rotary = 2 * 32 * 559
    found = utilisation(work)
    assert found is not None
    assert found.flops == 24 * (layer + attention) + rotary
    seen = {op.name: op.roof for op in op_roofs(work)}
    assert seen["aten::mm"].bound == "compute"
