"""What instructions of compiled programs cost: every number here is worked out by hand."""

from __future__ import annotations

import doctest
import json

import pytest

from stepscope.analysis.costs.call import CostKind
from stepscope.analysis.hlo import libraries
from stepscope.analysis.hlo.costs import HloCost, ProgramCosts
from stepscope.hlo.program import read_program
from tests.kit.hlo import Op, channels_first, dot_numbers, op, program, window
from tests.kit.wire import Value


def cost(name: str, *ops: Op, **computations: list[Op]) -> HloCost:
    costs = ProgramCosts(read_program(program(*ops, **computations)))
    return costs.of(costs.program.by_name[name])


def take(*shapes: str) -> list[Op]:
    return [op(f"p{at}", "parameter", shape, more=((9, at),)) for at, shape in enumerate(shapes)]


def one(opcode: str, result: str, *shapes: str, more: tuple[tuple[int, Value], ...] = (),
        calls: tuple[str, ...] = (), **computations: list[Op]) -> HloCost:  # fmt: skip
    taken = take(*shapes)
    made = op("it", opcode, result, *(other.name for other in taken), more=more, calls=calls)
    return cost("it", *taken, made, **computations)


def config(**values: object) -> tuple[int, str]:
    return 43, json.dumps(values)


ADD = [*take("f32[]", "f32[]"), op("sum", "add", "f32[]", "p0", "p1")]


def test_a_product_takes_two_operations_per_element_and_index_summed_over() -> None:
    found = one("dot", "bf16[4,8,32]", "bf16[4,8,16]", "bf16[4,16,32]", more=(dot_numbers((2,), (1,)),))
    assert found == HloCost(CostKind.GEMM, 2 * 4 * 8 * 32 * 16, 2 * (4 * 8 * 16 + 4 * 16 * 32 + 4 * 8 * 32))


def test_padding_of_a_convolution_is_not_multiplied() -> None:
    more = (window((3, 1, 1, 1)), channels_first(1))
    found = one("convolution", "f32[2,5,4]", "f32[2,3,4]", "f32[5,3,3]", more=more)
    assert found.flops == 2 * 2 * 3 * 5 * (3 + 4 + 3)  # of three taps the outer ones meet padding once
    whole = one("convolution", "f32[2,5,2]", "f32[2,3,4]", "f32[5,3,3]", more=(window((3, 1, 0, 0)), channels_first(1)))
    assert whole.flops == 2 * 2 * 3 * 5 * (3 * 2)


def test_groups_divide_a_convolution() -> None:
    more = (window((1, 1, 0, 0)), channels_first(1), (50, 4))
    assert one("convolution", "f32[1,8,6]", "f32[1,8,6]", "f32[8,2,1]", more=more).flops == 2 * 2 * 8 * 6


def test_strides_and_dilation() -> None:
    more = (window((2, 2, 0, 0)), channels_first(1))
    assert one("convolution", "f32[1,1,3]", "f32[1,1,6]", "f32[1,1,2]", more=more).flops == 2 * 2 * 3


def test_elementwise_ops_and_those_that_only_move() -> None:
    assert one("tanh", "f32[8]", "f32[8]") == HloCost(CostKind.ELEMENTWISE, 8, 64)
    assert one("transpose", "f32[8]", "f32[8]") == HloCost(CostKind.COPY, 0, 64)
    assert one("bitcast", "f32[8]", "f32[8]") == HloCost(CostKind.COPY, 0, 0)


def test_a_reduction_applies_its_computation_to_every_element_that_goes() -> None:
    assert one("reduce", "f32[4]", "f32[4,16]", "f32[]", calls=("sum",), sum=ADD) == HloCost(
        CostKind.REDUCTION, 60, 4 * (64 + 1 + 4)
    )


def test_slices_and_updates_in_place_move_what_they_touch() -> None:
    assert one("slice", "f32[2]", "f32[1000]").bytes == 16
    assert one("dynamic-slice", "f32[2]", "f32[1000]", "s32[]").bytes == 20
    assert one("dynamic-update-slice", "f32[1000]", "f32[1000]", "f32[2]", "s32[]").bytes == 20


