"""How a program spreads its work over devices, as far as names in its profile say so.

Sources: torch/nn/parallel/distributed.py and torch/csrc/distributed/c10d/reducer.cpp, torch/distributed/fsdp (classes
of FSDP1; ranges ``FSDP::...`` and ops ``fsdp::...`` of FSDP2), torch/distributed/optim/zero_redundancy_optimizer.py,
DeepSpeed's and Horovod's module paths, the layers of Megatron-LM and vLLM (``RowParallelLinear``), TorchRec
(``KJTAllToAll``, ranges ``## sdd_...``), and the experts' layers of public models and libraries.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from stepscope.names.remembered import remembered
from stepscope.regex import regex


class Layout(StrEnum):
    """A way of using several devices."""

    DATA = "data"
    """Replicas that reduce their gradients: DistributedDataParallel, Horovod."""
    FSDP = "fsdp"
    """``FullyShardedDataParallel``, FSDP1."""
    FULLY_SHARD = "fully_shard"
    """``fully_shard``, FSDP2."""
    ZERO = "zero"
    """DeepSpeed, or PyTorch's ``ZeroRedundancyOptimizer``."""
    TENSOR = "tensor"
    """Layers cut across devices."""
    PIPELINE = "pipeline"
    RECOMMENDER = "recommender"
    """Embedding tables spread over devices."""
    EXPERTS = "experts"
    """Experts of a mixture spread over devices."""
    BUFFERS = "buffers"
    """Replicas that are sent the buffers of the first."""
    REPORTS = "reports"
    """Metrics and Python objects, which no layer needs."""


_SIGNS = tuple(
    (layout, regex(pattern))
    for layout, pattern in (
        (Layout.BUFFERS, r"_broadcast_coalesced|_sync_(?:module_)?buffers|DistributedDataParallel\.forward"),
        (Layout.DATA, r"DistributedDataParallel|distributed\.ddp\.reducer|^nn\.Module: DDP_|horovod|HorovodAllreduce"),
        (Layout.FSDP, r"FullyShardedDataParallel"),
        (Layout.FULLY_SHARD, r"^FSDP::|^fsdp::|_fully_shard/|FSDPParamGroup"),
        (Layout.ZERO, r"(?<![A-Za-z])deepspeed|DeepSpeed|ZeroRedundancyOptimizer"),
        (
            Layout.TENSOR,
            r"(?:Row|Column)ParallelLinear|VocabParallel|(?:Reduce|Gather|Scatter|Copy)\w{0,12}ModelParallelRegion"
            r"|tensor_model_parallel|(?:^|/)tensor_parallel/|TENSOR_(?:AND_\w+_)?PARALLEL|TENSOR_MODEL_PARALLEL|(?<![A-Za-z])(?:mesh_)?tp(?:_pg|_group)?$",
        ),
        (
            Layout.REPORTS,
            r"(?:all_gather|gather|scatter)_object|broadcast_object_list|torchmetrics/|gather_all_tensors"
            r"|(?:^|/)metrics?(?:/\w+)?\.py\(|(?<![A-Za-z])(?:sync|gather|reduce|log)_metrics?(?![A-Za-z])",
        ),
        (Layout.PIPELINE, r"distributed/pipelining/|pipeline_parallel|PIPELINE_MODEL_PARALLEL|PipelineParallel"
                          r"|(?<![A-Za-z])(?:mesh_)?pp(?:_pg|_group)?$"),
        (
            Layout.RECOMMENDER,
            r"torchrec|KJTAllToAll|KeyedJaggedTensor|Embedding(?:Bag)?Collection|## sdd_|sparse_data_dist"
            r"|all2all_data:kjt|PooledEmbeddings|split_embedding|(?<![A-Za-z])DLRM",
        ),
        (
            Layout.EXPERTS,
            r"deep_ep|deepep|DeepEP|(?<![a-z])moe(?![a-z])|MoE|[Mm]ixtureOfExperts|(?<![a-z])experts?(?![a-z])|Experts?"
            r"(?![a-z])|EXPERT_MODEL_PARALLEL|[Tt]oken_?[Dd]ispatch|moeA2A|Ep(?:Dispatch|Combine)[A-Z]"
            r"|a2a_(?:dispatch|combine)_|(?<![A-Za-z])(?:mesh_)?ep(?:_pg|_group)?$",
        ),
    )
)  # fmt: skip


_NO_GRADIENTS = frozenset({Layout.TENSOR, Layout.REPORTS})


def carries_no_gradients(name: str) -> bool:
    """Whether what is reduced below a name, or in a group so called, is parts of layers or metrics.

    >>> [carries_no_gradients(name) for name in ("TENSOR_MODEL_PARALLEL_GROUP", "DistributedDataParallel.forward")]
    [True, False]
    """
    return not _NO_GRADIENTS.isdisjoint(layouts([name]))


def layouts(names: Iterable[str]) -> frozenset[Layout]:
    """What some names give away.

    >>> sorted(layouts(["nn.Module: FusedMoE_3", "DistributedDataParallel.forward"]))
    [<Layout.BUFFERS: 'buffers'>, <Layout.DATA: 'data'>, <Layout.EXPERTS: 'experts'>]
    >>> layouts(["aten::mm", "step"])
    frozenset()
    """
    return frozenset().union(*map(_layouts_of, names))


@remembered
def _layouts_of(name: str) -> frozenset[Layout]:
    return frozenset(layout for layout, pattern in _SIGNS if pattern.search(name[:300]))
