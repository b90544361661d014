"""A small Keras model: the loop around its batches takes longer than they do."""

import os
import time

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np


class Clock(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.begun = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        print(f"step_ms {(time.perf_counter() - self.begun) / 2_000 * 1e3:.3f}", flush=True)


def main() -> None:
    keras.utils.set_random_seed(0)
    samples = np.linspace(0, 1, 16 * 8 * 2_000, dtype="float32").reshape(-1, 8)
    targets = samples.sum(axis=1, keepdims=True)
    model = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
    model.fit(samples, targets, batch_size=16, epochs=3, shuffle=False, verbose=0, callbacks=[Clock()])


if __name__ == "__main__":
    main()
