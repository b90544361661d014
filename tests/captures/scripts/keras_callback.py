"""``Model.fit`` with a callback of 20 ms, which knows nothing of profilers; with a PORT under TensorFlow's server.

usage: keras_callback.py STEPS [PORT]
"""

import os
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
import numpy as np
import tensorflow as tf

SLOW_S = 0.020


class Metrics(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        self.write(batch)

    def write(self, batch):
        time.sleep(SLOW_S)


class Ready(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch == 5:
            print("ready", flush=True)


if len(sys.argv) > 2:
    tf.profiler.experimental.server.start(int(sys.argv[2]))
model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(32), keras.layers.Dense(1)])
model.compile("sgd", "mse", jit_compile=False)
rows = 4 * int(sys.argv[1])
data = np.ones((rows, 16), "float32"), np.ones((rows, 1), "float32")
model.fit(*data, batch_size=4, verbose=0, callbacks=[Metrics(), Ready()])
print("end")
