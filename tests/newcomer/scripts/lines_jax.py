"""A JAX loop in ``main``: input made in Python, a step that is waited for, a checkpoint written now and then."""

import time

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def step(weights, batch):
    """One step of descent."""
    return weights - 1e-6 * jax.grad(lambda w: jnp.square(batch @ w).mean())(weights)


def decode(index: int) -> np.ndarray:
    """The innermost."""
    time.sleep(0.004)
    raw = [float((index * k) % 255) for k in range(40_000)]
    return np.asarray(raw, np.float32).reshape(100, 400)


def main() -> None:
    """Train."""
    weights = jnp.zeros((400, 400))
    for index in range(60):
        batch = decode(index)
        weights = step(weights, batch)
        weights.block_until_ready()
        time.sleep(0.005)
        total = 0
        for number in range(60_000):
            total += number


main()
