"""Matrix products and convolutions of PyTorch.

Each output element of a product over k takes k multiply-adds, 2k operations (NVIDIA, Matrix Multiplication Background
User's Guide; torch.utils.flop_counter counts the same). A bias, an activation behind the product and the blending of
an accumulator are not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from stepscope.analysis.costs.call import Cost, CostKind, OpCall, Shape

Formula = Callable[[OpCall], Cost | None]

_SCALAR_TYPE_BYTES = {5: 2, 6: 4, 7: 8, 15: 2, 23: 1, 24: 1}
"""Bytes by number of a c10::ScalarType: half, float, double, bfloat16, float8_e5m2, float8_e4m3fn."""


def _product(call: OpCall, a: int, b: int, *read: int) -> Cost | None:
    """[..., n, k] x [..., k, m] with equal batches; ``read`` are tensors that are read besides."""
    left, right = call.shape(a), call.shape(b)
    if left is None or right is None or len(left) != len(right) or len(left) not in (2, 3):
        return None
    if left[-1] != right[-2] or left[:-2] != right[:-2]:
        return None
    batch, n, k, m = prod(left[:-2]), left[-2], left[-1], right[-1]
    inputs, size = call.bytes(a, b), call.size(a)
    moved = None if inputs is None or size is None else inputs + batch * n * m * size + call.present(*read)
    return Cost(CostKind.GEMM, 2 * batch * n * k * m, moved)


def mm(call: OpCall) -> Cost | None:
    """``mm`` and ``bmm``: (self, mat2)."""
    return _product(call, 0, 1)


def int_mm(call: OpCall) -> Cost | None:
    """``_int_mm``: (self, mat2) of int8; the output is int32."""
    made, left, right, inputs = mm(call), call.shape(0), call.shape(1), call.bytes(0, 1)
    if made is None or left is None or right is None or inputs is None:
        return made
    return Cost(CostKind.GEMM, made.flops, inputs + 4 * left[0] * right[1])


def addmm(call: OpCall) -> Cost | None:
    """``addmm`` and ``baddbmm``: (self, mat1, mat2), self being read as an accumulator or bias."""
    return _product(call, 1, 2, 0)


def scaled_mm(call: OpCall) -> Cost | None:
    """``_scaled_mm``: (self, mat2, scale_a, scale_b, bias, scale_result, out_dtype); the output's type is a scalar."""
    made = _product(call, 0, 1)
    left, right, inputs, number = call.shape(0), call.shape(1), call.bytes(0, 1), call.value(6)
    if made is None or left is None or right is None:
        return None
    size = _SCALAR_TYPE_BYTES.get(number) if type(number) is int else None
    moved = None if inputs is None or size is None else inputs + left[-2] * right[-1] * size
    return Cost(CostKind.GEMM, made.flops, moved)


def mv(call: OpCall) -> Cost | None:
    """``mv``: (self [n, k], vec [k])."""
    return _vector(call, 0, 1)


def addmv(call: OpCall) -> Cost | None:
    """``addmv``: (self, mat, vec)."""
    return _vector(call, 1, 2)


def _vector(call: OpCall, a: int, b: int) -> Cost | None:
    matrix, inputs, size = call.shape(a), call.bytes(a, b), call.size(a)
    if matrix is None or len(matrix) != 2:
        return None
    moved = None if inputs is None or size is None else inputs + matrix[0] * size
    return Cost(CostKind.GEMM, 2 * prod(matrix), moved)


def dot(call: OpCall) -> Cost | None:
    """``dot`` and ``vdot``: two vectors."""
    left = call.shape(0)
    return None if left is None else Cost(CostKind.GEMM, 2 * prod(left), call.bytes(0, 1))


def linear(call: OpCall) -> Cost | None:
    """``linear``: input [..., k], weight [m, k], bias."""
    left, weight, inputs, size = call.shape(0), call.shape(1), call.bytes(0, 1), call.size(0)
    if not left or weight is None or len(weight) != 2 or left[-1] != weight[1]:
        return None
    rows = prod(left[:-1])
    moved = None if inputs is None or size is None else inputs + rows * weight[0] * size + call.present(2)
    return Cost(CostKind.GEMM, 2 * rows * prod(weight), moved)


def matmul(call: OpCall) -> Cost | None:
    """``matmul``: NumPy's rules, with a vector as a row or column and batches broadcast."""
    left, right, inputs, size = call.shape(0), call.shape(1), call.bytes(0, 1), call.size(0)
    if not left or not right:
        return None
    a = left if len(left) > 1 else (1, *left)
    b = right if len(right) > 1 else (*right, 1)
    batch = broadcast(a[:-2], b[:-2])
    if batch is None or a[-1] != b[-2]:
        return None
    out = prod(batch) * a[-2] * b[-1]
    return Cost(CostKind.GEMM, 2 * out * a[-1], None if inputs is None or size is None else inputs + out * size)


def broadcast(*shapes: Shape) -> Shape | None:
    """The shape that some shapes broadcast to; None where they do not."""
    made: list[int] = []
    for at in range(1, max(map(len, shapes), default=0) + 1):
        sizes = {shape[-at] for shape in shapes if len(shape) >= at} - {1}
        if len(sizes) > 1:
            return None
        made.append(sizes.pop() if sizes else 1)
    return tuple(reversed(made))


PRODUCTS: dict[str, Formula] = {
    **dict.fromkeys(("aten::mm", "aten::bmm"), mm),
    "aten::_int_mm": int_mm,
    **dict.fromkeys(("aten::addmm", "aten::baddbmm", "aten::addmm_", "aten::baddbmm_"), addmm),
    "aten::_addmm_activation": addmm,
    "aten::_scaled_mm": scaled_mm,
    "aten::mv": mv,
    **dict.fromkeys(("aten::addmv", "aten::addmv_"), addmv),
    **dict.fromkeys(("aten::dot", "aten::vdot"), dot),
    "aten::linear": linear,
    "aten::matmul": matmul,
}
