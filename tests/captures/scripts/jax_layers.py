"""A model of layers that are alike, trained in JAX, profiled.

usage: jax_layers.py OUT
"""

import json
import os
import sys
from pathlib import Path

OUT = Path(sys.argv[1])
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

LAYERS, WIDTH, STEPS = 6, 256, 4


def layer(batch, weights, number):
    with jax.named_scope(f"layer_{number}"):
        with jax.named_scope("attention"):
            batch = jnp.tanh(batch @ weights[0])
        with jax.named_scope("mlp"):
            for at in (1, 2):
                with jax.named_scope(f"dense_{at}"):
                    batch = jnp.tanh(batch @ weights[at])
    return batch


def loss(weights, batch):
    for number, of_layer in enumerate(weights):
        batch = layer(batch, of_layer, number)
    return (batch**2).mean()


@jax.jit
def train_step(weights, batch):
    return jax.tree.map(lambda one, change: one - 1e-3 * change, weights, jax.grad(loss)(weights, batch))


weights = [[jnp.ones((WIDTH, WIDTH)) / WIDTH] * 3] * LAYERS
batch = jnp.ones((128, WIDTH))
weights = jax.block_until_ready(train_step(weights, batch))
with jax.profiler.trace(OUT):
    for number in range(STEPS):
        with jax.profiler.StepTraceAnnotation("train", step_num=number):
            weights = jax.block_until_ready(train_step(weights, batch))
(OUT / "truth.json").write_text(json.dumps({"layers": LAYERS}))
