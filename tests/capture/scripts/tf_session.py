"""A TensorFlow 1 loop. usage: tf_session.py STEPS"""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
x = tf.placeholder(tf.float32, (None, 64))
weights = tf.get_variable("weights", (64, 64))
loss = tf.reduce_sum(tf.matmul(x, weights) ** 2)
train = tf.train.GradientDescentOptimizer(0.001).minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(int(sys.argv[1])):
        session.run([train, loss], {x: [[1.0] * 64]})
print("end")
