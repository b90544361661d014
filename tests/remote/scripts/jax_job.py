"""A JAX job with a profiler server; runs until its standard input ends. usage: jax_job.py PORT"""

import sys
import threading
import time

import jax
import jax.numpy as jnp

jax.profiler.start_server(int(sys.argv[1]))
step = jax.jit(lambda x: (x @ x).sum())
reader = threading.Thread(target=sys.stdin.read, daemon=True)
batch = jnp.ones((128, 128))
step(batch).block_until_ready()
reader.start()
print("ready", flush=True)


def train(number):
    with jax.profiler.StepTraceAnnotation("train", step_num=number):
        time.sleep(0.004)
        step(batch).block_until_ready()


number = 0
while reader.is_alive():
    train(number)
    number += 1
