"""Steps in which Python collects garbage. usage: collects.py torch|jax|tensorflow STEPS"""

import gc
import sys

kept = [[number] for number in range(200_000)]


def with_torch():
    import torch

    model = torch.nn.Linear(16, 16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = torch.ones(4, 16)

    def step():
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()

    return step


def with_jax():
    import jax
    import jax.numpy as jnp

    doubled, batch = jax.jit(lambda x: x * 2), jnp.ones((16, 16))
    return lambda: doubled(batch).block_until_ready()


def with_tensorflow():
    import tensorflow as tf

    doubled, batch = tf.function(lambda x: x * 2), tf.ones((16, 16))
    return lambda: doubled(batch)


step = {"torch": with_torch, "jax": with_jax, "tensorflow": with_tensorflow}[sys.argv[1]]()
for _ in range(int(sys.argv[2])):
    step()
    gc.collect(1)
    gc.collect()
print("end", len(kept))
