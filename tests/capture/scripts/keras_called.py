"""A model of Keras that is called, not compiled. usage: keras_called.py STEPS"""

import sys

import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(16, activation="relu"), tf.keras.layers.Dense(1)])
for _ in range(int(sys.argv[1])):
    found = model(tf.ones((8, 4)))
print("end", float(found[0, 0]) == float(found[0, 0]))
