"""What to write instead where launching, or compiling, holds up a device."""

from __future__ import annotations

from stepscope.analysis.workload import Feature, Purpose
from stepscope.diagnosis.remedies.fitting import (
    AMD,
    INFERS,
    JAX,
    NVIDIA,
    PYTORCH,
    RUNS,
    SERVES,
    TENSORFLOW,
    TORCH_XLA,
    TRAINS,
    Remedies,
    RemedyPart,
)

_ENGINES = """\
Engines that serve models launch whole graphs unless told otherwise: vLLM without `enforce_eager`, SGLang without
`--disable-cuda-graph`."""

_MORE_REQUESTS = "More requests at a time give each launch more work, where memory and latency allow."

LAUNCH: Remedies = {
    PYTORCH: (
        RemedyPart("Let one launch run many kernels, largest effect first:", purposes=RUNS),
        RemedyPart(
            '    model = torch.compile(model, mode="reduce-overhead")  # fused kernels, one graph',
            purposes=RUNS,
            since=(2, 0),
            unless=(Feature.COMPILED,),
        ),
        RemedyPart(
            '    model = torch.compile(model, mode="reduce-overhead")  # what is compiled, as one graph',
            purposes=RUNS,
            since=(2, 0),
            given=(Feature.COMPILED,),
            unless=(Feature.GRAPHS,),
        ),
        RemedyPart(
            "    step = torch.compile(step)  # what still runs outside of compiled code and graphs, too",
            purposes=RUNS,
            since=(2, 0),
            given=(Feature.COMPILED, Feature.GRAPHS),
        ),
        RemedyPart(
            "    graph = torch.cuda.CUDAGraph()  # capture a step once, graph.replay() from then on",
            purposes=RUNS,
            since=(1, 10),
            before=(2, 0),
            vendors=(*NVIDIA, *AMD),
        ),
        RemedyPart("    model = torch.jit.script(model)  # fuses elementwise ops", purposes=RUNS, before=(2, 0)),
        RemedyPart("{optimizer}", purposes=TRAINS),
        RemedyPart(_ENGINES, purposes=SERVES, certain=True),
        RemedyPart(_MORE_REQUESTS, purposes=SERVES, certain=True),
        RemedyPart(
            "A larger batch (or sequence) gives each launch more work where memory allows.",
            purposes=(Purpose.TRAINING, Purpose.INFERENCE),
        ),
    ),
    JAX: """\
Let one call run more of the step, largest effect first:
    step = jax.jit(step, donate_argnums=0)      # the whole step, not its parts
    state, _ = jax.lax.scan(step, state, batches)  # several steps in one call
A larger batch gives each call more work where memory allows.""",
    TENSORFLOW: (
        RemedyPart(
            """\
Let one call run more of the step, largest effect first: the whole step in one `tf.function` (with `jit_compile=True`
where its shapes are fixed), several steps in one call:
    model.compile(..., steps_per_execution=10)""",
            since=(2, 5),
            unless=(Feature.SESSION,),
        ),
        RemedyPart(
            """\
Let one call run more of the step, largest effect first: all that a step needs in one `session.run`, several steps in it
(`tf.while_loop`), and what XLA can fuse as one kernel:
    config.graph_options.optimizer_options.global_jit_level = tf.compat.v1.OptimizerOptions.ON_1""",
            given=(Feature.SESSION,),
        ),
        RemedyPart(
            "Let one call run more of the step: fetch what one step needs with one `session.run`.",
            before=(2, 0),
            unless=(Feature.SESSION,),
        ),
        RemedyPart(
            "Put the whole step into one `tf.function`.", since=(2, 0), before=(2, 5), unless=(Feature.SESSION,)
        ),
        "Many small tensors: one op over `tf.concat` or `tf.stack` of them in place of one for each,",
        RemedyPart(
            "and `tf.vectorized_map` in place of a loop or `tf.map_fn`.", since=(2, 0), unless=(Feature.SESSION,)
        ),
        RemedyPart(
            "and operations on whole tensors in place of `tf.map_fn`.", before=(2, 0), unless=(Feature.SESSION,)
        ),
        RemedyPart("and operations on whole tensors in place of `tf.map_fn`.", given=(Feature.SESSION,)),
        "A larger batch gives each call more work where memory allows.",
    ),
    None: "Let one launch run more work: fuse small kernels, and give each launch a larger batch where memory allows.",
}

