"""The session API in a JAX loop, and a profiler of the script's own within it. usage: jax_session.py OUT"""

import json
import sys

import jax
import jax.numpy as jnp

import stepscope

out, own = sys.argv[1:]
step = jax.jit(lambda x: x @ x / 64)
x = jnp.ones((64, 64))
schedule = stepscope.schedule(wait=1, warmup=1, active=4, repeat=2)
with stepscope.profile(out, schedule=schedule, stacks=False) as session:
    for number in range(8):
        with stepscope.annotate("load_batch", rows=64):
            x = step(x)
        stepscope.step(number)
    x.block_until_ready()
    jax.profiler.start_trace(own)
    jax.profiler.stop_trace()
again = jax.profiler.start_trace.__module__
print(json.dumps({"files": session.files, "declined": session.declined, "start_trace": again}))
