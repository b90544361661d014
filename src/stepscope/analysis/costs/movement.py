"""Ops that memory bounds: elementwise, reductions, normalisation, softmax, embedding, copies and optimizers.

Operations are counted as XLA's HloCostAnalysis does: one per output element of each arithmetic step of an op's
definition, a transcendental one too. Bytes are those of inputs read once and outputs written once; what a kernel keeps
beside them (statistics of a row, random numbers) is left out. An input that was expanded is counted at its full shape.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from stepscope.analysis.costs.call import Cost, CostKind, OpCall, is_floating, size_of
from stepscope.analysis.costs.products import broadcast

Formula = Callable[[OpCall], Cost | None]


def elementwise(inputs: int, flops: int = 1, *, boolean: bool = False) -> Formula:
    """So many tensors or numbers of broadcast shapes to one tensor of the type they promote to (torch.result_type),
    or of bool.
    """

    def formula(call: OpCall) -> Cost | None:
        given = [(shape, at) for at in range(inputs) if (shape := call.shape(at)) is not None]
        out = broadcast(*(shape for shape, _ in given))
        if not given or out is None:
            return None
        read = call.bytes(*(at for _, at in given))
        size = 1 if boolean else _promoted(call, [at for shape, at in given if shape] or [at for _, at in given])
        if read is None or size is None:
            return Cost(CostKind.ELEMENTWISE, flops * prod(out), None)
        written = prod(out) * size
        return Cost(CostKind.ELEMENTWISE, flops * prod(out), read + written, out, written)

    return formula


def _promoted(call: OpCall, places: list[int]) -> int | None:
    """Bytes per element of the result: floating-point types win over others, then the widest."""
    types = [call.types[at] for at in places]
    sizes = [size_of(name) for name in types if is_floating(name)] or [size_of(name) for name in types]
    return max((size for size in sizes if size is not None), default=None)


def in_place(inputs: int, flops: int = 1) -> Formula:
    """As ``elementwise``, written over the first tensor."""

    def formula(call: OpCall) -> Cost | None:
        own, out = call.shape(0), call.bytes(0)
        read = [call.bytes(at) for at in range(inputs) if call.shape(at) is not None]
        if own is None:
            return None
        moved = None if out is None or None in read else out + sum(one or 0 for one in read)
        return Cost(CostKind.ELEMENTWISE, flops * prod(own), moved, own, out)

    return formula


def passes(kind: CostKind, flops: int, read: tuple[int, ...], written: tuple[int, ...]) -> Formula:
    """Reads some tensors and writes others of the shape and type of those named; operations per element of the first
    one read. None where a tensor that is named was not recorded.
    """

    def formula(call: OpCall) -> Cost | None:
        shape = call.shape(read[0])
        moved = call.bytes(*read, *written)
        if shape is None or moved is None:
            return None
        return Cost(kind, flops * prod(shape), moved, call.shape(written[0]), call.bytes(*written))

    return formula


def copy(call: OpCall) -> Cost | None:
    """``copy_``: (self, src)."""
    moved = call.bytes(0, 1)
    return None if moved is None else Cost(CostKind.COPY, 0, moved, call.shape(0), call.bytes(0))


def fill(call: OpCall) -> Cost | None:
    """``fill_``, ``zero_``: writes the first tensor."""
    moved = call.bytes(0)
    return None if moved is None else Cost(CostKind.COPY, 0, moved)


def concatenate(call: OpCall) -> Cost | None:
    """``cat``: types of the tensors of a list are not recorded, so neither are bytes."""
    return Cost(CostKind.COPY, 0, None) if call.tensors(0) else None


def reduction(flops: int, dims: int | None) -> Formula:
    """One tensor to fewer elements; ``dims`` is the place of the dimensions that go, all where there is none."""

    def formula(call: OpCall) -> Cost | None:
        shape, read, size = call.shape(0), call.bytes(0), call.size(0)
        if shape is None or read is None or size is None:
            return None
        gone = call.value(dims) if dims is not None and call.types[dims : dims + 1] != ("",) else []
        gone = [gone] if type(gone) is int else gone
        if not isinstance(gone, list) or not all(type(at) is int and -len(shape) <= at < len(shape) for at in gone):
            return Cost(CostKind.REDUCTION, flops * prod(shape), None)
        kept = [length for at, length in enumerate(shape) if gone and at not in gone and at - len(shape) not in gone]
        return Cost(CostKind.REDUCTION, flops * prod(shape), read + prod(kept) * size)

    return formula


def _sum(call: OpCall) -> Cost | None:
    """``sum`` is recorded with its dimensions second where it has any; else the second is a number format."""
    listed = call.types[1:2] in (("ScalarList",), ("GenericList",), ("",))
    return reduction(1, 1 if listed and len(call.types) > 2 else None)(call)


def embedding(call: OpCall) -> Cost | None:
    """``embedding``: (weight, indices). The rows looked up are read and written."""
    return _rows(call, 1)


def index_select(call: OpCall) -> Cost | None:
    """``index_select``: (self, dim, index), along the first dimension."""
    return _rows(call, 2) if call.value(1) == 0 else None


def _rows(call: OpCall, at: int) -> Cost | None:
    table, indices, size, read = call.shape(0), call.shape(at), call.size(0), call.bytes(at)
    if not table or indices is None or size is None or read is None:
        return None
    return Cost(CostKind.EMBEDDING, 0, read + 2 * prod(indices) * prod(table[1:]) * size)


def embedding_backward(call: OpCall) -> Cost | None:
    """``embedding_dense_backward``: (grad_output, indices, num_weights). A dense gradient of the table is written."""
    grad, size, read, rows = call.shape(0), call.size(0), call.bytes(0, 1), call.value(2)
    if not grad or size is None or read is None or type(rows) is not int:
        return None
    return Cost(CostKind.EMBEDDING, prod(grad), read + rows * grad[-1] * size)


def dropout(call: OpCall) -> Cost | None:
    """``native_dropout``: (input). A mask of one byte per element is written too."""
    shape, moved = call.shape(0), call.bytes(0, 0)
    if shape is None or moved is None:
        return None
    return Cost(CostKind.ELEMENTWISE, 2 * prod(shape), moved + prod(shape), shape, moved // 2 + prod(shape))


def optimizer(flops: int) -> Formula:
    """A step over lists of tensors: operations per parameter. Their types are not recorded, so bytes are not given."""

    def formula(call: OpCall) -> Cost | None:
        lists = call.tensors(0)
        return None if lists is None else Cost(CostKind.OPTIMIZER, flops * sum(map(prod, lists)), None)

    return formula


def _aten(formula: Formula, *names: str) -> dict[str, Formula]:
    return {f"aten::{name}": formula for name in names}


_N, _S = CostKind.NORMALIZATION, CostKind.SOFTMAX
MOVEMENT: dict[str, Formula] = {
    **_aten(elementwise(2), "mul", "div", "sub", "add", "rsub", "maximum", "minimum", "pow", "clamp_min", "remainder"),
    **_aten(elementwise(2, boolean=True), "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or"),
    **_aten(elementwise(1), "neg", "abs", "exp", "log", "sqrt", "rsqrt", "reciprocal", "sin", "cos", "tanh", "sigmoid",
            "relu", "erf", "sign", "floor", "ceil", "round", "clamp", "bitwise_not"),
    **_aten(elementwise(1, boolean=True), "isnan", "isinf", "isfinite", "logical_not"),
    **_aten(elementwise(1, 4), "silu", "gelu"),
    **_aten(elementwise(2, 8), "silu_backward", "gelu_backward"),
    **_aten(elementwise(2), "threshold_backward"),
    **_aten(elementwise(2, 3), "sigmoid_backward", "tanh_backward"),
    **_aten(elementwise(3, 3), "addcmul", "addcdiv", "lerp"),
    **_aten(elementwise(3), "where"),
    **_aten(elementwise(2), "masked_fill"),
    **_aten(elementwise(2, 2), "native_dropout_backward"),
    **_aten(in_place(2), "add_", "sub_", "mul_", "div_", "pow_", "masked_fill_", "maximum_", "minimum_"),
    **_aten(in_place(1), "relu_", "clamp_", "clamp_min_", "neg_", "exp_", "sqrt_", "rsqrt_", "sigmoid_", "tanh_"),
    **_aten(in_place(1, 4), "silu_", "gelu_"),
    **_aten(in_place(3, 3), "addcmul_", "addcdiv_", "lerp_"),
    **_aten(dropout, "native_dropout"),
    **_aten(copy, "copy_"),
    **_aten(fill, "fill_", "zero_"),
    **_aten(concatenate, "cat"),
    # (self, dim, keepdim, ...) with dim a list or absent.
    **_aten(reduction(1, 1), "mean", "amax", "amin", "all", "any", "argmax", "argmin"),
    **_aten(reduction(2, 2), "linalg_vector_norm"),
    **_aten(_sum, "sum"),
    # Mean, variance (3), normalise (2), scale and shift; backward as differentiated.
    **_aten(passes(_N, 8, (0,), (0,)), "native_layer_norm", "native_group_norm", "native_batch_norm",
            "cudnn_batch_norm", "miopen_batch_norm", "_native_batch_norm_legit"),
    **_aten(passes(_N, 14, (0, 1), (0,)), "native_layer_norm_backward", "native_group_norm_backward",
            "native_batch_norm_backward", "cudnn_batch_norm_backward", "miopen_batch_norm_backward"),
    **_aten(passes(_N, 5, (0,), (0,)), "_fused_rms_norm"),
    **_aten(passes(_N, 10, (0, 1), (0,)), "_fused_rms_norm_backward"),
    "_C::rms_norm": passes(_N, 5, (1,), (0,)),
    "_C::fused_add_rms_norm": passes(_N, 6, (0, 1), (0, 1)),
    # Largest, difference, exponential, sum, division; backward product, sum, difference, product.
    **_aten(passes(_S, 5, (0,), (0,)), "_softmax", "_log_softmax"),
    **_aten(passes(_S, 4, (0, 1), (0,)), "_softmax_backward_data", "_log_softmax_backward_data"),
    **_aten(embedding, "embedding"),
    **_aten(index_select, "index_select"),
    **_aten(embedding_backward, "embedding_dense_backward"),
    # Adam: two moments (3 each), their corrections (2), the root, the quotient and the update (4), decay (2).
    **_aten(optimizer(14), "_fused_adam_", "_fused_adamw_"),
    **_aten(optimizer(4), "_fused_sgd_"),
    **_aten(optimizer(1), "_foreach_add_", "_foreach_mul_", "_foreach_div_", "_foreach_sqrt", "_foreach_neg",
            "_foreach_add", "_foreach_mul", "_foreach_div", "_foreach_sub_", "_foreach_zero_", "_foreach_norm"),
    **_aten(optimizer(3), "_foreach_addcmul_", "_foreach_addcdiv_", "_foreach_lerp_"),
}  # fmt: skip
"""Ops by name. Those of ``_C`` are vLLM's (csrc/layernorm_kernels.cu: out, input, weight; input, residual, weight)."""
