"""What to write instead, in the words of the framework a profile comes from, and when it applies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stepscope.analysis.workload import Purpose, Version, Workload

PYTORCH, JAX, TENSORFLOW, TORCH_XLA = "PyTorch", "JAX", "TensorFlow", "PyTorch/XLA"
TRAINS = (Purpose.TRAINING,)
SERVES = (Purpose.SERVING,)
INFERS = (Purpose.INFERENCE, Purpose.SERVING)


@dataclass(frozen=True, slots=True)
class Part:
    """Lines of a remedy that do not hold everywhere; an empty condition always holds."""

    text: str
    purposes: tuple[Purpose, ...] = ()
    """What the program is for."""
    since: Version | None = None
    """The first version of the framework that has it."""
    vendors: tuple[str, ...] = ()
    """Who made the device."""

    def fits(self, workload: Workload) -> bool:
        """Whether nothing that is known of a program speaks against it."""
        return (
            (not self.purposes or workload.is_for(self.purposes))
            and (self.since is None or workload.may_be_since(self.since))
            and (not self.vendors or workload.may_run_on(self.vendors))
        )


Text = str | tuple[str | Part, ...]
Remedies = Mapping[str | None, Text]
"""Text per ``Info.framework``, whole or in parts that apply under conditions; that of None for all others."""


def remedy(texts: Remedies, workload: Workload) -> str:
    """The text for a program's framework, less the parts that do not fit it; the neutral one where nothing is left."""
    return _fitting(texts.get(workload.framework, ()), workload) or _fitting(texts[None], workload)


def _fitting(text: Text, workload: Workload) -> str:
    if isinstance(text, str):
        return text
    given = [part if isinstance(part, Part) else Part(part) for part in text]
    return "\n".join(part.text.strip("\n") for part in given if part.fits(workload))


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
    xm.add_step_closure(log, args=(loss,), run_async=True)""",
    None: "Remove the wait, or run it every N steps: keep results on the device until then.",
}

LAUNCH: Remedies = {
    PYTORCH: """\
Let one launch run many kernels, largest effect first:
    model = torch.compile(model, mode="reduce-overhead")  # fused kernels, one graph
{optimizer}A larger batch (or sequence) gives each launch more work where memory allows.""",
    JAX: """\
Let one call run more of the step, largest effect first:
    step = jax.jit(step, donate_argnums=0)      # the whole step, not its parts
    state, _ = jax.lax.scan(step, state, batches)  # several steps in one call
A larger batch gives each call more work where memory allows.""",
    TENSORFLOW: """\
Let one call run more of the step, largest effect first: the whole step in one `tf.function` (with `jit_compile=True`
where its shapes are fixed), several steps in one call:
    model.compile(..., steps_per_execution=10)
A larger batch gives each call more work where memory allows.""",
    None: """\
Let one launch run more work: compile or capture the step as a whole (CUDA graphs), fuse small kernels, and give each
launch a larger batch where memory allows.""",
}

COPY_PAGEABLE: Remedies = {
    PYTORCH: """\
Pin the batches and do not wait for the copy, so that it runs beside the kernels of the step before:
    DataLoader(..., pin_memory=True)
    batch = batch.to(device, non_blocking=True)""",
    None: """\
Copy from pinned host memory, and without waiting, so that the copy runs beside the kernels of the step before.""",
}

COPY_PINNED: Remedies = {
    PYTORCH: """\
Copy the next batch on a stream of its own while this step computes (prefetching), with `non_blocking=True`.""",
    JAX: """\
Send the next batch while this step computes: `jax.device_put` returns at once, so call it one batch ahead.""",
    TENSORFLOW: """\
Send the next batch while this step computes:
    dataset.apply(tf.data.experimental.prefetch_to_device("/gpu:0"))""",
    None: "Send the next batch while this step computes (prefetching), on a stream of its own.",
}

COPY_D2H: Remedies = {
    PYTORCH: """\
Keep results on the device and fetch them every N steps, into pinned memory with `non_blocking=True`.""",
    None: "Keep results on the device and fetch them every N steps.",
}

SIXTEEN_BITS: Remedies = {
    PYTORCH: """\
Run matrix work in 16 bits where the model allows it:
    with torch.autocast("cuda", dtype=torch.{dtype}):
        loss = loss_fn(model(x), y)""",
    JAX: """\
