"""A TensorFlow loop that compiles nothing: a tape and an optimizer. usage: tf_eager.py STEPS"""

import sys

import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(16, activation="relu"), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD()
for _ in range(int(sys.argv[1])):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(tf.ones((8, 4))) ** 2)
    optimizer.apply_gradients(
        zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True)
    )
print("end", float(loss) == float(loss))