def test_a_fusion_is_the_sum_of_what_it_holds_and_moves_its_operands_and_results_once() -> None:
    inside = [*take("f32[8]", "f32[8]"), op("a", "add", "f32[8]", "p0", "p1"), op("b", "multiply", "f32[8]", "a", "p0")]
    assert one("fusion", "f32[8]", "f32[8]", "f32[8]", calls=("f",), f=inside) == HloCost(CostKind.ELEMENTWISE, 16, 96)


def test_a_fusion_reads_only_the_slice_it_takes_and_writes_only_what_it_updates() -> None:
    inside = [
        *take("f32[1000]", "f32[4]", "s32[]"),
        op("part", "dynamic-slice", "f32[4]", "p0", "p2"),
        op("sum", "add", "f32[4]", "part", "p1"),
        op("out", "dynamic-update-slice", "f32[1000]", "p0", "sum", "p2"),
    ]
    found = one("fusion", "f32[1000]", "f32[1000]", "f32[4]", "s32[]", calls=("f",), f=inside)
    assert found.bytes == 16 + 16 + 4 + 16


def test_a_fused_product_is_a_product() -> None:
    inside = [
        *take("bf16[8,16]", "bf16[16,4]"),
        op("dot", "dot", "f32[8,4]", "p0", "p1", more=(dot_numbers((1,), (0,)),)),
        op("out", "convert", "bf16[8,4]", "dot"),
    ]
    found = one("fusion", "bf16[8,4]", "bf16[8,16]", "bf16[16,4]", calls=("f",), f=inside)
    assert (found.kind, found.flops) == (CostKind.GEMM, 2 * 8 * 4 * 16 + 32)


BODY = [*take("f32[8]"), op("next", "add", "f32[8]", "p0", "p0")]


def test_a_loop_is_its_body_as_often_as_the_compiler_knows() -> None:
    known = one("while", "f32[8]", "f32[8]", calls=("b",), b=BODY, more=(config(known_trip_count={"n": "5"}),))
    assert known == HloCost(CostKind.ELEMENTWISE, 40, 5 * 96)
    assert one("while", "f32[8]", "f32[8]", calls=("b",), b=BODY) == HloCost(
        CostKind.ELEMENTWISE, None, None, "a loop of unknown trips"
    )


def gemm(**more: object) -> tuple[int, str]:
    numbers = {"lhs_contracting_dimensions": ["1"], "rhs_contracting_dimensions": ["0"]}
    return config(gemm_backend_config={"dot_dimension_numbers": numbers, **more})


@pytest.mark.parametrize("target", ["__cublas$gemm", "__cublas$lt$matmul", "__cublas$lt$matmul$f8"])
def test_products_of_libraries_leave_their_workspace_out(target: str) -> None:
    found = one("custom-call", "(bf16[8,4], s8[4096])", "bf16[8,16]", "bf16[16,4]", more=((28, target), gemm()))
    assert found == HloCost(CostKind.GEMM, 2 * 8 * 4 * 16, 2 * (8 * 16 + 16 * 4 + 8 * 4))


def test_the_product_of_untold_layouts() -> None:
    target = (28, "__onednn$matmul")
    assert one("custom-call", "f32[3,8,4]", "f32[3,8,16]", "f32[3,4,16]", more=(target,)).flops == 2 * 3 * 8 * 4 * 16
    assert one("custom-call", "f32[8,4]", "f32[8,15]", "f32[16,4]", more=(target,)).flops is None


