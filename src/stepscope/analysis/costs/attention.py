"""Fused attention, forward and backward.

Scores and their product with the values take 2 * heads * pairs * (d_qk + d_v) operations, backward, which computes
the scores again, 2 * heads * pairs * (3 d_qk + 2 d_v) (FlashAttention-2, section 4; torch.utils.flop_counter, sdpa_flop
and sdpa_backward_flop). Pairs are those of a query and a key it may see: under a causal mask over as many keys as
queries n (n + 1) / 2 of them, which the kernels' authors count and the flop counter does not. The softmax is not
counted. Sequences packed to different lengths, windows and causal masks over another number of keys give None: what is
seen then is not recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from stepscope.analysis.costs.call import Cost, CostKind, OpCall
from stepscope.record import record

Formula = Callable[[OpCall], Cost | None]


@record
class AttentionLayout:
    """Where an op's arguments stand. ``heads`` and ``sequence`` are the dimensions of q, k and v ([B, ., ., D])."""

    q: int
    causal: int
    heads: int = 1
    sequence: int = 2
    output: int | None = None
    """Of a backward op: the forward's output. The gradient that comes in is the first argument."""
    packed: tuple[int, ...] = ()
    """Lengths of packed sequences, tables of pages: where one is given nothing is known."""
    windows: tuple[int, ...] = ()
    """Sizes of a window, -1 for none."""


def attention(layout: AttentionLayout) -> Formula:
    """The formula of an op of that layout."""

    def formula(call: OpCall) -> Cost | None:
        shapes = [call.shape(layout.q + at) for at in range(3)]
        q, k, v = shapes
        if q is None or k is None or v is None or {len(q), len(k), len(v)} != {4}:
            return None
        if any(prod(call.shape(at) or (0,)) for at in layout.packed):
            return None
        if any(call.value(at) not in (None, -1) for at in layout.windows):
            return None
        pairs = _pairs(call, layout, q[layout.sequence], k[layout.sequence])
        if pairs is None:
            return None
        depth = 3 * q[3] + 2 * v[3] if layout.output is not None else q[3] + v[3]
        inputs, size = call.bytes(layout.q, layout.q + 1, layout.q + 2), call.size(layout.q)
        moved = None
        if inputs is not None and size is not None:
            out = q[0] * q[1] * q[2] * v[3] * size
            # Backward reads the output and its gradient too, and writes as much as it reads of q, k and v.
            moved = inputs + out if layout.output is None else 2 * inputs + 2 * out
        return Cost(CostKind.ATTENTION, 2 * q[0] * q[layout.heads] * pairs * depth, moved)

    return formula


def _pairs(call: OpCall, layout: AttentionLayout, queries: int, keys: int) -> int | None:
    causal = call.value(layout.causal)
    if causal in (False, 0):
        return queries * keys
    return queries * (queries + 1) // 2 if causal in (True, 1) and queries == keys else None


ATTENTION: dict[str, Formula] = {
    name: attention(layout)
    for name, layout in {
        "aten::_scaled_dot_product_flash_attention": AttentionLayout(0, 4),
        "aten::_scaled_dot_product_flash_attention_for_cpu": AttentionLayout(0, 4),
        "aten::_scaled_dot_product_efficient_attention": AttentionLayout(0, 6),
        "aten::_scaled_dot_product_cudnn_attention": AttentionLayout(0, 6),
        "aten::_flash_attention_forward": AttentionLayout(0, 8, 2, 1, packed=(3, 4, 15), windows=(11, 12)),
        # A custom mask type of 1 is causal from the first query on, 2 from the last; both mean the same over as many
        # keys as queries.
        "aten::_efficient_attention_forward": AttentionLayout(0, 9, 2, 1, packed=(4, 5), windows=(13,)),
        "aten::_cudnn_attention_forward": AttentionLayout(0, 10, packed=(4, 5)),
        "flash_attn::_flash_attn_forward": AttentionLayout(0, 5, 2, 1, windows=(6, 7)),
        "aten::_scaled_dot_product_flash_attention_backward": AttentionLayout(1, 11, output=4, packed=(6, 7)),
        "aten::_scaled_dot_product_flash_attention_for_cpu_backward": AttentionLayout(1, 7, output=4),
        "aten::_scaled_dot_product_efficient_attention_backward": AttentionLayout(1, 11, output=5),
        "aten::_scaled_dot_product_cudnn_attention_backward": AttentionLayout(1, 14, output=4, packed=(9, 10)),
        "aten::_flash_attention_backward": AttentionLayout(1, 11, 2, 1, 4, packed=(6, 7), windows=(15, 16)),
        "aten::_efficient_attention_backward": AttentionLayout(1, 14, 2, 1, 5, packed=(6, 7), windows=(18,)),
        "flash_attn::_flash_attn_backward": AttentionLayout(1, 11, 2, 1, 4, windows=(12, 13)),
    }.items()
}
