"""Attention as ops of its own, forward and backward: what it is recognised by, and what a fused kernel would take."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.diagnosis.finding import Diagnosis, Finding
from tests.diagnosis.loops import CALL, diagnosed, loop, rules
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event

US = 1_000
A100 = {"deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "computeMajor": 8, "computeMinor": 0}]}
B, H, L, D = 8, 12, 1024, 64
SCORES, FLAT = [B, H, L, L], [B * H, L, L]
HALF, FLOAT = "c10::Half", "float"
GEMM = "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_nn"
SGEMM = "ampere_sgemm_128x64_nn"
POINTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::Functor<c10::Half>, char*>()"

Op = tuple[str, list[Any], str, int]
"""Name, shapes, kernel and its duration in µs."""
OTHER: Op = ("aten::custom", [], "mystery_kernel", 3_000)


def product(left: list[int], right: list[int], dur: int = 300, name: str = "aten::bmm") -> Op:
    return name, [left, right], GEMM, dur


def forward(middle: list[Op] | None = None, dur: int = 1_000) -> list[Op]:
    """Scores, scaled and masked, softmax, dropout, and the product with the values."""
    between: list[Op] = [
        ("aten::div", [SCORES, []], POINTWISE, dur),
        ("aten::add", [SCORES, [B, 1, 1, L]], POINTWISE, dur),
    ]
    return [
        product([B * H, L, D], [B * H, D, L]),
        *(between if middle is None else middle),
        ("aten::_softmax", [SCORES, [], []], "void softmax_warp_forward<c10::Half>()", dur),
        ("aten::native_dropout", [SCORES, [], []], POINTWISE, dur),
        product([B * H, L, L], [B * H, L, D]),
    ]


BACKWARD: list[Op] = [
    product([B * H, L, L], [B * H, L, D]),
    product([B * H, L, D], [B * H, D, L]),
    ("aten::native_dropout_backward", [SCORES, SCORES, []], POINTWISE, 1_000),
    ("aten::_softmax_backward_data", [SCORES, SCORES, [], []], "void softmax_warp_backward<c10::Half>()", 1_000),
    ("aten::div", [SCORES, []], POINTWISE, 1_000),
    product([B * H, L, L], [B * H, L, D]),
    product([B * H, D, L], [B * H, L, L]),
]


def stepping(*ops: Op, type_: str = HALF, shapes: bool = True, values: str = "", inside: str = "") -> list[Event]:
    """Steps of these ops, each one kernel, one after another."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        at = start + CALL
        if inside:
            drawing.host(inside, start, CALL * len(ops))
        for i, (name, dims, kernel, dur) in enumerate(ops):
            told: dict[str, Any] = {}
            if shapes:
                types = [type_ if shape else "Scalar" for shape in dims]
                told = {"Input Dims": dims, "Input type": types}
                if values and "_softmax" in name:
                    told["Concrete Inputs"] = ["", values, ""]
            drawing.host(name, start + CALL * i, CALL, **told)
            drawing.kernel(drawing.launch(start + CALL * i, CALL), kernel, at, dur)
            at += dur

    return loop(CALL + sum(op[3] for op in ops), step)


def the(diagnosis: Diagnosis) -> Finding:
    (finding,) = [one for one in (*diagnosis.findings, *diagnosis.minor) if one.rule == "attention_unfused"]
    return finding


def test_a_fused_kernel_moves_no_scores_and_computes_as_fast_as_the_fastest_product():
    """25.8 GFLOP at 43 TFLOP/s (12.9 in 300 µs) are 600 µs; the operands' 50 MB would move in 27."""
    found = diagnosed(stepping(*forward(), OTHER), A100)
    finding = the(found)
    assert rules(found)[0] == "attention_unfused"
    assert finding.cost_ns_per_step == 4_600 * US
    assert finding.saving_ns_per_step == pytest.approx(4_000 * US, rel=0.001)
    assert "96 × 1024 × 1024 scores in fp16, heads of 64, forward (1 per step)" in finding.why
    assert "43 TFLOP/s in fp16" in finding.why
    assert "do not add up" not in finding.why
    assert "scaled_dot_product_attention" in finding.fix
    assert "up to 256" in finding.fix


def test_what_must_still_move_bounds_it():
    """Few queries: the keys and values of 96 heads are 201 MB, 110 µs at nine tenths of 2.04 TB/s."""
    shapes = {"scores": [B, H, 4, 8192], "flat": [B * H, 4, 8192]}
    ops: list[Op] = [
        product([B * H, 4, D], [B * H, D, 8192], 100),
        ("aten::_softmax", [shapes["scores"], [], []], "softmax_kernel", 500),
        product(shapes["flat"], [B * H, 8192, D], 100),
    ]
    fast = ("aten::mm", [[4096, 4096], [4096, 4096]], GEMM, 600)
    finding = the(diagnosed(stepping(*ops, fast, OTHER), A100))
    moved = 2 * B * H * (4 * D + 8192 * D * 2 + 4 * D)
    assert finding.saving_ns_per_step == pytest.approx(700 * US - moved / (0.9 * 2039e9) * 1e9, rel=0.001)


