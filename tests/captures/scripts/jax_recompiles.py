"""A JAX loop that compiles in every step: for new shapes, or for a new function of the same name; profiled.

usage: jax_recompiles.py OUT shapes|functions
"""

import json
import os
import sys
from pathlib import Path

OUT, KIND = Path(sys.argv[1]), sys.argv[2]
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

WIDTH, STEPS = 128, 6


def made():
    def train_step(weights, batch):
        return weights - 1e-6 * jnp.tanh(batch @ weights).T @ batch

    return jax.jit(train_step)


def rows(number: int) -> int:
    return 64 + 8 * number if KIND == "shapes" else 64


train_step = made()
weights = jax.block_until_ready(train_step(jnp.ones((WIDTH, WIDTH)), jnp.ones((56, WIDTH))))
batches = [jnp.ones((rows(number), WIDTH)) for number in range(STEPS)]
with jax.profiler.trace(OUT):
    for number in range(STEPS):
        with jax.profiler.StepTraceAnnotation("train", step_num=number):
            step = train_step if KIND == "shapes" else made()
            weights = jax.block_until_ready(step(weights, batches[number]))
(OUT / "truth.json").write_text(json.dumps({"rows": [rows(number) for number in range(STEPS)], "width": WIDTH}))
