"""Logs of device placement. ``EAGER`` and ``GRAPH`` are lines of TensorFlow 2.21 on a CPU (a ``tf.function`` and a
session), with GPUs put in where one would be; ``OLD`` is how TensorFlow 1.0 wrote them."""

EAGER = """\
WARNING: All log messages before absl::InitializeLog() is called are written to STDERR
I0000 00:00:39 19529 execute.cc:1775] Executing op _EagerConst in device /job:localhost/replica:0/task:0/device:GPU:0
I0000 00:00:39 19529 placer.cc:162] x: (_Arg): /job:localhost/replica:0/task:0/device:GPU:0
I0000 00:00:39 19529 execute.cc:1775] Executing op Mul in device /job:localhost/replica:0/task:0/device:GPU:0
I0000 00:00:39 19529 execute.cc:1775] Executing op Unique in device /job:localhost/replica:0/task:0/device:CPU:0
I0000 00:00:39 19529 execute.cc:1775] Executing op __inference_f in device /job:localhost/replica:0/task:0/device:GPU:0
I0000 00:00:39 19529 execute.cc:1775] Executing op __inference_f in device /job:localhost/replica:0/task:0/device:GPU:0
"""

GRAPH = """\
w/Initializer/random_uniform/RandomUniform: (RandomUniform): /job:localhost/replica:0/task:0/device:GPU:0
fc/MatMul: (MatMul): /job:localhost/replica:0/task:0/device:GPU:0
loss/Unique: (Unique): /job:localhost/replica:0/task:0/device:CPU:0
epoch 3: (loss): 0.2 on /job
[ 7 -4]
"""

OLD = """\
I tensorflow/core/common_runtime/simple_placer.cc:819] fc/MatMul: (MatMul)/job:localhost/replica:0/task:0/gpu:0
loss/Unique: (Unique): /job:localhost/replica:0/task:0/cpu:0
"""
