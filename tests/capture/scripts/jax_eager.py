"""A JAX loop that compiles nothing: gradients, op by op. usage: jax_eager.py STEPS"""

import sys

import jax
import jax.numpy as jnp


def loss(weights, batch):
    for _ in range(4):
        batch = jnp.tanh(batch @ weights)
    return jnp.mean(batch**2)


def update(weights, batch):
    return weights - 0.01 * jax.grad(loss)(weights, batch)


weights = jnp.ones((64, 64))
for _ in range(int(sys.argv[1])):
    weights = update(weights, jnp.ones((64, 64)))
gradient = jax.grad(jax.jit(lambda x: jax.vmap(jax.jit(jnp.square))(x).sum()))(jnp.ones(3) * 3)
print("end", gradient.tolist() == [6.0, 6.0, 6.0])
