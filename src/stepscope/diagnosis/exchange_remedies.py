"""What to do about communication that nothing hides, by what is exchanged and how the program spreads its work.

Sources: the documentation of PyTorch's DistributedDataParallel, FSDP1, ``fully_shard`` and pipelining, TorchRec,
DeepSpeed, Megatron-LM, vLLM and SGLang; JAX, GPU performance tips.
"""

from __future__ import annotations

from collections.abc import Collection

from stepscope.analysis.exchange.exposed import Exchange
from stepscope.diagnosis.remedies import (
    AMD,
    INFERS,
    JAX,
    NVIDIA,
    PYTORCH,
    TENSORFLOW,
    TORCH_XLA,
    TRAINS,
    Part,
    Remedies,
)
from stepscope.names.parallelism import Layout

_GPUS = (*NVIDIA, *AMD)
_OVERLAP_IN_XLA = (
    Part(
        """\
Let XLA run it beside compute:
    XLA_FLAGS="--xla_gpu_enable_latency_hiding_scheduler=true"
""",
        vendors=_GPUS,
    ),
    "Shard so that the axis that communicates most lies within one machine.",
)
_ENGINES = (
    Part(
        """\
In inference an all-reduce joins the parts of a layer cut across devices (tensor parallel): the next layer needs it, so
it can be made faster or rarer, not hidden. Serve with fewer devices per model and more replicas where memory allows
(`--tensor-parallel-size` in vLLM, `--tp-size` in SGLang), and keep the engine's own all-reduce for small messages on
(no `--disable-custom-all-reduce`).""",
        purposes=INFERS,
    ),
    Part(
        """\
Fuse it with the normalisation behind it: `"pass_config": {"fuse_allreduce_rms": true}` in vLLM's
`--compilation-config`, `--enable-flashinfer-allreduce-fusion` in SGLang.""",
        purposes=INFERS,
        vendors=("NVIDIA",),
    ),
    Part(
        "Send it quantised, if accuracy allows: `VLLM_ROCM_QUICK_REDUCE_QUANTIZATION=INT8` (or `INT4`) in vLLM.",
        purposes=INFERS,
        vendors=("AMD",),
    ),
)

GRADIENTS: Remedies = {
    PYTORCH: (
        Part(
            """\
Let gradients travel while the backward pass computes, and less of them:
    model = DistributedDataParallel(model, bucket_cap_mb=100, gradient_as_bucket_view=True)
    model.register_comm_hook(None, default_hooks.bf16_compress_hook)  # half the bytes
Smaller buckets start earlier, larger ones use the links better: try both sides of the default of 25 MB. Accumulate
gradients over several batches under `model.no_sync()`. A larger batch gives each all-reduce more compute to hide
behind.""",
            purposes=TRAINS,
        ),
        *_ENGINES,
    ),
    JAX: (
        *_OVERLAP_IN_XLA,
        "Send in bfloat16. A larger batch gives each collective more compute to hide behind.",
    ),
    TENSORFLOW: (
        Part(
            """\
Pack gradients into fewer, larger all-reduces that start during the backward pass:
    options = tf.distribute.experimental.CommunicationOptions(bytes_per_pack=50 * 1024 * 1024)
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
A larger batch gives each collective more compute to hide behind.""",
            purposes=TRAINS,
            since=(2, 4),
        ),
    ),
    TORCH_XLA: (
        Part(
            """\
Reduce gradients once per optimizer step (`xm.optimizer_step` does), in bfloat16, and accumulate over several batches. A
larger batch gives each collective more compute to hide behind.""",
            purposes=TRAINS,
        ),
    ),
    None: "Start it while other work can run, in fewer and larger pieces, and send fewer bytes (16 bits).",
}
"""Of all-reduces where nothing says otherwise."""

