"""Operations of custom calls of known libraries, from the shapes they take and what the backend decided about them.

A call is known by its target (xla/service/gpu/cublas_cudnn.cc; the same targets stand for cuBLAS, cuBLASLt and cuDNN on
NVIDIA and for rocBLAS, hipBLASLt and MIOpen on AMD; __onednn$ are those of XLA on the CPU, te_ Transformer Engine's).
Matrix products: two operations per element of the result and index summed over. Convolutions: as ``products`` counts
them, whichever of image, kernel and result the call computes. Fused attention: 2 * pairs * (d_qk + d_v) forward and
2 * pairs * (3 d_qk + 2 d_v) backward, over the pairs of a query and a key it may see (see ``costs.attention``): under a
causal mask half of them. Softmax, bias, activation and scaling are not counted. Where lengths of sequences are given to
the call at run time, or a window hides some, the number of pairs is not recorded and nothing is said.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from math import isqrt, prod
from typing import Any

from stepscope.analysis.costs.call import CostKind
from stepscope.analysis.hlo.products import convolution, product
from stepscope.hlo.program import Instruction
from stepscope.hlo.shapes import Shape
from stepscope.regex import regex

Call = Callable[[Instruction, Sequence[Shape]], "int | None"]
_LONGEST = 1 << 20
"""Characters of a backend's decisions that are read."""
_ATTRIBUTE = regex(r"(\w{1,64}) = (-?\d{1,18}|true|false)(?: : \w{1,8})?")
_MASKS = (0, 2)
"""Masks of Transformer Engine (NVTE_Mask_Type) under which the pairs are known: none and causal. The others depend on
lengths given at run time."""


def _json(one: Instruction, key: str) -> dict[str, Any]:
    """One part of what XLA's GPU backend decided (GpuBackendConfig)."""
    try:
        config = json.loads(one.config) if len(one.config) <= _LONGEST else {}
    except (ValueError, RecursionError):
        return {}
    part = config.get(key) if isinstance(config, dict) else None
    return part if isinstance(part, dict) else {}


def _whole(values: Any) -> tuple[int, ...]:
    """Numbers as protocol buffers write them in JSON: 64-bit ones as text."""
    if not isinstance(values, list) or not all(str(value).isdecimal() and len(str(value)) < 19 for value in values):
        return ()
    return tuple(int(value) for value in values)


def gemm(one: Instruction, taken: Sequence[Shape]) -> int | None:
    """cuBLAS, cuBLASLt, rocBLAS, hipBLASLt."""
    numbers = _json(one, "gemm_backend_config").get("dot_dimension_numbers")
    if not taken or not isinstance(numbers, dict):
        return None
    return product(taken[0], one.shape.first, _whole(numbers.get("lhs_contracting_dimensions", [])))


def matmul(one: Instruction, taken: Sequence[Shape]) -> int | None:
    """A product of untold layouts: of b batches of [m, k] and [k, n] the elements are b m k, b k n and b m n."""
    if len(taken) < 2 or len(one.shape.first.dims) < 2:
        return None
    left, right, out = taken[0].elements, taken[1].elements, one.shape.first
    batches = prod(out.dims[:-2])
    square, rest = divmod(left * right, out.elements * batches) if out.elements else (0, 1)
    summed = isqrt(square)
    return 2 * out.elements * summed if not rest and summed * summed == square else None


def forward(one: Instruction, taken: Sequence[Shape]) -> int | None:
    """A convolution's result from image and kernel."""
    return convolution(one, taken[0], taken[1], one.shape.first) if len(taken) > 1 else None


def backward_input(one: Instruction, taken: Sequence[Shape]) -> int | None:
    """The image's gradient from that of the result and the kernel; the window is the forward one's."""
    return convolution(one, one.shape.first, taken[1], taken[0]) if len(taken) > 1 else None


def backward_filter(one: Instruction, taken: Sequence[Shape]) -> int | None:
    """The kernel's gradient from the image and the result's gradient."""
    return convolution(one, taken[0], one.shape.first, taken[1]) if len(taken) > 1 else None


