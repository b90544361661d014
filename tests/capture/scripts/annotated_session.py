"""Two cycles of the session API around annotated steps, in TensorBoard's folders.

usage: annotated_session.py jax|tensorflow|torch_xla OUT
"""

import json
import os
import sys

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", PJRT_DEVICE="CPU")
import stepscope

framework, out = sys.argv[1:]


def make_step():
    if framework == "jax":
        import jax

        step, x = jax.jit(lambda x: x @ x / 64), jax.numpy.ones((64, 64))
        return lambda: step(x).block_until_ready()
    if framework == "tensorflow":
        import tensorflow as tf

        step, x = tf.function(lambda x: x @ x / 64), tf.ones((64, 64))
        return lambda: step(x).numpy()
    import torch
    import torch_xla

    x = torch.ones(64, 64).to(torch_xla.device())
    return lambda: (x @ x / 64).cpu()


step = make_step()
ready = []


@stepscope.annotate("augment", rows_augmented=32)
def augment():
    pass


schedule = stepscope.schedule(wait=1, warmup=1, active=3, repeat=2)
with stepscope.profile(out, schedule=schedule, stacks=False, tensorboard=True, on_trace_ready=ready.append) as session:
    for number in range(100, 110):
        augment()
        with stepscope.annotate("inner", step_num=number):
            step()
        stepscope.step(number)
print(json.dumps({"files": session.files, "ready": ready, "declined": session.declined}))
