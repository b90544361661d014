"""A TensorFlow loop at the level of the module: input made in Python, a compiled step, a value that is read."""

import time

import numpy as np
import tensorflow as tf

weights = tf.Variable(tf.zeros((400, 400)))


@tf.function
def step(batch):
    """One step of descent."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(batch @ weights))
    weights.assign_sub(1e-6 * tape.gradient(loss, weights))
    return loss


def decode(index: int) -> np.ndarray:
    """The innermost."""
    time.sleep(0.04)
    raw = [float((index * k) % 255) for k in range(200_000)]
    return np.asarray(raw, np.float32).reshape(500, 400)


for index in range(40):
    batch = decode(index)
    loss = step(batch)
    loss.numpy()
    time.sleep(0.05)
    total = 0
    for number in range(600_000):
        total += number
