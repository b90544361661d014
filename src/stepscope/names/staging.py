"""What brings data into the buffers of collectives and out of them again: concatenating, splitting, copying.

Sources: torch/csrc/distributed/c10d/reducer.cpp (ranges ``torch.distributed.ddp.reducer::...``),
torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py (ops ``fsdp::...``, ranges ``FSDP::...``),
torch/csrc/utils/tensor_flatten.cpp (coalesced tensors), horovod/common/common.h (activities) and
horovod/common/ops/cuda/cuda_kernels.cu, tensorflow/core/kernels/scoped_allocator_ops.cc. tf.distribute packs gradients
with ordinary ops, ``concat`` and ``split`` (tensorflow/python/distribute/cross_device_ops.py, cross_device_utils.py).
"""

from __future__ import annotations

from stepscope.names.collectives import is_dispatch
from stepscope.names.scopes import StepPart, tensorflow_part
from stepscope.regex import regex

_RANGE = regex(
    r"torch\.distributed\.ddp\.reducer::(?:mul_out|copy_\w+)"
    r"|fsdp::(?:all_gather_copy_in|split_with_sizes_copy|chunk_cat)|aten::(?:_chunk_cat|split_with_sizes_copy)$"
    r"|FSDP::all_gather_copy_(?:in|out)|aten::(?:un)?flatten_dense_tensors$"
    r"|MEMCPY_(?:IN|OUT)_FUSION_BUFFER|_?ScopedAllocator(?:Concat|Split)"
    r"|<built-in method _broadcast_coalesced of "
)
_KERNEL = regex(r"\bbatched_(?:scaled_)?memcpy_k\b|\bBatched(?:Scaled)?D2DMemcpy|_?ScopedAllocator(?:Concat|Split)")
_XLA_SCOPE = regex(
    r"(?:^|/)(?:psum|pmean|psum_scatter|reduce_scatter|all_gather|all_to_all|ppermute|pbroadcast)(?:\[[^/]*)?$"
)


def is_staging_range(name: str) -> bool:
    """Whether what a host range launches, other than collectives, is there for a collective's buffers.

    >>> is_staging_range("torch.distributed.ddp.reducer::copy_bucket_to_grad"), is_staging_range("aten::cat")
    (True, False)
    """
    return bool(_RANGE.match(name[:200])) or is_dispatch(name)


def is_staging_kernel(name: str) -> bool:
    """Whether a device op is itself such a copy.

    >>> is_staging_kernel("void horovod::common::batched_memcpy_k<1024, 128>(BatchedD2DParams)")
    True
    """
    return bool(_KERNEL.search(name[:300]))


def is_staging_scope(scope: str) -> bool:
    """Whether an op of XLA that is no collective itself was made for one: its name scope ends in it.

    >>> is_staging_scope("jit(step)/transpose(jvp(f))/all_gather"), is_staging_scope("jit(step)/dot_general")
    (True, False)
    """
    return bool(_XLA_SCOPE.search(scope[-100:]))


_PACKS, _UNPACKS = regex(r"ConcatV?2?|ParallelConcat"), regex(r"SplitV?")


def packs_tensors(scope: str) -> bool | None:
    """Whether an op of TensorFlow puts tensors together that may be gradients (True), or takes them apart (False); None
    for others, and for those of a model's own layers.

    >>> packs_tensors("Adam/concat:ConcatV2"), packs_tensors("Adam/split:SplitV"), packs_tensors("m/merge/cat:ConcatV2")
    (True, False, None)
    """
    op = scope.rpartition(":")[2]
    packs = True if _PACKS.fullmatch(op) else False if _UNPACKS.fullmatch(op) else None
    return None if packs is None or tensorflow_part(scope) in (StepPart.FORWARD, StepPart.LOSS) else packs
