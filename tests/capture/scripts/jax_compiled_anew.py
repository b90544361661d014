"""A JAX loop that compiles its step anew in each. usage: jax_compiled_anew.py STEPS"""

import sys

import jax
import jax.numpy as jnp

weights = jnp.ones((64, 64))
for _ in range(int(sys.argv[1])):
    weights = jax.jit(lambda held: held - 0.01 * jnp.sin(held))(weights)
print("end", float(weights[0, 0]) == float(weights[0, 0]))