Run matrix work in 16 bits where the model allows it: keep parameters in fp32 and compute in {dtype}
(`x.astype(jnp.{dtype})`, Flax: `dtype=jnp.{dtype}`).""",
    TENSORFLOW: """\
Run matrix work in 16 bits where the model allows it:
    tf.keras.mixed_precision.set_global_policy("mixed_{dtype}")""",
    None: "Run matrix work in 16 bits ({dtype}) where the model allows it.",
}

TF32: Remedies = {
    PYTORCH: """
Or keep fp32 and let the tensor cores take it: `torch.set_float32_matmul_precision("high")`.""",
    JAX: """
Or keep fp32 and let the tensor cores take it:
    jax.config.update("jax_default_matmul_precision", "tensorfloat32")""",
    TENSORFLOW: """
Or keep fp32 and let the tensor cores take it, as is the default:
    tf.config.experimental.enable_tensor_float_32_execution(True)""",
    None: "\nOr keep fp32 and let the tensor cores take it (TF32).",
}

LOSS_SCALING: Remedies = {
    PYTORCH: "\nWith float16 scale the loss: `torch.amp.GradScaler()`.",
    None: "\nWith float16 scale the loss.",
}

RECOMPILED: Remedies = {
    PYTORCH: """\
Keep the shapes that reach the compiled function fixed: pad or bucket them, or
    torch._dynamo.mark_dynamic(batch, 0)   # or torch.compile(model, dynamic=True)
`TORCH_LOGS=recompiles` names the guard that failed.""",
    JAX: """\
Pad or bucket inputs to a few fixed shapes, and run one step of each before it counts. `jax.log_compiles()` names what
is compiled; `jax.config.update("jax_explain_cache_misses", True)` says why.""",
    TENSORFLOW: """\
Pad or bucket inputs to a few fixed shapes, or give the function one signature for all:
    @tf.function(input_signature=[tf.TensorSpec([None, 224, 224, 3], tf.float32)])
Pass tensors, not Python numbers: each new number is traced anew.""",
    TORCH_XLA: """\
Pad or bucket inputs to a few fixed shapes: every new graph is compiled. `PT_XLA_DEBUG_LEVEL=1` says which line cut the
graph, `torch_xla.debug.metrics.metrics_report()` counts the compilations.""",
    None: "Pad or bucket inputs to a few fixed shapes, and run one step of each before it counts.",
}

_EAGERLY = Part(
    "`CUDA_MODULE_LOADING=EAGER` loads all code as the program starts, which takes longer and more memory; left at "
    "LAZY, the default of CUDA 12.2 and later, each kernel is loaded when it is first launched.",
    vendors=("NVIDIA",),
)
CODE_LOADING: Remedies = {
    PYTORCH: (
        """\
Let some steps pass before you record:
    schedule=torch.profiler.schedule(wait=5, warmup=3, active=5)""",
        Part("Run a request of each shape before real ones come in, so that none of them waits for this.", INFERS),
        _EAGERLY,
    ),
    None: (
        "Let some steps pass before you record or measure.",
        Part("Run a request of each shape before real ones come in, so that none of them waits for this.", INFERS),
        _EAGERLY,
    ),
}

CAPTURES: Remedies = {
    PYTORCH: """\
Let the first steps pass before you record: graphs are captured in the second and third call of a function compiled with
`mode="reduce-overhead"`, and as an engine starts. Each new shape is captured anew: pad or bucket inputs.""",
    None: "Capture all graphs before the steps that count. Each new shape is captured anew: pad or bucket inputs.",
}

HOST_WORK: Remedies = {
    PYTORCH: """\
Run it every N steps (`if step % 100 == 0:`), or in a thread while the device works: logging, metrics, progress bars and
callbacks need not hold up a step. Keep metrics on the device as tensors and turn them into numbers only when they are
logged.""",
    JAX: """\
Run it every N steps, or in a thread while the device works; several steps in one call leave less for Python to do:
    state, metrics = jax.lax.scan(step, state, batches)  # N steps, then log once""",
    TENSORFLOW: """\
Let several steps run between two calls of the callbacks, and write summaries every N of them:
    model.compile(..., steps_per_execution=10)
    keras.callbacks.TensorBoard(update_freq=100)
In a loop of your own a `tf.while_loop` (a `for` over the dataset inside the `tf.function`) runs many steps.""",
    TORCH_XLA: """\
Log every N steps, in a closure that runs beside the next step:
    xm.add_step_closure(log, args=(loss,), run_async=True)""",
    None: "Run it every N steps, or in a thread while the device works.",
}

