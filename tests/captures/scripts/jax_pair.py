"""A JAX loop that reads its loss in every step before it sleeps, or does not; each profiled.

usage: jax_pair.py OUT
"""

import json
import os
import sys
import time
from pathlib import Path

OUT = Path(sys.argv[1])
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

WIDTH, STEPS, SLEEP_S = 400, 12, 0.060
"""The sleep is several times what the device needs, so that a busy machine changes little."""


@jax.jit
def train_step(weights):
    made = jnp.tanh(weights @ weights)
    return weights - 1e-6 * made.T @ made, jnp.mean(made)


def loop(weights, *, reads):
    for number in range(STEPS):
        with jax.profiler.StepTraceAnnotation("train", step_num=number):
            for _ in range(4):
                weights, value = train_step(weights)
            if reads:
                float(value)
            with jax.profiler.TraceAnnotation("write_logs"):
                time.sleep(SLEEP_S)
    return jax.block_until_ready(weights)


options = jax.profiler.ProfileOptions()
options.python_tracer_level = 0
weights = loop(jnp.ones((WIDTH, WIDTH)), reads=True)
for name, reads in (("before", True), ("after", False)):
    with jax.profiler.trace(OUT / name, profiler_options=options):
        loop(weights, reads=reads)
(OUT / "truth.json").write_text(json.dumps({"sleep_ns": round(SLEEP_S * 1e9), "steps": STEPS}))
