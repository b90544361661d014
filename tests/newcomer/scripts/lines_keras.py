"""Keras's ``fit`` over a generator, with a callback that takes its time."""

import time

import keras
import numpy as np


class Writes(keras.callbacks.Callback):
    """Where some users put things."""

    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.004)
        total = 0
        for number in range(60_000):
            total += number


def batches():
    """Made in Python."""
    for index in range(1000):
        raw = [float((index * k) % 255) for k in range(40_000)]
        yield np.asarray(raw, np.float32).reshape(100, 400), np.zeros((100, 1), np.float32)


def main() -> None:
    """Train."""
    model = keras.Sequential([keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
    model.fit(batches(), steps_per_epoch=60, epochs=1, verbose=0, callbacks=[Writes()])


main()