PARTS_OF_LAYERS: Remedies = {
    PYTORCH: (
        Part(
            """\
These join the parts of layers cut across devices (tensor parallel), and the next layer needs them. Cut layers across
the devices of one machine only, and across no more than memory asks for; split them into reduce-scatters and
all-gathers that run beside the products around them (Megatron-LM: `--sequence-parallel --tp-comm-overlap`).""",
            purposes=TRAINS,
        ),
        *_ENGINES,
    ),
    None: """\
These join the parts of layers cut across devices, and the next layer needs them: cut layers across the devices of one
machine only, and across no more than memory asks for.""",
}

BESIDE_SHARDS: Remedies = {
    PYTORCH: (
        Part(
            """\
Beside sharded parameters an all-reduce carries gradients between the groups of hybrid sharding, the norm of gradients,
or metrics. Accumulate gradients over several batches before they are reduced, clip by their norm with one call for all,
and reduce metrics every N steps, in one tensor.""",
            purposes=TRAINS,
        ),
        *_ENGINES,
    ),
    None: "Reduce metrics every N steps, in one tensor, and gradients once per optimizer step.",
}

SHARDS: Remedies = {
    PYTORCH: (
        Part(
            """\
Gather the parameters of the next layers while this one computes, reduce gradients while the backward pass computes
(prefetching), and move fewer bytes: in 16 bits, and sharded across fewer devices (hybrid sharding: within a machine)
where memory allows. A larger batch gives each more compute to hide behind.""",
            purposes=TRAINS,
        ),
        Part(
            """\
In inference these belong to layers cut across devices: use fewer devices per model and more replicas where memory
allows, and gather only what is needed (of the logits the last token's).""",
            purposes=INFERS,
        ),
    ),
    JAX: (
        *_OVERLAP_IN_XLA,
        Part(
            """\
Let the next layers' parameters come while this one computes:
    --xla_gpu_enable_pipelined_all_gather=true --xla_gpu_enable_pipelined_reduce_scatter=true""",
            vendors=_GPUS,
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

EMBEDDINGS: Remedies = {
    PYTORCH: (
        Part(
            """\
Embeddings of spread tables are exchanged with every batch. Distribute the next batch's features while this one
computes, and send fewer bytes:
    pipeline = TrainPipelineSparseDist(model, optimizer, device)   # torchrec.distributed.train_pipeline
    QCommsConfig(forward_precision=CommType.FP16, backward_precision=CommType.BF16)   # given to the sharders
Rebalance what each device holds (`EmbeddingShardingPlanner` with the measured pooling factors): the exchange ends with
the one that has most to send. Tables that are small enough go to every device (`data_parallel`), very wide ones by
columns.""",
            purposes=TRAINS,
        ),
        Part(
            """\
Embeddings of spread tables are exchanged with every batch: send them in 16 or 8 bits, keep small tables on every
device, and rebalance what each holds, since the exchange ends with the one that has most to send.""",
            purposes=INFERS,
        ),
    ),
    None: """\
Embeddings of spread tables are exchanged with every batch: distribute the next batch's features while this one
computes, send them in 16 bits, keep small tables on every device, and rebalance the large ones.""",
}

EXPERTS: Remedies = {
    PYTORCH: (
        Part(
            """\
Tokens go to their experts and back. Overlap that with other compute: a second half of the batch, the shared experts, or
the gradients of weights (Megatron-LM: `--overlap-moe-expert-parallel-comm --delay-wgrad-compute`,
`--moe-shared-expert-overlap`).""",
            purposes=TRAINS,
        ),
        Part(
            """\
Tokens go to their experts and back. Overlap that with the other half of the batch (vLLM: `--enable-dbo`, SGLang:
`--enable-two-batch-overlap`), and balance experts by load (`--enable-eplb` in both): the exchange ends with the
busiest. Kernels made for it beat a plain all-to-all (vLLM `--all2all-backend`, SGLang `--moe-a2a-backend deepep`).""",
            purposes=INFERS,
        ),
        "Send tokens in 8 bits, keep experts that are called together on one machine, and balance what each gets.",
    ),
    JAX: (
        *_OVERLAP_IN_XLA,
        """\
Tokens go to their experts and back: keep the experts' axis within one machine, send tokens in 16 or 8 bits, and balance
what each expert gets.""",
    ),
    None: """\
Tokens go to their experts and back: overlap that with the other half of the batch, send them in 8 bits, keep the
experts of one group on one machine, and balance what each expert gets.""",
}

ALL_TO_ALL: Remedies = {
    JAX: (
        *_OVERLAP_IN_XLA,
        """\
Exchange the next piece while this one is worked on, in 16 or 8 bits, and even out what each device sends: an all-to-all
ends with the one that has most.""",
    ),
    None: """\
Exchange the next batch's, or the other half of this one's, while the device computes; send fewer bytes (16 or 8 bits);
and even out what each device sends: an all-to-all ends with the one that has most.""",
}

BUFFERS: Remedies = {
    PYTORCH: """\
DistributedDataParallel sends the buffers of the first rank to all others before each forward pass. Leave that out:
    model = DistributedDataParallel(model, broadcast_buffers=False)
That is safe where buffers never change (masks, tables) or are equal on all ranks anyway (SyncBatchNorm). With ordinary
batch norm each rank then keeps running means of its own, of its own batches; training itself does not use them, and
what is saved and evaluated are those of the rank that does it.""",
    None: "Send buffers only when they are read: before evaluating and saving, not in every step.",
}

BROADCASTS: Remedies = {
    PYTORCH: (
        Part(
            """\
Send what all ranks need once, or let each make it itself: seeds, schedules and masks can be computed everywhere.
Parameters that one rank updates and sends (ZeroRedundancyOptimizer) can follow while the next step begins
(`overlap_with_ddp=True`), and buffers of DistributedDataParallel need not be sent in each step where they are equal
anyway (`broadcast_buffers=False`).""",
            purposes=TRAINS,
        ),
        Part(
            """\
Send what all ranks need in one message, of tensors and not of Python objects, or let each compute it itself (sampling
with one seed).""",
            purposes=INFERS,
        ),
    ),
    None: "Send what all devices need once, in one message, or let each compute it itself.",
}

STAGES: Remedies = {
    PYTORCH: (
        Part(
            """\
Stages of a pipeline wait for what their neighbours send. Send more, smaller micro-batches through it, use a schedule
that interleaves (in Megatron-LM `--num-layers-per-virtual-pipeline-stage`), and give stages equal times.""",
            purposes=TRAINS,
        ),
        Part(
            "`torch.distributed.pipelining` has `ScheduleInterleaved1F1B` and `ScheduleInterleavedZeroBubble`.",
            purposes=TRAINS,
            since=(2, 4),
        ),
        Part(
            """\
Stages of a pipeline wait for what their neighbours send: keep as many requests or micro-batches in flight as there are
stages, and give stages equal times.""",
            purposes=INFERS,
        ),
    ),
    None: """\
Stages of a pipeline wait for what their neighbours send: send more, smaller micro-batches through it, and give stages
equal times.""",
}

NEIGHBOURS: Remedies = {
    PYTORCH: """\
Post receives before the work they are needed behind, and send as soon as a tensor is ready, many in one call:
    works = dist.batch_isend_irecv(ops)    # then compute, and wait for the works where the data is needed
Between the stages of a pipeline: more, smaller micro-batches, and stages of equal times.""",
    JAX: (*_OVERLAP_IN_XLA, "`jax.lax.ppermute` the next piece while this one is worked on."),
    None: """\
Send as soon as the data is ready and receive before it is needed, with other work between. Between the stages of a
pipeline: more, smaller micro-batches, and stages of equal times.""",
}

MEETINGS: Remedies = {
    PYTORCH: """\
Devices only wait for each other here: leave the barrier out where nothing but timing or logging needs it. Collectives
keep ranks in step by themselves; around files `dist.monitored_barrier`, which waits on the host, is enough.""",
    None: "Devices only wait for each other here: leave the barrier out where nothing but timing or logging needs it.",
}

UNNAMED: Remedies = {
    PYTORCH: (
        Part(
            """\
The profile does not say what is exchanged. Start it while other work can run, in fewer and larger pieces, and send
fewer bytes (16 bits).""",
        ),
    ),
    JAX: _OVERLAP_IN_XLA,
    None: "Start it while other work can run, in fewer and larger pieces, and send fewer bytes (16 bits).",
}

JOIN_GRADIENTS: Remedies = {
    PYTORCH: (
        Part(
            """\
Reduce gradients in buckets instead of tensor by tensor: `DistributedDataParallel` does so, or
    flat = torch._utils._flatten_dense_tensors(grads)
    dist.all_reduce(flat)                      # one call for all
    torch._foreach_copy_(grads, torch._utils._unflatten_dense_tensors(flat, grads))
""",
            purposes=TRAINS,
        ),
    ),
    JAX: (
        'Reduce the whole tree of arrays in one call, `jax.lax.pmean(tree, "batch")`.',
        Part(
            """\
Let XLA combine collectives:
    XLA_FLAGS="--xla_gpu_all_reduce_combine_threshold_bytes=134217728"
""",
            vendors=_GPUS,
        ),
    ),
    None: "Join small tensors into one before they are reduced.\n",
}
JOIN_SHARDS: Remedies = {
    PYTORCH: (Part("Wrap larger blocks, so that each gathers and scatters more at once.\n", purposes=TRAINS),),
    JAX: (
        Part(
            """\
Let XLA combine small ones:
    XLA_FLAGS="--xla_gpu_all_gather_combine_threshold_bytes=134217728"
and `--xla_gpu_reduce_scatter_combine_threshold_bytes` likewise.""",
            vendors=_GPUS,
        ),
    ),
    None: "Join small tensors into one before they are gathered or scattered.\n",
}
JOIN: Remedies = {None: "Join small tensors into one before they are exchanged.\n"}

_RECIPES: tuple[tuple[Exchange, tuple[Layout, ...], Remedies], ...] = (
    (Exchange.REDUCING, (Layout.TENSOR,), PARTS_OF_LAYERS),
    (Exchange.REDUCING, (Layout.DATA,), GRADIENTS),
    (Exchange.REDUCING, (Layout.FSDP, Layout.FULLY_SHARD, Layout.ZERO), BESIDE_SHARDS),
    (Exchange.REDUCING, (), GRADIENTS),
    (Exchange.SHARDS, (Layout.FSDP,), FSDP1),
    (Exchange.SHARDS, (Layout.FULLY_SHARD,), FSDP2),
    (Exchange.SHARDS, (Layout.ZERO,), ZERO),
    (Exchange.SHARDS, (Layout.TENSOR,), PARTS_OF_LAYERS),
    (Exchange.SHARDS, (), SHARDS),
    (Exchange.ALL_TO_ALL, (Layout.RECOMMENDER,), EMBEDDINGS),
    (Exchange.ALL_TO_ALL, (Layout.EXPERTS,), EXPERTS),
    (Exchange.ALL_TO_ALL, (), ALL_TO_ALL),
    (Exchange.BROADCAST, (Layout.BUFFERS,), BUFFERS),
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
    # Anything may be broadcast in a program whose replicas have buffers, too.
    far = [layout for layout in anywhere if layout is not Layout.BUFFERS]
    for known in (near, far):
        fitting = [texts for needs, texts in mine if any(layout in known for layout in needs)]
        if fitting:
            return fitting
    return [texts for needs, texts in mine if not needs]


def joins(exchange: Exchange) -> Remedies:
    """What to do about many small ones."""
    return {Exchange.REDUCING: JOIN_GRADIENTS, Exchange.SHARDS: JOIN_SHARDS}.get(exchange, JOIN)