LARGER_BATCH: Remedies = {
    None: (
        RemedyPart("A larger batch changes what the model learns: see whether it converges.", purposes=TRAINS),
        RemedyPart("A larger batch makes each answer take longer.", purposes=INFERS, certain=True),
    )
}
"""What it changes besides the step time."""

OPTIMIZER: Remedies = {
    PYTORCH: (
        RemedyPart(
            "    optimizer = {name}(params, fused=True)  # or foreach=True, if it has them",
            purposes=TRAINS,
            since=(2, 0),
            unless=(Feature.FUSED, Feature.FOREACH),
        ),
        RemedyPart(
            "    optimizer = {name}(params, fused=True)  # if it has it, in place of foreach",
            purposes=TRAINS,
            since=(2, 0),
            given=(Feature.FOREACH,),
            unless=(Feature.FUSED,),
        ),
        RemedyPart(
            "    optimizer = {name}(params, foreach=True)  # if it has it",
            purposes=TRAINS,
            since=(1, 12),
            before=(2, 0),
            unless=(Feature.FUSED, Feature.FOREACH),
        ),
        RemedyPart(
            "    optimizer = torch.optim._multi_tensor.{name}(params)  # if it is there",
            purposes=TRAINS,
            before=(1, 12),
            unless=(Feature.FUSED, Feature.FOREACH),
        ),
    ),
    None: "",
}
"""One update of all parameters."""

ZERO_GRAD: Remedies = {
    PYTORCH: (
        RemedyPart(
            "    optimizer.zero_grad(set_to_none=True)  # the default: nothing is launched to set zeros",
            purposes=TRAINS,
            since=(2, 0),
            unless=(Feature.GRAPHS,),  # gradients that a recorded graph writes must stay where they are
        ),
        RemedyPart(
            "    optimizer.zero_grad(set_to_none=True)  # nothing is launched to set zeros",
            purposes=TRAINS,
            before=(2, 0),
            unless=(Feature.GRAPHS,),
        ),
    ),
    None: "",
}

COMPILE_ALL: Remedies = {
    PYTORCH: (
        RemedyPart(
            """\
Compile what still runs eagerly too: the loss and the whole step, and the optimizer:
    step = torch.compile(step)
    opt_step = torch.compile(optimizer.step)
Set numerics that must stay exact apart.""",
            purposes=TRAINS,
            since=(2, 0),
        ),
        RemedyPart(
            """\
Compile what still runs eagerly too, the whole model, and let one launch run it:
    model = torch.compile(model, mode="reduce-overhead")""",
            purposes=(Purpose.INFERENCE, Purpose.SERVING),
            since=(2, 0),
            certain=True,
        ),
        RemedyPart(_ENGINES, purposes=SERVES, since=(2, 0), certain=True),
        RemedyPart("`TORCH_LOGS=graph_breaks` says what cannot be compiled.", since=(2, 1)),
    ),
    JAX: (
        """\
Put the whole step into one program: each op outside of `jax.jit` is a program of its own.
    step = jax.jit(step, donate_argnums=0)""",
        RemedyPart("Metrics, learning rates and keys belong inside.", purposes=TRAINS),
    ),
    TENSORFLOW: (
        RemedyPart(
            """\
Run the whole step in one `tf.function`, the optimizer and metrics included:
    @tf.function(jit_compile=True)   # jit_compile where shapes are fixed
    def train_step(batch): ...""",
            purposes=TRAINS,
            since=(2, 5),
        ),
        RemedyPart(
            """\
Run the whole step in one `tf.function`:
    @tf.function(jit_compile=True)   # jit_compile where shapes are fixed
    def predict(batch): ...""",
            purposes=INFERS,
            since=(2, 5),
            certain=True,
        ),
        RemedyPart("Run the whole step in one `tf.function`,", since=(2, 0), before=(2, 5)),
        RemedyPart(
            "and look for `run_eagerly=True` in `model.compile` and `tf.config.run_functions_eagerly(True)`.",
            since=(2, 0),
        ),
    ),
    None: "Compile the whole step as one program.",
}