GIVING_OPS: Remedies = {
    PYTORCH: """\
Leave less of it to Python: one update of all parameters, and a compiled model.
    optimizer = torch.optim.AdamW(..., fused=True)
    model = torch.compile(model)""",
    None: "Leave less of it to Python: update all parameters at once, and compile the model.",
}

GARBAGE: Remedies = {
    None: """\
Collect when it suits you: after set-up `gc.collect(); gc.freeze()` (what exists then is never looked at again), in the
loop `gc.disable()` and a `gc.collect()` every few hundred steps, or a higher threshold:
    gc.set_threshold(50_000, 50, 100)""",
}

CHECKPOINTS: Remedies = {
    PYTORCH: """\
Write checkpoints less often, or in the background while the next steps run:
    torch.distributed.checkpoint.async_save(state_dict, checkpoint_id=path)""",
    JAX: """\
Write checkpoints less often, or in the background while the next steps run:
    orbax.checkpoint.AsyncCheckpointer(orbax.checkpoint.StandardCheckpointHandler())""",
    TENSORFLOW: """\
Write checkpoints less often (`save_freq` in steps), or in the background while the next steps run:
    tf.train.CheckpointOptions(experimental_enable_async_checkpoint=True)""",
    TORCH_XLA: """\
Write checkpoints less often, or in the background: `torch_xla.experimental.distributed_checkpoint.CheckpointManager`
with `async_save`.""",
    None: "Write checkpoints less often, or in the background: copy the state to host memory, write it from a thread.",
}

ALLOCATIONS: Remedies = {
    PYTORCH: """\
Let the allocator's cache serve every step: fixed shapes (pad or bucket), no `torch.cuda.empty_cache()` in the loop,
and let segments grow in place of being freed:
    PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
Calls of `cudaFree` beside `cudaMalloc` mean that memory is short: a smaller batch or activation checkpointing.""",
    JAX: """\
Let XLA allocate its memory once, as is the default (`XLA_PYTHON_CLIENT_PREALLOCATE` not `false`,
`XLA_PYTHON_CLIENT_ALLOCATOR` not `platform`), and donate what is overwritten: `jax.jit(step, donate_argnums=0)`.""",
    TENSORFLOW: """\
Let TensorFlow keep its memory: the default allocator without `allow_growth`, or `TF_GPU_ALLOCATOR=cuda_malloc_async`,
and shapes that stay the same (pad or bucket).""",
    None: "Keep shapes fixed, and take memory from a pool that keeps what is freed.",
}

LAZY_GRAPH: Remedies = {
    TORCH_XLA: """\
Let Python do less per step: compile the step once in place of tracing it lazily each time,
    step = torch.compile(step, backend="openxla")
    # or several steps per graph: mark the step every N batches, `torch_xla.experimental.scan` over equal layers
and let the host run ahead: no value is read between steps, so that the next graph is built while this one runs.""",
    None: "Build the graph once and run it in every step, or while the device still works on the step before.",
}

TRANSFERS: Remedies = {
    JAX: """\
Send the next batch while this step computes: call `jax.device_put(batch, sharding)` a batch or two ahead (it returns at
once), keep what does not change on the device, and pass arrays of the device, not of numpy, to the step. Send the
narrowest type (`uint8` images) and convert on the device.""",
    TENSORFLOW: """\
Send the next batch while this step computes:
    dataset.apply(tf.data.experimental.prefetch_to_device("/gpu:0"))
and the narrowest type (`uint8` images): cast on the device.""",
    TORCH_XLA: """\
Send batches from a thread of their own, a few ahead:
    loader = torch_xla.distributed.parallel_loader.MpDeviceLoader(loader, device, device_prefetch_size=8)
and keep Python numbers out of the step: each is sent anew.""",
    None: "Send the next batch while this step computes, in few large pieces of the narrowest type.",
}

INFEED: Remedies = {
    TENSORFLOW: """\
The pipeline on the host does not keep up with the device. Let it work in parallel and ahead:
    dataset.map(parse, num_parallel_calls=tf.data.AUTOTUNE).batch(n, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
and run many steps per call (`steps_per_execution`, or a loop inside the `tf.function`).""",
    None: "The pipeline on the host does not keep up with the device: prepare batches in parallel and a few ahead.",
}

