"""What to do about communication that nothing hides, by what is exchanged and how the program spreads its work.

Sources: the documentation of PyTorch's DistributedDataParallel, FSDP1, ``fully_shard`` and pipelining, TorchRec,
DeepSpeed, Megatron-LM, vLLM and SGLang; JAX, GPU performance tips.
"""

from __future__ import annotations

from collections.abc import Collection

from stepscope.analysis.exchange.exposed import Exchange
from stepscope.diagnosis.exchange_remedies.others import (
    ALL_TO_ALL,
    BROADCASTS,
    BUFFERS,
    EMBEDDINGS,
    EXPERTS,
    MEETINGS,
    NEIGHBOURS,
    STAGES,
    UNNAMED,
)
from stepscope.diagnosis.exchange_remedies.reducing import (
    GRADIENTS,
    JOIN_GRADIENTS,
    LATE_RANKS,
    ONE_PROCESSOR,
    PARTS_OF_LAYERS,
    REDUCED,
    REPORTS,
    gradients,
    reduced,
)
from stepscope.diagnosis.exchange_remedies.shards import BESIDE_SHARDS, FSDP1, FSDP2, JOIN_SHARDS, SHARDS, ZERO
from stepscope.diagnosis.remedies import Remedies
from stepscope.names.parallelism import Layout

__all__ = [
    "ALL_TO_ALL",
    "BESIDE_SHARDS",
    "BROADCASTS",
    "BUFFERS",
    "EMBEDDINGS",
    "EXPERTS",
    "FSDP1",
    "FSDP2",
    "GRADIENTS",
    "JOIN",
    "JOIN_GRADIENTS",
    "JOIN_SHARDS",
    "LATE_RANKS",
    "MEETINGS",
    "NEIGHBOURS",
    "ONE_PROCESSOR",
    "PARTS_OF_LAYERS",
    "REDUCED",
    "REPORTS",
    "SHARDS",
    "STAGES",
    "UNNAMED",
    "ZERO",
    "cures",
    "gradients",
    "joins",
    "reduced",
]

JOIN: Remedies = {None: "Join small tensors into one before they are exchanged.\n"}

_RECIPES: tuple[tuple[Exchange, tuple[Layout, ...], Remedies], ...] = (
    (Exchange.REDUCING, (Layout.REPORTS,), REPORTS),
    (Exchange.REDUCING, (Layout.TENSOR,), PARTS_OF_LAYERS),
    (Exchange.REDUCING, (Layout.DATA,), GRADIENTS),
    (Exchange.REDUCING, (Layout.FSDP, Layout.FULLY_SHARD, Layout.ZERO), BESIDE_SHARDS),
    (Exchange.REDUCING, (), REDUCED),
    (Exchange.SHARDS, (Layout.REPORTS,), REPORTS),
    (Exchange.SHARDS, (Layout.FSDP,), FSDP1),
    (Exchange.SHARDS, (Layout.FULLY_SHARD,), FSDP2),
    (Exchange.SHARDS, (Layout.ZERO,), ZERO),
    (Exchange.SHARDS, (Layout.TENSOR,), PARTS_OF_LAYERS),
    (Exchange.SHARDS, (), SHARDS),
    (Exchange.ALL_TO_ALL, (Layout.RECOMMENDER,), EMBEDDINGS),
    (Exchange.ALL_TO_ALL, (Layout.EXPERTS,), EXPERTS),
    (Exchange.ALL_TO_ALL, (), ALL_TO_ALL),
    (Exchange.BROADCAST, (Layout.BUFFERS,), BUFFERS),
    (Exchange.BROADCAST, (Layout.REPORTS,), REPORTS),
    (Exchange.BROADCAST, (), BROADCASTS),
    (Exchange.POINT_TO_POINT, (Layout.PIPELINE,), STAGES),
    (Exchange.POINT_TO_POINT, (), NEIGHBOURS),
    (Exchange.BARRIER, (), MEETINGS),
    (Exchange.UNKNOWN, (), UNNAMED),
)
"""By what is exchanged and what must be evident; the last of each needs no evidence."""


def cures(exchange: Exchange, near: Collection[Layout], anywhere: Collection[Layout]) -> list[Remedies]:
    """What fits what is exchanged: by what is evident around its launches, else in the profile at all."""
    mine = [(needs, texts) for one, needs, texts in _RECIPES if one is exchange]
    if Layout.REPORTS in near and exchange is not Exchange.ALL_TO_ALL:
        near = (Layout.REPORTS,)
    # Anything may be broadcast in a program whose replicas have buffers, too, and most of one with metrics is none.
    far = [layout for layout in anywhere if layout not in {Layout.BUFFERS, Layout.REPORTS}]
    for known in (near, far):
        fitting = [texts for needs, texts in mine if any(layout in known for layout in needs)]
        if fitting:
            return fitting
    return [texts for needs, texts in mine if not needs]


def joins(exchange: Exchange) -> Remedies:
    """What to do about many small ones."""
    return {Exchange.REDUCING: JOIN_GRADIENTS, Exchange.SHARDS: JOIN_SHARDS}.get(exchange, JOIN)
