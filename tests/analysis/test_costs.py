"""What ops cost by their recorded shapes: worked by hand, and null wherever a fact is missing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stepscope.analysis.costs.attribute import KINDS, op_costs, owners
from stepscope.analysis.costs.call import Cost
from stepscope.analysis.costs.table import cost_of
from stepscope.analysis.hlo.programs import TracePrograms
from stepscope.trace.tables import NULL
from tests.kit.builder import TraceDrawing
from tests.support import facts_of

F, H = "float", "c10::BFloat16"


def cost(name: str, dims: list[Any], types: list[str] | str = F, values: list[str] | None = None) -> Cost | None:
    types = [types] * len(dims) if isinstance(types, str) else types
    return cost_of(name, json.dumps(dims), json.dumps(types), None if values is None else json.dumps(values))


def numbers(name: str, dims: list[Any], types: list[str] | str = F, values: list[str] | None = None) -> tuple[Any, Any]:
    found = cost(name, dims, types, values)
    assert found is not None, name
    return found.flops, found.bytes


@pytest.mark.parametrize(
    ("name", "dims", "types", "flops", "elements"),
    [
        ("aten::mm", [[8, 16], [16, 4]], F, 2 * 8 * 16 * 4, 128 + 64 + 32),
        ("aten::bmm", [[3, 8, 16], [3, 16, 4]], F, 3 * 2 * 8 * 16 * 4, 3 * (128 + 64 + 32)),
        ("aten::addmm", [[4], [8, 16], [16, 4], [], []], [F, F, F, "Scalar", "Scalar"], 1024, 4 + 128 + 64 + 32),
        ("aten::baddbmm", [[3, 8, 4], [3, 8, 16], [3, 16, 4]], F, 3072, 3 * (32 + 128 + 64 + 32)),
        ("aten::linear", [[5, 8, 16], [4, 16], [4]], F, 5 * 1024, 640 + 64 + 4 + 160),
        ("aten::linear", [[5, 8, 16], [4, 16], []], [F, F, ""], 5 * 1024, 640 + 64 + 160),
        ("aten::matmul", [[7, 1, 8, 16], [3, 16, 4]], F, 21 * 1024, 7 * 128 + 3 * 64 + 21 * 32),
        ("aten::matmul", [[16], [16, 4]], F, 128, 16 + 64 + 4),
        ("aten::mv", [[8, 16], [16]], F, 256, 128 + 16 + 8),
        # An out= tensor is written, not read: it stands behind the inputs.
        ("aten::mm", [[8, 16], [16, 4], [8, 4]], F, 1024, 128 + 64 + 32),
        ("aten::mul", [[8, 16], [16]], F, 128, 128 + 16 + 128),
        ("aten::mul", [[8, 16], [1], [8, 16]], F, 128, 128 + 1 + 128),
        ("aten::add_", [[8, 16], [8, 16], []], [F, F, "Scalar"], 128, 3 * 128),
        ("aten::native_layer_norm", [[8, 16], [], [16], [16], []], [F, "ScalarList", F, F, "Scalar"], 8 * 128, 256),
        ("aten::_softmax", [[8, 16], [], []], [F, "Scalar", "Scalar"], 5 * 128, 256),
        ("aten::_softmax_backward_data", [[8, 16], [8, 16], [], []], [F, F, "Scalar", "Scalar"], 512, 3 * 128),
    ],
)
def test_by_hand(name: str, dims: list[Any], types: Any, flops: int, elements: int):
    assert numbers(name, dims, types) == (flops, 4 * elements)


def test_sixteen_bits_move_half_the_bytes():
    assert numbers("aten::mm", [[8, 16], [16, 4]], H) == (1024, 2 * 224)


def test_a_number_beside_a_tensor_does_not_widen_the_result():
    """A Python float is recorded as a tensor of no dimensions and type double."""
    assert numbers("aten::mul", [[8, 16], []], [H, "double"]) == (128, 2 * 128 + 8 + 2 * 128)


def test_scaled_products_write_the_type_they_were_asked_for():
    dims: list[Any] = [[16, 32], [32, 48], [], [], [], [], [], []]
    types = ["c10::Float8_e4m3fn"] * 2 + [F, F, "", "", "Scalar", "Scalar"]
    values = ["", "", "", "", "", "", "15", "False"]
    assert numbers("aten::_scaled_mm", dims, types, values) == (2 * 16 * 32 * 48, 512 + 1536 + 2 * 768)
    assert numbers("aten::_scaled_mm", dims, types) == (2 * 16 * 32 * 48, None)


CONV_TYPES = [F, F, F, "ScalarList", "ScalarList", "ScalarList", "Scalar"]


def conv(stride: str, padding: str, dilation: str, weight: list[int], groups: str = "1") -> tuple[Any, Any]:
    dims: list[Any] = [[2, 8, 16, 16], weight, [16], [], [], [], []]
    return numbers("aten::conv2d", dims, CONV_TYPES, ["", "", "", stride, padding, dilation, groups])


def test_convolutions():
    """Stride, padding, dilation and groups, by the output's size."""
    assert conv("[1, 1]", "[1, 1]", "[1, 1]", [16, 8, 3, 3])[0] == 2 * 2 * 256 * 16 * 8 * 9
    assert conv("[2, 2]", "[1, 1]", "[1, 1]", [16, 8, 3, 3])[0] == 2 * 2 * 64 * 16 * 8 * 9
    assert conv("[1]", "[0]", "[2]", [16, 8, 3, 3])[0] == 2 * 2 * 144 * 16 * 8 * 9
    assert conv("[1, 1]", "[1, 1]", "[1, 1]", [16, 2, 3, 3], "4")[0] == 2 * 2 * 256 * 16 * 2 * 9


