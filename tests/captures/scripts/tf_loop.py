"""A TensorFlow 2 loop whose input sleeps, profiled; what was planted in it goes into ``truth.json``.

usage: tf_loop.py OUT
"""

import json
import os
import sys
import time
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"  # So that ops keep the names the graph gives them.
import numpy as np
import tensorflow as tf

OUT = Path(sys.argv[1])
STEPS = range(7, 15)
INPUT_S = 0.015
slept = []


def slow(index):
    began = time.perf_counter_ns()
    time.sleep(INPUT_S)
    slept.append(time.perf_counter_ns() - began)
    return np.full((64, 32), float(index), np.float32)


options = tf.data.Options()
options.autotune.enabled = False
options.experimental_optimization.inject_prefetch = False  # So that each batch is made while the loop waits for it.
batches = tf.data.Dataset.range(100).map(lambda index: tf.numpy_function(slow, [index], tf.float32))
batches = iter(batches.map(lambda batch: tf.ensure_shape(batch, (64, 32))).with_options(options))

weights = tf.Variable(tf.ones((32, 32)))


@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.tanh(batch @ weights) - batch) ** 2)
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    return loss


train_step(next(batches)).numpy()
slept.clear()
steps = {}
tf.profiler.experimental.start(str(OUT))
for number in STEPS:
    before = time.perf_counter_ns()
    with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
        began = time.perf_counter_ns()
        batch = next(batches)
        waited = time.perf_counter_ns() - began
        train_step(batch).numpy()
        ended = time.perf_counter_ns()
    steps[number] = {
        "step_ns": [ended - began, time.perf_counter_ns() - before],
        "input_ns": [slept[-1], waited],
    }
tf.profiler.experimental.stop()
(OUT / "truth.json").write_text(json.dumps({"steps": steps, "version": tf.__version__}))
