"""What to write instead where work of the host holds up a device."""

from __future__ import annotations

from stepscope.analysis.workload import CPU, Feature, Purpose
from stepscope.diagnosis.remedies.fitting import (
    AMD,
    INFERS,
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

_DEVICES = (*NVIDIA, *AMD, *INTEL, "Google")

WAITED_FOR: Remedies = {
    None: """\
Make faster what puts things there, or let it work further ahead: a longer queue, more workers, processes where it
computes in Python (threads of one process take turns). Where that is requests, nothing holds the job up."""
}

HOST_WORK: Remedies = {
    PYTORCH: (
        RemedyPart(
            """\
Run it every N steps (`if step % 100 == 0:`), or in a thread while the device works: logging, metrics, progress bars and
callbacks need not hold up a step. Keep metrics on the device as tensors and turn them into numbers only when they are
logged.""",
            purposes=(Purpose.TRAINING, Purpose.INFERENCE),
            vendors=_DEVICES,
        ),
        RemedyPart(
            """\
Run it every N steps (`if step % 100 == 0:`), or in a process of its own: logging, metrics, progress bars and callbacks
need not hold up a step. Turn tensors into numbers only when they are logged.""",
            purposes=(Purpose.TRAINING,),
            vendors=(CPU,),
            certain=True,
        ),
        RemedyPart(
            """\
Make it cheaper in the lines named above (whole arrays in place of loops; what gives the same answer each time once), or
let a thread or process prepare the next input while the model computes this one.""",
            purposes=(Purpose.INFERENCE, Purpose.UNKNOWN),
            vendors=(CPU,),
            certain=True,
        ),
        RemedyPart(
            """\
Run it in a thread or process of its own while the device works: scheduling, tokenising, detokenising and answering need
not hold up the next step.""",
            purposes=SERVES,
            certain=True,
        ),
    ),
    JAX: """\
Run it every N steps, or in a thread while the device works; several steps in one call leave less for Python to do:
    state, metrics = jax.lax.scan(step, state, batches)  # N steps, then log once""",
    TENSORFLOW: (
        RemedyPart(
            """\
Let several steps run between two calls of the callbacks, and write summaries every N of them:
    model.compile(..., steps_per_execution=10)
    keras.callbacks.TensorBoard(update_freq=100)
In a loop of your own a `tf.while_loop` (a `for` over the dataset inside the `tf.function`) runs many steps.""",
            since=(2, 4),
            unless=(Feature.SESSION,),
        ),
        RemedyPart(
            """\
Fetch metrics and summaries every N steps only, and run the train op alone in between:
    tf.compat.v1.train.SummarySaverHook(save_steps=100, ...), LoggingTensorHook(every_n_iter=100, ...)""",
            given=(Feature.SESSION,),
        ),
    ),
    TORCH_XLA: """\
Log every N steps, in a closure that runs beside the next step:
    xm.add_step_closure(log, args=(value,), run_async=True)""",
    None: "Run it every N steps, or in a thread while the device works.",
}

CALLBACKS: Remedies = {
    TENSORFLOW: (
        """\
Do the work of the callback every N batches, and leave metrics on the device until then:
    if batch % 100 == 0:
        ...""",
        RemedyPart(
            """\
Or let several steps run between two calls of all callbacks, and write summaries every N of them:
    model.compile(..., steps_per_execution=10)
    keras.callbacks.TensorBoard(update_freq=100)""",
            since=(2, 4),
        ),
    ),
    None: """\
Do the work of the callback every N steps (`if step % 100 == 0:`), and leave metrics on the device until then; what
writes files or sends messages can run in a thread while the device works.""",
}

CALLED_FOR_VALUES: Remedies = {
    JAX: """\
Write what the function computes in `jax.numpy`, inside of the program; what only Python can do (reading, looking up)
belongs before the step, for the next batch while this one is computed, and goes into the step as an argument.""",
    None: "Compute it on the device, or before the program starts, and pass it what comes of it.",
}

CALLED_TO_TELL: Remedies = {
    JAX: """\
Leave `jax.debug.print` and `jax.debug.callback` out of the step, or run them every N steps; values that are logged can
be returned from the step with its result, and read behind it:
    jax.lax.cond(step % 100 == 0, lambda: jax.debug.print("{}", x), lambda: None)""",
    None: "Return what is logged from the program, and read it every N steps.",
}
"""What to write instead where a compiled program calls Python: for values it goes on with, and to tell somebody."""

WORK_AHEAD: Remedies = {
    PYTORCH: (
        RemedyPart(
            "If it prepares a batch, do it in the dataset; its workers run ahead: DataLoader(dataset, num_workers=4).",
            purposes=(Purpose.TRAINING, Purpose.INFERENCE),
            certain=True,
        ),
    ),
    JAX: "If it prepares a batch, do it in a thread or process that runs ahead of the loop.",
    TENSORFLOW: """\
If it prepares a batch, do it in the pipeline, which runs ahead:
    dataset = dataset.map(prepare, num_parallel_calls=8).prefetch(2)""",
    TORCH_XLA: """\
If it prepares a batch, do it where that runs ahead, and let a thread send what comes of it:
    loader = torch_xla.distributed.parallel_loader.MpDeviceLoader(loader, device)""",
    None: "If it prepares a batch, do it in a thread or process that runs ahead of the loop.",
}

BEFORE_COPY: Remedies = {
    PYTORCH: (
        RemedyPart(
            """\
What makes the batch that the next copy sends belongs in a thread or process that runs ahead, or in the dataset, whose
workers do: DataLoader(dataset, num_workers=4). Only what no step takes in (logging, metrics, progress bars) can run
every N steps (`if step % 100 == 0:`).""",
            purposes=(Purpose.TRAINING, Purpose.INFERENCE),
        ),
        RemedyPart(
            """\
Run it in a thread or process of its own while the device works, what makes the next inputs a little ahead: scheduling,
tokenising, detokenising and answering need not hold up the next step.""",
            purposes=SERVES,
            certain=True,
        ),
    ),
    None: """\
What makes the batch that the next copy sends belongs in a thread or process that runs ahead of the loop. Only what no
step takes in can run every N steps.""",
}

ASK_ONCE: Remedies = {
    PYTORCH: """\
Ask once and keep the answer, outside of the loop: what a walk over the modules finds (their device, their dtype, their
hooks) does not change from step to step.
    device = next(model.parameters()).device      # before the loop, not in it
    @functools.cached_property                    # in a class of your own
Where a library does it, look for the call that leaves it out (pass the device or dtype, a lower-level function), or for
a newer version.""",
    None: "Ask once and keep the answer, outside of the loop.",
}
"""Of walks over the modules of a model."""

KEEP_ANSWERS: Remedies = {
    None: """\
If its answer is the same in each step (what a function's arguments are called, a setting, a size), ask once and keep
it: `functools.cache`, `functools.cached_property`, or a variable outside of the loop. Checks and messages can run every
N steps. Where a library does it, look for the call that leaves it out, or for a newer version.""",
}

GARBAGE: Remedies = {
    None: """\
A `gc.collect()` of your own, where the lines above have one, need not come so often: every few hundred steps, or never.
Python's own collections come when it suits you: after set-up `gc.collect(); gc.freeze()` (what exists then is never
looked at again), in the loop `gc.disable()` and a `gc.collect()` every few hundred steps, or a higher threshold:
    gc.set_threshold(50_000, 50, 100)""",
}

_LOADED_ONCE = RemedyPart(
    "A model is read while steps run: read it once, before the first of them.", purposes=INFERS, certain=True
)

_SAVING = (Purpose.TRAINING,)

CHECKPOINTS: Remedies = {
    PYTORCH: (
        _LOADED_ONCE,
        RemedyPart(
            """\
Write checkpoints less often, or in the background while the next steps run:
    torch.distributed.checkpoint.async_save(state_dict, checkpoint_id=path)""",
            purposes=_SAVING,
            since=(2, 3),
        ),
        RemedyPart(
            """\
Write checkpoints less often, or in the background while the next steps run: copy the state to host memory, and call
`torch.save` in a thread.""",
            purposes=_SAVING,
            before=(2, 3),
        ),
    ),
    JAX: (
        _LOADED_ONCE,
        RemedyPart(
            """\
Write checkpoints less often, or in the background while the next steps run:
    orbax.checkpoint.AsyncCheckpointer(orbax.checkpoint.StandardCheckpointHandler())""",
            purposes=_SAVING,
        ),
    ),
    TENSORFLOW: (
        _LOADED_ONCE,
        RemedyPart("Write checkpoints less often (`save_freq` in steps),", purposes=_SAVING, unless=(Feature.SESSION,)),
        RemedyPart(
            "Write checkpoints less often (`save_steps` of `CheckpointSaverHook`),",
            purposes=_SAVING,
            given=(Feature.SESSION,),
        ),
        RemedyPart(
            """\
or in the background while the next steps run:
    tf.train.CheckpointOptions(experimental_enable_async_checkpoint=True)""",
            purposes=_SAVING,
            since=(2, 9),
            unless=(Feature.SESSION,),
        ),
        RemedyPart("or from a thread of their own.", purposes=_SAVING, before=(2, 9), unless=(Feature.SESSION,)),
        RemedyPart("or from a thread of their own.", purposes=_SAVING, given=(Feature.SESSION,)),
    ),
    TORCH_XLA: (
        _LOADED_ONCE,
        RemedyPart(
            """\
Write checkpoints less often, or in the background: `torch_xla.experimental.distributed_checkpoint.CheckpointManager`
with `async_save`.""",
            purposes=_SAVING,
        ),
    ),
    None: (
        _LOADED_ONCE,
        RemedyPart(
            """\
Write checkpoints less often, or in the background: copy the state to host memory, write it from a thread.""",
            purposes=_SAVING,
        ),
    ),
}

SEGMENTS = (
    RemedyPart("    PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", since=(2, 1), vendors=NVIDIA),
    RemedyPart("    PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:512", since=(1, 10), before=(2, 1), vendors=NVIDIA),
    RemedyPart("    PYTORCH_HIP_ALLOC_CONF=max_split_size_mb:512", since=(1, 10), vendors=AMD, certain=True),
)
"""Settings of PyTorch's allocator. Expandable segments need ROCm 7 and a PyTorch of 2026 on AMD's devices."""

ALLOCATIONS: Remedies = {
    PYTORCH: (
        """\
Let the allocator's cache serve every step: fixed shapes (pad or bucket), no `empty_cache()` in the loop, and
let freed memory serve other sizes:""",
        *SEGMENTS,
        "Calls that free memory beside such that take it mean that it is short: a smaller batch is the cure.",
        RemedyPart("So is activation checkpointing.", purposes=TRAINS),
    ),
    JAX: """\
Let XLA allocate its memory once, as is the default (`XLA_PYTHON_CLIENT_PREALLOCATE` not `false`,
`XLA_PYTHON_CLIENT_ALLOCATOR` not `platform`), and donate what is overwritten: `jax.jit(step, donate_argnums=0)`.""",
    TENSORFLOW: """\
Let TensorFlow keep its memory: the default allocator without `allow_growth`, or `TF_GPU_ALLOCATOR=cuda_malloc_async`,
and shapes that stay the same (pad or bucket).""",
    None: "Keep shapes fixed, and take memory from a pool that keeps what is freed.",
}

CORES: Remedies = {
    PYTORCH: (
        RemedyPart(
            """\
Leave cores to the process that launches: fewer loader workers than cores, one thread in each
(`torch.set_num_threads(1)` in `worker_init_fn`), `OMP_NUM_THREADS` so that workers times threads fit, and loaders in
processes, not in threads.""",
            purposes=(Purpose.TRAINING, Purpose.INFERENCE),
        ),
        RemedyPart(
            """\
Leave cores to the process that launches: what prepares requests (tokenising, decoding) in processes, fewer than cores,
with `OMP_NUM_THREADS` set in them.""",
            purposes=SERVES,
            certain=True,
        ),
    ),
    TENSORFLOW: """\
Give the threads that launch a pool of their own, so that the input pipeline cannot take it:
    TF_GPU_THREAD_MODE=gpu_private TF_GPU_THREAD_COUNT=2   # 2 is the default count
and bound the pipeline's own: `options.threading.private_threadpool_size`, `num_parallel_calls` below the cores.""",
    JAX: """\
Leave cores to the process that launches: load in processes with fewer workers than cores (`grain`), and
set `OMP_NUM_THREADS` in them.""",
    None: "Leave cores to the launching thread: fewer loader threads than cores, `OMP_NUM_THREADS` set, or processes.",
}

ON_DEVICE: Remedies = {
    PYTORCH: (
        """\
An op runs where its tensors are. Create them on the device (`device=...`), or send what the step needs once, at its
start.""",
        RemedyPart(
            "What only the host can do belongs into the data loader's workers, if it needs nothing from the device, or",
            purposes=(Purpose.TRAINING, Purpose.INFERENCE),
        ),
        RemedyPart("What only the host can do belongs where requests are prepared, or", purposes=SERVES, certain=True),
        """\
behind the launches of the step. Many small tensors: one op over `torch.cat` or `torch.stack` of them in place of a
loop.""",
    ),
    TENSORFLOW: """\
See what was placed where, and why: an op without a kernel for the device, or one that is kept on the CPU (`tf.unique`,
strings, many of int32), takes its neighbours along.
    tf.debugging.set_log_device_placement(True)   # with stderr in a file beside the profile it is read here
    strategy = tf.distribute.OneDeviceStrategy("/gpu:0")   # variables and ops of strategy.scope() on one device
Move such ops into the input pipeline (`dataset.map`), or replace them: for labels `tf.math.unsorted_segment_sum` in
place of `tf.unique`. Many small tensors: one op over `tf.concat` or `tf.stack` of them (`tf.vectorized_map`) in place
of a loop.""",
    None: "Run them on the device, in the input pipeline, or behind the launches of the step.",
}
