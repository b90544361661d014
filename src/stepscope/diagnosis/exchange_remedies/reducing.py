"""What to do about all-reduces that nothing hides."""

from __future__ import annotations

from stepscope.diagnosis.exchange_remedies.shared import ENGINES, GPUS, OVERLAP_IN_XLA
from stepscope.diagnosis.limits import FEW_GRADIENT_BYTES, HALVED_SHARE
from stepscope.diagnosis.remedies import JAX, PYTORCH, TENSORFLOW, TORCH_XLA, TRAINS, Remedies, RemedyPart
from stepscope.units import format_share

_OTHERS_GRADIENTS: Remedies = {
    JAX: (
        *OVERLAP_IN_XLA,
        "Send in bfloat16. A larger batch gives each collective more compute to hide behind.",
    ),
    TENSORFLOW: (
        RemedyPart(
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
        RemedyPart(
            """\
Reduce gradients once per optimizer step (`xm.optimizer_step` does), in bfloat16, and accumulate over several batches. A
larger batch gives each collective more compute to hide behind.""",
            purposes=TRAINS,
        ),
    ),
    None: "Start it while other work can run, in fewer and larger pieces, and send fewer bytes (16 bits).",
}

_TRAVEL = RemedyPart(
    """\
Let gradients travel while the backward pass computes:
    model = DistributedDataParallel(model, gradient_as_bucket_view=True, bucket_cap_mb=...)
""",
    purposes=TRAINS,
    since=(1, 7),
)
_BUCKETS = RemedyPart(
    """\
Smaller buckets start earlier, larger ones use the links better: try both sides of the default of 25 MB.""",
    purposes=TRAINS,
)
_FEW_BYTES = RemedyPart(
    """\
All of it fits into a bucket or two of the default of 25 MB, which are complete when the backward pass is nearly over:
try smaller ones, that start earlier.""",
    purposes=TRAINS,
)
_HALVE = """\
{what} in 32 bits; in 16 {they} half the bytes:
    model.register_comm_hook(None, default_hooks.bf16_compress_hook)
"""
_HALVE_IF = """\
Where they are sent in 32 bits, `model.register_comm_hook(None, default_hooks.bf16_compress_hook)` halves the bytes."""
_RARER = RemedyPart(
    """\
Accumulate gradients over several batches under `model.no_sync()`. A larger batch gives each all-reduce more compute to
hide behind.""",
    purposes=TRAINS,
)


def gradients(step_bytes: int | None = None, wide: float | None = None) -> Remedies:
    """What to do about gradients, by how much is sent per step and which share of it in elements of 32 bits; None where
    that is not recorded."""
    return {**_OTHERS_GRADIENTS, PYTORCH: (*_replicas(step_bytes, wide), *ENGINES)}


def reduced(step_bytes: int | None = None, wide: float | None = None) -> Remedies:
    """The same of all-reduces where nothing says what they are."""
    unsaid = RemedyPart("The profile does not say what is reduced. If it is gradients:", purposes=TRAINS)
    return {**_OTHERS_GRADIENTS, PYTORCH: (unsaid, *_replicas(step_bytes, wide), *ENGINES)}


def _replicas(step_bytes: int | None, wide: float | None) -> tuple[RemedyPart, ...]:
    few = step_bytes is not None and step_bytes <= FEW_GRADIENT_BYTES
    return (_TRAVEL, _FEW_BYTES if few else _BUCKETS, *_halved(wide), _RARER)


def _halved(wide: float | None) -> tuple[RemedyPart, ...]:
    """A hook sends what it is given in 16 bits: that halves only what has 32."""
    if wide is None:
        text = _HALVE_IF
    elif wide == 1:
        text = _HALVE.format(what="They are sent", they="they are")
    elif wide >= HALVED_SHARE:
        text = _HALVE.format(what=f"Of the bytes {format_share(wide)} are sent", they="those are")
    else:
        return ()
    return (RemedyPart(text, purposes=TRAINS, since=(1, 10)),)


GRADIENTS: Remedies = gradients()
"""Of replicas' all-reduces."""

REDUCED: Remedies = reduced()
"""Of all-reduces where nothing says what they are."""

REPORTS: Remedies = {
    PYTORCH: """\
These carry metrics or Python objects, which no layer needs: exchange them every N steps and not in each, in one tensor
(an all-reduce of sums and counts) and not as pickled objects.""",
    None: "These carry metrics or objects, which no layer needs: exchange them every N steps, in one tensor.",
}

PARTS_OF_LAYERS: Remedies = {
    PYTORCH: (
        RemedyPart(
            """\
These join the parts of layers cut across devices (tensor parallel), and the next layer needs them. Cut layers across
the devices of one machine only, and across no more than memory asks for; split them into reduce-scatters and
all-gathers that run beside the products around them (Megatron-LM: `--sequence-parallel --tp-comm-overlap`).""",
            purposes=TRAINS,
        ),
        *ENGINES,
    ),
    None: """\
These join the parts of layers cut across devices, and the next layer needs them: cut layers across the devices of one
machine only, and across no more than memory asks for.""",
}

JOIN_GRADIENTS: Remedies = {
    PYTORCH: (
        RemedyPart(
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
        RemedyPart(
            """\
Let XLA combine collectives:
    XLA_FLAGS="--xla_gpu_all_reduce_combine_threshold_bytes=134217728"
""",
            vendors=GPUS,
        ),
    ),
    None: "Join small tensors into one before they are reduced.\n",
}

LATE_RANKS: Remedies = {
    PYTORCH: """\
Look for who is late first: ranks wait here for the last one, and no way of sending shortens that. Record all ranks in
the same steps and diagnose their profiles together, then even out what they do (inputs of equal length, a host or a
loader that is slower than the others).""",
    None: """\
Look for who is late first: devices wait here for the last one, and no way of sending shortens that. Record all of them
and diagnose their profiles together.""",
}
"""Where what is sent explains but little of the time."""

ONE_PROCESSOR: Remedies = {
    JAX: """\
Nothing to repair: the devices are threads of one processor (`--xla_force_host_platform_device_count`,
`jax_num_cpu_devices`). Where it has fewer cores than devices they take turns, and most of this is waiting until the
others have computed too. Such a run shows whether a program is right, not how fast it exchanges: record it on the
accelerators.""",
    None: """\
Nothing to repair: the devices are threads of one processor. Where it has fewer cores than devices they take turns, and
most of this is waiting until the others have computed too. Record the program on the accelerators it is meant for.""",
}
"""Of devices that the processor plays, all in one profile."""
