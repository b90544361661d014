"""A JAX loop whose step nobody compiled.

jax_op_by_op.py             each op a program of its own
jax_op_by_op.py --compiled  the step under jax.jit
"""

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np


def layers(key):
    sizes = [64, 128, 128, 10]
    keys = jax.random.split(key, 3)
    return [
        (jax.random.normal(one, (a, b)) * 0.05, jnp.zeros(b))
        for one, a, b in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


def forward(params, x):
    for w, b in params[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def loss(params, x, y):
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(forward(params, x)) * y, axis=1))


def step(params, x, y):
    value, gradients = jax.value_and_grad(loss)(params, x, y)  # the cause
    return value, jax.tree.map(lambda p, g: p - 0.01 * g, params, gradients)  # and that


def main():
    run = jax.jit(step) if "--compiled" in sys.argv else step
    params = layers(jax.random.PRNGKey(0))
    x = np.random.randn(64, 64).astype("float32")
    y = np.eye(10, dtype="float32")[np.random.randint(0, 10, 64)]
    for _ in range(6):
        begun = time.perf_counter()
        for _ in range(100):
            _, params = run(params, x, y)
        jax.block_until_ready(params)
        print(f"step_ms {(time.perf_counter() - begun) * 10:.3f}")


if __name__ == "__main__":
    main()