COMPILE_ALL: Remedies = {
    PYTORCH: (
        Part(
            """\
Compile what still runs eagerly too: the loss and the whole step, and the optimizer:
    step = torch.compile(step)
    opt_step = torch.compile(optimizer.step)
Set numerics that must stay exact apart; `TORCH_LOGS=graph_breaks` says what cannot be compiled.""",
            purposes=TRAINS,
            since=(2, 0),
        ),
        Part(
            """\
Compile what still runs eagerly too, the whole model, and let one launch run it:
    model = torch.compile(model, mode="reduce-overhead")
Engines that serve models do so unless told otherwise: vLLM without `enforce_eager`, SGLang without
`--disable-cuda-graph`. `TORCH_LOGS=graph_breaks` says what cannot be compiled.""",
            purposes=INFERS,
            since=(2, 0),
        ),
    ),
    JAX: """\
Put the whole step into one program: each op outside of `jax.jit` is a program of its own.
    step = jax.jit(step, donate_argnums=0)
Metrics, learning rates and keys belong inside.""",
    TENSORFLOW: """\
Run the whole step in one `tf.function`, the optimizer and metrics included:
    @tf.function(jit_compile=True)   # jit_compile where shapes are fixed
    def train_step(batch): ...
and look for `run_eagerly=True` in `model.compile` and `tf.config.run_functions_eagerly(True)`.""",
    None: "Compile the whole step as one program.",
}

CORES: Remedies = {
    PYTORCH: """\
Leave cores to the training process: fewer loader workers than cores, one thread in each (`torch.set_num_threads(1)` in
`worker_init_fn`), `OMP_NUM_THREADS` so that workers times threads fit, and loaders in processes, not in threads.""",
    TENSORFLOW: """\
Give the threads that launch a pool of their own, so that the input pipeline cannot take it:
    TF_GPU_THREAD_MODE=gpu_private TF_GPU_THREAD_COUNT=2   # 2 is the default count
and bound the pipeline's own: `options.threading.private_threadpool_size`, `num_parallel_calls` below the cores.""",
    JAX: """\
Leave cores to the training process: load in processes with fewer workers than cores (`grain`, a DataLoader), and set
`OMP_NUM_THREADS` in them.""",
    None: "Leave cores to the launching thread: fewer loader threads than cores, `OMP_NUM_THREADS` set, or processes.",
}

ON_DEVICE: Remedies = {
    PYTORCH: """\
An op runs where its tensors are. Create them on the device (`device=...`), or send what the step needs once, at its
start. What only the host can do belongs into the data loader's workers, if it needs nothing from the device, or behind
the launches of the step. Many small tensors: one op over `torch.cat` or `torch.stack` of them in place of a loop.""",
    TENSORFLOW: """\
See what was placed where, and why: an op without a kernel for the device, or one that is kept on the CPU (`tf.unique`,
strings, many of int32), takes its neighbours along.
    tf.debugging.set_log_device_placement(True)
    strategy = tf.distribute.OneDeviceStrategy("/gpu:0")   # variables and ops of strategy.scope() on one device
Move such ops into the input pipeline (`dataset.map`), or replace them: for labels `tf.math.unsorted_segment_sum` in
place of `tf.unique`. Many small tensors: one op over `tf.concat` or `tf.stack` of them (`tf.vectorized_map`) in place
of a loop.""",
    None: "Run them on the device, in the input pipeline, or behind the launches of the step.",
}

GRAPH_CUT: Remedies = {
    TORCH_XLA: """\
Keep values on the device until the step is over: `.item()`, `print(tensor)`, `if tensor:` and shapes that depend on
values each run what was traced so far. Log in a closure that runs after the step, and find other cuts with
`PT_XLA_DEBUG_LEVEL=2`:
    xm.add_step_closure(log, args=(loss,), run_async=True)""",
    JAX: """\
Put what lies between the programs into the compiled step: `jax.lax.cond`, `jnp.where` and `jax.lax.while_loop` in place
of Python's `if` and `while` on values, and one `jax.jit` around it all.""",
    TENSORFLOW: """\
Keep values in the graph: `tf.cond`, `tf.where`, `tf.while_loop` in place of `.numpy()` and Python's `if` on values.""",
    None: "Keep values on the device until the step is over.",
}
