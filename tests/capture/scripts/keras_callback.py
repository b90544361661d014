"""Keras's fit on 40 batches, with our callback where OUT is given. usage: keras_callback.py [OUT]"""

import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np

callbacks = []
if sys.argv[1:]:
    import stepscope
    from stepscope.integrations.keras import ProfileCallback

    callbacks = [ProfileCallback(sys.argv[1], schedule=stepscope.schedule(wait=4, active=4), stacks=False)]
model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(32), keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(gradient_accumulation_steps=2), "mse", jit_compile=False)
rows = 4 * 40
model.fit(
    np.ones((rows, 16), "float32"), np.ones((rows, 1), "float32"), batch_size=4, verbose=0, callbacks=callbacks
)  # fmt: skip
print("end", json.dumps([[each.recording.session.files, each.recording.session.declined] for each in callbacks]))
