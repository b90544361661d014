"""What to do about all-to-alls, broadcasts, sends, barriers and what has no name."""

from __future__ import annotations

from stepscope.diagnosis.exchange_remedies.shared import OVERLAP_IN_XLA
from stepscope.diagnosis.remedies import INFERS, JAX, PYTORCH, TRAINS, Remedies, RemedyPart

EMBEDDINGS: Remedies = {
    PYTORCH: (
        RemedyPart(
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
        RemedyPart(
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
        RemedyPart(
            """\
Tokens go to their experts and back. Overlap that with other compute: a second half of the batch, the shared experts, or
the gradients of weights (Megatron-LM: `--overlap-moe-expert-parallel-comm --delay-wgrad-compute`,
`--moe-shared-expert-overlap`).""",
            purposes=TRAINS,
        ),
        RemedyPart(
            """\
Tokens go to their experts and back. Overlap that with the other half of the batch (vLLM: `--enable-dbo`, SGLang:
`--enable-two-batch-overlap`), and balance experts by load (`--enable-eplb` in both): the exchange ends with the
busiest. Kernels made for it beat a plain all-to-all (vLLM `--all2all-backend`, SGLang `--moe-a2a-backend deepep`).""",
            purposes=INFERS,
        ),
        "Send tokens in 8 bits, keep experts that are called together on one machine, and balance what each gets.",
    ),
    JAX: (
        *OVERLAP_IN_XLA,
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
        *OVERLAP_IN_XLA,
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
        RemedyPart(
            """\
Send what all ranks need once, or let each make it itself: seeds, schedules and masks can be computed everywhere.
Parameters that one rank updates and sends (ZeroRedundancyOptimizer) can follow while the next step begins
(`overlap_with_ddp=True`), and buffers of DistributedDataParallel need not be sent in each step where they are equal
anyway (`broadcast_buffers=False`).""",
            purposes=TRAINS,
        ),
        RemedyPart(
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
        RemedyPart(
            """\
Stages of a pipeline wait for what their neighbours send. Send more, smaller micro-batches through it, use a schedule
that interleaves (in Megatron-LM `--num-layers-per-virtual-pipeline-stage`), and give stages equal times.""",
            purposes=TRAINS,
        ),
        RemedyPart(
            "`torch.distributed.pipelining` has `ScheduleInterleaved1F1B` and `ScheduleInterleavedZeroBubble`.",
            purposes=TRAINS,
            since=(2, 4),
        ),
        RemedyPart(
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
    JAX: (*OVERLAP_IN_XLA, "`jax.lax.ppermute` the next piece while this one is worked on."),
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
        RemedyPart(
            """\
The profile does not say what is exchanged. Start it while other work can run, in fewer and larger pieces, and send
fewer bytes (16 bits).""",
        ),
    ),
    JAX: OVERLAP_IN_XLA,
    None: "Start it while other work can run, in fewer and larger pieces, and send fewer bytes (16 bits).",
}
