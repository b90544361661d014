"""What to write instead where a device waits for data, or the host for results."""

from __future__ import annotations

from stepscope.analysis.workload import Purpose
from stepscope.diagnosis.remedies.fitting import (
    AMD,
    INTEL,
    JAX,
    NVIDIA,
    PYTORCH,
    SERVES,
    TENSORFLOW,
    TORCH_XLA,
    TRAINS,
    Remedies,
    RemedyPart,
)

LOOP_SYNC: Remedies = {
    PYTORCH: """\
Leave the call out of the loop, and synchronise once behind it. To time single steps, use device events, which wait for
nothing until they are read:
    start.record(); step(); end.record()
    # behind the loop: one synchronise, then start.elapsed_time(end)""",
    None: "Leave the call out of the loop, and wait once behind it: divide the time of the whole loop by its steps.",
}

SYNC_CALL: Remedies = {
    PYTORCH: """\
Remove the synchronise call, or run it every N steps. For timing, use device events:
    start.record(); ...; end.record()   # read start.elapsed_time(end) later, after one synchronise""",
    JAX: """\
Let the host run ahead: keep metrics on the device and read those of an earlier step every N steps (`float(x)`,
`np.asarray(x)`, `print(x)` and `block_until_ready()` all wait).""",
    TENSORFLOW: """\
Fetch values (`.numpy()`, `float(x)`, `session.run`) every N steps only, and write summaries inside the
`tf.function`.""",
    TORCH_XLA: """\
Read tensors (`.item()`, `print`, `if tensor:`) every N steps only, and log in a closure that runs after the step:
    xm.add_step_closure(log, args=(value,), run_async=True)""",
    None: "Remove the wait, or run it every N steps: keep results on the device until then.",
}

SYNC_DEBUG = RemedyPart(
    """\
- To see where waits are left, run a few steps under PyTorch's own warning: each op that waits then prints "UserWarning:
called a synchronizing CUDA operation" with its file and line (`"error"` raises instead). It is experimental, and does
not cover `torch.distributed` and sparse tensors.
    torch.cuda.set_sync_debug_mode("warn")""",
    since=(1, 10),
    vendors=NVIDIA,
)
"""Beside what to write instead of waits, for PyTorch."""

_AHEAD: Remedies = {
    JAX: """\
Send the next batch while this step computes: `jax.device_put` returns at once, so call it one batch ahead.""",
    TENSORFLOW: (
        RemedyPart(
            """\
Send the next batch while this step computes:
    dataset.apply(tf.data.experimental.prefetch_to_device("/gpu:0"))""",
            vendors=(*NVIDIA, *AMD, *INTEL),
        ),
    ),
}
"""Neither lets a program choose the memory that it sends from; what is sent ahead holds nothing up."""

COPY_PAGEABLE: Remedies = {
    PYTORCH: (
        RemedyPart(
            """\
Pin the batches and do not wait for the copy, so that it runs beside the kernels of the step before:
    DataLoader(..., pin_memory=True)
    batch = batch.to(device, non_blocking=True)""",
            purposes=(Purpose.TRAINING, Purpose.INFERENCE),
        ),
        RemedyPart(
            """\
Send from pinned buffers that are kept, and do not wait for the copy, so that it runs beside the kernels of the step
before:
    buffer = torch.empty(shape, dtype=dtype, pin_memory=True)  # once
    on_device.copy_(buffer, non_blocking=True)""",
            purposes=SERVES,
            certain=True,
        ),
    ),
    **_AHEAD,
    None: """\
Copy from pinned host memory, and without waiting, so that the copy runs beside the kernels of the step before.""",
}

COPY_PINNED: Remedies = {
    PYTORCH: """\
Copy the next batch on a stream of its own while this step computes (prefetching), with `non_blocking=True`.""",
    **_AHEAD,
    None: "Send the next batch while this step computes (prefetching), on a stream of its own.",
}

COPY_D2H: Remedies = {
    PYTORCH: """\
Keep results on the device and fetch them every N steps, into pinned memory with `non_blocking=True`.""",
    None: "Keep results on the device and fetch them every N steps.",
}

TRANSFERS: Remedies = {
    JAX: """\
Send the next batch while this step computes: call `jax.device_put(batch, sharding)` a batch or two ahead (it returns at
once), keep what does not change on the device, and pass arrays of the device, not of numpy, to the step. Send the
narrowest type (`uint8` images) and convert on the device.""",
    TENSORFLOW: (
        RemedyPart(
            """\
Send the next batch while this step computes:
    dataset.apply(tf.data.experimental.prefetch_to_device("/gpu:0"))""",
            vendors=(*NVIDIA, *AMD, *INTEL),
        ),
        "Send the narrowest type (`uint8` images), and cast on the device.",
    ),
    TORCH_XLA: """\
Send batches from a thread of their own, a few ahead:
    loader = torch_xla.distributed.parallel_loader.MpDeviceLoader(loader, device, device_prefetch_size=8)
and keep Python numbers out of the step: each is sent anew.""",
    None: "Send the next batch while this step computes, in few large pieces of the narrowest type.",
}

INFEED: Remedies = {
    TENSORFLOW: (
        """\
The pipeline on the host does not keep up with the device. Let it work in parallel and ahead:
    dataset.map(parse, num_parallel_calls=tf.data.AUTOTUNE).batch(n, drop_remainder=True).prefetch(tf.data.AUTOTUNE)""",
        RemedyPart("Run many steps per call: `steps_per_execution`, or a loop inside the `tf.function`.", since=(2, 4)),
    ),
    None: "The pipeline on the host does not keep up with the device: prepare batches in parallel and a few ahead.",
}

OFFLOADED: Remedies = {
    JAX: (
        """\
Keep on the device what it has room for, those arrays first that are waited for longest: place them there and leave
them there between steps,
    x = jax.device_put(x, x.sharding.with_memory_kind("device"))
and ask for results there (`out_shardings` with the memory kind `device`).""",
        RemedyPart(
            "Offload fewer activations: shorten `names_which_can_be_offloaded` of\n"
            "`jax.checkpoint_policies.save_and_offload_only_these_names`, or compute them again instead.",
            purposes=TRAINS,
        ),
        """\
What must stay on the host, fetch earlier: begin the transfer of what the next layer or step needs before the work of
this one, in pieces small enough to pass beside it, and move narrower types (bfloat16). Where a transfer takes longer
than all other work, no earlier beginning hides it.""",
    ),
    None: """\
Keep on the device what it has room for, those arrays first that are waited for longest. What must stay in the host's
memory, fetch earlier, before the work that does not need it, and in narrower types. Where a transfer takes longer than
all other work, no earlier beginning hides it.""",
}
