"""A loop of TensorFlow on two processors under MirroredStrategy, which writes a checkpoint in one step; profiled.

usage: tf_strategy.py OUT
"""

import json
import os
import sys
import time
from pathlib import Path

OUT = Path(sys.argv[1])
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf  # noqa: E402

STEPS, SAVED, WIDTH = 8, 5, 1024
(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration() for _ in range(2)])
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    weights = tf.Variable(tf.ones((WIDTH, WIDTH)))
    checkpoint = tf.train.Checkpoint(weights=weights)


@tf.function
def train_step(batch):
    def replica(rows):
        gradient = tf.matmul(rows, tf.tanh(tf.matmul(rows, weights)), transpose_a=True)
        context = tf.distribute.get_replica_context()
        weights.assign_sub(1e-6 * context.all_reduce(tf.distribute.ReduceOp.SUM, gradient))

    strategy.run(replica, (batch,))


batch = tf.ones((256, WIDTH))
train_step(batch)
checkpoint.write(str(OUT / "warm"))
wrote = 0
tf.profiler.experimental.start(str(OUT))
for number in range(STEPS):
    with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
        train_step(batch)
        if number == SAVED:
            began = time.perf_counter_ns()
            checkpoint.write(str(OUT / "saved"))
            wrote = time.perf_counter_ns() - began
tf.profiler.experimental.stop()
(OUT / "truth.json").write_text(json.dumps({"steps": STEPS, "saved": SAVED, "wrote_ns": wrote, "replicas": 2}))
