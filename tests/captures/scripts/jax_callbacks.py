"""A JAX loop whose compiled step calls back into Python: to compute, and to print; profiled. Nothing is compiled anew.

usage: jax_callbacks.py OUT PYTHON_TRACER_LEVEL
"""

import json
import os
import sys
import time
from pathlib import Path

OUT, LEVEL = Path(sys.argv[1]), int(sys.argv[2])
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

WIDTH, STEPS, SLEEP_S = 256, 8, 0.010

slept = []


def slow_lookup(values):
    began = time.perf_counter_ns()
    time.sleep(SLEEP_S)
    slept.append(time.perf_counter_ns() - began)
    return np.asarray(values) * np.float32(0.5)


@jax.jit
def train_step(weights):
    made = jnp.tanh(weights @ weights)
    looked = jax.pure_callback(slow_lookup, jax.ShapeDtypeStruct((WIDTH,), jnp.float32), made[0])
    jax.debug.print("mean {mean}", mean=looked.mean())
    return weights - 1e-6 * made.T @ (made * looked)


weights = jax.block_until_ready(train_step(jnp.ones((WIDTH, WIDTH))))
jax.effects_barrier()
slept.clear()
options = jax.profiler.ProfileOptions()
options.python_tracer_level = LEVEL
with jax.profiler.trace(OUT, profiler_options=options):
    for number in range(STEPS):
        with jax.profiler.StepTraceAnnotation("train", step_num=number):
            weights = jax.block_until_ready(train_step(weights))
    jax.effects_barrier()
(OUT / "truth.json").write_text(json.dumps({"sleep_ns": round(SLEEP_S * 1e9), "slept_ns": slept, "steps": STEPS}))
