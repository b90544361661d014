"""Keras's fit on TensorFlow, which knows nothing of profilers. usage: keras_fit.py STEPS"""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np

model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(32), keras.layers.Dense(1)])
model.compile("sgd", "mse", jit_compile=False)
rows = 4 * int(sys.argv[1])
model.fit(np.ones((rows, 16), "float32"), np.ones((rows, 1), "float32"), batch_size=4, verbose=0)
print("end")