def test_what_a_stride_skips_is_not_moved():
    assert conv("[2, 2]", "[0, 0]", "[1, 1]", [16, 8, 1, 1])[1] == 4 * (2 * (8 * 64 + 16 * 64) + 16 * 8 + 16)


def test_backward_of_a_convolution_counts_the_gradients_that_were_asked_for():
    dims: list[Any] = [[2, 16, 16, 16], [2, 8, 16, 16], [16, 8, 3, 3], [], [], [], [], [], [], [], []]
    types = [F, F, F, *["ScalarList"] * 4, "Scalar", "ScalarList", "Scalar", "ScalarList"]
    once = 2 * 2 * 256 * 16 * 8 * 9

    def flops(mask: str) -> int | None:
        values = ["", "", "", "[16]", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1", mask]
        return numbers("aten::convolution_backward", dims, types, values)[0]

    assert flops("[True, True, True]") == 2 * once
    assert flops("[False, True, False]") == once
    assert cost("aten::convolution_backward", dims, types) is None


def test_a_transposed_convolution_works_at_each_position_of_its_input():
    dims: list[Any] = [[2, 16, 8, 8], [16, 4, 2, 2], [], [], [], [], [], [], []]
    types = [F, F, "", *["ScalarList"] * 3, "Scalar", "ScalarList", "Scalar"]
    values = ["", "", "", "[2, 2]", "[0, 0]", "[1, 1]", "True", "[0, 0]", "1"]
    assert numbers("aten::convolution", dims, types, values) == (2 * 2 * 64 * 16 * 4 * 4, None)


def attention(name: str, dims: list[Any], values: dict[int, str], count: int) -> Cost | None:
    types = [H] * len(dims) + [""] * (count - len(dims))
    return cost(name, dims + [[]] * (count - len(dims)), types, [values.get(at, "") for at in range(count)])


def test_attention_by_layout_mask_and_direction():
    heads_first, tokens_first = [[2, 4, 64, 8]] * 3, [[2, 64, 4, 8]] * 3
    pairs = 2 * 4 * 64 * 64
    whole = attention("aten::_scaled_dot_product_flash_attention", heads_first, {4: "False"}, 7)
    assert whole is not None
    assert (whole.flops, whole.bytes) == (2 * pairs * 16, 4 * 2 * 4 * 64 * 8 * 2)
    causal = attention("aten::_flash_attention_forward", tokens_first, {8: "True"}, 13)
    assert causal is not None
    assert causal.flops == 2 * (2 * 4 * 64 * 65 // 2) * 16
    back = attention("aten::_flash_attention_backward", tokens_first[:1] + tokens_first * 1 + tokens_first[:1],
                     {11: "False"}, 17)  # fmt: skip
    assert back is not None
    assert back.flops == 2 * pairs * 5 * 8


def test_attention_over_what_was_not_recorded():
    """Causal over other keys than queries, windows, packed sequences, and no flag at all."""
    name = "aten::_flash_attention_forward"
    other = [[2, 64, 4, 8], [2, 32, 4, 8], [2, 32, 4, 8]]
    same = [[2, 64, 4, 8]] * 3
    assert attention(name, other, {8: "False"}, 13) is not None
    assert attention(name, other, {8: "True"}, 13) is None
    assert attention(name, same, {8: "False", 11: "128"}, 13) is None
    assert attention(name, [*same, [3], [3]], {8: "False"}, 13) is None
    assert attention(name, same, {}, 13) is None


def test_reductions_by_their_dimensions():
    types = [F, "ScalarList", "Scalar", ""]
    assert numbers("aten::mean", [[8, 16], [], [], []], types, ["", "[-1]", "True", ""]) == (128, 4 * (128 + 8))
    assert numbers("aten::sum", [[8, 16], []], [F, ""], ["", ""]) == (128, 4 * (128 + 1))
    assert numbers("aten::mean", [[8, 16], [], [], []], types) == (128, None)


def test_lists_of_tensors_have_no_recorded_type():
    lists: list[Any] = [[[8, 4], [8]]] * 6
    assert numbers("aten::_fused_adamw_", lists, "TensorList") == (14 * 40, None)


def test_embeddings_read_the_rows_they_look_up():
    types = [F, "long int", "Scalar", "Scalar", "Scalar"]
    assert numbers("aten::embedding", [[1000, 32], [4, 5], [], [], []], types) == (0, 20 * 8 + 2 * 20 * 32 * 4)


@pytest.mark.parametrize(
    ("dims", "types", "values"),
    [
        ("[[8, 16], [4, 16]]", '["float", "float"]', None),
        ("[[8], [16]]", '["float", "float"]', None),
        ("[[8, 16]]", '["float"]', None),
        ("[[8, 16], [16, 4]]", "[1, 2]", None),
        ("[[8, -16], [-16, 4]]", '["float", "float"]', None),
        ('[["8", 16], [16, 4]]', '["float", "float"]', None),
        ("[[[8, 16]], [[16, 4]]]", '["float", "float"]', None),
        ("{}", '["float", "float"]', None),
        ("[" * 100_000, '["float", "float"]', None),
        ("[[9999999999, 9999999999], [9999999999, 9999999999]]", '["float", "float"]', None),
        (None, '["float", "float"]', None),
        ("[[8, 16], [16, 4]]", None, None),
    ],
)
def test_shapes_that_say_nothing_give_nothing(dims: str | None, types: str | None, values: str | None):
    assert cost_of("aten::mm", dims, types, values) is None


@pytest.mark.parametrize("scalar", ["[]", "[0, 0]", "[1, 1, 1]", '["1"]', "1", "x", "[" * 100_000, "null"])
def test_scalars_that_say_nothing_give_nothing(scalar: str):
    dims: list[Any] = [[2, 8, 16, 16], [16, 8, 3, 3], [16], [], [], [], []]
    assert cost("aten::conv2d", dims, CONV_TYPES, ["", "", "", scalar, "[1, 1]", "[1, 1]", "1"]) is None


# --- which op a kernel works for ---------------------------------------------------------------------------


def shaped(drawing: TraceDrawing, name: str, start: int, dur: int, dims: list[Any], types: list[str]) -> None:
    drawing.host(name, start, dur, **{"Input Dims": dims, "Input type": types})


def test_each_product_is_counted_once_with_the_types_of_its_kernel():
    """Autocast: fp32 reaches linear, a copy casts it, and addmm multiplies bf16."""
    drawing = TraceDrawing()
    drawing.step(1, 0, 400)
    shaped(drawing, "aten::linear", 10, 100, [[8, 16], [4, 16], [4]], [F, F, F])
    shaped(drawing, "aten::copy_", 15, 20, [[8, 16], [8, 16]], [H, F])
    drawing.kernel(drawing.launch(20), "cast", 120, 10)
    shaped(drawing, "aten::addmm", 50, 40, [[4], [8, 16], [16, 4]], [H, H, H])
    drawing.kernel(drawing.launch(60), "ampere_bf16_s16816gemm_bf16_128x64", 140, 10)
    drawing.host("aten::view", 200, 20)
    drawing.kernel(drawing.launch(205), "k", 240, 10)
    facts = facts_of(drawing.events())
    trace, (activity,) = facts.trace, facts.activities
    costs = op_costs(trace, TracePrograms(trace))
    own = owners(trace, costs, activity)
    assert [trace.name_of(at) if at >= 0 else None for at in own] == ["aten::copy_", "aten::addmm", None]
    assert costs.bytes[own[0]] == 128 * 2 + 128 * 4
    products = costs.kind.slices[costs.kind.values[:-1] == KINDS.index("gemm")]  # type: ignore[arg-type]
    assert [trace.name_of(at) for at in products] == ["aten::addmm"]


def test_without_shapes_nothing_has_a_cost():
    drawing = TraceDrawing()
    drawing.step(1, 0, 100)
    drawing.host("aten::mm", 10, 30)
    drawing.kernel(drawing.launch(20), "k", 40, 10)
    facts = facts_of(drawing.events())
    costs = op_costs(facts.trace, TracePrograms(facts.trace))
    assert (costs.kind.values == -1).all()
    assert (costs.flops.values == NULL).all()
    assert owners(facts.trace, costs, facts.activities[0]).tolist() == [-1]


def test_a_column_of_costs_is_not_compared_as_a_whole():
    facts = facts_of(TraceDrawing().events())
    costs = op_costs(facts.trace, TracePrograms(facts.trace))
    with pytest.raises(TypeError, match="values of slices"):
        assert costs.kind == KINDS.index("gemm")
