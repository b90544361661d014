"""Keras with a slow callback and a slow dataset. usage: keras_slow.py STEPS"""

import os
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import tensorflow as tf


class Slow(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.010)


def load(index):
    time.sleep(0.010)
    return index


dataset = tf.data.Dataset.range(int(sys.argv[1])).map(lambda i: tf.py_function(load, [i], tf.int64))
dataset = dataset.map(lambda i: (tf.ones((4, 16)), tf.ones((4, 1))))
model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
history = model.fit(dataset, verbose=0, callbacks=[Slow()])
print("end", len(history.history["loss"]))
