"""A JAX loop whose gradients are compiled, while its update dispatches every op by itself."""

import time

import jax
import jax.numpy as jnp


def loss_of(layers, samples):
    for weights, bias in layers:
        samples = jnp.tanh(samples @ weights + bias)
    return jnp.mean((samples - 1.0) ** 2)


gradients_of = jax.jit(jax.value_and_grad(loss_of))


def update(layers, speeds, samples):
    loss, gradients = gradients_of(layers, samples)
    speeds = jax.tree.map(lambda speed, gradient: 0.9 * speed + 0.1 * gradient, speeds, gradients)
    layers = jax.tree.map(lambda weights, speed: weights - 0.01 * speed, layers, speeds)
    return layers, speeds, loss


def main() -> None:
    layers = [(jnp.eye(32) / 2, jnp.zeros(32)) for _ in range(8)]
    speeds = jax.tree.map(jnp.zeros_like, layers)
    samples = jnp.ones((16, 32))
    begun = time.perf_counter()
    for number in range(3_000):
        layers, speeds, loss = update(layers, speeds, samples)
        loss.block_until_ready()
        if number == 100:
            begun = time.perf_counter()
        if number == 500:
            print(f"step_ms {(time.perf_counter() - begun) / 400 * 1e3:.3f}", flush=True)


if __name__ == "__main__":
    main()
