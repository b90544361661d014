"""Captures the JAX profile in ``profiles/``: data-parallel training on eight CPU devices with two flaws.

The loader runs inside the loop, before each step, and one batch is longer than the others, so that its step compiles
the program again. Run it as ``python jax_demo.py FOLDER``; it needs JAX and no accelerator.
"""

from __future__ import annotations

import gzip
import os
import sys
from pathlib import Path

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

# The profile holds no folder of the machine it was made on.
jax.config.update("jax_hlo_source_file_canonicalization_regex", "^.*/(site-packages|examples|lib/python3[.0-9]*)/")

FIRST_STEP, STEPS, LONG_BATCH = 100, 6, 103
WIDTH, BATCH = 256, 512

mesh = Mesh(np.array(jax.devices()), ("data",))
replicated, sharded = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("data"))


@jax.jit
def train_step(weights: jax.Array, batch: jax.Array) -> jax.Array:
    def loss(weights: jax.Array) -> jax.Array:
        with jax.named_scope("autoencoder"):
            return jnp.mean((jnp.tanh(batch @ weights) @ weights.T - batch) ** 2)

    return weights - 0.01 * jax.grad(loss)(weights)


def load_batch(random: np.random.Generator, size: int) -> np.ndarray:
    return random.normal(size=(size, WIDTH)).astype(np.float32)


def main(folder: Path) -> None:
    random = np.random.default_rng(0)
    weights = jax.device_put(jnp.eye(WIDTH), replicated)
    weights = train_step(weights, jax.device_put(load_batch(random, BATCH), sharded)).block_until_ready()
    with jax.profiler.trace(str(folder)):
        for step in range(FIRST_STEP, FIRST_STEP + STEPS):
            with jax.profiler.StepTraceAnnotation("train", step_num=step):
                with jax.profiler.TraceAnnotation("load batch"):
                    batch = load_batch(random, 2 * BATCH if step == LONG_BATCH else BATCH)
                weights = train_step(weights, jax.device_put(batch, sharded))
                weights.block_until_ready()


if __name__ == "__main__":
    target = Path(sys.argv[1])
    main(target)
    (written,) = target.rglob("*.xplane.pb")
    (target / "jax_eight_devices.xplane.pb.gz").write_bytes(gzip.compress(written.read_bytes(), 9, mtime=0))
