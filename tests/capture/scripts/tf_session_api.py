"""The session API around TensorFlow 1's Session.run, plain and hooked. usage: tf_session_api.py plain|hooked OUT"""

import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow.compat.v1 as tf

import stepscope

kind, out = sys.argv[1:]
tf.disable_eager_execution()
tf.train.create_global_step()
x = tf.placeholder(tf.float32, (None, 64))
weights = tf.get_variable("weights", (64, 64))
train = tf.train.GradientDescentOptimizer(0.001).minimize(tf.reduce_sum(tf.matmul(x, weights) ** 2))
with tf.train.MonitoredTrainingSession() if kind == "hooked" else tf.Session() as session:
    if kind == "plain":
        session.run(tf.global_variables_initializer())
    schedule = stepscope.schedule(wait=3, warmup=1, active=2)
    with stepscope.profile(out, schedule=schedule, memory=True, shapes=True) as recorded:
        for number in range(8):
            session.run(train, {x: [[1.0] * 64]})
            stepscope.step(number)
put_back = not hasattr(tf.Session.run, "__wrapped__")
print(json.dumps({"files": recorded.files, "declined": recorded.declined, "put_back": put_back}))
