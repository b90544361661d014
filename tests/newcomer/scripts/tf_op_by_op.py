"""A TensorFlow loop with a tape of its own, whose step is no tf.function.

tf_op_by_op.py             each op by itself
tf_op_by_op.py --compiled  the step in one tf.function
"""

import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf


def main():
    model = tf.keras.Sequential([tf.keras.layers.Dense(width, activation="tanh") for width in (128, 128, 10)])
    optimizer = tf.keras.optimizers.SGD(0.01)
    loss_of = tf.keras.losses.CategoricalCrossentropy(from_logits=True)

    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))  # the cause
        gradients = tape.gradient(loss, model.trainable_variables)  # and that
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    run = tf.function(step) if "--compiled" in sys.argv else step
    x = tf.constant(np.random.randn(64, 64).astype("float32"))
    y = tf.constant(np.eye(10, dtype="float32")[np.random.randint(0, 10, 64)])
    for _ in range(6):
        begun = time.perf_counter()
        for _ in range(100):
            loss = run(x, y)
        float(loss)
        print(f"step_ms {(time.perf_counter() - begun) * 10:.3f}")


if __name__ == "__main__":
    main()
