"""What to do about all-gathers and reduce-scatters that nothing hides."""

from __future__ import annotations

from stepscope.diagnosis.exchange_remedies.shared import ENGINES, GPUS, OVERLAP_IN_XLA
from stepscope.diagnosis.remedies import INFERS, JAX, PYTORCH, TORCH_XLA, TRAINS, Remedies, RemedyPart

BESIDE_SHARDS: Remedies = {
    PYTORCH: (
        RemedyPart(
            """\
Beside sharded parameters an all-reduce carries gradients between the groups of hybrid sharding, the norm of gradients,
or metrics. Accumulate gradients over several batches before they are reduced, clip by their norm with one call for all,
and reduce metrics every N steps, in one tensor.""",
            purposes=TRAINS,
        ),
        *ENGINES,
    ),
    None: "Reduce metrics every N steps, in one tensor, and gradients once per optimizer step.",
}

SHARDS: Remedies = {
    PYTORCH: (
        RemedyPart(
            """\
The profile does not say what is gathered or scattered. If it is parameters and their gradients (FSDP): gather the
parameters of the next layers while this one computes, reduce gradients while the backward pass computes
(prefetching), and move fewer bytes: in 16 bits, and sharded across fewer devices (hybrid sharding: within a machine)
where memory allows. A larger batch gives each more compute to hide behind.""",
            purposes=TRAINS,
        ),
        RemedyPart(
            """\
In inference these belong to layers cut across devices: use fewer devices per model and more replicas where memory
allows, and gather only what is needed (of the logits the last token's).""",
            purposes=INFERS,
        ),
    ),
    JAX: (
        *OVERLAP_IN_XLA,
        RemedyPart(
            """\
Let the next layers' parameters come while this one computes:
    --xla_gpu_enable_pipelined_all_gather=true --xla_gpu_enable_pipelined_reduce_scatter=true""",
            vendors=GPUS,
        ),
        "Shard parameters across fewer devices where memory allows.",
    ),
    TORCH_XLA: """\
Shard parameters across fewer devices where memory allows (with SPMD the `fsdp` axis of the mesh), in bfloat16. A larger
batch gives each collective more compute to hide behind.""",
    None: """\
Gather what the next layers need while this one computes, move it in 16 bits, and shard across fewer devices where
memory allows.""",
}
"""Of all-gathers and reduce-scatters where nothing says otherwise."""

FSDP1: Remedies = {
    PYTORCH: """\
Gather the next layers' parameters while this one computes, in blocks large enough to be worth it (one per transformer
layer), in 16 bits:
    FSDP(model, auto_wrap_policy=policy, forward_prefetch=True, backward_prefetch=BackwardPrefetch.BACKWARD_PRE,
         mixed_precision=MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16))
Where memory allows keep parameters from forward to backward (`ShardingStrategy.SHARD_GRAD_OP`), or shard within a
machine only (`ShardingStrategy.HYBRID_SHARD`). A larger batch gives each more compute to hide behind.""",
    None: SHARDS[None],
}

FSDP2: Remedies = {
    PYTORCH: """\
Gather the next layers' parameters while this one computes, in blocks large enough to be worth it (one `fully_shard` per
transformer layer), in 16 bits:
    fully_shard(block, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))
    block.set_modules_to_forward_prefetch([next_block])   # and set_modules_to_backward_prefetch
Where memory allows keep parameters from forward to backward (`reshard_after_forward=False`), or shard within a machine
only: a mesh of two dimensions, (replicate, shard). A larger batch gives each more compute to hide behind.""",
    None: SHARDS[None],
}

ZERO: Remedies = {
    PYTORCH: """\
Let DeepSpeed communicate beside compute: `"overlap_comm": true` and `"contiguous_gradients": true`, at stage 3 a larger
`"stage3_prefetch_bucket_size"`. Where memory allows use stage 2 or 1 in place of 3, or keep a second copy of the shards
within each machine (`"zero_hpz_partition_size"`: the devices of one). A larger batch gives each more compute to hide
behind.""",
    None: SHARDS[None],
}

JOIN_SHARDS: Remedies = {
    PYTORCH: (RemedyPart("Wrap larger blocks, so that each gathers and scatters more at once.\n", purposes=TRAINS),),
    JAX: (
        RemedyPart(
            """\
Let XLA combine small ones:
    XLA_FLAGS="--xla_gpu_all_gather_combine_threshold_bytes=134217728"
and `--xla_gpu_reduce_scatter_combine_threshold_bytes` likewise.""",
            vendors=GPUS,
        ),
    ),
    None: "Join small tensors into one before they are gathered or scattered.\n",
}