def cudnn_attention(one: Instruction, taken: Sequence[Shape]) -> int | None:
    """cuDNN's fused attention: (q, k, v, ...), scores of the recorded shape."""
    config = _json(one, "cudnn_fmha_backend_config")
    scores = config.get("intermediate_tensor_shape")
    dims = _whole(scores.get("dimensions")) if isinstance(scores, dict) else ()
    mask = config.get("mask_type", "NO_MASK")
    if len(dims) != 4 or len(taken) < 3 or not taken[0].dims or not taken[2].dims:
        return None
    if mask not in ("NO_MASK", "CAUSAL") or config.get("sliding_window_length") not in (None, 0, "0"):
        return None
    causal = mask == "CAUSAL"
    depths = taken[0].dims[-1], taken[2].dims[-1]
    return _attention(dims, depths, causal=causal, backward="Backward" in one.target)


def engine_attention(one: Instruction, taken: Sequence[Shape]) -> int | None:
    """Transformer Engine's fused attention (transformer_engine/jax/cpp_extensions/attention.py)."""
    said = {key: int(value) for key, value in _ATTRIBUTE.findall(one.config[:_LONGEST]) if value not in _FLAGS}
    names = ("input_batch", "attn_heads", "q_max_seqlen", "kv_max_seqlen")
    depth, value_depth = (said.get(name, said.get("head_dim")) for name in ("qk_head_dim", "v_head_dim"))
    mask, window = said.get("mask_type"), said.get("window_size_left", -1)
    if depth is None or value_depth is None or mask not in _MASKS or window >= 0 or not said.keys() >= {*names}:
        return None
    dims = tuple(said[name] for name in names)
    return _attention(dims, (depth, value_depth), causal=mask == 2, backward="backward" in one.target)


_FLAGS = ("true", "false")


def _attention(scores: tuple[int, ...], depths: tuple[int, int], *, causal: bool, backward: bool) -> int | None:
    batch, heads, queries, keys = scores
    if causal and queries != keys:
        return None
    pairs = queries * (queries + 1) // 2 if causal else queries * keys
    depth = 3 * depths[0] + 2 * depths[1] if backward else sum(depths)
    return 2 * batch * heads * pairs * depth


def nothing(one: Instruction, taken: Sequence[Shape]) -> int | None:
    """A mark for the compiler, which computes nothing."""
    return 0


_CALLS: tuple[tuple[re.Pattern[str], CostKind, Call], ...] = tuple(
    (regex(pattern), kind, call)
    for pattern, kind, call in (
        (r"__cublas\$(gemm|lt\$matmul(\$f8|\$mx)?)$", CostKind.GEMM, gemm),
        (r"__onednn\$matmul", CostKind.GEMM, matmul),
        (r"__cudnn\$conv(Forward(Graph)?|BiasActivationForward)$", CostKind.CONVOLUTION, forward),
        (r"__cudnn\$convBackwardInput$", CostKind.CONVOLUTION, backward_input),
        (r"__cudnn\$convBackwardFilter$", CostKind.CONVOLUTION, backward_filter),
        (r"__cudnn\$fmha", CostKind.ATTENTION, cudnn_attention),
        (r"te_fused_attn_(forward|backward)(_ffi)?$", CostKind.ATTENTION, engine_attention),
        (r"(Sharding|SPMDFullToShardShape|SPMDShardToFullShape|annotate_device_placement|AllocateBuffer)$",
         CostKind.COPY, nothing),
    )
)  # fmt: skip


def library_call(target: str) -> tuple[CostKind, Call] | None:
    """What a custom call computes and how its operations are counted; None for one that is not known.

    >>> library_call("__cublas$lt$matmul")[0], library_call("my_kernel")
    (<CostKind.GEMM: 'gemm'>, None)
    """
    return next(((kind, call) for pattern, kind, call in _CALLS if pattern.match(target)), None)