@pytest.mark.parametrize(("target", "result", "taken"), [
    ("__cudnn$convForward", "f32[2,5,4]", ("f32[2,3,4]", "f32[5,3,3]")),
    ("__cudnn$convBackwardInput", "f32[2,3,4]", ("f32[2,5,4]", "f32[5,3,3]")),
    ("__cudnn$convBackwardFilter", "f32[5,3,3]", ("f32[2,3,4]", "f32[2,5,4]")),
])  # fmt: skip
def test_a_convolution_and_its_gradients_take_the_same(target: str, result: str, taken: tuple[str, ...]) -> None:
    more = ((28, target), window((3, 1, 1, 1)), channels_first(1))
    found = one("custom-call", f"({result}, u8[77])", *taken, more=more)
    assert (found.kind, found.flops) == (CostKind.CONVOLUTION, 2 * 2 * 3 * 5 * 10)


def fmha(mask: str, **more: object) -> tuple[int, str]:
    shape = {"dimensions": ["2", "3", "8", "8"]}
    return config(cudnn_fmha_backend_config={"intermediate_tensor_shape": shape, "mask_type": mask, **more})


@pytest.mark.parametrize(("target", "decided", "flops"), [
    ("__cudnn$fmhaSoftmax", fmha("NO_MASK"), 2 * 6 * 64 * (16 + 16)),
    ("__cudnn$fmhaSoftmax", fmha("CAUSAL", sliding_window_length=0), 2 * 6 * 36 * (16 + 16)),
    ("__cudnn$fmhaScaleBiasSoftmaxBackward", fmha("NO_MASK"), 2 * 6 * 64 * 5 * 16),
    ("__cudnn$fmhaSoftmax", fmha("PADDING"), None),
    ("__cudnn$fmhaSoftmax", fmha("CAUSAL", sliding_window_length=4), None),
])  # fmt: skip
def test_fused_attention_of_cudnn(target: str, decided: tuple[int, str], flops: int | None) -> None:
    q = "bf16[2,8,3,16]"
    found = one("custom-call", "(bf16[2,3,8,16], f32[2,3,8])", q, q, q, more=((28, target), decided))
    assert (found.kind, found.flops) == (CostKind.ATTENTION, flops)
    assert found.unknown == (None if flops else target)


@pytest.mark.parametrize(("mask", "share"), [(0, 64), (2, 36), (1, None), (3, None)])
def test_fused_attention_of_transformer_engine(mask: int, share: int | None) -> None:
    said = (
        f"{{attn_heads = 3 : i64, head_dim = 16 : i64, input_batch = 2 : i64, is_training = true, "
        f"kv_max_seqlen = 8 : i64, mask_type = {mask} : i64, q_max_seqlen = 8 : i64, window_size_left = -1 : i64}}"
    )
    target = "te_fused_attn_forward_ffi"
    found = one("custom-call", "(bf16[2,8,3,16], u8[9])", "bf16[2,8,3,16]", more=((28, target), (43, said)))
    assert found.flops == (None if share is None else 2 * 6 * share * 32)


def test_a_call_that_nobody_knows_is_named_and_never_nothing() -> None:
    found = one("custom-call", "f32[8]", "f32[8]", more=((28, "my_kernel"),))
    assert found == HloCost(CostKind.COMPILED, None, None, "my_kernel")
    inside = [*take("f32[8]"), op("k", "custom-call", "f32[8]", "p0", more=((28, "my_kernel"),))]
    fused = one("fusion", "f32[8]", "f32[8]", calls=("f",), f=inside)
    assert (fused.flops, fused.unknown) == (None, "my_kernel")
    assert one("brand-new-op", "f32[8]", "f32[8]").unknown == "brand-new-op"


def test_damage_is_told_and_never_counted() -> None:
    endless = [op("again", "call", "f32[8]", calls=("f",))]
    assert one("call", "f32[8]", calls=("f",), f=endless).flops is None
    assert one("exponential", "f32[99999999,99999999,99]", "f32[8]").flops is None
    assert one("dot", "f32[8]", more=(dot_numbers((7,), ()),)).flops is None
    assert one("custom-call", "f32[8]", "f32[8]", more=((28, "__cublas$gemm"), (43, "{not json"))).flops is None


def test_doctests() -> None:
    assert doctest.testmod(libraries).failed == 0