RECOMPILED: Remedies = {
    PYTORCH: (
        RemedyPart(
            """\
Keep the shapes that reach the compiled function fixed: pad or bucket them, or
    torch._dynamo.mark_dynamic(batch, 0)   # or torch.compile(model, dynamic=True)""",
            since=(2, 0),
        ),
        RemedyPart("`TORCH_LOGS=recompiles` names the guard that failed.", since=(2, 1)),
    ),
    JAX: """\
Pad or bucket inputs to a few fixed shapes, and run one step of each before it counts. `jax.log_compiles()` names what
is compiled; `jax.config.update("jax_explain_cache_misses", True)` says why. Call `jax.jit` once, outside of the loop:
each new function or lambda that it is given is compiled anew, whatever its shapes. A number that changes in each
step is an argument like any other, and none of the `static_argnums`: each new value is compiled anew.""",
    TENSORFLOW: (
        RemedyPart(
            """\
Pad or bucket inputs to a few fixed shapes, or give the function one signature for all:
    @tf.function(input_signature=[tf.TensorSpec([None, 224, 224, 3], tf.float32)])
Pass tensors, not Python numbers: each new number is traced anew.""",
            unless=(Feature.SESSION,),
        ),
        RemedyPart(
            "Pad or bucket inputs to a few fixed shapes, and add no ops to the graph in the loop (`graph.finalize()`).",
            given=(Feature.SESSION,),
        ),
    ),
    TORCH_XLA: (
        """\
Pad or bucket inputs to a few fixed shapes: every new graph is compiled. So is one for each new value of a Python number
that the graph is built with, and for each new way of cutting the step.""",
        RemedyPart(
            "`PT_XLA_DEBUG_LEVEL=2` prints for each compilation the line that asked for it, and why.", since=(2, 4)
        ),
        RemedyPart("`PT_XLA_DEBUG=1` prints for each compilation the line that asked for it, and why.", before=(2, 4)),
    ),
    None: "Pad or bucket inputs to a few fixed shapes, and run one step of each before it counts.",
}

FALLS_BACK: Remedies = {
    None: (
        """\
Replace such ops, or move them out of the step: into the loader, or behind every N steps. `nonzero`, `unique` and
boolean masks have results whose size depends on values; `torch.where`
keeps the size:
    mean = torch.where(mask, values, 0.0).sum() / mask.sum()
What is left can be asked for: https://github.com/pytorch/xla/issues. The lines are printed by""",
        RemedyPart("    PT_XLA_DEBUG_LEVEL=2 python main.py", since=(2, 4)),
        RemedyPart("    PT_XLA_DEBUG=1 python main.py", before=(2, 4)),
    )
}

GIVING_OPS: Remedies = {
    PYTORCH: (
        RemedyPart(
            """\
Leave less of it to Python: one update of all parameters.
    optimizer = torch.optim.AdamW(..., fused=True)""",
            since=(2, 0),
            given=(Feature.OPTIMIZER,),
            unless=(Feature.FUSED,),
        ),
        RemedyPart(
            """\
Leave less of it to Python: a compiled model.
    model = torch.compile(model)""",
            since=(2, 0),
            unless=(Feature.COMPILED,),
        ),
        RemedyPart(
            "Leave less of it to Python: compile the whole step, not only parts of it.",
            since=(2, 0),
            given=(Feature.COMPILED,),
        ),
        RemedyPart("Leave less of it to Python: `torch.jit.script` or `torch.jit.trace` the model.", before=(2, 0)),
    ),
    None: (
        "Leave less of it to Python: compile the model.",
        RemedyPart("Update all parameters at once.", given=(Feature.OPTIMIZER,)),
    ),
}

GRAPH_CUT: Remedies = {
    TORCH_XLA: """\
Keep values on the device until the step is over: `.item()`, `print(tensor)`, `if tensor:` and shapes that depend on
values each run what was traced so far. Log in a closure that runs after the step, and find other cuts with
`PT_XLA_DEBUG_LEVEL=2`:
    xm.add_step_closure(log, args=(value,), run_async=True)""",
    JAX: """\
Put what lies between the programs into the compiled step: `jax.lax.cond`, `jnp.where` and `jax.lax.while_loop` in place
of Python's `if` and `while` on values, and one `jax.jit` around it all.""",
    TENSORFLOW: """\
Keep values in the graph: `tf.cond`, `tf.where`, `tf.while_loop` in place of `.numpy()` and Python's `if` on values.""",
    None: "Keep values on the device until the step is over.",
}

LAZY_GRAPH: Remedies = {
    TORCH_XLA: """\
Let Python do less per step: compile the step once in place of tracing it lazily each time,
    step = torch.compile(step, backend="openxla")
    # or several steps per graph: mark the step every N batches, `torch_xla.experimental.scan` over equal layers
and let the host run ahead: no value is read between steps, so that the next graph is built while this one runs.""",
    None: "Build the graph once and run it in every step, or while the device still works on the step before.",
}
