"""``Model.fit`` under Keras's TensorBoard callback, with an input that sleeps; ``truth.json`` says what was planted.

usage: keras_fit.py OUT
"""

import json
import os
import sys
import time
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"  # So that ops keep the names the graph gives them.
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
import numpy as np
import tensorflow as tf

OUT = Path(sys.argv[1])
FIRST, LAST = 5, 12
INPUT_S = 0.010


def slow(index):
    time.sleep(INPUT_S)
    return np.full((16, 8), float(index), np.float32)


def element(index):
    batch = tf.ensure_shape(tf.numpy_function(slow, [index], tf.float32), (16, 8))
    return batch, batch[:, :1]


options = tf.data.Options()
options.autotune.enabled = False
options.experimental_optimization.inject_prefetch = False
batches = tf.data.Dataset.range(30).map(element).with_options(options)

model = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)])
model.compile("sgd", "mse")
profiler = keras.callbacks.TensorBoard(OUT, profile_batch=(FIRST, LAST))
model.fit(batches, epochs=1, verbose=0, callbacks=[profiler])
truth = {"first": FIRST, "last": LAST, "input_ns": int(INPUT_S * 1e9), "version": tf.__version__}
(OUT / "truth.json").write_text(json.dumps(truth))
