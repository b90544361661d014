"""A Session run with FULL_TRACE that waits for a slow producer, in every form TensorFlow writes it.

usage: tf_session.py OUT

Writes ``RunMetadata.pb``, ``StepStats.pb`` and the Timelines ``plain.json``, ``memory.json``, ``no_dataflow.json``;
``truth.json`` says what was planted. Times are Unix times in ns.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"  # So that ops keep the names the graph gives them.
import numpy as np
import tensorflow as tf
from tensorflow.python.client import timeline

OUT = Path(sys.argv[1])
TAKEN, PRODUCER_S = 4, 0.030
v1 = tf.compat.v1
v1.disable_eager_execution()

fed = v1.placeholder(tf.float32, [32, 64], name="fed")
queue = tf.queue.FIFOQueue(10, tf.float32, shapes=[[32, 64]], name="batches")
put = queue.enqueue(fed, name="put")
batch = queue.dequeue_many(TAKEN, name="take")
weights = v1.get_variable("weights", [64, 16])
loss = tf.reduce_mean(tf.nn.relu(tf.reshape(batch, [-1, 64]) @ weights), name="loss")
train = v1.train.GradientDescentOptimizer(0.1).minimize(loss, name="train")
row = np.ones((32, 64), np.float32)
OUT.mkdir(parents=True, exist_ok=True)

with v1.Session() as session:
    session.run(v1.global_variables_initializer())
    for _ in range(TAKEN):
        session.run(put, {fed: row})
    session.run(train)
    started, offered = threading.Event(), []

    def produce():
        started.wait()
        for _ in range(TAKEN):
            time.sleep(PRODUCER_S)
            offered.append(time.time_ns())
            session.run(put, {fed: row})

    producer = threading.Thread(target=produce)
    producer.start()
    metadata = v1.RunMetadata()
    traced = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
    started.set()
    began = time.time_ns()
    session.run(train, options=traced, run_metadata=metadata)
    ended = time.time_ns()
    producer.join()

stats = metadata.step_stats
(OUT / "RunMetadata.pb").write_bytes(metadata.SerializeToString())
(OUT / "StepStats.pb").write_bytes(stats.SerializeToString())
forms = {"plain": {}, "memory": {"show_memory": True}, "no_dataflow": {"show_dataflow": False}}
for name, asked in forms.items():
    text = timeline.Timeline(stats).generate_chrome_trace_format(**asked)
    (OUT / f"{name}.json").write_text(text)

nodes = [
    {
        "device": device.device,
        "node": node.node_name,
        "start_us": node.all_start_micros,
        "dur_us": node.all_end_rel_micros,
        "start_ns": node.all_start_nanos,
        "dur_ns": node.all_end_rel_nanos,
        "thread": node.thread_id,
        "outputs": len(node.output),
    }
    for device in stats.dev_stats
    for node in device.node_stats
]
truth = {
    "began": began,
    "ended": ended,
    "last_offered": offered[-1],
    "planted_ns": int(TAKEN * PRODUCER_S * 1e9),
    "nodes": nodes,
    "version": tf.__version__,
}
(OUT / "truth.json").write_text(json.dumps(truth))
