"""A TensorFlow job with a profiler server; runs until its standard input ends. usage: tensorflow_job.py PORT"""

import sys
import threading
import time

import tensorflow as tf

tf.profiler.experimental.server.start(int(sys.argv[1]))
step = tf.function(lambda x: tf.reduce_sum(x @ x))
reader = threading.Thread(target=sys.stdin.read, daemon=True)
batch = tf.ones((128, 128))
step(batch)
reader.start()
print("ready", flush=True)
number = 0
while reader.is_alive():
    with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
        time.sleep(0.004)
        step(batch)
    number += 1
