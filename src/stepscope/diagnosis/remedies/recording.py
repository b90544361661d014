"""What would have recorded what the host did: which option does, or what takes its place."""

from __future__ import annotations

from stepscope.diagnosis.remedies.fitting import JAX, PYTORCH, TENSORFLOW, TORCH_XLA, Remedies

PYTHON_ADVICE: Remedies = {
    PYTORCH: "`with_stack=True` records its Python code, with file and line.",
    # 1 is the default: a profile without Python was told to have none.
    JAX: "`options.python_tracer_level = 1` (`options = jax.profiler.ProfileOptions()`, given to `start_trace` as "
    "`profiler_options`) records its Python code, with file and line.",
    # Seen with 2.21: start records with the options' defaults, whatever it is given; the server heeds the client's.
    TENSORFLOW: "`stepscope capture` from `tf.profiler.experimental.server.start(9012)` records its Python code, with "
    "file and line; TensorFlow 2.21 ignores the options given to `start`.",
    # torch_xla.debug.profiler 2.9: neither start_trace nor trace has an option for Python.
    TORCH_XLA: "PyTorch/XLA's profiler records no Python code: put `with xp.Trace('name'):` around parts of the step.",
    None: "Mark the parts of the step with named ranges (NVTX, `record_function`, `log_event`).",
}

NAMED_RANGES: Remedies = {
    PYTORCH: "Mark the parts of the step with named ranges (`with torch.profiler.record_function('name'):`).",
    JAX: "Mark the parts of the step with named ranges (`with jax.profiler.TraceAnnotation('name'):`).",
    TENSORFLOW: "Mark the parts of the step with named ranges (`with tf.profiler.experimental.Trace('name'):`).",
    TORCH_XLA: "Mark the parts of the step with named ranges (`with xp.Trace('name'):`).",
    None: "Mark the parts of the step with named ranges (NVTX, `record_function`, `log_event`).",
}
"""What tells more where Python code was recorded already, and shows nothing."""
