"""A tf.data pipeline whose function waits 2 ms for each sample, as a slow disk has it, and a loop that reads it."""

import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

weights = tf.Variable(tf.zeros((8, 1)))


def read(index):
    time.sleep(0.002)
    return np.full((8,), index % 7, dtype="float32")


def sample(index):
    features = tf.numpy_function(read, [index], tf.float32)
    features.set_shape((8,))
    return features


@tf.function
def step(features):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((features @ weights - 1.0) ** 2)
    weights.assign_sub(0.001 * tape.gradient(loss, weights))
    return loss


def main() -> None:
    dataset = tf.data.Dataset.range(4_000).map(sample).batch(4)
    begun = time.perf_counter()
    for number, features in enumerate(dataset):
        step(features)
        if number == 100:
            begun = time.perf_counter()
        if number == 500:
            print(f"step_ms {(time.perf_counter() - begun) / 400 * 1e3:.3f}", flush=True)


if __name__ == "__main__":
    main()