def test_backward_computes_the_scores_again():
    """2.5 times the products of forward: 64 GFLOP at 43 TFLOP/s are 1,500 µs of 4,200."""
    finding = the(diagnosed(stepping(*BACKWARD, OTHER), A100))
    assert finding.cost_ns_per_step == 4_200 * US
    assert finding.saving_ns_per_step == pytest.approx(2_700 * US, rel=0.001)
    assert "heads of 64, backward (1 per step)" in finding.why


def test_forward_and_backward_are_one_finding_and_no_chain_claims_their_time():
    found = diagnosed(stepping(*forward(), *BACKWARD, OTHER), A100)
    assert the(found).cost_ns_per_step == 8_800 * US
    assert "memory_bound_chain" not in rules(found)


def test_time_that_narrower_numbers_would_save_too_is_not_claimed_twice():
    ops = [(name, dims, SGEMM if kernel is GEMM else kernel, 4 * dur) for name, dims, kernel, dur in forward()]
    found = diagnosed(stepping(*ops, type_=FLOAT), A100)
    first, *later = (*found.findings, *found.minor)
    assert first.rule == "attention_unfused"
    assert "do not add up" in first.why
    assert {one.rule for one in later} >= {"tensor_cores_unused", "tf32_off"}
    left = [one.saving_after_ns_per_step for one in later if one.saving_ns_per_step]
    assert None not in left
    assert (first.saving_ns_per_step or 0) + sum(one or 0 for one in left) <= sum(op[3] for op in ops) * US


@pytest.mark.parametrize(
    "ops",
    [
        [forward()[0], *forward()[3:5]],
        forward()[1:],
        [("aten::mm", [[L, D], [D, L]], GEMM, 300), ("aten::_softmax", [[L, L], [], []], "softmax", 900),
         ("aten::mm", [[L, L], [L, D]], GEMM, 300)],
        [forward()[0], ("aten::_softmax", [[B, H, L, 77], [], []], "softmax", 900), forward()[-1]],
        [forward()[0], *[OTHER] * 20, *forward()[3:]],
    ],
    ids=["no second product", "no first product", "one head, as a classifier", "other sizes", "far apart"],
)  # fmt: skip
def test_what_is_no_attention(ops: list[Op]):
    found = diagnosed(stepping(*ops, OTHER), A100)
    assert "attention_unfused" not in {one.rule for one in (*found.findings, *found.minor)}


@pytest.mark.parametrize(("dim", "said"), [("-1", True), ("3", True), ("1", False)])
def test_a_softmax_over_another_dimension_is_no_attention(dim: str, said: bool):
    assert ("attention_unfused" in rules(diagnosed(stepping(*forward(), OTHER, values=dim), A100))) is said


def test_without_shapes_it_is_found_by_names_and_nothing_is_promised():
    finding = the(diagnosed(stepping(*forward(), OTHER, shapes=False), A100))
    assert (finding.cost_ns_per_step, finding.saving_ns_per_step) == (4_600 * US, None)
    assert "record_shapes=True" in (finding.not_determined or "")


def test_names_alone_tell_nothing_where_another_op_stands_between():
    first, *rest = forward()
    found = diagnosed(stepping(first, OTHER, *rest, OTHER, shapes=False), A100)
    assert "attention_unfused" not in rules(found)


def test_an_op_belongs_to_one_attention_alone():
    """By names alone the two softmaxes between one pair of products are one site, not two of the same kernels."""
    first, *rest = forward()
    twice = ("aten::_softmax", [], "softmax_kernel", 1_000)
    finding = the(diagnosed(stepping(first, twice, *rest, OTHER, shapes=False), A100))
    assert finding.cost_ns_per_step == 5_600 * US


def test_without_peaks_nothing_is_promised():
    unknown = {"deviceProperties": [{"id": 0, "name": "A card of the future"}]}
    finding = the(diagnosed(stepping(*forward(), OTHER), unknown))
    assert finding.saving_ns_per_step is None
    assert "peaks" in (finding.not_determined or "")


def test_where_no_fused_kernel_exists_nothing_is_said():
    double = "cutlass_80_tensorop_d884gemm_64x32_16x4_nn_align1"
    ops = [(name, dims, double if kernel is GEMM else kernel, dur) for name, dims, kernel, dur in forward()]
    assert "attention_unfused" not in rules(diagnosed(stepping(*ops, OTHER, type_="double"), A100))


def test_the_fused_op_that_falls_back_is_told_why_it_may():
    events = stepping(*forward(), OTHER, inside="aten::_scaled_dot_product_attention_math")
    assert "none of its fused kernels fits" in the(diagnosed(events, A100)).fix


@pytest.mark.parametrize(("name", "said", "not_said"), [
    ("NVIDIA A100-SXM4-80GB", "from Ampere on", "ROCm"), ("AMD Instinct MI300X", "ROCm", "Ampere"),
])  # fmt: skip
def test_limits_are_those_of_the_device_at_hand(name: str, said: str, not_said: str):
    plain = stepping(*forward(), OTHER)
    fallen = stepping(*forward(), OTHER, inside="aten::_scaled_dot_product_attention_math")
    for events in (plain, fallen):
        fix = the(diagnosed(events, {"deviceProperties": [{"id": 0, "name": name}]})).fix
        assert said in fix
        assert not_said not in fix
